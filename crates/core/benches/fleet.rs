//! What a command costs in the fleet alone: a reply in, the records and the next command out. No
//! socket, no TLS, no journal. `cargo bench -p musec-core`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench reads the clock and prints what it says"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use musec_core::fleet::{Fleet, FleetOptions, Input, Output};
use musec_core::job::{Options, parse};
use musec_protocol::{CommandId, Hello, LaunchId, Outcome, Reply, WTime};
use musec_trace::{CTime, ClockKind, Joined};

/// Workers that take turns, so that no one's state stays in the nearest cache.
const WORKERS: [u32; 2] = [1, 1000];

/// Commands of each measurement.
const COMMANDS: u64 = 300_000;

fn main() {
    println!(
        "sizes: Output {} Event {} Input {} Command {} Reply {}",
        size_of::<Output>(),
        size_of::<musec_trace::Event>(),
        size_of::<Input>(),
        size_of::<musec_protocol::Command>(),
        size_of::<Reply>()
    );
    for (kind, list) in [("one at a time", ""), ("pipelined", "pipelined = true\n")] {
        for workers in WORKERS {
            let ns = measure(workers, list);
            println!("fleet, {workers:>4} workers, {kind}: {ns} ns a command");
        }
    }
}

/// Nanoseconds a command.
fn measure(workers: u32, list: &str) -> u128 {
    let job = format!(
        "[job]\nworkers = {workers}\n[[step]]\nfor = {{ i = \"range(1000)\" }}\n{list}do = [\
         {{ for = {{ k = \"range(1000)\" }}, do = [{{ echo = \"\" }}] }}]\n"
    );
    let program = parse(&job, &Options::default()).expect("a job");
    let mut fleet = Fleet::new(Arc::new(program), FleetOptions::default());
    let mut now = CTime::ZERO;
    let mut sent = std::collections::VecDeque::new();
    fleet.handle(now, Input::Start);
    drain(&mut fleet, &mut sent);
    for launch in (0..u64::from(workers)).map(LaunchId) {
        fleet.handle(now, Input::Joined(Box::new(joined(launch))));
        drain(&mut fleet, &mut sent);
    }
    let from = Instant::now();
    for _ in 0..COMMANDS {
        let (launch, id) = sent.pop_front().expect("a command is always under way");
        now = CTime::from_ns(now.ns + 1000);
        fleet.handle(
            now,
            Input::Replied { launch, t3: now, reply: Box::new(Reply::bare(id, Outcome::Ok)) },
        );
        drain(&mut fleet, &mut sent);
    }
    from.elapsed().as_nanos() / u128::from(COMMANDS)
}

fn drain(fleet: &mut Fleet, sent: &mut std::collections::VecDeque<(LaunchId, CommandId)>) {
    while let Some(output) = fleet.poll_output() {
        match output {
            Output::Send(launch, command) => sent.push_back((launch, command.id)),
            other => drop(black_box(other)),
        }
    }
}

fn joined(launch: LaunchId) -> Joined {
    let hello = Hello {
        host: Vec::new(),
        boot_id: String::new(),
        time_namespace: String::new(),
        pid: 1,
        clock: ClockKind::MonotonicRaw,
        encoded: WTime::default(),
        clock_gap_ns: 0,
        wall_ns: 0,
        cpus: 1,
        memory_bytes: 1,
        version: String::new(),
        facts: std::collections::BTreeMap::new(),
    };
    Joined { launch, tcp: CTime::ZERO, tls: CTime::ZERO, t3: CTime::ZERO, hello }
}
