//! What is accepted, and what it means.

use std::time::Duration;

use musec_core::job::{Options, parse};
use musec_core::{ResultRule, WaveId};
use musec_protocol::{Action, Place};
use proptest::prelude::*;
use serde_json::json;

use crate::{facts, first, job, options, steps};

/// The example of the guide, with all that this version knows.
const EXAMPLE: &str = r#"
[job]
name    = "png2y4m"
workers = 25
inputs  = "frames/"
files   = ["bin/png2y4m"]
results = [{ from = "y4m/*", to = "out/" }, "all-{{ frames }}/"]
timeout = "3m"
[params]
frames = 6

[[step]]
state = "retrieve"
for   = { k = "range(frames)" }
do    = [{ get = "in:{{ '%08d'|format(index * frames + k) }}.png", as = "{{ k }}.png" }]

[[step]]
state = "encode"
run   = "ffmpeg -loglevel error -i %d.png -pix_fmt yuv420p out.y4m"

[[step]]
state = "upload"
put   = "out.y4m"
as    = "y4m/{{ '%08d'|format(index) }}.y4m"
"#;

#[test]
fn the_guides_example_is_a_program() {
    let program = job(EXAMPLE);
    assert_eq!(program.job, "png2y4m");
    assert_eq!(program.inputs.as_deref(), Some("frames/"));
    assert_eq!(program.files, ["bin/png2y4m"]);
    let rule = |from: &str, to: &str| ResultRule { from: from.to_owned(), to: to.to_owned() };
    assert_eq!(program.results, [rule("y4m/*", "out/"), rule("**", "all-6/")]);
    let names: Vec<_> = program.states.iter().map(|state| state.name.as_str()).collect();
    assert_eq!(names, ["retrieve", "encode", "upload"]);
    let wave = program.wave(WaveId(0)).unwrap();
    assert_eq!(wave.name, "png2y4m");
    assert_eq!(wave.timeout, Some(Duration::from_secs(180)));
    assert_eq!(wave.connect_timeout, Duration::from_secs(60));
    insta::assert_json_snapshot!(program.outline());
}

#[test]
fn the_first_command_of_the_example_names_its_frame() {
    let mut facts = facts();
    facts.index = 3;
    let next = first(&job(EXAMPLE), facts);
    let Action::Get(get) = next.action else { panic!("{next:?}") };
    assert_eq!(get.place, Place::Inputs);
    assert_eq!(get.key, "00000018.png");
    assert_eq!(get.file, b"0.png");
}

#[test]
fn the_jobs_of_this_project_are_programs() {
    let hello = job(include_str!("../../../../jobs/hello/job.toml"));
    assert_eq!((hello.job.as_str(), hello.results.len()), ("hello", 1));
    let picture = job(include_str!("../../../../jobs/mandelbrot/job.toml"));
    let plan = picture.plan(WaveId(0), 2, None).unwrap();
    assert!(plan.queue && plan.workers == 2 && plan.items.unwrap().len() > 100);
    let plan = picture.plan(WaveId(1), 2, None).unwrap();
    assert_eq!((plan.workers, plan.items), (1, None));
}

#[test]
fn inline_tables_may_stand_over_several_lines_with_comments_and_trailing_commas() {
    let program = steps(
        r#"
        [[step]]
        do = [
            { echo = "a" }, # a comment
            {
                if = "1 == 1",
                do = [
                    { echo = "b" },
                ],
            },
        ]
        "#,
    );
    let outline = program.outline();
    assert_eq!(outline.waves[0].steps[0].steps[1].steps[0].text, "b");
}

