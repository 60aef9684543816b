//! Machines: program × replies → commands, changes of state, ends.

use musec_core::{Advance, Effect, Machine};
use musec_protocol::{Action, AttemptNo, ErrorKind, Outcome};
use musec_trace::CTime;
use proptest::prelude::*;
use serde_json::json;

use crate::{Step, Walk, echoed, facts, failure, job, ok, reply, steps};

fn walk(text: &str) -> String {
    Walk::new(&steps(text), facts()).all()
}

#[test]
fn steps_without_a_state_belong_to_one_named_as_the_wave() {
    assert_eq!(
        walk(
            r#"
            [[step]]
            echo = "a"
            [[step]]
            state = "s"
            do = [{ echo = "b" }, { echo = "c" }]
            [[step]]
            echo = "d"
            "#
        ),
        "- > main start\nmain#0 echo a\n\
         main > s done\ns#0 echo b\ns#0 echo c\n\
         s > main done\nmain#1 echo d\n\
         main > - done\ndone"
    );
}

#[test]
fn consecutive_steps_of_one_state_are_one_visit_of_it() {
    assert_eq!(
        walk(
            r#"
            [[step]]
            state = "s"
            echo = "a"
            [[step]]
            state = "s"
            echo = "b"
            "#
        ),
        "- > s start\ns#0 echo a\ns#0 echo b\ns > - done\ndone"
    );
}

#[test]
fn a_step_that_names_its_state_visits_it_anew_in_each_round_of_a_loop() {
    assert_eq!(
        walk(
            r#"
            [[step]]
            for = { k = "range(2)" }
            do = [{ state = "s", echo = "a{{ k }}" }, { state = "s", echo = "b{{ k }}" }]
            [[step]]
            state = "s"
            echo = "c"
            "#
        ),
        "- > s start\ns#0 echo a0\ns#0 echo b0\n\
         s > s done\ns#1 echo a1\ns#1 echo b1\n\
         s#1 echo c\ns > - done\ndone"
    );
}

#[test]
fn a_loop_that_names_its_state_is_one_visit() {
    assert_eq!(
        walk(
            r#"
            [[step]]
            state = "s"
            for = { k = ["x", "{{ index }}"] }
            do = [{ echo = "{{ k }}" }]
            "#
        ),
        "- > s start\ns#0 echo x\ns#0 echo 0\ns > - done\ndone"
    );
}

#[test]
fn a_finished_inner_loop_does_not_make_the_next_step_a_new_visit() {
    assert_eq!(
        walk(
            r#"
            [[step]]
            state = "s"
            do = [{ for = { k = "range(3)" }, do = [{ if = "k == 1", echo = "{{ k }}" }] }]
            [[step]]
            state = "s"
            echo = "x"
            "#
        ),
        "- > s start\ns#0 echo 1\ns#0 echo x\ns > - done\ndone"
    );
}

#[test]
fn an_outer_round_is_remembered_through_an_inner_loop_without_commands() {
    assert_eq!(
        walk(
            r#"
            [[step]]
            for = { k = "range(2)" }
            do = [
                { for = { j = "range(2)" }, do = [{ set = { x = "j" } }] },
                { state = "s", echo = "{{ k }}" },
            ]
            "#
        ),
        "- > s start\ns#0 echo 0\ns > s done\ns#1 echo 1\ns > - done\ndone"
    );
}

#[test]
fn loops_nest_and_see_each_others_names() {
    let log = walk(
        r#"
        [[step]]
        for = { i = "range(1, 3)" }
        do = [{ for = { j = "range(i)" }, do = [{ echo = "{{ i }}{{ j }}" }] }, { echo = "end {{ i }}" }]
        "#,
    );
    let echoes: Vec<_> = log.lines().filter_map(|line| line.strip_prefix("main#0 echo ")).collect();
    assert_eq!(echoes, ["10", "end 1", "20", "21", "end 2"]);
}

#[test]
fn a_loop_over_nothing_does_nothing() {
    assert_eq!(walk("[[step]]\nfor = { k = [] }\ndo = [{ echo = \"x\" }]\n"), "done");
}

