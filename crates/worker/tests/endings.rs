//! Ways to end, and that nothing is left of any.

mod support;

use std::path::Path;
use std::process::Command;

use musec_protocol::Action;
use support::{
    Coordinator, Running, Session, eventually, guard, is_alive, number_in, shell, worker,
};

/// Two processes that would sleep for long: a child in the group, and one with its own session.
const BUSY: &str = "sleep 1000 & echo $! > child; \
                    /usr/bin/setsid /bin/sh -c 'echo $$ > daemon; exec sleep 1000' & wait";

struct Busy {
    coordinator: Coordinator,
    session: Session,
    worker: Running,
    pids: [u32; 2],
}

fn busy(coordinator: Coordinator, guard_socket: &Path) -> Busy {
    let worker = worker(&coordinator.ticket(guard_socket));
    let mut session = coordinator.accept(coordinator.welcome());
    session.send(Action::Run(shell(BUSY)));
    let pids = ["child", "daemon"].map(|name| number_in(&coordinator.scratch().join(name)));
    assert!(pids.into_iter().all(is_alive));
    Busy { coordinator, session, worker, pids }
}

impl Busy {
    fn nothing_is_left(&self) {
        eventually("all processes are dead", || !self.pids.into_iter().any(is_alive));
        eventually("the scratch folder is gone", || !self.coordinator.scratch().exists());
    }
}

#[test]
fn a_worker_that_is_broken_off_before_it_was_let_in_tries_again() {
    let coordinator = Coordinator::new();
    let mut worker = worker(&coordinator.ticket(Path::new("")));
    coordinator.break_off();
    coordinator.break_off();
    let mut session = coordinator.accept(coordinator.welcome());
    session.send(Action::Quit);
    session.reply();
    assert!(worker.ended().success());
}

#[test]
fn a_worker_that_loses_its_coordinator_leaves_nothing() {
    let Busy { coordinator, session, mut worker, pids } = busy(Coordinator::new(), Path::new(""));
    drop(session);
    assert!(!worker.ended().success());
    assert!(!pids.into_iter().any(is_alive), "before the worker itself ends");
    assert!(!coordinator.scratch().exists());
}

#[test]
fn a_worker_that_is_told_to_end_by_a_signal_leaves_nothing() {
    for signal in ["TERM", "INT", "HUP"] {
        let mut busy = busy(Coordinator::new(), Path::new(""));
        busy.worker.signal(signal);
        assert!(!busy.worker.ended().success(), "{signal}");
        busy.nothing_is_left();
    }
}

#[test]
fn quit_ends_what_runs() {
    let mut busy = busy(Coordinator::new(), Path::new(""));
    let quit = busy.session.send(Action::Quit);
    let replies = [busy.session.reply(), busy.session.reply()];
    assert_eq!(replies[1].id, quit, "the last word is that of quit");
    assert!(busy.worker.ended().success());
    busy.nothing_is_left();
}

#[test]
fn a_kept_scratch_folder_stays() {
    let coordinator = Coordinator::new();
    let (mut guard, socket) = guard(&coordinator);
    let mut worker = worker(&coordinator.ticket(&socket));
    let mut welcome = coordinator.welcome();
    welcome.keep_scratch = true;
    let mut session = coordinator.accept(welcome);
    session.ask(Action::Run(shell("echo x > kept")));
    session.ask(Action::Quit);
    assert!(worker.ended().success());
    drop(guard.0.stdin.take());
    assert!(guard.ended().success());
    assert!(coordinator.scratch().join("kept").exists());
    assert!(!socket.exists());
}

#[test]
fn the_guard_cleans_up_after_a_worker_that_was_killed() {
    let coordinator = Coordinator::new();
    let (mut guard, socket) = guard(&coordinator);
    let mut busy = busy(coordinator, &socket);
    busy.worker.signal("KILL");
    busy.worker.ended();
    busy.nothing_is_left();
    assert!(guard.0.try_wait().expect("waited").is_none(), "others may still need it");
    assert!(busy.coordinator.path("scratch").exists());
    drop(guard.0.stdin.take());
    assert!(guard.ended().success());
    assert!(!busy.coordinator.path("scratch").exists());
}

#[test]
fn the_guard_survives_signals_that_are_meant_for_others_and_cleans_up_after_all() {
    let coordinator = Coordinator::new();
    let (mut guard, socket) = guard(&coordinator);
    for signal in ["INT", "TERM", "HUP"] {
        guard.signal(signal);
    }
    let name = std::fs::read_to_string(format!("/proc/{}/comm", guard.0.id())).expect("there");
    assert_eq!(name, "run-guard\n");
    let mut busy = busy(coordinator, &socket);
    // Coordinator and worker at once.
    busy.worker.signal("KILL");
    drop(guard.0.stdin.take());
    drop(busy.session);
    busy.worker.ended();
    assert!(guard.ended().success());
    assert!(!busy.pids.into_iter().any(is_alive));
    assert!(!busy.coordinator.path("scratch").exists());
}

#[test]
fn the_guard_leaves_alone_what_ended_well_and_what_is_not_the_workers() {
    let coordinator = Coordinator::new();
    let (mut guard, socket) = guard(&coordinator);
    let mut stranger = Running(Command::new("sleep").arg("1000").spawn().expect("a process"));
    // A worker that names a group that it had ended, and garbage.
    let mut line = std::os::unix::net::UnixStream::connect(&socket).expect("a guard");
    let words = format!("garbage\nrun 0\nrun -1\nhello x /\nrun {0}\nend {0}\n", stranger.0.id());
    std::io::Write::write_all(&mut line, words.as_bytes()).expect("said");
    std::io::Write::write_all(&mut line, &[b'x'; 100_000]).expect("said");
    drop(line);
    drop(guard.0.stdin.take());
    assert!(guard.ended().success());
    assert!(stranger.0.try_wait().expect("waited").is_none());
}
