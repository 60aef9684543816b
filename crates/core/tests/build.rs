//! Jobs built in Rust: the same programs as from job files, and the same runs.

#![allow(clippy::unwrap_used, reason = "a helper's panic is a failed test")]
#![allow(dead_code, reason = "the world is shared with tests that use more of it")]

mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use musec_core::build::{
    Info, Job, Loop, State, Task, Value, Var, Wave, await_task, barrier, break_if, choose, done,
    echo, fail, get, goto, list, parallel, print, put, repeat, run, run_argv, set, sleep,
    wait_info, while_true,
};
use musec_core::job::{Options, parse};
use musec_core::{Program, StepCategory, steps};
use musec_trace::{Event, LaunchId, RunStatus, StateId};
use world::{Fate, World, WorldOptions};

const START: State = State::named("start");
const RETRIEVE: State = State::named("retrieve");
const CONNECT: State = State::named("connect");
const ENCODE: State = State::named("encode");
const COMPARE: State = State::named("compare");
const UPLOAD: State = State::named("upload");
const PASS: Var = Var::named("pass");
const K: Loop = Loop::named("k");

/// A machine like that of mu's xc-enc, as a job file.
const XC: &str = r#"
[job]
name = "xc"

[params]
passes = 3

[[wave]]
name = "xc"
workers = 3

[[wave.step]]
state = "start"
parallel = { retrieve = [{ state = "retrieve", for = { k = "range(2)" }, do = [{ get = "in:{{ index * 2 + k }}.y4m" }] }], connect = [{ state = "connect", echo = "{{ index }}" }, { sleep = "100ms" }] }

[[wave.step]]
set = { pass = 0 }

[[wave.step]]
while = "vars.pass < passes"
do = [
    { state = "encode", run = ["xc-enc", "--pass", "{{ vars.pass }}"], timeout = "60s" },
    { state = "compare", run = ["cmp", "out.state", "next.state"], expect = "last.exit in [0, 1]" },
    { set = { pass = "vars.pass + 1" } },
    { break_if = "last.exit == 0" },
]

[[wave.step]]
state = "upload"
parallel = { ivf = [{ put = "out.ivf", as = "ivf/{{ index }}" }], final = [{ put = "out.state", as = "state/{{ index }}" }], quality = [{ put = "ssim", as = "ssim/{{ index }}" }] }
"#;

/// What comes before and after the passes.
fn ends() -> (musec_core::build::Steps, musec_core::build::Steps) {
    let retrieve = repeat(K, "range(2)", steps![get(format!("in:{{{{ index * 2 + {K} }}}}.y4m"))]);
    let connect = steps![echo("{{ index }}").state(CONNECT), sleep(Duration::from_millis(100))];
    let before = parallel([("retrieve", steps![retrieve.state(RETRIEVE)]), ("connect", connect)]);
    let upload = parallel([
        ("ivf", steps![put("out.ivf").to_key("ivf/{{ index }}")]),
        ("final", steps![put("out.state").to_key("state/{{ index }}")]),
        ("quality", steps![put("ssim").to_key("ssim/{{ index }}")]),
    ]);
    (steps![before.state(START), set([(PASS, 0)])], steps![upload.state(UPLOAD)])
}

fn encode() -> musec_core::build::AnyStep {
    let words = ["xc-enc".to_owned(), "--pass".to_owned(), format!("{{{{ {PASS} }}}}")];
    run_argv(words).state(ENCODE).timeout(Duration::from_secs(60)).into()
}

fn compare() -> musec_core::build::AnyStep {
    let words = ["cmp", "out.state", "next.state"];
    run_argv(words).state(COMPARE).expect("last.exit in [0, 1]").into()
}

fn xc(wave: Wave) -> Program {
    let wave = wave.workers(3);
    Job::new("xc").param("passes", 3).wave(wave).build().unwrap_or_else(|error| panic!("{error}"))
}

/// As a tree, like the job file.
fn tree() -> Program {
    let (before, after) = ends();
    let round = steps![
        encode(),
        compare(),
        set([(PASS, format!("{PASS} + 1"))]),
        break_if("last.exit == 0"),
    ];
    let passes = while_true(format!("{PASS} < passes"), round);
    xc(Wave::new("xc").steps(before).step(passes).steps(after))
}

/// As a graph: states, and edges between them.
fn graph() -> Program {
    let (before, after) = ends();
    xc(Wave::new("xc")
        .steps(before)
        .step(encode())
        .step(compare())
        .step(set([(PASS, format!("{PASS} + 1"))]))
        .step(choose(format!("last.exit != 0 and {PASS} < passes"), steps![goto(ENCODE)]))
        .steps(after))
}

/// What each lane of each worker did: states from and to, and commands, by name, in their order.
type Paths = BTreeMap<(LaunchId, Vec<u32>), Vec<String>>;