#[test]
fn a_choice_takes_one_side() {
    let text = |condition: &str| {
        walk(&format!(
            "[[step]]\nstate = \"s\"\nif = \"{condition}\"\necho = \"yes\"\nelse = [{{ echo = \"no\" }}]\n[[step]]\necho = \"end\"\n"
        ))
    };
    assert!(text("index == 0").contains("s#0 echo yes"));
    let no = text("index != 0");
    assert!(no.contains("s#0 echo no") && no.contains("main#0 echo end"), "{no}");
    assert_eq!(
        walk("[[step]]\nstate = \"s\"\nif = \"false\"\necho = \"x\"\n[[step]]\necho = \"y\"\n"),
        "- > main start\nmain#0 echo y\nmain > - done\ndone",
        "a state is not entered for nothing"
    );
}

#[test]
fn values_keep_their_types_through_set_and_loops() {
    let log = walk(
        r#"
        [[step]]
        set = { n = "1 + 1", x = 1.5, on = true, t = "'2'", l = ["a", "{{ index + 1 }}"], m = { k = "{{ index }}" } }
        [[step]]
        set = { n = "vars.n + 1", both = "vars.l[1] + vars.m.k + vars.x", lazy = "vars.l|map('string')" }
        [[step]]
        echo = "{{ vars.n + 1 }} {{ vars.both }} {{ vars.on and vars.t == '2' }} {{ vars.lazy|join('-') }}"
        [[step]]
        for = { k = [1, 2.5, "a", true] }
        do = [{ if = "k is number and k is not string", echo = "{{ k + 1 }}" }]
        "#,
    );
    assert!(log.contains("echo 4 2.5 True a-1"), "{log}");
    assert!(log.contains("echo 2\n") && log.contains("echo 3.5\n"), "{log}");
}

#[test]
fn the_last_reply_can_be_read() {
    let program = steps(
        r#"
        [[step]]
        run = "wc -l"
        expect = "last.exit in [0, 3]"
        [[step]]
        echo = "{{ last.exit }} {{ last.output|trim|int + 1 }} {{ last.elapsed_ms }}"
        "#,
    );
    let mut walk = Walk::new(&program, facts());
    let Step::Command(next) = walk.start() else { panic!() };
    assert!(next.keeps_output);
    walk.replied(&reply(Outcome::Exited(3), "41\n"));
    assert_eq!(walk.log.last().unwrap(), "main#0 echo 3 42 42");
}

#[test]
fn output_is_kept_only_where_it_is_read() {
    let keeps = |text: &str| {
        let program = steps(text);
        let mut walk = Walk::new(&program, facts());
        let Step::Command(first) = walk.start() else { panic!() };
        let Step::Command(second) = walk.replied(&reply(Outcome::Ok, "yes")) else { panic!() };
        (first.keeps_output, second.keeps_output)
    };
    let expects =
        "[[step]]\nrun = \"x\"\nexpect = \"last.output == 'yes'\"\n[[step]]\necho = \"a\"\n";
    assert_eq!(keeps(expects), (true, false));
    let exits = "[[step]]\nrun = \"x\"\n[[step]]\necho = \"{{ last.exit }}\"\n";
    assert_eq!(keeps(exits), (false, false));
    for reads in ["last.output", "last['output']", "last|string"] {
        let text = format!("[[step]]\nrun = \"x\"\n[[step]]\necho = \"{{{{ {reads} }}}}\"\n");
        assert_eq!(keeps(&text), (true, true), "{reads}");
    }
}

