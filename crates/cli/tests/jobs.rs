//! The grammar of jobs over the real binary: folders and tables in, waves that depend on waves,
//! results out.

mod support;

use std::fs;
use std::time::Duration;

use support::{Place, assert_conserved, json, number, text};

const LIMIT: Duration = Duration::from_secs(10);

const PIPELINE: &str = r#"
[job]
store = "objects"
results = { from = "done/*", to = "out/" }

[[wave]]
name = "split"
workers = 2
[[wave.step]]
get = "in:frames/"
concurrency = 2
[[wave.step]]
run = "mkdir parts; for f in frames/*; do cp $f parts/{{ index }}-$(basename $f); done"
[[wave.step]]
put = "parts/*.txt"
as = "parts"

[[wave]]
name = "work"
after = ["split"]
each = true
items = "parts/*"
workers = 2
[[wave.setup]]
run = "echo model > model"
[[wave.setup]]
set = { m = "'M'" }
[[wave.step]]
get = "{{ item }}"
as = "in.txt"
[[wave.step]]
run = "test ! -e out.txt && cat model in.txt > out.txt"
category = "storage"
[[wave.step]]
run = "exit 7"
on_error = [{ run = "echo {{ vars.m }} {{ last.exit }} >> out.txt" }]
[[wave.step]]
put = "out.txt"
as = "done/{{ name }}"

[[wave]]
name = "merge"
after = ["work"]
workers = "(outputs_of('work')|length / 4)|round(0, 'ceil')|int"
[[wave.step]]
get = "done/"
[[wave.step]]
run = "cat done/* | wc -l > lines"
[[wave.step]]
if = "index == 0"
print = "lines"
"#;

#[test]
fn a_pipeline_of_three_waves_takes_a_folder_and_gives_one_back() {
    let place = Place::new(PIPELINE);
    fs::create_dir(place.path("frames")).expect("a folder");
    for frame in 1..=3 {
        let file = place.path("frames").join(format!("f{frame}.txt"));
        fs::write(file, format!("frame {frame}\n")).expect("a frame");
    }
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    assert_eq!(number(&report["workers"]["done"]), 6, "2 split, 2 work, 2 merge");
    let out = fs::read_to_string(place.path("out/1-f3.txt")).expect("a result");
    assert_eq!(out, "model\nframe 3\nM 7\n");
    assert_eq!(fs::read_dir(place.path("out")).expect("results").count(), 6);
    assert!(place.path("objects/parts/0-f1.txt").is_file(), "the store is the job's own");
    assert!(number(&report["breakdown"]["categories"]["storage"]) > 0);
    place.assert_nothing_left(LIMIT);
}

const TABLE: &str = r#"
[job]
workers = 1
items = { csv = "in:table.csv" }
[[step]]
set = { n = 0 }
[[step]]
while = "true"
do = [
    { set = { n = "vars.n + 1" } },
    { break_if = "vars.n * 10 > width or not on" },
    { run = "echo ${#HOME} {% {{ '{{' }} {{ width + vars.n }} {{ scene }} | sed 's/^[0-9]* //' >> log" },
]
[[step]]
get = "in:table.csv"
range = "0-4"
as = "head"
[[step]]
run = "touch log; cat head >> log; echo >> log"
[[step]]
print = "log"
"#;

