//! Workers that do not read, do not come, or go too early.

use crate::peer::Peer;
use crate::stage::{Stage, WATCHDOG};
use crate::support::wait_for;

/// Bytes of the command that a worker does not read: more than a connection's buffers hold.
const COMMAND_BYTES: usize = 900_000;

/// What may wait for one worker that does not read, twice: in TLS and on its way there.
const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// Waits until the coordinator has killed the processes that stand in for rogues.
fn stand_ins_are_stopped(stage: &Stage) {
    let gone =
        wait_for(WATCHDOG, || stage.place.processes_like("sleep 1000000").is_empty().then_some(()));
    assert!(gone.is_some(), "left: {:?}", stage.place.processes());
}

#[test]
fn a_worker_that_never_reads_is_lost_by_name_in_seconds() {
    let text = "x".repeat(COMMAND_BYTES);
    let long = format!("[[step]]\nstate = \"long\"\necho = \"{text}\"\n");
    let stage = Stage::with_steps(3, &long);
    let peers: Vec<Peer> = stage.rogues().iter().map(Peer::joined).collect();
    let (over, peers) = stage.under(|stage, _| {
        stand_ins_are_stopped(stage);
        peers
    });
    drop(peers);
    over.assert_rogues_failed("it took nothing of what was sent to it for 9s");
    over.assert_memory(MEMORY_BYTES_MAX);
}

#[test]
fn workers_that_never_connect_fail_alone_after_their_time() {
    let stage = Stage::with_steps(3, "connect_timeout = \"3s\"\n");
    let (over, ()) = stage.under(|stage, _| stand_ins_are_stopped(stage));
    over.assert_rogues_failed("it never connected within 3s");
    assert_eq!(over.report["workers"]["never_connected"], 3, "{}", over.report["workers"]);
}

#[test]
fn a_worker_that_fails_before_all_have_connected_does_not_hang_the_run() {
    let stage = Stage::new(2);
    let tickets = stage.rogues();
    drop(Peer::joined(&tickets[0]));
    let (over, ()) = stage.under(|stage, _| {
        // The first is gone by now; another takes its descriptor at the coordinator.
        let gone = wait_for(WATCHDOG, || {
            (stage.place.processes_like("sleep 1000000").len() <= 1).then_some(())
        });
        assert!(gone.is_some(), "the first one's process is stopped");
        let mut second = Peer::joined(&tickets[1]);
        assert!(second.command().is_some(), "the second one gets its work");
    });
    over.assert_rogues_failed("the worker vanished");
}