#[test]
fn a_failed_command_fails_the_program_in_words() {
    let cases = [
        (Outcome::Exited(3), "exit code 3"),
        (
            Outcome::Signalled(9),
            "killed by signal 9 (KILL), which is also how a process ends when memory runs out",
        ),
        (Outcome::Signalled(15), "killed by signal 15 (TERM)"),
        (Outcome::Signalled(64), "killed by signal 64"),
        (Outcome::TimedOut { limit_ms: 2500 }, "timed out after 2.5s"),
        (
            Outcome::Cancelled,
            "its worker ended before it: a signal told the worker to, or it did not hear from the \
             coordinator",
        ),
        (
            Outcome::Failed { kind: ErrorKind::Missing, text: "no object `x`".to_owned() },
            "no object `x`",
        ),
    ];
    let program =
        steps("[[step]]\nstate = \"s\"\nname = \"encode\"\nrun = \"x\"\n[[step]]\necho = \"y\"\n");
    for (outcome, words) in cases {
        let mut walk = Walk::new(&program, facts());
        walk.start();
        let Step::Failed(failure) = walk.replied(&reply(outcome, "")) else { panic!() };
        assert_eq!((failure.name.as_str(), failure.error.as_str()), ("encode", words));
        assert_eq!(failure.state.and_then(|s| program.state(s)).unwrap().name, "s");
        assert_eq!(walk.log[walk.log.len() - 2], "s > - failed");
        assert_eq!(walk.machine.state(), None);
    }
}

#[test]
fn an_expectation_decides_instead_of_success() {
    let program = steps("[[step]]\nrun = \"x\"\nexpect = \"last.exit == 3\"\n");
    let end = |outcome| {
        let mut walk = Walk::new(&program, facts());
        walk.start();
        match walk.replied(&reply(outcome, "")) {
            Step::Failed(failure) => failure.error,
            Step::Done => "done".to_owned(),
            Step::Command(next) => panic!("{next:?}"),
        }
    };
    assert_eq!(end(Outcome::Exited(3)), "done");
    assert_eq!(end(Outcome::Exited(0)), "expected `last.exit == 3`, but: exit code 0");
    assert_eq!(
        end(Outcome::Signalled(15)),
        "expected `last.exit == 3`, but: killed by signal 15 (TERM)"
    );
    let anything = steps("[[step]]\nget = \"x\"\nexpect = \"true\"\n");
    let mut walk = Walk::new(&anything, facts());
    walk.start();
    let missing = Outcome::Failed { kind: ErrorKind::Missing, text: String::new() };
    assert_eq!(walk.replied(&reply(missing, "")), Step::Done);
}

#[test]
fn what_cannot_be_evaluated_fails_the_step_and_names_it() {
    let of = |step: &str| {
        let failure = failure(&steps(&format!("[[step]]\n{step}\n")));
        format!("{}: {}", failure.name, failure.error)
    };
    assert_eq!(of("echo = \"{{ 1 // 0 }}\""), "echo: `{{ 1 // 0 }}`: unable to calculate 1 // 0");
    let before = "echo: `{{ last.exit }}`: `last` has no value before the first reply";
    assert_eq!(of("echo = \"{{ last.exit }}\""), before);
    let unset = "set: `{{ vars.a }}`: `vars.a` has no value yet";
    assert_eq!(of("set = { a = \"vars.a\" }"), unset);
    assert!(of("set = { a = \"vars.a + 1\" }").ends_with("(`vars.a` is undefined)"));
    assert!(of("for = { k = \"7\" }\ndo = [{ echo = \"x\" }]").contains("range(7) has that many"));
    assert!(of("for = { k = \"'abc'\" }\ndo = [{ echo = \"x\" }]").contains("not a string"));
    assert_eq!(of("get = \"in:{{ '' }}\""), "get: the key is empty");
    assert_eq!(of("get = \"/\""), "get: the file is empty");
    assert!(of("put = \"a\"\nas = \"{{ 'in:' }}a\"").contains("inputs are only read"));
    assert!(of("sleep = \"{{ 'soon' }}\"").contains("is not a duration"));
}

