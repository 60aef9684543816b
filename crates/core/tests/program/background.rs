//! Background commands: what goes on beside them, how they are awaited, when they end.

use musec_core::{Advance, Progress};
use musec_protocol::Outcome;
use musec_trace::CTime;
use serde_json::json;

use crate::{Walk, facts, job, steps};

fn error(progress: Progress) -> String {
    match progress {
        Progress::Failed(failure) => format!("{}: {}", failure.name, failure.error),
        other => panic!("{other:?}"),
    }
}

const ZIP: &str = r#"
[[step]]
state = "zip"
name = "zip"
echo = "zip"
background = true
expect = "last.exit in [0, 3]"
[[step]]
state = "count"
echo = "count"
[[step]]
state = "wait"
await = "zip"
[[step]]
echo = "then {{ last.exit }}"
"#;

#[test]
fn a_lane_goes_on_beside_its_background_command_and_awaits_it() {
    let program = steps(ZIP);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.out(), ["zip", "count"]);
    assert_eq!(walk.sent.iter().map(|next| next.background).collect::<Vec<_>>(), [true, false]);
    walk.ok_to("count");
    assert_eq!(walk.out(), ["zip"], "it is awaited");
    walk.answer_to("zip", Outcome::Exited(3));
    walk.ok_to("then 3");
    assert_eq!(
        walk.log.join("\n"),
        "begins zip\nzip: - > zip start\nzip: zip#0 echo zip\n\
         - > count start\ncount#0 echo count\ncount > wait done\n\
         zip: zip > - done\nhas awaited zip\n\
         wait > main done\nmain#0 echo then 3\nmain > - done\ndone"
    );
}

#[test]
fn one_that_has_ended_before_is_awaited_at_once() {
    let program = steps(ZIP);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.ok_to("zip");
    walk.ok_to("count");
    assert_eq!(walk.out(), ["then 0"]);
}

#[test]
fn a_failure_counts_where_it_is_awaited() {
    let program = steps(ZIP);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer_to("zip", Outcome::Exited(4));
    assert_eq!(walk.out(), ["count"]);
    let failure = error(walk.ok_to("count"));
    assert_eq!(failure, "zip: expected `last.exit in [0, 3]`, but: exit code 4");

    let handled = ZIP.replace(
        "await = \"zip\"",
        "await = \"zip\"\non_error = [{ echo = \"mend {{ last.exit }}\" }]",
    );
    let program = steps(&handled);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.ok_to("count");
    walk.answer_to("zip", Outcome::Exited(4));
    assert_eq!(walk.out(), ["mend 4"]);

    let unawaited = ZIP.replace("await = \"zip\"", "set = { x = 1 }");
    let program = steps(&unawaited);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer_to("zip", Outcome::Exited(4));
    walk.ok_to("count");
    assert_eq!(walk.ok_to("then 0"), Progress::Done, "nobody asked");
}

#[test]
fn what_nobody_awaits_ends_with_its_lane() {
    let program = steps(
        "[[step]]\nname = \"d\"\nrun = \"daemon\"\nbackground = true\n[[step]]\necho = \"a\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.ok_to("a"), Progress::Waits);
    assert_eq!(walk.log.last().unwrap(), "cancel d");
    assert_eq!(walk.answer_to("daemon", Outcome::Cancelled), Progress::Done);
    let end = walk.log[walk.log.len() - 3..].join("\n");
    assert_eq!(end, "d: main > - cancelled\nmain > - done\ndone");

    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.answer_to("a", Outcome::Exited(1)), Progress::Waits);
    assert_eq!(error(walk.answer_to("daemon", Outcome::Cancelled)), "echo: exit code 1");

    let lanes = steps(
        "[[step]]\nparallel = { a = [{ name = \"d\", run = \"daemon\", background = true }, { echo = \"a\" }], b = [{ echo = \"b\" }] }\n[[step]]\necho = \"after\"\n",
    );
    let mut walk = Walk::new(&lanes, facts());
    walk.begin();
    walk.ok_to("b");
    walk.ok_to("a");
    assert_eq!(walk.log.last().unwrap(), "cancel a.d");
    walk.answer_to("daemon", Outcome::Cancelled);
    assert_eq!(walk.out(), ["after"]);
    let mut walk = Walk::new(&lanes, facts());
    walk.begin();
    walk.answer_to("b", Outcome::Exited(1));
    assert!(
        walk.log.contains(&"cancel a".to_owned()) && walk.log.contains(&"cancel a.d".to_owned())
    );
    walk.answer_to("daemon", Outcome::Cancelled);
    assert_eq!(error(walk.answer_to("a", Outcome::Cancelled)), "echo: exit code 1");
}

#[test]
fn one_may_begin_again_when_it_has_ended_and_not_before() {
    let program = steps(
        "[[step]]\nfor = { k = \"range(2)\" }\ndo = [{ name = \"d\", run = \"d{{ k }}\", background = true }, { echo = \"a{{ k }}\" }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.answer_to("d0", Outcome::Exited(9));
    walk.ok_to("a0");
    assert!(walk.log.contains(&"d: main#1 run /bin/sh -c d1".to_owned()), "{:?}", walk.log);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.ok_to("a0");
    let failure = error(walk.answer_to("d0", Outcome::Cancelled));
    assert_eq!(failure, "d: it is still running: `await` it before it begins again");
}

#[test]
fn one_that_was_not_begun_is_not_waited_for() {
    let program = steps(
        "[[step]]\nif = \"index > 0\"\nname = \"d\"\nrun = \"d\"\nbackground = true\n[[step]]\nawait = \"d\"\n[[step]]\necho = \"a\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.out(), ["a"]);
}

#[test]
fn the_time_of_an_await_is_bounded() {
    let program = steps(
        "[[step]]\nname = \"d\"\nrun = \"d\"\nbackground = true\n[[step]]\nname = \"wait\"\nawait = \"d\"\ntimeout = \"1s\"\non_error = [{ echo = \"late\" }]\n[[step]]\nawait = \"d\"\n",
    );
    let at = CTime::from_ns(1_000_000_000);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.machine.deadline(), Some(at));
    walk.input(at, Advance::Time);
    assert_eq!(walk.log.last().unwrap(), "main#0 echo late");
    walk.ok_to("late");
    assert_eq!(walk.machine.deadline(), None);
    assert_eq!(walk.ok_to("d"), Progress::Done);
}

#[test]
fn what_setup_began_goes_on_from_item_to_item() {
    let program = job(r#"
        [job]
        workers = 1
        items = { range = 2 }
        [[setup]]
        name = "server"
        run = "serve"
        background = true
        [[setup]]
        echo = "ready"
        [[step]]
        name = "own"
        run = "own"
        background = true
        [[step]]
        echo = "item {{ item }}"
        "#);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.ok_to("ready"), Progress::Done, "the server goes on");
    for item in 0..2 {
        walk.machine.take_item(&program, &json!(item));
        walk.begin();
        assert_eq!(walk.ok_to(&format!("item {item}")), Progress::Waits);
        assert_eq!(walk.log.last().unwrap(), "cancel own");
        assert_eq!(walk.answer_to("own", Outcome::Cancelled), Progress::Done);
    }
    assert_eq!(walk.sent.len(), 1);
    assert_eq!(walk.answer_to("serve", Outcome::Exited(1)), Progress::Waits, "between items too");
    let mut effects = Vec::new();
    walk.machine.stop(&mut effects);
    assert!(effects.is_empty(), "{effects:?}");
}
