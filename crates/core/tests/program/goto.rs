//! `goto`: any graph of the states of a wave.

use musec_protocol::Outcome;
use musec_trace::CTime;

use crate::{Step, Walk, facts, failure, reply, steps, wrong};

/// Walks; each command exits with the next of these codes, all others with 0.
fn walk(text: &str, codes: &[i32]) -> String {
    let program = steps(text);
    let mut walk = Walk::new(&program, facts());
    let mut codes = codes.iter().copied().chain(std::iter::repeat(0));
    let mut step = walk.start();
    for _ in 0..100 {
        let Step::Command(_) = step else { return walk.log.join("\n") };
        let code = codes.next().unwrap_or_default();
        step = walk.replied(&reply(Outcome::Exited(code), ""));
    }
    panic!("it does not end: {}", walk.log.join("\n"));
}

fn wrong_steps(text: &str) -> String {
    wrong(&format!("[job]\nworkers = 1\n{text}"))
}

#[test]
fn a_goto_leads_to_states_before_and_after_it() {
    let log = walk(
        r#"
[[step]]
state = "a"
run = ["a"]
on_error = [{ goto = "c" }]
[[step]]
done = true
[[step]]
state = "c"
run = ["c"]
[[step]]
goto = "a"
"#,
        &[1],
    );
    assert_eq!(
        log,
        "- > a start\na#0 run a\na > c failed\nc#0 run c\nc > a done\na#1 run a\na > - done\ndone"
    );
}

#[test]
fn a_state_that_goes_to_itself_is_a_new_visit() {
    let log = walk(
        r#"
[[step]]
state = "a"
do = [{ run = ["x"], expect = "true" }, { if = "last.exit == 3", goto = "a" }]
"#,
        &[3, 3],
    );
    assert_eq!(
        log,
        "- > a start\na#0 run x\na > a done\na#1 run x\na > a done\na#2 run x\na > - done\ndone"
    );
}

#[test]
fn a_goto_leaves_loops_handlers_and_time_limits() {
    let text = r#"
[[step]]
state = "a"
timeout = "2s"
for = { k = "range(5)" }
on_error = [{ run = ["never"] }]
do = [{ while = "true", do = [{ run = ["in", "{{ k }}"] }, { goto = "b" }] }]
[[step]]
state = "b"
run = ["out"]
"#;
    let program = steps(text);
    let mut walk = Walk::new(&program, facts());
    assert!(matches!(walk.start(), Step::Command(_)));
    let Step::Command(next) = walk.replied(&reply(Outcome::Exited(0), "")) else { panic!() };
    assert_eq!((next.name, next.timeout_ms), ("run", None), "the limit is left");
    let late = CTime::from_ns(3_000_000_000);
    let end = walk.replied_at(late, &reply(Outcome::Exited(1), ""));
    assert!(matches!(end, Step::Failed(_)), "the handler is left: {end:?}");
}

#[test]
fn a_circle_without_commands_comes_to_an_end() {
    let text = "[[step]]\nstate = \"a\"\nset = { x = 1 }\n[[step]]\ngoto = \"a\"\n";
    let failure = failure(&steps(text));
    assert!(failure.error.contains("steps without a command"), "{}", failure.error);
}

#[test]
fn the_first_step_that_names_a_state_is_gone_to() {
    let log = walk(
        r#"
[[step]]
state = "a"
run = ["one"]
[[step]]
state = "a"
run = ["two"]
expect = "true"
[[step]]
if = "attempt == 0"
do = [{ if = "last.exit == 9", goto = "a" }]
"#,
        &[0, 9],
    );
    assert_eq!(
        log,
        "- > a start\na#0 run one\na#0 run two\na > a done\na#1 run one\na#1 run two\na > - done\ndone"
    );
}

#[test]
fn gotos_that_lead_nowhere_are_refused_with_a_cure() {
    for (text, message, cure) in [
        (
            "[[step]]\nstate = \"encode\"\nrun = \"x\"\n[[step]]\ngoto = \"encoed\"\n",
            "no step of the wave's own names the state `encoed`",
            "did you mean `encode`?",
        ),
        (
            "[[step]]\ngoto = \"a\"\n",
            "no step of the wave's own names the state `a`",
            "give the step that it leads to `state = \"a\"`",
        ),
        (
            "[[step]]\nstate = \"a\"\nparallel = { x = [{ goto = \"a\" }] }\n",
            "`goto` within a lane",
            "after the join",
        ),
        (
            "[[step]]\nstate = \"a\"\npipelined = true\ndo = [{ goto = \"a\" }]\n",
            "`goto` within a pipelined list",
            "put it after the list",
        ),
        (
            "[[step]]\nstate = \"a\"\ndo = [{ state = \"other\", run = \"x\" }, { goto = \"other\" }]\n",
            "no step of the wave's own names the state `other`",
            "there are `a`",
        ),
        (
            "[[step]]\nstate = \"a\"\ngoto = \"a\"\n[[step]]\nrun = \"x\"\n",
            "this step can never be reached",
            "take this one out",
        ),
    ] {
        let found = wrong_steps(text);
        assert!(found.contains(message) && found.contains(cure), "{text}\n{found}");
    }
}