#[test]
fn a_step_that_costs_too_much_is_stopped() {
    let of = |step: &str| failure(&steps(&format!("[[step]]\n{step}\n"))).error;
    assert!(of("echo = \"{{ 'x' * 100000000 }}\"").contains("costs more than an expression may"));
    assert!(of("echo = \"{{ range(99999)|map('string')|join }}\"").contains("costs more"));
    assert!(of("echo = \"{{ '%900000000d'|format(1) }}\"").contains("costs more"));
    let grows = "set = { a = \"'x'\" }\n[[step]]\nfor = { k = \"range(40)\" }\ndo = [{ set = { a = \"vars.a ~ vars.a\" } }]";
    let grows = of(grows);
    assert!(grows.contains("larger than 1048576 bytes") || grows.contains("costs more"), "{grows}");
    let deep = "set = { a = [] }\n[[step]]\nfor = { k = \"range(400)\" }\ndo = [{ set = { a = \"[vars.a]\" } }]";
    assert!(of(deep).contains("nested more than 32 deep"));
}

#[test]
fn a_loop_without_commands_that_goes_on_too_long_is_stopped_and_named() {
    let program = steps(
        "[[step]]\nfor = { k = \"range(20000)\" }\nname = \"spin\"\ndo = [{ set = { a = \"k\" }, name = \"turn\" }]\n",
    );
    let failure = failure(&program);
    assert!(["spin", "turn"].contains(&failure.name.as_str()));
    assert!(failure.error.starts_with("10000 steps without a command"), "{}", failure.error);
}

#[test]
fn a_long_loop_of_commands_goes_on() {
    let program =
        steps("[[step]]\nfor = { k = \"range(30000)\" }\ndo = [{ echo = \"{{ k }}\" }]\n");
    let mut walk = Walk::new(&program, facts());
    let mut step = walk.start();
    let mut commands = 0;
    while let Step::Command(_) = step {
        commands += 1;
        step = walk.replied(&ok());
        walk.log.clear();
    }
    assert_eq!((step, commands), (Step::Done, 30_000));
}

#[test]
fn the_time_limit_of_a_step_bounds_all_that_it_holds() {
    let program = steps(
        r#"
        [[step]]
        name = "work"
        timeout = "2s"
        do = [{ run = "a" }, { run = "b", timeout = "500ms" }, { run = "c" }]
        [[step]]
        run = "d"
        "#,
    );
    let limit = |step: &Step| match step {
        Step::Command(next) => next.timeout_ms,
        other => panic!("{other:?}"),
    };
    let at = |ms: u64| CTime::from_ns(7_000_000_000 + ms * 1_000_000);
    let mut walk = Walk::new(&program, facts());
    assert_eq!(limit(&walk.advance(at(0), Advance::Start)), Some(2000));
    let reply_ok = ok();
    assert_eq!(limit(&walk.replied_at(at(700), &reply_ok)), Some(500));
    assert_eq!(limit(&walk.replied_at(at(1000), &reply_ok)), Some(1000));
    let step = walk.clone().replied_at(at(1900), &reply_ok);
    assert_eq!(limit(&step), None, "the limit ends with its step");

    let out = reply(Outcome::TimedOut { limit_ms: 1000 }, "");
    let Step::Failed(failure) = walk.replied_at(at(2001), &out) else { panic!() };
    assert_eq!(failure.error, "timed out: the 2s of `work` are over");

    let mut walk = Walk::new(&program, facts());
    walk.advance(at(0), Advance::Start);
    let Step::Failed(failure) = walk.replied_at(at(2000), &reply_ok) else { panic!() };
    assert_eq!(failure.error, "timed out: the 2s of `work` are over");
}

