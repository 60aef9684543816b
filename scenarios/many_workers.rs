//! Five hundred workers, fifty at a time, on this machine: all done, and the time that musec tells
//! of a command is the time that the command's own shell measures.
//!
//! The same job is also cut short: its coordinator is killed in the middle.

#[path = "../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::time::Duration;

use support::{Place, assert_conserved, json, kill, number, text};

/// The shell notes how long its sleep took, by bash's own clock, which costs no process.
const JOB: &str = r#"
[job]
name = "many"
workers = 500
[[step]]
state = "sleep"
shell = "bash"
run = "a=$EPOCHREALTIME; sleep 0.2; b=$EPOCHREALTIME; echo $(( ${b/./} - ${a/./} )) > took"
[[step]]
state = "write"
run = "head -c 1048576 /dev/zero > file"
[[step]]
state = "upload"
do = [{ put = "file", as = "files/{{ index }}" }, { put = "took", as = "took/{{ index }}" }]
"#;

#[test]
fn of_five_hundred_workers_all_are_done_and_their_sleep_is_as_long_as_they_say() {
    let place = Place::new(JOB);
    let output = place.run(&["run", "job.toml", "-j", "50", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    assert_eq!(number(&report["workers"]["done"]), 500);
    assert_eq!(number(&report["clock_faults"]), 0);
    assert_eq!(number(&report["breakdown"]["unaccounted_ns"]), 0);

    let runs = place.path(".musec/runs");
    let run = fs::read_dir(&runs).expect("runs").flatten().next().expect("one run").path();
    let measured_ns = |worker: u32| {
        let took = fs::read_to_string(run.join(format!("out/took/{worker}"))).expect("put");
        took.trim().parse::<u64>().expect("microseconds") * 1000
    };
    // Of each worker that is looked at: the sleep is a part of its command, and whatever is more is
    // the start and the end of its shell. The medians are for people: `--nocapture` shows them.
    for worker in (0..500).step_by(25) {
        let show = place.show(worker);
        let commands = show["attempts"][0]["commands"].as_array().expect("commands");
        let sleep = commands.iter().find(|command| command["state"] == "sleep").expect("it");
        let service_ns = number(&sleep["finished_ns"]) - number(&sleep["started_ns"]);
        assert!(service_ns >= measured_ns(worker), "worker {worker}: {sleep}");
    }
    let commands = report["commands"].as_array().expect("commands");
    let sleep = commands.iter().find(|command| command["state"] == "sleep").expect("the sleep");
    let told_ns = number(&sleep["service_p50_ns"]);
    let mut all_ns: Vec<u64> = (0..500).map(measured_ns).collect();
    all_ns.sort_unstable();
    println!("p50 of the sleep: musec {told_ns} ns, shells {} ns", all_ns[249]);
    assert!(told_ns >= all_ns[249], "the sleep is a part of its command");
    for index in 0..500 {
        let size = fs::metadata(run.join(format!("out/files/{index}"))).expect("put").len();
        assert_eq!(size, 1 << 20);
    }
    place.assert_nothing_left(Duration::from_secs(10));
}

#[test]
fn killed_in_the_middle_it_leaves_nothing_and_tells_what_was_done() {
    let place = Place::new(JOB);
    let mut musec = place.start(&["-j", "50"]);
    place.await_processes("sleep 0.2", 20);
    std::thread::sleep(Duration::from_millis(1500));
    kill("KILL", musec.id());
    musec.wait().expect("reaped");
    place.assert_nothing_left(Duration::from_secs(10));
    let report = place.report();
    assert_eq!(report["status"], "interrupted");
    assert_conserved(&report);
    assert!(number(&report["workers"]["done"]) > 0, "{}", report["workers"]);
}
