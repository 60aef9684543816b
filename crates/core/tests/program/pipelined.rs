//! Pipelined lists: what is sent when, what a failure does, and what may stand in one.

use musec_core::limits::{PIPELINE_BYTES_MAX, PIPELINE_COMMANDS_MAX};
use musec_core::{Advance, NextCommand, Progress};
use musec_protocol::{Action, Outcome, Reply};
use musec_trace::CTime;
use proptest::prelude::*;

use crate::{Walk, facts, ok, reply, steps, wrong};

const WINDOW: usize = PIPELINE_COMMANDS_MAX as usize;

impl Walk<'_> {
    pub(crate) fn begin(&mut self) -> Progress {
        self.input(CTime::ZERO, Advance::Start)
    }

    /// A reply to the command at this place among those that have none.
    pub(crate) fn answer(&mut self, place: usize, reply: &Reply) -> Progress {
        self.answer_at(CTime::ZERO, place, reply)
    }

    pub(crate) fn answer_at(&mut self, now: CTime, place: usize, reply: &Reply) -> Progress {
        let next = self.sent.remove(place);
        self.input(now, Advance::Replied(next.token, reply))
    }

    /// Texts of the `echo`s that have no reply.
    pub(crate) fn out(&self) -> Vec<String> {
        self.sent.iter().map(text).collect()
    }
}