#[test]
fn each_item_has_a_fresh_program_and_visits_count_by_the_attempt() {
    let program = job(r#"
        [job]
        name = "main"
        workers = 1
        items = { list = ["in:a/x.tar.gz", "b/.rc"] }
        [[step]]
        if = "vars.seen is defined"
        echo = "leak"
        [[step]]
        set = { seen = true }
        [[step]]
        state = "s"
        echo = "{{ item }} {{ name }} {{ stem }} [{{ ext }}]"
        "#);
    let mut facts = facts();
    facts.item = Some(json!("in:a/x.tar.gz"));
    let mut walk = Walk::new(&program, facts);
    walk.start();
    assert_eq!(walk.log.last().unwrap(), "s#0 echo in:a/x.tar.gz x.tar.gz x.tar [gz]");
    assert_eq!(walk.replied(&ok()), Step::Done);
    walk.machine.take_item(&program, &json!("b/.rc"));
    walk.start();
    assert_eq!(walk.log.last().unwrap(), "s#1 echo b/.rc .rc .rc []");
}

#[test]
fn a_stopped_machine_leaves_its_state_once() {
    let program = steps("[[step]]\nrun = \"x\"\n");
    let mut walk = Walk::new(&program, facts());
    walk.start();
    let mut effects = Vec::new();
    walk.machine.stop(&mut effects);
    walk.machine.stop(&mut effects);
    let [Effect::Moved(moved)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((moved.to, moved.cause.name()), (None, "stopped"));
}

#[test]
fn print_reads_a_file_and_says_so() {
    let program = steps("[[step]]\nprint = \"answer\"\n");
    let next = crate::first(&program, facts());
    assert!(next.prints);
    assert_eq!(next.action, Action::Print { file: b"answer".to_vec() });
}

#[test]
fn a_machine_knows_who_it_is() {
    let program = job(
        "[job]\nworkers = 3\nitems = { range = 9 }\n[params]\nn = 2\n[[wave]]\nname = \"w\"\n[[wave.step]]\necho = \"{{ index }} {{ workers }} {{ attempt }} {{ wave }} {{ item * n }}\"\n",
    );
    let mut facts = facts();
    (facts.index, facts.workers, facts.attempt) = (2, 3, AttemptNo(4));
    facts.item = Some(json!(7));
    assert_eq!(echoed(&program, facts), "2 3 4 w 14");
}

#[test]
fn a_machine_stays_small() {
    assert!(size_of::<Machine>() <= 320, "{}", size_of::<Machine>());
}

/// Steps of random shape; every command is an `echo`.
fn shape() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("{ echo = \"x\" }".to_owned()),
        Just("{ state = \"a\", echo = \"x\" }".to_owned()),
        Just("{ set = { v = \"index + 1\" } }".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner, 1..4).prop_map(|steps| steps.join(", "));
        (list.clone(), list, 0..4_u32, prop::option::of(prop::sample::select(vec!["a", "b"])))
            .prop_map(|(steps, other, kind, state)| {
                let state = state.map_or(String::new(), |state| format!("state = \"{state}\", "));
                match kind {
                    0 => format!("{{ {state}do = [{steps}] }}"),
                    1 => format!("{{ {state}for = {{ k = \"range(3)\" }}, do = [{steps}] }}"),
                    2 => format!(
                        "{{ {state}if = \"index == 0\", do = [{steps}], else = [{other}] }}"
                    ),
                    _ => {
                        format!("{{ {state}timeout = \"9s\", if = \"index > 0\", do = [{steps}] }}")
                    }
                }
            })
    })
}

proptest! {
    /// Records of states fit together, visits count entries, and every program comes to an end.
    #[test]
    fn every_change_of_state_is_recorded_once(
        shapes in prop::collection::vec(shape(), 1..4), fails_at in 0..40_usize,
    ) {
        let program = steps(&format!("[[step]]\ndo = [{}]\n", shapes.join(", ")));
        let mut walk = Walk::new(&program, facts());
        let (mut state, mut entries) = (None, std::collections::BTreeMap::new());
        let mut step = walk.start();
        for turn in 0.. {
            for change in walk.moves.drain(..) {
                prop_assert_eq!(change.from, state);
                state = change.to;
                if let Some(to) = change.to { *entries.entry(to).or_insert(0_u32) += 1; }
            }
            prop_assert_eq!(walk.machine.state(), state);
            let Step::Command(next) = step else { break };
            prop_assert_eq!(Some(next.state), state);
            prop_assert_eq!(next.visit + 1, entries[&next.state]);
            let outcome = if turn == fails_at { Outcome::Exited(1) } else { Outcome::Exited(0) };
            let reply = reply(outcome, "");
            step = walk.replied(&reply);
        }
        prop_assert_eq!(state, None);
    }
}
