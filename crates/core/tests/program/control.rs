//! Steps that steer: while, break_if, on_error, fail, done; and what cannot be reached or left.

use musec_protocol::{Action, ByteRange, ErrorKind, Outcome, Which};
use musec_trace::CTime;
use proptest::prelude::*;

use crate::{Step, Walk, facts, failure, first, job, ok, reply, steps, wrong};

fn walk(text: &str) -> String {
    Walk::new(&steps(text), facts()).all()
}

/// Walks; commands number `fails` (from 0) do not go well.
fn walk_failing(text: &str, fails: &[usize]) -> String {
    let program = steps(text);
    let mut walk = Walk::new(&program, facts());
    let mut step = walk.start();
    for number in 0.. {
        match step {
            Step::Command(_) => {
                let code = i32::from(fails.contains(&number));
                step = walk.replied(&reply(Outcome::Exited(code), ""));
            }
            Step::Done | Step::Failed(_) => break,
        }
    }
    walk.log.join("\n")
}

fn wrong_steps(text: &str) -> String {
    wrong(&format!("[job]\nworkers = 1\n{text}"))
}

#[test]
fn a_while_goes_round_as_long_as_its_condition_holds() {
    assert_eq!(
        walk(
            r#"
            [[step]]
            set = { n = 0 }
            [[step]]
            while = "vars.n < 3"
            do = [{ state = "s", echo = "{{ vars.n }}" }, { set = { n = "vars.n + 1" } }]
            [[step]]
            while = "vars.n < 3"
            do = [{ echo = "never" }, { set = { n = "vars.n + 1" } }]
            [[step]]
            echo = "end"
            "#
        ),
        "- > s start\ns#0 echo 0\ns > s done\ns#1 echo 1\ns > s done\ns#2 echo 2\n\
         s > main done\nmain#0 echo end\nmain > - done\ndone"
    );
}

#[test]
fn a_break_leaves_the_innermost_loop_and_all_within_it() {
    assert_eq!(
        walk(
            r#"
            [[step]]
            for = { i = "range(2)" }
            do = [
                { for = { k = "range(9)" }, timeout = "9s", do = [
                    { timeout = "5s", on_error = [{ echo = "no" }], do = [{ break_if = "k == i + 1" }, { echo = "{{ i }}{{ k }}" }] },
                ] },
                { echo = "out {{ i }}" },
            ]
            "#
        ),
        "- > main start\nmain#0 echo 00\nmain#0 echo out 0\n\
         main#0 echo 10\nmain#0 echo 11\nmain#0 echo out 1\nmain > - done\ndone"
    );
}

#[test]
fn a_loop_until_success_ends_with_the_first_one() {
    let log = walk_failing(
        r#"
        [[step]]
        while = "true"
        do = [{ run = "try", expect = "true" }, { break_if = "last.exit == 0" }, { sleep = "1s" }]
        [[step]]
        echo = "done"
        "#,
        &[0, 2],
    );
    assert_eq!(log.matches("run /bin/sh -c try").count(), 3);
    assert_eq!(log.matches("sleep").count(), 2);
    assert!(log.contains("echo done"), "{log}");
}

#[test]
fn a_failed_step_goes_to_its_handler_and_the_program_goes_on_after_it() {
    let text = r#"
        [[step]]
        state = "s"
        run = "a"
        on_error = [{ state = "repair", run = "b {{ last.exit }}" }]
        [[step]]
        echo = "c"
    "#;
    assert_eq!(
        walk_failing(text, &[0]),
        "- > s start\ns#0 run /bin/sh -c a\ns > repair failed\nrepair#0 run /bin/sh -c b 1\n\
         repair > main done\nmain#0 echo c\nmain > - done\ndone"
    );
    assert!(!walk_failing(text, &[]).contains("repair"));
    assert!(walk_failing(text, &[0, 1]).ends_with("failed at run: exit code 1"), "no second help");
}

#[test]
fn a_handler_around_several_steps_helps_for_each_of_them() {
    let text = r#"
        [[step]]
        for = { k = "range(3)" }
        on_error = [{ echo = "helped" }]
        do = [{ run = "{{ k }}" }]
        [[step]]
        if = "missing is defined"
        echo = "x"
    "#
    .replace("missing is defined", "1 == 2");
    let log = walk_failing(&text, &[1]);
    assert!(log.contains("-c 1\nmain#0 echo helped\n") && !log.contains("-c 2"), "{log}");
}

