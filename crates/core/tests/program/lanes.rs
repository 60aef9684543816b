//! Parallel lanes: forks, joins, races, failures, limits; replies in any order.

use std::collections::BTreeMap;

use musec_core::{Advance, Machine, Moved, Program, Progress, StateId};
use musec_protocol::{Action, Outcome};
use musec_trace::CTime;
use proptest::prelude::*;

use crate::{Walk, facts, ok, reply, steps, wrong};

impl Walk<'_> {
    /// A reply to the `echo` or `run` of this text.
    pub(crate) fn answer_to(&mut self, text: &str, outcome: Outcome) -> Progress {
        self.answer_to_at(CTime::ZERO, text, outcome)
    }

    fn answer_to_at(&mut self, now: CTime, text: &str, outcome: Outcome) -> Progress {
        let is_it = |action: &Action| action.arguments().iter().any(|word| word == text.as_bytes());
        let place = self.sent.iter().position(|next| is_it(&next.action));
        let place = place.unwrap_or_else(|| panic!("{text} is not out: {:?}", self.log));
        self.answer_at(now, place, &reply(outcome, text))
    }

    pub(crate) fn ok_to(&mut self, text: &str) -> Progress {
        self.answer_to(text, Outcome::Exited(0))
    }

    fn has(&self, line: &str) -> bool {
        self.log.iter().any(|known| known == line)
    }
}

fn error(progress: Progress) -> String {
    match progress {
        Progress::Failed(failure) => format!("{}: {}", failure.name, failure.error),
        other => panic!("{other:?}"),
    }
}

const TWO: &str = r#"
[[step]]
state = "both"
parallel = { a = [{ echo = "a1" }, { state = "s", echo = "a2" }], b = [{ echo = "b1" }, { echo = "b2" }] }
[[step]]
echo = "after"
"#;

#[test]
fn lanes_go_on_by_their_own_replies_and_join_when_all_have_ended() {
    let program = steps(TWO);
    let mut walk = Walk::new(&program, facts());
    assert_eq!(walk.begin(), Progress::Waits);
    assert_eq!(walk.out(), ["a1", "b1"]);
    walk.ok_to("b1");
    walk.ok_to("b2");
    assert_eq!(walk.out(), ["a1"], "b has ended, and waits");
    walk.ok_to("a1");
    walk.ok_to("a2");
    assert_eq!(walk.out(), ["after"]);
    assert_eq!(walk.ok_to("after"), Progress::Done);
    assert_eq!(
        walk.log.join("\n"),
        "- > both start\nforks a b\n\
         a: - > both start\na: both#0 echo a1\nb: - > both start\nb: both#0 echo b1\n\
         b: both#0 echo b2\nb: both > - done\n\
         a: both > s done\na: s#0 echo a2\na: s > - done\nmerges\n\
         both > main done\nmain#0 echo after\nmain > - done\ndone"
    );
}