fn paths(program: Program) -> (RunStatus, Paths) {
    let name = |states: &[String], state: Option<StateId>| {
        state.map_or_else(|| "-".to_owned(), |state| states[state.0 as usize].clone())
    };
    let states: Vec<String> = program.states.iter().map(|state| state.name.clone()).collect();
    // The states differ after the first pass of worker 1, and after two of worker 2.
    let fate = |launch, command| match (launch, command) {
        (1, 5) | (2, 5 | 7) => Fate::Exit(1),
        _ => Fate::Live,
    };
    let mut world = World::of(program, WorldOptions { fate, ..WorldOptions::calm(7) });
    let status = world.run();
    let mut paths = Paths::new();
    for event in &world.records {
        let (launch, lane, word) = match event {
            Event::Transition { launch, lane, from, to, cause } => {
                let (from, to) = (name(&states, *from), name(&states, *to));
                (launch, lane, format!("{from} > {to} {}", cause.name()))
            }
            Event::Queued(queued) => {
                let words = queued.arguments.iter().map(|word| String::from_utf8_lossy(word));
                let words: Vec<_> = words.collect();
                let (state, visit) = (name(&states, queued.state), queued.visit);
                let word = format!("{state}#{visit} {} {}", queued.name, words.join(" "));
                (&queued.launch, &queued.lane, word)
            }
            _ => continue,
        };
        paths.entry((*launch, lane.clone())).or_default().push(word);
    }
    (status, paths)
}

#[test]
fn a_machine_like_xc_enc_is_the_same_program_from_a_file_and_from_rust() {
    let file = parse(XC, &Options::default()).unwrap();
    assert_eq!(format!("{:#?}", tree()), format!("{file:#?}"));
}

#[test]
fn a_machine_like_xc_enc_goes_the_same_ways_as_a_file_as_a_tree_and_as_a_graph() {
    let (status, file) = paths(parse(XC, &Options::default()).unwrap());
    assert_eq!(status, RunStatus::Done);
    let main = |worker| file[&(LaunchId(worker), Vec::new())].join("\n");
    assert_eq!(main(0).matches("> encode").count(), 1, "{}", main(0));
    assert_eq!(main(1).matches("> encode").count(), 2, "{}", main(1));
    assert_eq!(main(2).matches("> encode").count(), 3, "{}", main(2));
    assert_eq!(file.len(), 3 * 6, "each has its own path, and five lanes");
    assert_eq!(paths(tree()), (status, file.clone()));
    assert_eq!(paths(graph()), (status, file));
}

/// Every action and every modifier.
#[test]
fn all_that_a_job_file_can_say_can_be_said_in_rust() {
    let server = Task::named("server");
    let port = Info::named("port");
    let every = steps![
        run("serve").in_background(server),
        wait_info(port).timeout(Duration::from_secs(10)),
        run(format!("ask {{{{ {port} }}}}"))
            .shell("bash")
            .env("A", "1")
            .env("A", "2")
            .cwd("sub")
            .stdin("a")
            .stdout("b")
            .grace(Duration::from_secs(1))
            .category(StepCategory::Storage)
            .name("asking"),
        get("in:a").to_file("b").range("0-1"),
        get("in:a/").concurrency(2),
        put("a/").to_key("b/").concurrency(2),
        choose("index == 0", steps![fail("no")]).otherwise(steps![print("b")]),
        list(steps![echo("a"), echo("b")]).pipelined().on_error(steps![done()]),
        parallel([("a", steps![echo("a")]), ("b", steps![echo("b")])]).first(),
        await_task(server),
    ];
    let job = Job::new("all")
        .param("list", Value::from(["a", "b"]))
        .param("on", true)
        .inputs("in")
        .files(["tool"])
        .results("out/")
        .wave(Wave::new("split").workers("2 + 1").at_once(2).steps(steps![put("x").to_key("p/x")]))
        .wave(
            Wave::new("work")
                .after(["split"])
                .each()
                .workers(2)
                .items("p/*")
                .timeout(Duration::from_secs(5))
                .connect_timeout(Duration::from_secs(5))
                .keep()
                .setup(steps![get("in:model")])
                .steps(every),
        );
    let program = job.build().unwrap_or_else(|error| panic!("{error}\n{}", job.text()));
    assert_eq!(program.waves.len(), 2);
    let text = job.text();
    assert!(text.contains("env = { A = \"2\" }"), "the last value stands: {text}");
    for items in [
        Wave::new("w").item_list(["a", "b"]),
        Wave::new("w").item_range("3"),
        Wave::new("w").item_lines("in:names"),
        Wave::new("w").item_table("in:table").at_once("cores"),
    ] {
        let job = Job::new("items").wave(items.step(echo("{{ item }}")));
        job.build().unwrap_or_else(|error| panic!("{error}\n{}", job.text()));
    }
}

#[test]
fn workers_that_meet_can_be_built() {
    let wave = Wave::new("grid").workers(4).group_size(2);
    let wave = wave.step(barrier("row").of_group().timeout(Duration::from_secs(9)));
    let wave = wave.step(barrier("all")).step(echo("{{ group }} {{ place }}"));
    let job = Job::new("grid").wave(wave);
    job.build().unwrap_or_else(|error| panic!("{error}\n{}", job.text()));
}

#[test]
fn all_errors_of_a_built_job_come_at_once_with_their_lines() {
    let wave = Wave::new("w").workers(1);
    let wave =
        wave.step(run("echo {{ itme }}")).step(await_task(Task::named("t"))).step(goto(ENCODE));
    let error = Job::new("wrong").wave(wave).build().unwrap_err();
    assert_eq!(error.errors.0.len(), 3, "{error}");
    let text = error.to_string();
    for part in ["`itme`", "in `run = \"echo {{ itme }}\"`", "state `encode`", "called `t`"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(
        error.errors.0[0].line,
        error.text.lines().position(|l| l.contains("itme")).unwrap() + 1
    );
}