#[test]
fn inner_handlers_come_first_and_their_own_failures_go_outwards() {
    let text = r#"
        [[step]]
        on_error = [{ echo = "outer" }]
        do = [{ run = "a", on_error = [{ fail = "no way: {{ last.exit }}" }] }, { run = "never" }]
        [[step]]
        echo = "end"
    "#;
    let log = walk_failing(text, &[0]);
    assert!(log.contains("run /bin/sh -c a\nmain#0 echo outer\nmain#0 echo end"), "{log}");
}

#[test]
fn what_cannot_be_evaluated_and_limits_that_are_over_are_handled_too() {
    let log = walk("[[step]]\necho = \"{{ 1 // 0 }}\"\non_error = [{ echo = \"zero\" }]\n");
    assert!(log.contains("echo zero"), "{log}");
    let log =
        walk("[[step]]\nif = \"last.exit == 0\"\necho = \"x\"\non_error = [{ echo = \"none\" }]\n");
    assert!(log.contains("echo none"), "{log}");
    let program = steps(
        "[[step]]\ntimeout = \"1s\"\ndo = [{ run = \"a\" }, { run = \"b\" }]\non_error = [{ echo = \"late\" }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.start();
    let Step::Command(next) = walk.replied_at(CTime::from_ns(2_000_000_000), &ok()) else {
        panic!()
    };
    assert_eq!((next.action, next.timeout_ms), (Action::Echo(b"late".to_vec()), None));
}

#[test]
fn fail_ends_the_program_with_its_text() {
    let failure =
        failure(&steps("[[step]]\nname = \"check\"\nfail = \"part {{ index }} is bad\"\n"));
    assert_eq!((failure.name.as_str(), failure.error.as_str()), ("check", "part 0 is bad"));
}

#[test]
fn done_ends_the_program_well_from_any_depth() {
    let log = walk(
        r#"
        [[step]]
        for = { k = "range(3)" }
        timeout = "1s"
        do = [{ echo = "{{ k }}" }, { if = "k == 1", done = true }]
        [[step]]
        echo = "never"
        "#,
    );
    assert!(log.ends_with("echo 1\nmain > - done\ndone"), "{log}");
}

#[test]
fn a_handler_that_fails_without_end_is_stopped() {
    let program = steps(
        "[[step]]\nset = { n = 0 }\n[[step]]\nwhile = \"vars.n < 9\"\ndo = [{ set = { n = \"0\" } }, { fail = \"x\", on_error = [{ set = { m = 1 } }] }]\n",
    );
    assert!(failure(&program).error.contains("steps without a command"));
}

#[test]
fn loops_that_cannot_end_and_steps_that_cannot_be_reached_are_refused() {
    for condition in ["true", "1 < 2", "vars.n < 3", "index >= 0", "last is undefined"] {
        let text = format!(
            "[[step]]\nset = {{ n = 0, m = 0 }}\n[[step]]\nwhile = \"{condition}\"\ndo = [{{ set = {{ m = 1 }} }}]\n"
        );
        let errors = wrong_steps(&text);
        assert!(errors.contains("this loop cannot end"), "{condition}: {errors}");
    }
    for body in [
        "{ break_if = \"index == 0\" }",
        "{ done = true }",
        "{ fail = \"x\" }",
        "{ if = \"index == 0\", done = true }",
        "{ set = { n = 3 } }",
        "{ do = [{ if = \"false\", echo = \"x\", else = [{ set = { n = 1 } }] }] }",
        "{ for = { k = [1] }, do = [{ done = true }] }",
    ] {
        let text = format!(
            "[[step]]\nset = {{ n = 0 }}\n[[step]]\nwhile = \"vars.n < 1\"\ndo = [{body}]\n"
        );
        steps(&text);
    }
    let inner = "[[step]]\nwhile = \"true\"\ndo = [{ for = { k = [1] }, do = [{ break_if = \"k == 1\" }] }]\n";
    assert!(wrong_steps(inner).contains("cannot end"), "the break is of the inner loop");
    let caught =
        "[[step]]\nwhile = \"true\"\ndo = [{ fail = \"x\", on_error = [{ echo = \"y\" }] }]\n";
    assert!(wrong_steps(caught).contains("cannot end"), "its handler keeps it going");
    for before in [
        "done = true",
        "fail = \"x\"",
        "do = [{ echo = \"a\" }, { done = true }]",
        "if = \"index == 0\"\ndone = true\nelse = [{ fail = \"x\" }]",
        "fail = \"x\"\non_error = [{ done = true }]",
        "while = \"true\"\ndo = [{ if = \"index == 0\", done = true }]",
    ] {
        let text = format!("[[step]]\n{before}\n[[step]]\nstate = \"late\"\necho = \"x\"\n");
        let errors = wrong_steps(&text);
        assert!(errors.contains("this step can never be reached"), "{before}: {errors}");
    }
    for before in [
        "if = \"index == 0\"\ndone = true",
        "fail = \"x\"\non_error = [{ echo = \"y\" }]",
        "for = { k = \"range(2)\" }\ndo = [{ done = true }]",
        "while = \"true\"\ndo = [{ break_if = \"last.exit == 0\" }, { run = \"x\" }]",
    ] {
        steps(&format!("[[step]]\n{before}\n[[step]]\necho = \"x\"\n"));
    }
}

#[test]
fn folders_globs_and_ranges_are_told_to_the_worker() {
    let get = |step: &str| {
        let text = format!("[params]\nodd = \"a[1]\"\n[[step]]\n{step}\n");
        match first(&steps(&text), facts()).action {
            Action::Get(get) => (
                get.key,
                String::from_utf8(get.file).unwrap(),
                get.which,
                get.range,
                get.concurrency,
            ),
            other => panic!("{other:?}"),
        }
    };
    let s = str::to_owned;
    assert_eq!(get("get = \"in:a/b\""), (s("a/b"), s("b"), Which::One, None, 8));
    assert_eq!(get("get = \"in:a/b/\""), (s("a/b/"), s("b"), Which::Folder, None, 8));
    assert_eq!(
        get("get = \"a/*.png\"\nas = \"x\"\nconcurrency = 2"),
        (s("a/*.png"), s("x"), Which::Glob, None, 2)
    );
    let (key, file, which, ..) = get("get = \"{{ odd }}/*\"");
    assert_eq!((key.as_str(), file.as_str(), which), ("a[[]1[]]/*", ".", Which::Glob));
    assert_eq!(get("get = \"{{ odd }}\"").2, Which::One, "only the text itself makes a glob");
    let range = |text: &str| get(&format!("get = \"x\"\nrange = \"{text}\"")).3;
    assert_eq!(range("0-9"), Some(ByteRange::From { from: 0, to: Some(9) }));
    assert_eq!(range("{{ 5 * 2 }}-"), Some(ByteRange::From { from: 10, to: None }));
    let put = |step: &str| match first(&steps(&format!("[[step]]\n{step}\n")), facts()).action {
        Action::Put(put) => (String::from_utf8(put.file).unwrap(), put.key, put.which),
        other => panic!("{other:?}"),
    };
    assert_eq!(put("put = \"out/\""), (s("out/"), s("out/"), Which::Folder));
    assert_eq!(put("put = \"out/\"\nas = \"x\""), (s("out/"), s("x/"), Which::Folder));
    assert_eq!(put("put = \"out/*.png\""), (s("out/*.png"), s("out/"), Which::Glob));
    assert_eq!(put("put = \"*.png\""), (s("*.png"), s(""), Which::Glob));
    assert_eq!(put("put = \"*\"\nas = \"y\""), (s("*"), s("y/"), Which::Glob));
    assert!(
        failure(&steps("[[step]]\nget = \"x\"\nrange = \"{{ 9 }}-1\"\n"))
            .error
            .contains("ends before")
    );
}

#[test]
fn a_missing_object_can_be_made() {
    let program = steps(
        "[[step]]\nget = \"cache\"\non_error = [{ run = \"make\" }, { put = \"cache\" }]\n[[step]]\necho = \"go\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.start();
    let missing = Outcome::Failed { kind: ErrorKind::Missing, text: "no object".to_owned() };
    walk.replied(&reply(missing, ""));
    assert_eq!(walk.log.last().unwrap(), "main#0 run /bin/sh -c make");
}

#[test]
fn md5_is_a_filter() {
    let program = steps("[[step]]\necho = \"{{ 'abc'|md5 }} {{ 1|md5 }}\"\n");
    let expected = "900150983cd24fb0d6963f7d28e17f72 c4ca4238a0b923820dcc509a6f75849b";
    assert_eq!(crate::echoed(&program, facts()), expected);
}

#[test]
fn columns_that_are_known_are_checked_before_the_run() {
    let text = "[job]\nworkers = 1\nitems = { csv = \"in:{{ table }}\" }\n[params]\ntable = \"t.csv\"\n[[step]]\necho = \"{{ width }} {{ hight }}\"\n";
    job(text);
    let options = musec_core::job::Options {
        csv_headers: [("in:t.csv".to_owned(), Ok(vec!["width".to_owned(), "height".to_owned()]))]
            .into(),
        ..crate::options()
    };
    let errors = musec_core::job::parse(text, &options).unwrap_err();
    assert_eq!(errors.0.len(), 1);
    assert_eq!(errors.0[0].cure.as_deref(), Some("did you mean `height`?"));
    let wrong = musec_core::csv_header(b"width,my height\n").unwrap_err();
    let options = musec_core::job::Options {
        csv_headers: [("in:t.csv".to_owned(), Err(wrong))].into(),
        ..crate::options()
    };
    let errors = musec_core::job::parse(text, &options).unwrap_err();
    assert!(errors.0[0].message.starts_with("`in:t.csv`: its column `my height`"));
    assert_eq!((errors.0.len(), errors.0[0].line), (1, 3));
}

/// Steps of random shape that steer.
fn shape() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("{ run = \"x\" }".to_owned()),
        Just("{ state = \"a\", run = \"x\" }".to_owned()),
        Just("{ if = \"vars.n > 3\", fail = \"f\" }".to_owned()),
        Just("{ if = \"vars.n > 6\", done = true }".to_owned()),
        Just("{ set = { n = \"vars.n + 1\" } }".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner, 1..4).prop_map(|steps| steps.join(", "));
        (list.clone(), list, 0..4_u32).prop_map(|(steps, other, kind)| match kind {
            0 => format!("{{ do = [{steps}], on_error = [{other}] }}"),
            1 => format!(
                "{{ while = \"vars.n < 9\", do = [{steps}, {{ set = {{ n = \"vars.n + 1\" }} }}, {{ break_if = \"vars.n % 4 == 3\" }}] }}"
            ),
            2 => format!("{{ for = {{ k = \"range(3)\" }}, do = [{steps}, {{ break_if = \"k == 1\" }}] }}"),
            _ => format!("{{ timeout = \"9s\", if = \"vars.n % 2 == 0\", do = [{steps}], else = [{other}] }}"),
        })
    })
}