#[test]
fn waves_take_over_what_the_job_says_of_workers() {
    let program = job(r#"
        [job]
        workers = "cores"
        at_once = 7
        timeout = "1m"
        connect_timeout = "5s"
        items = { range = 12 }
        [[wave]]
        name = "a"
        timeout = "2m"
        [[wave.step]]
        echo = "{{ item }}"
        [[wave]]
        name = "b"
        after = ["a"]
        workers = 1
        [[wave.step]]
        echo = "b"
        "#);
    let a = program.plan(WaveId(0), 4, None).unwrap();
    assert_eq!((a.workers, a.at_once, a.queue), (4, Some(7), true));
    let b = program.plan(WaveId(1), 4, None).unwrap();
    assert_eq!((b.workers, b.items, b.queue), (1, None, false));
    let [a, b] = program.waves.as_slice() else { panic!() };
    assert_eq!(a.timeout, Some(Duration::from_secs(120)));
    assert_eq!(b.timeout, Some(Duration::from_secs(60)));
    assert_eq!(b.connect_timeout, Duration::from_secs(5));
    assert_eq!((a.after.as_slice(), b.after.as_slice()), (&[][..], &[WaveId(0)][..]));
}

#[test]
fn a_job_without_a_name_is_named_after_its_file() {
    let program = job("[job]\nworkers = 1\n[[step]]\necho = \"x\"");
    assert_eq!((program.job.as_str(), program.waves[0].name.as_str()), ("job", "job"));
    assert_eq!(program.states[0].name, "job");
}

#[test]
fn overrides_are_read_as_the_type_of_their_default() {
    let text = r#"
        [job]
        workers = 1
        [params]
        n = 1
        x = 1.5
        on = false
        s = "a"
        l = [1]
        [[step]]
        echo = "{{ n + 1 }} {{ x }} {{ not on }} {{ s }} {{ l|sum }}"
    "#;
    let overrides = [("n", "41"), ("x", "2"), ("on", "true"), ("s", "7"), ("l", "[2, 3]")];
    let options = Options {
        params: overrides.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..options()
    };
    let program = parse(text, &options).unwrap();
    assert_eq!(program.params["n"], json!(41));
    assert_eq!(program.params["s"], json!("7"));
    assert_eq!(crate::echoed(&program, facts()), "42 2.0 False 7 5");
}

#[test]
fn options_beside_the_file_win() {
    let options = Options {
        at_once: Some(3),
        timeout: Some(Duration::from_secs(9)),
        inputs: Some("elsewhere".to_owned()),
        ..options()
    };
    let program = parse(EXAMPLE, &options).unwrap();
    assert_eq!(program.inputs.as_deref(), Some("elsewhere"));
    assert_eq!(program.waves[0].timeout, Some(Duration::from_secs(9)));
    assert_eq!(program.plan(WaveId(0), 1, None).unwrap().at_once, Some(3));
}

#[test]
fn a_run_has_its_shell_or_its_own_words_and_its_surroundings() {
    let program = steps(
        r#"
        [[step]]
        run = "echo ${#x} {% raw %} {# no #} | cat"
        [[step]]
        run = "echo hi"
        shell = "bash"
        [[step]]
        run = ["convert", "{{ 1 + 1 }}.png", ""]
        stdin = "in"
        stdout = "out"
        cwd = "sub"
        env = { N = 3, ON = true, T = "{{ wave }}" }
        grace = "500ms"
        timeout = "1.5s"
        "#,
    );
    let mut walk = crate::Walk::new(&program, facts());
    let words = |step: crate::Step| match step {
        crate::Step::Command(next) => match next.action {
            Action::Run(run) => (run, next.timeout_ms),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let text = |words: &[Vec<u8>]| {
        words.iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect::<Vec<_>>()
    };
    let (run, timeout) = words(walk.start());
    assert_eq!(text(&run.argv), ["/bin/sh", "-c", "echo ${#x} {% raw %} {# no #} | cat"]);
    assert_eq!((run.grace_ms, timeout), (2000, None));
    let (run, _) = words(walk.replied(&crate::ok()));
    assert_eq!(text(&run.argv), ["bash", "-c", "echo hi"]);
    let (run, timeout) = words(walk.replied(&crate::ok()));
    assert_eq!(text(&run.argv), ["convert", "2.png", ""]);
    assert_eq!(run.stdin.as_deref(), Some(&b"in"[..]));
    assert_eq!(run.stdout.as_deref(), Some(&b"out"[..]));
    assert_eq!(run.cwd.as_deref(), Some(&b"sub"[..]));
    let env: Vec<_> =
        run.env.iter().map(|(k, v)| format!("{}={}", k.escape_ascii(), v.escape_ascii())).collect();
    assert_eq!(env, ["N=3", "ON=true", "T=main"]);
    assert_eq!((run.grace_ms, timeout), (500, Some(1500)));
}

#[test]
fn keys_and_files_stand_for_each_other() {
    let program = steps(
        r#"
        [[step]]
        get = "in:a/b/c.png"
        [[step]]
        get = "a/d.png"
        as = "x/y.png"
        [[step]]
        put = "e/f.png"
        [[step]]
        put = "g"
        as = "h/{{ index }}"
        [[step]]
        print = "answer.txt"
        [[step]]
        sleep = "2.5s"
        [[step]]
        sleep = "{{ 1 + 1 }}00ms"
        "#,
    );
    assert_eq!(
        crate::Walk::new(&program, facts()).all(),
        "- > main start\n\
         main#0 get in:a/b/c.png c.png\n\
         main#0 get a/d.png x/y.png\n\
         main#0 put e/f.png e/f.png\n\
         main#0 put g h/0\n\
         main#0 print answer.txt\n\
         main#0 sleep 2500000000ns\n\
         main#0 sleep 200000000ns\n\
         main > - done\n\
         done"
    );
}

/// Pieces that job files are made of, to be put together at random.
const PIECES: &[&str] = &[
    "[job]",
    "[params]",
    "[[step]]",
    "[[wave]]",
    "[[wave.step]]",
    "workers",
    "items",
    "run",
    "do",
    "for",
    "if",
    "else",
    "set",
    "get",
    "put",
    "as",
    "after",
    "name",
    "state",
    "expect",
    " = ",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\n",
    "\"{{ x }}\"",
    "\"{{ '\"",
    "1",
    "0x1F",
    "-7",
    "1.5",
    "true",
    "\"a\"",
    "\"range(3)\"",
    "{ range = \"n\" }",
    "\"\"\"",
    "∞",
    "\\",
    "\"cores\"",
    "#",
    "\0",
    "results",
    "timeout",
    "\"3m\"",
    "1979-05-27",
    "[[setup]]",
    "[[wave.setup]]",
    "while",
    "break_if",
    "on_error",
    "fail",
    "done",
    "goto",
    "each",
    "only",
    "{ csv = \"in:t\" }",
    "{ lines = \"in:t\" }",
    "\"{{ outputs_of('\"",
    "\"outputs_of('w')|length\"",
    "category",
    "concurrency",
    "\"a/*\"",
    "store",
    "max_workers",
];

proptest! {
    #[test]
    fn no_mutation_of_a_job_makes_the_parser_panic(
        cuts in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(PIECES)),
            1..6,
        ),
    ) {
        let mut text = EXAMPLE.to_owned();
        for (at, remove, insert) in cuts {
            let mut start = at.index(text.len() + 1);
            while !text.is_char_boundary(start) { start -= 1; }
            let mut end = (start + remove).min(text.len());
            while !text.is_char_boundary(end) { end += 1; }
            text.replace_range(start..end, insert);
        }
        check(&text);
    }

    #[test]
    fn no_heap_of_pieces_makes_the_parser_panic(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60),
    ) {
        check(&pieces.concat());
    }
}

/// Whatever is wrong is told within the text, in order.
fn check(text: &str) {
    let Err(errors) = parse(text, &options()) else { return };
    assert!(!errors.0.is_empty());
    let mut before = 0;
    for error in &errors.0 {
        assert!(text.get(error.span.clone()).is_some(), "{error:?}");
        assert!(error.span.start >= before && error.line >= 1 && error.column >= 1);
        before = error.span.start;
    }
    crate::render(text, &errors);
}
