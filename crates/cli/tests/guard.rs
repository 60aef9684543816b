//! A guard that is killed while its coordinator lives: there is another one, to which workers tell
//! what runs, so that what they leave behind dies as before.

mod support;

use std::fs;
use std::time::Duration;

use support::{Place, assert_conserved, kill, number, wait_for};

const LIMIT: Duration = Duration::from_secs(20);

/// Two workers with a process in their group, and one that has made a session of its own.
const JOB: &str = r#"
[job]
workers = 2
[[step]]
run = "setsid sleep 3600 & sleep 3601; true"
"#;

/// How many sockets a process has: a guard has one for each worker, beside its own.
fn sockets(pid: u32) -> usize {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

/// Kills the guard; the next one, once as many workers have found it.
fn kill_guard(place: &Place, guard: u32) -> u32 {
    let before = sockets(guard);
    kill("KILL", guard);
    let next = wait_for(LIMIT, || {
        let guards = place.processes_like("run-guard");
        guards.into_iter().find(|next| *next != guard && sockets(*next) >= before)
    });
    next.unwrap_or_else(|| panic!("no guard in place of {guard}:\n{}{}", place.tree(), place.log()))
}

#[test]
fn a_guard_that_was_killed_has_a_successor_that_cleans_up_after_killed_workers() {
    let place = Place::new(JOB);
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3601", 2);
    place.await_processes("sleep 3600", 2);
    let mut guard = place.await_processes("run-guard", 1)[0];
    for _ in 0..3 {
        guard = kill_guard(&place, guard);
    }
    assert!(place.log().contains("the guard was killed, and is started again"), "{}", place.log());
    for worker in place.await_processes("musec worker", 2) {
        kill("KILL", worker);
    }
    assert_eq!(musec.wait().expect("ended").code(), Some(1));
    place.assert_nothing_left(LIMIT);
    let report = place.report();
    assert_conserved(&report);
    assert_eq!(number(&report["workers"]["lost"]), 2, "{report}");
}

#[test]
fn a_guard_that_was_killed_has_a_successor_for_the_death_of_all_others() {
    let place = Place::new(JOB);
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3601", 2);
    let guard = place.await_processes("run-guard", 1)[0];
    kill_guard(&place, guard);
    let workers = place.await_processes("musec worker", 2);
    kill("STOP", musec.id());
    for worker in workers {
        kill("KILL", worker);
    }
    kill("KILL", musec.id());
    musec.wait().expect("reaped");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_run_whose_guard_was_killed_ends_well_and_leaves_no_folder() {
    let job = "[job]\nworkers = 2\n[[step]]\nrun = \"sleep 1.5; true\"\n";
    let place = Place::new(job);
    let mut musec = place.start(&[]);
    place.await_processes("sleep 1.5", 2);
    let guard = place.await_processes("run-guard", 1)[0];
    kill("KILL", guard);
    assert_eq!(musec.wait().expect("ended").code(), Some(0), "{}", place.log());
    place.assert_nothing_left(LIMIT);
}