proptest! {
    /// Whatever fails where: records of states fit together, and what was entered is left.
    #[test]
    fn failures_and_breaks_leave_no_state_behind(
        shapes in prop::collection::vec(shape(), 1..4),
        fails in prop::collection::btree_set(0..60_usize, 0..12),
    ) {
        let program = steps(&format!(
            "[[step]]\nset = {{ n = 0 }}\n[[step]]\ndo = [{}]\n", shapes.join(", ")
        ));
        let mut walk = Walk::new(&program, facts());
        let mut state = None;
        let mut step = walk.start();
        for turn in 0..2000 {
            for change in walk.moves.drain(..) {
                prop_assert_eq!(change.from, state);
                state = change.to;
            }
            prop_assert_eq!(walk.machine.state(), state);
            let Step::Command(next) = step else { break };
            prop_assert_eq!(next.timeout_ms.is_none_or(|limit| limit <= 9000), true);
            let outcome = Outcome::Exited(i32::from(fails.contains(&turn)));
            let reply = reply(outcome, "");
            step = walk.replied(&reply);
        }
        if !matches!(step, Step::Command(_)) {
            prop_assert_eq!(walk.machine.state(), None);
        }
    }
}

#[test]
fn costly_expressions_between_two_commands_end_before_they_stall_the_coordinator() {
    let program = steps(
        r#"
        [[step]]
        set = { v = 0 }
        [[step]]
        while = "vars.v >= 0 and range(90000)|list|length > 0"
        do = [{ set = { v = "vars.v + 1" } }]
        "#,
    );
    // Without that bound it is as many as there may be steps, and minutes.
    let failure = failure(&program);
    assert!(failure.error.contains("have cost more than they may"), "{}", failure.error);
}

#[test]
fn costly_expressions_with_commands_between_them_have_all_they_need_each_time() {
    let program = steps(
        r#"
        [[step]]
        for = { k = "range(60)" }
        do = [{ if = "range(90000)|list|length > k", echo = "{{ k }}" }]
        "#,
    );
    let log = Walk::new(&program, facts()).all();
    assert!(log.ends_with("done") && log.contains("echo 59"), "{log}");
}

#[test]
fn what_an_expression_costs_cannot_be_asked() {
    let errors = wrong("[job]\nworkers = 1\n[[step]]\necho = \"{{ __spent() }}\"\n");
    assert!(errors.contains("`__spent` is not bound"), "{errors}");
    let param = "[job]\nworkers = 1\n[params]\n__spent = 1\n[[step]]\necho = \"\"\n";
    assert!(wrong(param).contains("__spent"), "{}", wrong(param));
}
