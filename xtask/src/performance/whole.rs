//! The whole command: many times `true`, two at a time, by `musec map` and by `xargs`, in turn.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Sizes;

/// Medians, in nanoseconds of wall time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) musec_ns: u64,
    pub(super) xargs_ns: u64,
}

pub(super) fn measure(program: &Path, folder: &Path, sizes: Sizes) -> Result<Whole, String> {
    println!("performance: {} x true, two at a time, by xargs and by musec map", sizes.items);
    let items = folder.join("items");
    let lines: String = (1..=sizes.items).map(|n| format!("{n}\n")).collect();
    fs::write(&items, lines).map_err(|error| format!("{}: {error}", items.display()))?;
    let runs = folder.join("runs");
    let (mut by_musec, mut by_xargs) = (Vec::new(), Vec::new());
    for _ in 0..sizes.times {
        let mut xargs = Command::new("xargs");
        by_xargs.push(timed(xargs.args(["-P2", "-n1", "true"]), &items)?);
        let mut musec = Command::new(program);
        musec.arg("--runs").arg(&runs).args(["map", "-j2", "-", "--", "true"]);
        by_musec.push(timed(&mut musec, &items)?);
        fs::remove_dir_all(&runs).map_err(|error| format!("{}: {error}", runs.display()))?;
    }
    Ok(Whole { musec_ns: median(by_musec), xargs_ns: median(by_xargs) })
}

fn timed(command: &mut Command, items: &Path) -> Result<Duration, String> {
    let words = format!("{command:?}").replace('"', "");
    let failed = |why: String| format!("`{words}`: {why}");
    let items = File::open(items).map_err(|error| failed(error.to_string()))?;
    command.stdin(items).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status().map_err(|error| failed(error.to_string()))?;
    let took = started.elapsed();
    if status.success() { Ok(took) } else { Err(failed(status.to_string())) }
}

fn median(mut times: Vec<Duration>) -> u64 {
    times.sort_unstable();
    let middle = times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    u64::try_from(middle.as_nanos()).unwrap_or(u64::MAX)
}
