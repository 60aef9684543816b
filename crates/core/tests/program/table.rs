//! The machine's table: whatever a program waits for, every input has a defined outcome. What
//! comes out stands in a snapshot, so that a change of it is seen.

use std::fmt::Write as _;

use musec_core::{Advance, Progress};
use musec_protocol::Outcome;
use musec_trace::CTime;

use crate::{Walk, facts, reply, steps};

/// What a program waits for, and a program that does.
const WAITS: &[(&str, &str)] = &[
    ("a command", "[[step]]\ntimeout = \"1s\"\ndo = [{ run = \"a\" }]\n"),
    (
        "a pipelined list with more to come",
        "[[step]]\nfor = { k = \"range(300)\" }\npipelined = true\ntimeout = \"1s\"\ndo = [{ run = \"a\" }]\n",
    ),
    (
        "the end of a pipelined list",
        "[[step]]\npipelined = true\ntimeout = \"1s\"\ndo = [{ run = \"a\" }, { run = \"b\" }]\n",
    ),
    (
        "a list that was cancelled",
        "[[step]]\npipelined = true\ntimeout = \"1s\"\ndo = [{ run = \"fails\" }, { run = \"a\" }]\n",
    ),
    (
        "lanes",
        "[[step]]\ntimeout = \"1s\"\nparallel = { l = [{ run = \"a\" }], m = [{ run = \"b\" }] }\n",
    ),
    (
        "lanes in a race",
        "[[step]]\ntimeout = \"1s\"\nfirst = true\nparallel = { l = [{ run = \"a\" }], m = [{ run = \"b\" }] }\n",
    ),
    (
        "a lane that was cancelled",
        "[[step]]\ntimeout = \"1s\"\nparallel = { l = [{ run = \"fails\" }], m = [{ run = \"a\" }] }\n",
    ),
    (
        "a command beside a background command",
        "[[step]]\nname = \"g\"\nrun = \"a\"\nbackground = true\n[[step]]\nrun = \"b\"\ntimeout = \"1s\"\n",
    ),
    (
        "a background command",
        "[[step]]\nname = \"g\"\nrun = \"a\"\nbackground = true\n[[step]]\nawait = \"g\"\ntimeout = \"1s\"\n",
    ),
    (
        "a background command that ends with the program",
        "[[step]]\nname = \"g\"\nrun = \"a\"\nbackground = true\n",
    ),
    ("an info", "[[step]]\nwait_info = \"x\"\ntimeout = \"1s\"\n"),
    (
        "an info that a command may tell",
        "[[step]]\nname = \"g\"\nrun = \"a\"\nbackground = true\n[[step]]\nwait_info = \"x\"\n",
    ),
    ("a barrier", "[[step]]\nbarrier = \"b\"\ntimeout = \"1s\"\n"),
    ("nothing: it is done", "[[step]]\nset = { x = 1 }\n"),
];

/// A machine that waits for this.
fn at(text: &str) -> Walk<'static> {
    let follows = "[[step]]\necho = \"next\"\n";
    let follows = if text.contains("set =") { "" } else { follows };
    let text = format!("{text}{follows}");
    let program = Box::leak(Box::new(steps(&text)));
    let mut walk = Walk::new(program, facts());
    walk.begin();
    if text.contains("fails") {
        walk.answer_to("fails", Outcome::Exited(7));
    }
    if text.contains("name = \"g\"") && !text.contains("await") && !text.contains("\"b\"") {
        // Up to the end, or to the wait for an info.
        if walk.sent.iter().any(|next| next.name == "echo") {
            walk.ok_to("next");
        }
    }
    walk.log.clear();
    walk
}

/// What comes of one input.
fn outcome(mut walk: Walk<'static>, input: &str) -> String {
    let late = CTime::from_ns(1_000_000_000);
    let progress = match input {
        "a reply: well" => walk.answer(0, &reply(Outcome::Exited(0), "")),
        "a reply: failed" => walk.answer(0, &reply(Outcome::Exited(3), "")),
        "a reply: cancelled" => walk.answer(0, &reply(Outcome::Cancelled, "")),
        "the last reply: well" => walk.answer(walk.sent.len() - 1, &reply(Outcome::Exited(0), "")),
        "an info" => walk.input(CTime::ZERO, Advance::Told("x", b"1")),
        "an info that nobody wants" => walk.input(CTime::ZERO, Advance::Told("y", b"1")),
        "a release" => walk.input(CTime::ZERO, Advance::Released(0)),
        "a deadline, too early" => walk.input(CTime::ZERO, Advance::Time),
        "a deadline" => walk.input(late, Advance::Time),
        "a stop" => {
            let mut effects = Vec::new();
            walk.machine.stop(&mut effects);
            return format!("leaves {} states", effects.len());
        }
        other => panic!("{other}"),
    };
    let mut log = walk.log;
    // All 150 refills of a list are one outcome.
    let sent = log.iter().filter(|line| line.contains(" run ")).count();
    if sent > 3 {
        log.retain(|line| !line.contains(" run "));
        log.push(format!("{sent} commands"));
    }
    match progress {
        Progress::Waits if log.is_empty() => "waits on".to_owned(),
        Progress::Waits | Progress::Done | Progress::Failed(_) => log.join("; "),
    }
}

const INPUTS: &[&str] = &[
    "a reply: well",
    "a reply: failed",
    "a reply: cancelled",
    "the last reply: well",
    "an info",
    "an info that nobody wants",
    "a release",
    "a deadline, too early",
    "a deadline",
    "a stop",
];

#[test]
fn every_input_has_a_defined_outcome_in_every_wait() {
    let mut table = String::new();
    for (wait, text) in WAITS {
        writeln!(table, "waits for {wait}").unwrap();
        for input in INPUTS {
            let walk = at(text);
            if input.contains("reply") && walk.sent.is_empty() {
                continue;
            }
            writeln!(table, "  {input}: {}", outcome(walk, input)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
