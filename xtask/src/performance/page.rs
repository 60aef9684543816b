//! The chapter's text.

use std::fmt::Write as _;

use serde_json::Value;

use super::rows::{Row, number, rows};
use super::{Measured, Sizes};

/// Words of the chapter that do not depend on figures.
const HEAD: &str = "\
# Performance

What musec costs, beside the floor that the machine itself sets, and beside *mu*, the framework that it
follows. `cargo xtask performance` measures and writes this chapter; nothing in it is written by hand.
";

const HOW: &str = "
## How it is measured

Machines are noisy: each floor is measured in the same run as the figure beside it, round by round, and
both are medians.

* **CPU of a command** is that of the coordinator's process alone, all threads, user and system, with TLS
  and the journal on. Its workers are scripted: they speak the real protocol, from another process. The
  floor is one thread that serves plain sockets with epoll, with messages of the same length. It has no TLS,
  decides nothing and records nothing. (`musec bench coordinator`)
* **Recording** shows in the wall time of the same run with a journal and without, in turn. The difference
  of two noisy figures is noisier. What recording an event takes by itself is measured apart: CPU of the
  thread that records and of the one that writes. (`musec bench record`)
* **Many fake workers** are core's fleet and machines, the bytes of the journal and the fold, one batch of
  inputs after the other on one thread, with no socket and no disk. Beside them stands, as the floor, the
  same with 1,000 workers. (`musec bench simulate`)
* **Exec to hello** begins when the process is asked for, before it is made, and ends when the coordinator
  has read its hello: one real worker at a time. **`run`** is measured from sending the command to having
  read its reply. Its floor is `/bin/true` started by posix_spawn and awaited by a small process, with
  nothing else done for it. (`musec bench launch`)
* **The whole command** is timed from outside: `musec map -j2 - -- true` and `xargs -P2 -n1 true` in turn,
  start of the program, its workers, journal and report included.

mu's figures were measured on a machine of this kind (2 cores, loopback, mutual TLS); those of other tools,
and of bare tokio + rustls, likewise.
";

pub(super) fn page(
    machine: &[(&'static str, String)],
    sizes: Sizes,
    measured: &Measured,
) -> Result<String, String> {
    let mut out = HEAD.to_owned();
    let write = |out: &mut String, text: std::fmt::Arguments<'_>| {
        out.write_fmt(text).map_err(|error| error.to_string())
    };
    if sizes.is_quick {
        out.push_str(
            "\n**These figures are of a quick trial with small sizes, and say nothing about speed.**\n",
        );
    }
    out.push('\n');
    for (name, value) in machine {
        write(&mut out, format_args!("* {name}: {value}\n"))?;
    }
    write(
        &mut out,
        format_args!(
            "\nMany workers are {}, all busy ones get {} commands each, one busy one gets {}; \
             the whole command\nhas {} items.\n\n",
            sizes.workers, sizes.commands, sizes.commands_of_one, sizes.items
        ),
    )?;
    out.push_str(&table(&rows(measured)?));
    out.push_str(&curve(&measured.launch)?);
    out.push_str(HOW);
    Ok(out)
}

fn table(rows: &[Row]) -> String {
    let mut out = "| figure | mu | floor | musec | ratio | target | reached |\n\
                   |---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let reached = if row.is_reached { "yes" } else { "**no**" };
        let cells =
            [row.figure, row.others, &row.floor, &row.musec, &row.ratio, row.target, reached];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

/// How many workers at once came.
fn curve(launch: &Value) -> Result<String, String> {
    let ms = |ns: u64| format!("{} ms", ns.div_ceil(1_000_000));
    let mut out = format!(
        "\n## {} local workers at once\n\n\
         Real processes on this machine, launched, connected over TLS, each runs `/bin/true`: {} from\n\
         the run's creation to its end. Starts are paced, at most two for each core at a time; a worker\n\
         takes {} (median, p99 {}) from its request to its hello meanwhile. Since the first request:\n\n\
         | workers | requested | said hello | ended |\n|---|---|---|---|\n",
        number(launch, "workers")?,
        ms(number(launch, "wall_ns")?),
        ms(number(launch, "loaded_exec_to_hello_ns")?),
        ms(number(launch, "loaded_exec_to_hello_p99_ns")?),
    );
    let shares = launch.get("curve").and_then(Value::as_array).ok_or("no curve")?;
    for share in shares {
        let of = |key| number(share, key);
        out.push_str(&format!(
            "| {} % | {} | {} | {} |\n",
            of("percent")?,
            ms(of("requested_ns")?),
            ms(of("hello_ns")?),
            ms(of("ended_ns")?),
        ));
    }
    Ok(out)
}
