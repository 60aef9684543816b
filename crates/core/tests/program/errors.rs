//! What is refused: each error with its place, the text underlined, and the cure.

use musec_core::job::{Options, parse};

use crate::{options, render, wrong};

/// A job of one worker with these steps.
fn wrong_steps(text: &str) -> String {
    wrong(&format!("[job]\nworkers = 1\n{text}"))
}

#[test]
fn all_errors_of_a_job_come_at_once_in_the_order_of_its_text() {
    insta::assert_snapshot!(wrong(
        r#"
[job]
name = 3
workesr = 4
retry = 2
timeout = 90
[params]
index = 1
my-param = 2
date = inf
[[step]]
rnu = "true"
[[step]]
run = "echo {{ itme }}"
expect = "last.exti == 0"
[[step]]
state = "x"
"#
    ));
}

#[test]
fn syntax_errors_of_toml_have_their_place() {
    insta::assert_snapshot!(wrong("[job]\nworkers = \n[[step]\nrun = \"x\"\n"));
}

#[test]
fn steps_that_are_none_are_refused() {
    insta::assert_snapshot!(wrong_steps(
        r#"
[[step]]
run = "a"
get = "b"
[[step]]
for = { k = "range(3)" }
run = "a"
[[step]]
for = { k = "range(3)" }
[[step]]
for = { k = "range(3)", j = "range(2)" }
do = [{ echo = "x" }]
[[step]]
for = { k = 3 }
do = [{ echo = "x" }]
[[step]]
for = { item = "range(3)" }
do = [{ echo = "x" }]
[[step]]
do = []
[[step]]
do = "x"
[[step]]
do = [3]
[[step]]
echo = "x"
else = [{ echo = "y" }]
[[step]]
set = {}
[[step]]
set = { a-b = 1 }
timeout = "1s"
[[step]]
"#
    ));
}

#[test]
fn what_later_versions_bring_is_named() {
    insta::assert_snapshot!(wrong_steps(
        r#"
[[step]]
parallel = { a = [{ echo = "x" }] }
[[step]]
wait_info = "key"
[[step]]
run = "x"
background = true
name = "daemon"
[[step]]
while = "true"
do = [{ echo = "{{ group }}" }]
[[setup]]
run = "x"
"#
    ));
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    insta::assert_snapshot!(wrong_steps(
        r#"
[[step]]
run = 3
[[step]]
run = []
[[step]]
run = ["a", 3]
[[step]]
run = ""
[[step]]
run = ["a"]
shell = "bash"
env = { "a=b" = "c" }
grace = "3 parsecs"
[[step]]
get = "in:x"
as = ""
shell = "bash"
[[step]]
put = "x"
as = "in:x"
[[step]]
sleep = 2
[[step]]
sleep = "soon"
[[step]]
echo = "x"
timeout = "0s"
[[step]]
echo = "x"
if = true
"#
    ));
}

#[test]
fn expressions_and_templates_are_checked_where_they_stand() {
    insta::assert_snapshot!(wrong(
        r#"
[job]
workers = "core * 2"
[params]
frames = 6
[[step]]
run = "echo {{ frames + }}"
[[step]]
run = '''
first line
echo {{ frame }} done'''
[[step]]
run = "escaped \" {{ frame }}"
[[step]]
run = "echo {{ frames"
[[step]]
run = "{{ }}"
[[step]]
set = { count = "1" }
[[step]]
echo = "{{ count }} {{ vars.cuont }} {{ frames|formt }} {{ item }}"
[[step]]
echo = "x"
if = "frames > 1 && frames < 3"
[[step]]
echo = "{{ k }}"
[[step]]
run = "docker inspect --format '{{.State}}' x"
[[step]]
state = "s{{ index }}"
echo = "x"
"#
    ));
}

#[test]
fn names_of_items_are_bound_only_where_items_are_texts() {
    insta::assert_snapshot!(wrong(
        "[job]\nitems = { range = 3 }\n[[step]]\necho = \"{{ item }} {{ stem }}\"\n"
    ));
}