fn text(next: &NextCommand) -> String {
    match &next.action {
        Action::Echo(text) => String::from_utf8(text.clone()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn failed(outcome: Progress) -> String {
    match outcome {
        Progress::Failed(failure) => format!("{}: {}", failure.name, failure.error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_commands_of_a_list_are_sent_at_once_and_what_follows_awaits_their_replies() {
    let program = steps(
        "[[step]]\npipelined = true\ndo = [{ echo = \"a\" }, { set = { x = 7 } }, { if = \"index == 0\", echo = \"b{{ vars.x }}\" }]\n[[step]]\necho = \"c\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    assert_eq!(walk.begin(), Progress::Waits);
    assert_eq!(walk.out(), ["a", "b7"]);
    assert!(walk.sent.iter().all(|next| next.pipelined));
    assert_eq!(walk.answer(0, &ok()), Progress::Waits);
    assert_eq!(walk.out(), ["b7"]);
    assert_eq!(walk.answer(0, &ok()), Progress::Waits);
    assert_eq!(walk.out(), ["c"]);
    assert!(!walk.sent[0].pipelined);
    assert_eq!(walk.answer(0, &ok()), Progress::Done);
}

#[test]
fn a_long_list_is_sent_in_windows_that_refill_by_halves() {
    let program = steps(
        "[[step]]\nfor = { k = \"range(1000)\" }\npipelined = true\ndo = [{ echo = \"{{ k }}\" }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.sent.len(), WINDOW);
    let (mut done, mut seen) = (0, Vec::new());
    loop {
        seen.push(text(&walk.sent[0]));
        let progress = walk.answer(0, &ok());
        done += 1;
        assert!(walk.sent.len() <= WINDOW);
        let left = 1000 - done;
        assert!(walk.sent.len() >= left.min(WINDOW / 2), "{done}: {}", walk.sent.len());
        if progress == Progress::Done {
            break;
        }
    }
    assert_eq!(seen, (0..1000).map(|k| k.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_list_may_be_longer_than_the_steps_of_one_turn() {
    let program = steps(
        "[[step]]\nfor = { k = \"range(300)\" }\npipelined = true\ndo = [{ echo = \"{{ k }}\" }, { for = { j = \"range(100)\" }, do = [{ set = { x = \"j\" } }] }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    let mut progress = walk.begin();
    let mut done = 0;
    while progress == Progress::Waits {
        assert!(!walk.sent.is_empty(), "it waits for nothing");
        progress = walk.answer(0, &ok());
        done += 1;
    }
    assert_eq!((progress, done), (Progress::Done, 300));
    let endless = steps(
        "[[step]]\nset = { x = 0 }\n[[step]]\npipelined = true\ndo = [{ echo = \"a\" }, { while = \"vars.x == 0\", do = [{ set = { x = 0 } }] }]\n",
    );
    let mut walk = Walk::new(&endless, facts());
    assert_eq!(walk.begin(), Progress::Waits);
    assert!(failed(walk.answer(0, &ok())).contains("steps without a command"));
}

#[test]
fn a_list_may_cost_more_than_one_turn_allows() {
    let program = steps(
        "[[step]]\nfor = { k = \"range(200)\" }\npipelined = true\ndo = [{ echo = \"{{ range(20000)|map('string')|join|length }}\" }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    let mut progress = walk.begin();
    assert!(walk.sent.len() < 200, "all at once: it costs too little to show anything");
    let mut done = 0;
    while progress == Progress::Waits {
        progress = walk.answer(0, &ok());
        done += 1;
    }
    assert_eq!((progress, done), (Progress::Done, 200));
}

#[test]
fn bytes_in_flight_are_bounded_too() {
    let program = steps(
        "[[step]]\nset = { x = \"'x' * 50000\" }\n[[step]]\nfor = { k = \"range(90)\" }\npipelined = true\ndo = [{ echo = \"{{ vars.x }}\" }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.sent.len(), PIPELINE_BYTES_MAX.div_ceil(50_000));
    let (mut done, mut progress) = (0, Progress::Waits);
    while progress == Progress::Waits {
        progress = walk.answer(0, &ok());
        done += 1;
    }
    assert_eq!((progress, done), (Progress::Done, 90));
}

#[test]
fn the_first_command_that_fails_cancels_the_others_and_names_itself() {
    let program = steps(
        "[[step]]\nname = \"list\"\npipelined = true\ndo = [{ echo = \"a\" }, { name = \"second\", echo = \"b\" }, { echo = \"c\" }, { echo = \"d\" }]\n[[step]]\necho = \"never\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer(0, &ok());
    assert_eq!(walk.answer(0, &reply(Outcome::Exited(3), "why")), Progress::Waits);
    assert_eq!(walk.log.iter().filter(|line| *line == "cancel main").count(), 1);
    assert_eq!(walk.answer(0, &reply(Outcome::Exited(4), "")), Progress::Waits);
    let Progress::Failed(failure) = walk.answer(0, &reply(Outcome::Cancelled, "")) else {
        panic!()
    };
    assert_eq!((failure.name.as_str(), failure.error.as_str()), ("second", "exit code 3"));
    assert_eq!(failure.blamed.unwrap().output, b"why");
    assert_eq!(walk.log.last().unwrap(), "failed at second: exit code 3");
    assert_eq!(walk.machine.state(), None);
}

#[test]
fn a_failed_list_goes_to_its_handler_when_its_replies_are_there() {
    let program = steps(
        "[[step]]\npipelined = true\ndo = [{ for = { k = \"range(3)\" }, do = [{ echo = \"{{ k }}\" }] }]\non_error = [{ echo = \"handler {{ last.exit }}\" }]\n[[step]]\necho = \"after\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer(0, &reply(Outcome::Exited(5), ""));
    walk.answer(0, &reply(Outcome::Cancelled, ""));
    assert_eq!(walk.answer(0, &reply(Outcome::Cancelled, "")), Progress::Waits);
    assert_eq!(walk.out(), ["handler 5"]);
    assert_eq!(walk.answer(0, &ok()), Progress::Waits);
    assert_eq!(walk.out(), ["after"]);
}

#[test]
fn a_step_that_cannot_be_taken_fails_the_list_after_those_before_it() {
    let program = steps(
        "[[step]]\npipelined = true\ndo = [{ echo = \"a\" }, { name = \"bad\", echo = \"{{ 1 // index }}\" }, { echo = \"c\" }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    assert_eq!(walk.begin(), Progress::Waits);
    assert_eq!(walk.out(), ["a"]);
    let failure = failed(walk.clone().answer(0, &ok()));
    assert!(failure.starts_with("bad: "), "{failure}");
    let failure = failed(walk.answer(0, &reply(Outcome::Exited(9), "")));
    assert_eq!(failure, "echo: exit code 9", "what was sent before it failed first");
    assert!(!walk.log.contains(&"cancel main".to_owned()), "nothing was left to cancel");
}

#[test]
fn a_limit_around_a_list_cancels_it_at_its_instant() {
    let program = steps(
        "[[step]]\nname = \"list\"\ntimeout = \"2s\"\npipelined = true\ndo = [{ echo = \"a\", timeout = \"500ms\" }, { echo = \"b\" }]\n[[step]]\necho = \"c\"\n",
    );
    let at = CTime::from_ns;
    let mut walk = Walk::new(&program, facts());
    assert_eq!(walk.machine.deadline(), None);
    walk.begin();
    let limits: Vec<_> = walk.sent.iter().map(|next| next.timeout_ms).collect();
    assert_eq!(limits, [Some(500), Some(2000)]);
    assert_eq!(walk.machine.deadline(), Some(at(2_000_000_000)));
    let mut in_time = walk.clone();
    in_time.answer(0, &ok());
    in_time.answer_at(at(1_999_999_999), 0, &ok());
    assert_eq!(in_time.out(), ["c"]);
    assert_eq!(in_time.machine.deadline(), None);

    walk.input(at(1_999_999_999), Advance::Time);
    assert!(!walk.log.contains(&"cancel main".to_owned()), "it is not yet over");
    walk.input(at(2_000_000_000), Advance::Time);
    assert_eq!(walk.log.last().unwrap(), "cancel main");
    assert_eq!(walk.machine.deadline(), None);
    walk.input(at(2_000_000_001), Advance::Time);
    walk.answer(0, &ok());
    let failure = failed(walk.answer(0, &reply(Outcome::Cancelled, "")));
    assert_eq!(failure, "list: timed out: the 2s of `list` are over");
}

#[test]
fn an_expectation_in_a_list_is_judged_when_its_reply_comes() {
    let program = steps(
        "[[step]]\nfor = { k = [3, 4] }\ndo = [{ pipelined = true, do = [{ run = \"x\", expect = \"last.exit == k and last.output == 'y'\" }, { echo = \"b\" }] }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    let keeps: Vec<_> = walk.sent.iter().map(|next| next.keeps_output).collect();
    assert_eq!(keeps, [true, false]);
    // Matched by their tokens, in any order.
    walk.answer(1, &ok());
    walk.answer(0, &reply(Outcome::Exited(3), "y"));
    assert_eq!(walk.sent.len(), 2, "the second round");
    walk.answer(0, &reply(Outcome::Exited(3), "y"));
    let failure = failed(walk.answer(0, &ok()));
    assert_eq!(failure, "run: expected `last.exit == k and last.output == 'y'`, but: exit code 3");
}

#[test]
fn values_of_a_pipelined_loop_may_come_from_the_reply_before_it() {
    let program = steps(
        "[[step]]\nrun = \"x\"\n[[step]]\nfor = { k = \"range(last.output|int)\" }\npipelined = true\ndo = [{ echo = \"{{ k }}\" }]\n[[step]]\necho = \"{{ last.exit }}\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer(0, &reply(Outcome::Exited(0), "3"));
    assert_eq!(walk.out(), ["0", "1", "2"]);
}

#[test]
fn a_break_within_a_pipelined_loop_leaves_it_and_its_list() {
    let program = steps(
        "[[step]]\nfor = { k = \"range(9)\" }\npipelined = true\ndo = [{ echo = \"{{ k }}\" }, { break_if = \"k == 1\" }]\n[[step]]\necho = \"after\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.out(), ["0", "1"]);
    walk.answer(0, &ok());
    walk.answer(0, &ok());
    assert_eq!(walk.out(), ["after"]);
}

#[test]
fn a_list_without_commands_waits_for_nothing() {
    let program = steps(
        "[[step]]\npipelined = true\ndo = [{ if = \"false\", echo = \"a\" }]\n[[step]]\necho = \"b\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.out(), ["b"]);
}

#[test]
fn what_needs_a_reply_cannot_stand_in_a_list() {
    let of =
        |step: &str| wrong(&format!("[job]\nworkers = 1\n[[step]]\npipelined = true\n{step}\n"));
    let unknown = "`last` is not known in a pipelined list";
    for step in [
        "do = [{ echo = \"{{ last.exit }}\" }]",
        "do = [{ echo = \"a\" }, { if = \"last.exit == 0\", echo = \"b\" }]",
        "do = [{ set = { x = \"last.exit\" } }]",
        "while = \"last.exit == 0\"\ndo = [{ echo = \"a\" }]",
        "for = { k = \"range(3)\" }\ndo = [{ break_if = \"last.exit == 0\" }]",
    ] {
        assert!(of(step).contains(unknown), "{}", of(step));
    }
    let expect =
        of("for = { k = \"range(3)\" }\ndo = [{ echo = \"a\", expect = \"last.exit == k\" }]");
    assert!(expect.contains("`k` may have changed when this reply"), "{expect}");
    let expect =
        of("do = [{ set = { x = 1 } }, { echo = \"a\", expect = \"last.exit == vars.x\" }]");
    assert!(expect.contains("`vars` may have changed when this reply"), "{expect}");
    let out = of("do = [{ break_if = \"index == 0\" }]");
    assert!(out.contains("`break_if` is in no loop"), "{out}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever order replies come in, and whichever fail: every command has one reply, no more
    /// are out than the window holds, the machine ends, and it has failed if a command has.
    #[test]
    fn lists_end_in_any_order_of_replies(
        lengths in prop::collection::vec(0..700_usize, 1..4),
        handled in any::<bool>(),
        fails in prop::collection::btree_set(0..900_usize, 0..3),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 64),
    ) {
        let handler = if handled { "on_error = [{ set = { e = 1 } }]\n" } else { "" };
        let text: String = lengths.iter().map(|length| format!(
            "[[step]]\nstate = \"s{length}\"\nfor = {{ k = \"range({length})\" }}\npipelined = true\n{handler}do = [{{ echo = \"{{{{ k }}}}\" }}, {{ state = \"t\", echo = \"t\" }}]\n"
        )).collect();
        let program = steps(&text);
        let mut walk = Walk::new(&program, facts());
        let mut progress = walk.begin();
        let (mut replies, mut any_failed) = (0_usize, false);
        while progress == Progress::Waits {
            prop_assert!(!walk.sent.is_empty(), "it waits for nothing");
            prop_assert!(walk.sent.len() <= WINDOW);
            let place = picks[replies % picks.len()].index(walk.sent.len());
            let fails = fails.contains(&replies);
            any_failed |= fails;
            progress = walk.answer(place, &reply(Outcome::Exited(i32::from(fails)), ""));
            replies += 1;
        }
        prop_assert!(walk.sent.is_empty());
        prop_assert_eq!(matches!(progress, Progress::Failed(_)), any_failed && !handled);
        prop_assert_eq!(walk.machine.state(), None);
    }
}