#[test]
fn values_of_a_table_keep_their_types_and_shell_text_passes_unharmed() {
    let place = Place::new(TABLE);
    fs::write(place.path("table.csv"), "width,scene,on\n20,\"a, b\",true\n7,007,false\n")
        .expect("a table");
    let output = place.run(&["run", "job.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "{% {{ 21 a, b\n{% {{ 22 a, b\nwidth\nwidth\n");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_wave_that_could_not_start_is_a_failure_like_any_other() {
    let place = Place::new(
        "[[wave]]\nname = \"list\"\nitems = { lines = \"in:gone.txt\" }\n\
         [[wave.step]]\necho = \"{{ item }}\"\n\
         [[wave]]\nname = \"sum\"\nafter = [\"list\"]\nworkers = 1\n[[wave.step]]\necho = \"x\"\n",
    );
    let output = place.run(&["run", "job.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("wave list, which did not start") && told.contains("gone.txt"), "{told}");
    let report = place.report();
    assert_conserved(&report);
    let failures = report["failures"].as_array().expect("failures");
    let waves: Vec<_> = failures.iter().map(|failure| &failure["wave"]).collect();
    assert_eq!(waves, ["list", "sum"], "{failures:?}");
    assert!(failures[0]["error"].to_string().contains("gone.txt"), "{failures:?}");
    assert!(failures[1]["error"].to_string().contains("`list`"), "{failures:?}");
    assert_eq!(failures[0].get("worker"), None, "it has none");
    let shown = text(&place.run(&["report"]).stdout);
    assert_eq!(shown.matches("cannot get gone.txt").count(), 1, "told once: {shown}");
}

#[test]
fn odd_names_among_the_inputs_affect_nobody_else_and_are_named() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new(
        "[job]\ninputs = \"files/\"\n[[wave]]\nname = \"each\"\nitems = \"in:*\"\n[[wave.step]]\n\
         get = \"{{ item }}\"\nas = \"f\"\n[[wave.step]]\nprint = \"f\"\n\
         [[wave]]\nname = \"some\"\nworkers = 1\n[[wave.step]]\nget = \"in:a*\"\nas = \"g\"\n\
         [[wave.step]]\nrun = \"ls g\"\n\
         [[wave]]\nname = \"all\"\nworkers = 1\n[[wave.step]]\nget = \"in:*\"\nas = \"h\"\n",
    );
    fs::create_dir(place.path("files")).expect("made");
    for name in [&b"line\nbreak"[..], b"\xff", b"a", b"a#1"] {
        let path = place.path("files").join(std::ffi::OsStr::from_bytes(name));
        fs::write(path, [name, b"\n"].concat()).expect("written");
    }
    let output = place.run(&["run", "job.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let warned = text(&output.stderr);
    for name in ["line\\nbreak", "\\xFF"] {
        let line = warned.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not in\n{warned}"));
        assert!(line.contains("can be no key, and is left out; rename it"), "{line}");
    }
    let report = place.report();
    let printed = report["prints"].as_array().expect("prints");
    let printed: Vec<_> = printed.iter().map(|print| print["text"].as_str()).collect();
    assert_eq!(printed, [Some("a\n"), Some("a#1\n")]);
    let failures = report["failures"].as_array().expect("failures");
    assert_eq!(failures.len(), 1, "only who wants them all: {failures:?}");
    assert_eq!(failures[0]["wave"], "all");
    assert!(failures[0]["error"].to_string().contains("can be no key; rename it"), "{failures:?}");
    let logs = text(&place.run(&["logs"]).stdout);
    assert!(logs.contains("a#1"), "{logs}");
}

#[test]
fn a_worker_that_has_not_started_is_shown_as_such_while_the_run_is_under_way() {
    let place =
        Place::new("[job]\nworkers = 2\nat_once = 1\n[[step]]\nrun = \"sleep 3600; true\"\n");
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3600", 1);
    // What was decided is in the journal a moment later.
    let shown = support::wait_for(LIMIT, || {
        let shown = place.run(&["show", "latest", "1"]);
        (shown.status.code() == Some(0)).then_some(shown)
    });
    let words = text(&shown.expect("it is one of the two").stdout);
    assert!(words.contains("worker 1 of wave job") && words.contains("not started"), "{words}");
    assert_eq!(place.show(1)["attempts"].as_array().map(Vec::len), Some(0));
    let none = place.run(&["show", "latest", "2"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no worker 2"), "{}", text(&none.stderr));
    support::kill("INT", musec.id());
    assert_eq!(musec.wait().expect("ended").code(), Some(130));
    place.assert_nothing_left(LIMIT);
    assert_eq!(place.report()["failures"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_name_that_is_no_column_is_found_before_the_run_if_the_table_is_there() {
    let place = Place::new(&TABLE.replace("width + vars.n", "hight + vars.n"));
    let check = || place.run(&["check", "job.toml"]);
    assert_eq!(check().status.code(), Some(0), "it is known at run time");
    fs::write(place.path("table.csv"), "width,height,scene,on\n").expect("a table");
    let output = check();
    let told = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(told.contains("`hight` is not bound") && told.contains("`height`"), "{told}");
}