#[test]
fn workers_and_items_must_be_possible() {
    let of = |workers: &str| wrong(&format!("[job]\n{workers}\n[[step]]\necho = \"x\"\n"));
    let all: Vec<String> = [
        "",
        "workers = 0",
        "workers = -1",
        "workers = 99999999999",
        "workers = 1.5",
        "workers = \"3 - 3\"",
        "workers = \"'many'\"",
        "workers = \"1 / 0\"",
        "items = [1, 2]",
        "items = 3",
        "items = {}",
        "items = { list = [] }",
        "items = { list = [1], range = 2 }",
        "items = { lines = \"\" }",
        "items = { csv = 3 }",
        "items = { range = 9 }\nmax_workers = 8",
        "workers = 3\nmax_workers = 2",
        "workers = 3\nonly = [3]",
        "workers = 3\nonly = []",
        "workers = 3\nonly = [-1, \"a\"]",
        "workers = 1\nstore = \"s3://bucket/x\"",
        "workers = 1\nstore = \"file://host/x\"",
        "workers = 1\nkeep = 1",
        "items = { range = 0 }",
        "items = { range = \"0\" }",
        "items = { glob = \"in:[\" }",
        "items = \"\"",
        "items = \"{{ 3 }}\"",
        "workers = 1\nat_once = 0",
        "workers = 1\nresults = 3",
        "workers = 1\nresults = { from = \"a\" }",
        "workers = 1\nresults = { from = \"in:a\", to = \"b\" }",
        "workers = 1\nfiles = [\"a\", \"\"]",
        "workers = 1\nkeep_scratch = \"yes\"",
    ]
    .map(of)
    .into();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn waves_must_have_names_steps_and_an_order() {
    insta::assert_snapshot!(wrong(
        r#"
[job]
workers = 1
[[wave]]
name = "split"
after = ["merge", "spilt"]
[[wave.step]]
echo = "x"
[[wave]]
name = "merge"
after = "work"
[[wave.step]]
echo = "x"
[[wave]]
name = "work"
after = ["split"]
[[wave.step]]
echo = "x"
[[wave]]
name = "split"
[[wave.step]]
echo = "x"
[[wave]]
[[wave.step]]
echo = "x"
[[wave]]
name = "idle"
each = true
after = 3
[[wave]]
name = "self"
after = ["self"]
[[wave.step]]
echo = "x"
"#
    ));
}

#[test]
fn a_job_without_steps_is_told_what_one_looks_like() {
    insta::assert_snapshot!(format!(
        "{}\n{}\n{}",
        wrong(""),
        wrong("[job]\nworkers = 1\n"),
        wrong("[job]\nworkers = 1\n[[step]]\necho = \"x\"\n[[wave]]\nname = \"w\"\n")
    ));
}

#[test]
fn overrides_are_checked_against_the_parameters() {
    let text =
        "[job]\nworkers = 1\n[params]\nframes = 6\non = true\nlist = [1]\n[[step]]\necho = \"x\"\n";
    let with = |pairs: &[(&str, &str)]| {
        let options = Options {
            params: pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            ..options()
        };
        render(text, &parse(text, &options).unwrap_err())
    };
    insta::assert_snapshot!(with(&[
        ("frames", "many"),
        ("framse", "3"),
        ("colour", "red"),
        ("on", "1"),
        ("list", "{ a = 1 }"),
    ]));
}

#[test]
fn a_parameter_with_a_wrong_override_is_bound_all_the_same() {
    let text = "[job]\nworkers = 1\n[params]\nn = 6\n[[step]]\necho = \"{{ n }}\"\n";
    let params = [("n".to_owned(), "many".to_owned())].into();
    let errors = parse(text, &Options { params, ..options() }).unwrap_err();
    assert_eq!(errors.0.len(), 1, "{errors:?}");
}

#[test]
fn steps_nested_without_end_are_refused() {
    let mut text = "{ echo = \"x\" }".to_owned();
    for _ in 0..30 {
        text = format!("{{ do = [{text}] }}");
    }
    let errors = wrong(&format!("step = [{text}]\n[job]\nworkers = 1\n"));
    assert!(
        errors.contains("nested more than 24 deep") || errors.contains("recursion"),
        "{errors}"
    );
}

#[test]
fn a_job_of_a_million_lines_is_refused_before_it_is_parsed() {
    let errors = wrong(&"#\n".repeat(600_000));
    assert!(errors.contains("longer than 1048576 bytes"), "{errors}");
}

#[test]
fn expressions_do_not_walk_to_the_end_of_the_stack() {
    let pieces = ["(", "[", "{'a':", "-", "not ", "1+", "1 and ", "1 if 1 else ", "1 ~ ", "1 == "];
    for piece in pieces {
        let most = piece.repeat(4000 / piece.len());
        let text = format!("[job]\nworkers = 1\n[[step]]\necho = \"{{{{ {most}1 }}}}\"\n");
        drop(parse(&text, &options()));
        let errors = wrong(&text.replace(&most, &piece.repeat(5000)));
        assert!(errors.contains("more than 4096 bytes") || errors.contains("without its"));
    }
    for piece in ["|string", ".a", "[0]", "()", " is defined", "[1:]"] {
        let most = piece.repeat(4000 / piece.len());
        let text = format!("[job]\nworkers = 1\n[[step]]\necho = \"{{{{ index{most} }}}}\"\n");
        if let Ok(program) = parse(&text, &options()) {
            crate::Walk::new(&program, crate::facts()).start();
        }
    }
}

#[test]
fn a_job_full_of_errors_tells_the_first_ones() {
    let text = format!("[job]\nworkers = 1\n{}", "[[step]]\necho = \"{{ x }}\"\n".repeat(20_000));
    let errors = parse(&text, &options()).unwrap_err();
    assert_eq!(errors.0.len(), 50);
    assert_eq!((errors.0[49].line, errors.0[49].column), (102, 12));
}

#[test]
fn a_job_of_too_many_waves_or_expressions_is_refused_before_it_takes_all_memory() {
    let wave = |n: usize| {
        let after = if n == 0 { String::new() } else { format!("after = [\"w{}\"]\n", n - 1) };
        format!("[[wave]]\nname = \"w{n}\"\nworkers = 1\n{after}[[wave.step]]\necho = \"\"\n")
    };
    let waves = |count: usize| (0..count).map(wave).collect::<String>();
    assert!(parse(&waves(1000), &options()).is_ok());
    assert!(wrong(&waves(1001)).contains("more than 1000 waves"));

    let texts = "{{ 1 }}".repeat(9_999);
    let job =
        |more: &str| format!("[job]\nworkers = 1\n[[step]]\necho = \"{texts}\"\n[[step]]\n{more}");
    assert!(parse(&job("if = \"true\"\necho = \"\"\n"), &options()).is_ok());
    let errors = wrong(&job("if = \"true\"\necho = \"{{ 1 }}\"\n[[step]]\necho = \"{{ 1 }}\"\n"));
    assert_eq!(errors.matches("more than 10000 expressions").count(), 1, "{errors}");
}