#[test]
fn each_lane_has_its_last_reply_and_loops_and_all_share_variables() {
    let program = steps(
        r#"
        [[step]]
        run = "before"
        [[step]]
        for = { k = "range(2)" }
        do = [{ parallel = {
            a = [{ run = "a{{ k }}", expect = "true" }, { set = { x = "k" } }, { echo = "a says {{ last.exit }}" }],
            b = [{ echo = "b says {{ last.exit }} {{ vars.x|default('none') }}" }],
        } }]
        [[step]]
        echo = "then {{ last.exit }} {{ vars.x }}"
        "#,
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer(0, &reply(Outcome::Exited(0), ""));
    assert!(walk.has("b: main#0 echo b says 0 none"), "{:?}", walk.log);
    walk.answer(0, &reply(Outcome::Exited(5), ""));
    assert!(walk.has("a: main#0 echo a says 5"), "{:?}", walk.log);
    walk.ok_to("b says 0 none");
    walk.ok_to("a says 5");
    assert!(walk.has("b: main#1 echo b says 0 0"), "visits count by the lane: {:?}", walk.log);
    walk.answer(0, &reply(Outcome::Exited(6), ""));
    walk.ok_to("b says 0 0");
    walk.ok_to("a says 6");
    assert!(walk.has("main#0 echo then 0 1"), "{:?}", walk.log);
}

#[test]
fn a_lane_that_fails_cancels_the_others_and_the_step_fails_when_they_have_ended() {
    let program = steps(
        r#"
        [[step]]
        name = "both"
        parallel = { a = [{ name = "bad", run = "a" }], b = [{ parallel = { c = [{ echo = "c" }], d = [{ echo = "d" }] } }, { echo = "never" }] }
        "#,
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.ok_to("c");
    assert_eq!(walk.answer_to("a", Outcome::Exited(3)), Progress::Waits);
    assert!(walk.has("cancel b.d") && !walk.has("cancel b.c"), "{:?}", walk.log);
    let Progress::Failed(failure) = walk.answer_to("d", Outcome::Cancelled) else { panic!() };
    assert_eq!((failure.name.as_str(), failure.error.as_str()), ("bad", "exit code 3"));
    assert_eq!(failure.blamed.unwrap().output, b"a");
    assert!(walk.has("b.d: main > - cancelled") && !walk.has("b: main > - failed"));
    assert_eq!(walk.machine.state(), None);
}

#[test]
fn a_handler_around_lanes_comes_after_all_of_them() {
    let program = steps(
        "[[step]]\nparallel = { a = [{ echo = \"a\" }], b = [{ echo = \"b\" }] }\non_error = [{ echo = \"mend\" }]\n[[step]]\necho = \"after\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer_to("b", Outcome::Exited(1));
    assert_eq!(walk.out(), ["a"], "the handler waits");
    // It was too late to cancel it; that does not matter any more.
    walk.ok_to("a");
    assert_eq!(walk.out(), ["mend"]);
    walk.ok_to("mend");
    assert_eq!(walk.ok_to("after"), Progress::Done);
}

#[test]
fn a_handler_within_a_lane_keeps_its_failure_there() {
    let program = steps(
        "[[step]]\nparallel = { a = [{ echo = \"a\", on_error = [{ echo = \"mend\" }] }], b = [{ echo = \"b\" }] }\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer_to("a", Outcome::Exited(1));
    walk.ok_to("b");
    assert_eq!(walk.ok_to("mend"), Progress::Done);
}

const RACE: &str = "[[step]]\nparallel = { a = [{ run = \"a\" }, { echo = \"a2\" }], b = [{ run = \"b\" }] }\nfirst = true\n[[step]]\necho = \"{{ last.output }} won\"\n";

#[test]
fn the_first_lane_that_ends_well_ends_the_others() {
    let program = steps(RACE);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.ok_to("a");
    assert_eq!(walk.ok_to("b"), Progress::Waits);
    assert!(walk.has("cancel a"), "{:?}", walk.log);
    walk.answer_to("a2", Outcome::Cancelled);
    assert!(walk.has("merges won by b") && walk.has("main#0 echo b won"), "{:?}", walk.log);

    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer_to("b", Outcome::Exited(2));
    walk.ok_to("a");
    walk.ok_to("a2");
    assert!(walk.has("merges won by a"), "one that failed is no winner: {:?}", walk.log);

    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer_to("b", Outcome::Exited(2));
    assert_eq!(error(walk.answer_to("a", Outcome::Exited(4))), "run: exit code 4");
}

#[test]
fn a_lane_without_commands_ends_at_once_and_may_win() {
    let program = steps(
        "[[step]]\nparallel = { a = [{ run = \"a\" }], b = [{ set = { x = 1 } }], c = [{ run = \"c\" }] }\nfirst = true\n",
    );
    let mut walk = Walk::new(&program, facts());
    assert_eq!(walk.begin(), Progress::Waits);
    assert!(!walk.has("c: main#0 run /bin/sh -c c"), "c was not even begun: {:?}", walk.log);
    assert_eq!(walk.answer_to("a", Outcome::Cancelled), Progress::Done);
    let alone =
        steps("[[step]]\nparallel = { a = [{ set = { x = 1 } }], b = [{ set = { x = 2 } }] }\n");
    assert_eq!(Walk::new(&alone, facts()).begin(), Progress::Done);
}

#[test]
fn a_limit_around_lanes_cancels_them_at_its_instant() {
    let program = steps(
        "[[step]]\nname = \"both\"\ntimeout = \"2s\"\nparallel = { a = [{ run = \"a\" }], b = [{ timeout = \"1s\", do = [{ run = \"b\" }, { run = \"b2\" }] }] }\n",
    );
    let at = CTime::from_ns;
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.machine.deadline(), Some(at(2_000_000_000)));
    walk.input(at(2_000_000_000), Advance::Time);
    assert!(walk.has("cancel a") && walk.has("cancel b"), "{:?}", walk.log);
    assert_eq!(walk.machine.deadline(), None);
    walk.answer_to("b", Outcome::Cancelled);
    let failure = error(walk.answer_to("a", Outcome::Cancelled));
    assert_eq!(failure, "both: timed out: the 2s of `both` are over");
}

#[test]
fn a_pipelined_list_in_a_lane_is_cancelled_with_it() {
    let program = steps(
        "[[step]]\nparallel = { a = [{ pipelined = true, do = [{ echo = \"1\" }, { echo = \"2\" }, { echo = \"3\" }] }], b = [{ run = \"b\" }] }\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.ok_to("1");
    walk.answer_to("b", Outcome::Exited(1));
    assert_eq!(walk.log.iter().filter(|line| *line == "cancel a").count(), 1);
    assert_eq!(walk.answer_to("3", Outcome::Cancelled), Progress::Waits);
    assert_eq!(error(walk.answer_to("2", Outcome::Cancelled)), "run: exit code 1");
}

#[test]
fn a_machine_that_is_stopped_leaves_the_states_of_all_its_lanes() {
    let program = steps(TWO);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    let mut effects = Vec::new();
    walk.machine.stop(&mut effects);
    walk.machine.stop(&mut effects);
    assert_eq!(effects.len(), 3, "{effects:?}");
}

#[test]
fn lanes_may_wait_for_each_others_variables() {
    let program = steps(
        r#"
        [[step]]
        set = { ready = false }
        [[step]]
        parallel = { a = [{ while = "not vars.ready", do = [{ sleep = "1s" }] }], b = [{ echo = "b" }, { set = { ready = true } }] }
        "#,
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer(0, &ok());
    walk.ok_to("b");
    assert_eq!(walk.answer(0, &ok()), Progress::Done);
}

#[test]
fn lanes_are_bounded_in_number_and_depth() {
    let many: Vec<_> = (0..300).map(|k| format!("l{k} = [{{ echo = \"x\" }}]")).collect();
    let text = format!("[job]\nworkers = 1\n[[step]]\nparallel = {{ {} }}\n", many.join(", "));
    assert!(wrong(&text).contains("a wave with more than 256 lanes"), "{}", wrong(&text));
    let deep = (0..16).fold("[{ echo = \"x\" }]".to_owned(), |inner, _| {
        format!("[{{ parallel = {{ a = {inner} }} }}]")
    });
    let text = format!("[job]\nworkers = 1\n[[step]]\ndo = {deep}\n");
    assert!(wrong(&text).contains("lanes are nested more than 15 deep"), "{}", wrong(&text));
}

/// Steps of random shape with lanes; every command is an `echo`.
pub(crate) fn shape() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("{ echo = \"x\" }".to_owned()),
        Just("{ state = \"a\", echo = \"x\" }".to_owned()),
        Just("{ set = { v = 1 } }".to_owned()),
        Just("{ pipelined = true, do = [{ echo = \"p\" }, { echo = \"q\" }] }".to_owned()),
        // Names are made unique by `named`.
        Just(
            "{ do = [{ name = \"@\", echo = \"g\", background = true }, { echo = \"h\" }, { await = \"@\" }] }"
                .to_owned()
        ),
        Just("{ do = [{ name = \"#\", echo = \"d\", background = true }, { echo = \"e\" }] }".to_owned()),
    ];
    leaf.prop_recursive(4, 20, 3, |inner| {
        let list = prop::collection::vec(inner, 1..3).prop_map(|steps| steps.join(", "));
        (list.clone(), list, 0..5_u32).prop_map(|(one, other, kind)| match kind {
            0 => format!("{{ state = \"b\", do = [{one}] }}"),
            1 => format!("{{ for = {{ k = \"range(2)\" }}, do = [{one}] }}"),
            2 => format!("{{ do = [{one}], on_error = [{other}] }}"),
            3 => format!("{{ parallel = {{ a = [{one}], b = [{other}] }} }}"),
            _ => format!("{{ first = true, parallel = {{ a = [{one}], b = [{other}] }} }}"),
        })
    })
}

/// A job of steps of such shapes, with a name of its own for each background command.
pub(crate) fn named(shapes: &[String]) -> String {
    let mut text = format!("[[step]]\ndo = [{}]\n", shapes.join(", "));
    for number in 0.. {
        let Some(_) = text.find(['@', '#']) else { break };
        text = text.replacen('@', &format!("b{number}"), 2).replacen('#', &format!("d{number}"), 1);
    }
    text
}

/// What happened in each lane, in its order.
type Words = BTreeMap<String, Vec<String>>;

/// A walk with replies in an order by `picks`; the n-th one fails if `fails` says so.
fn wander<'p>(
    program: &'p Program,
    picks: &[prop::sample::Index],
    fails: &[bool],
) -> (Walk<'p>, Progress) {
    let mut walk = Walk::new(program, facts());
    let mut progress = walk.begin();
    for turn in 0.. {
        if progress != Progress::Waits {
            break;
        }
        assert!(!walk.sent.is_empty(), "it waits for nothing: {:?}", walk.log);
        let place = picks[turn % picks.len()].index(walk.sent.len());
        let code = i32::from(fails.get(turn).is_some_and(|fails| *fails));
        progress = walk.answer(place, &reply(Outcome::Exited(code), ""));
    }
    (walk, progress)
}

fn words(walk: &Walk<'_>) -> Words {
    let mut words = Words::new();
    for line in &walk.log {
        let (lane, letter) = line.split_once(": ").unwrap_or(("main", line));
        words.entry(lane.to_owned()).or_default().push(letter.to_owned());
    }
    words
}

fn check_moves(moves: &[Moved]) {
    let mut states: BTreeMap<_, Option<StateId>> = BTreeMap::new();
    for change in moves {
        let state = states.entry(change.lane).or_default();
        assert_eq!(change.from, *state, "{change:?}");
        *state = change.to;
    }
    assert!(states.values().all(Option::is_none), "every lane has left its state: {states:?}");
}

proptest! {
    /// Whatever order replies come in, and whatever fails: the machine ends, nothing is out then,
    /// and each lane has left its states.
    #[test]
    fn lanes_end_in_any_order_of_replies_and_failures(
        shapes in prop::collection::vec(shape(), 1..4),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 16),
        fails in prop::collection::vec(prop::bool::weighted(0.15), 60),
    ) {
        let program = steps(&named(&shapes));
        let (walk, _) = wander(&program, &picks, &fails);
        prop_assert!(walk.sent.is_empty(), "{:?}", walk.log);
        check_moves(&walk.moves);
        prop_assert_eq!(walk.machine.state(), None);
    }

    /// Replies find their lanes by their commands: in whatever order they come, each lane does the
    /// same, where no lane races another.
    #[test]
    fn the_order_of_replies_between_lanes_changes_no_lane(
        shapes in prop::collection::vec(shape(), 1..4),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 16),
        others in prop::collection::vec(any::<prop::sample::Index>(), 16),
    ) {
        // What nobody awaits races the end of its lane.
        let text = named(&shapes).replace("{ name = \"d", "{ name = \"b d").replace("echo = \"d\", background = true", "echo = \"d\"");
        let program = steps(&text.replace("first = true, ", ""));
        let (one, end) = wander(&program, &picks, &[]);
        let (other, other_end) = wander(&program, &others, &[]);
        prop_assert_eq!(&end, &Progress::Done);
        prop_assert_eq!(end, other_end);
        prop_assert_eq!(words(&one), words(&other));
    }
}

#[test]
fn a_machine_with_lanes_stays_small() {
    assert!(size_of::<Machine>() <= 320, "{}", size_of::<Machine>());
}
