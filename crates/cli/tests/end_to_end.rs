//! Whole runs: the real binary, real TLS, real processes.

mod support;

use std::fs;
use std::time::{Duration, Instant};

use support::{Place, assert_conserved, json, kill, names, number, text, wait_for};

const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn a_run_ends_with_a_report_whose_parts_sum_to_the_whole() {
    let place = Place::new(
        r#"
[job]
workers = 4
[[step]]
state = "think"
run = "sleep 0.1; echo thought"
[[step]]
state = "rest"
sleep = "50ms"
"#,
    );
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    assert_eq!(report["schema"], 1);
    assert_eq!(report["status"], "done");
    assert_eq!(report["launcher"], "local");
    assert_eq!(number(&report["workers"]["done"]), 4);
    assert_eq!(number(&report["clock_faults"]), 0);
    assert_eq!(number(&report["breakdown"]["unaccounted_ns"]), 0);
    assert_eq!(number(&report["rate_bound_ppm"]), 0, "local workers share the clock");
    let categories = &report["breakdown"]["categories"];
    // A busy machine may take of either: a worker is late to see that its program runs, or stalls.
    let late = number(&categories["stall"]) + number(&categories["overhead"]);
    assert!(number(&categories["user"]) + late >= 400_000_000, "{categories}");
    assert!(number(&categories["wait"]) + late >= 200_000_000, "{categories}");
    assert_eq!(json(&place.run(&["report", "--format", "json"])), report, "told again the same");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_command_that_exits_3_is_named_with_its_last_lines_and_musec_exits_1() {
    let place = Place::new(
        r#"
[job]
workers = 3
[[step]]
state = "check"
run = "if [ $MUSEC_WORKER = 1 ]; then echo no luck >&2; exit 3; fi"
"#,
    );
    let output = place.run(&["run", "job.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    for part in ["check", "exit", "3", "no luck"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let report = place.report();
    assert_conserved(&report);
    assert_eq!(report["status"], "failed");
    assert_eq!(number(&report["workers"]["done"]), 2);
    assert_eq!(number(&report["workers"]["failed"]), 1);
    let failure = &report["failures"][0];
    assert_eq!(number(&failure["worker"]), 1);
    assert_eq!(failure["state"], "check");
    assert_eq!(failure["command"], "run");
    assert!(failure["error"].as_str().expect("text").contains('3'), "{failure}");
    let read_only = place.run(&["report"]);
    assert_eq!(read_only.status.code(), Some(0), "reading a failed run is no failure");
}

#[test]
fn a_pipelined_list_is_done_in_order_and_its_account_is_exact() {
    let place = Place::new(
        r#"
[job]
workers = 2
results = "out"
[[step]]
state = "many"
for = { k = "range(1000)" }
pipelined = true
do = [{ echo = "{{ k }}" }]
[[step]]
state = "list"
pipelined = true
do = [
    { run = "sleep 0.05; echo a >> order" },
    { run = "echo b >> order" },
    { put = "order", as = "order.{{ index }}" },
]
"#,
    );
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_conserved(&json(&output));
    for worker in 0..2 {
        let order = fs::read_to_string(place.path(&format!("out/order.{worker}")));
        assert_eq!(order.expect("it came back"), "a\nb\n");
        let shown = place.show(worker);
        let commands = shown["attempts"][0]["commands"].as_array().expect("commands");
        let listed: Vec<_> =
            commands.iter().filter(|command| command["pipelined"] == true).collect();
        assert_eq!((listed.len(), commands.len()), (1003, 1004));
        // The second was received while the first was at it, and did not start before its end.
        let [first, second] = [&listed[1000], &listed[1001]];
        assert!(number(&second["received_ns"]) < number(&first["finished_ns"]), "{second}");
        assert!(number(&second["started_ns"]) >= number(&first["finished_ns"]), "{second}");
    }
}

#[test]
fn a_command_of_a_list_that_fails_cancels_those_behind_it() {
    let place = Place::new(
        r#"
[job]
workers = 1
[[step]]
name = "list"
pipelined = true
do = [{ run = "true" }, { run = "echo no luck >&2; exit 3" }, { run = "sleep 100" }, { echo = "x" }]
"#,
    );
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["failures"][0]["error"], "exit code 3");
    assert!(number(&report["makespan_ns"]) < 60_000_000_000, "the sleep was cancelled");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn lanes_run_at_the_same_time_and_the_loser_of_a_race_is_cancelled() {
    let place = Place::new(
        r#"
[job]
workers = 2
[[step]]
state = "both"
parallel = { a = [{ run = "until [ -e b ]; do sleep 0.01; done; touch a" }], b = [{ run = "touch b; until [ -e a ]; do sleep 0.01; done" }] }
[[step]]
state = "race"
first = true
parallel = { slow = [{ run = "sleep 100" }], fast = [{ sleep = "50ms" }] }
[[step]]
echo = "after"
"#,
    );
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    assert!(number(&report["makespan_ns"]) < 60_000_000_000, "the sleep was cancelled");
    let shown = place.show(1);
    let commands = shown["attempts"][0]["commands"].as_array().expect("commands");
    let lanes: Vec<_> =
        commands.iter().map(|command| (&command["lane"], &command["command"])).collect();
    let all: Vec<String> = lanes.iter().map(|(lane, name)| format!("{lane}{name}")).collect();
    let expected = [
        "[0]\"run\"",
        "[1]\"run\"",
        "[2]\"run\"",
        "[3]\"sleep\"",
        "[2]\"cancel\"",
        "[]\"echo\"",
        "[]\"quit\"",
    ];
    assert_eq!(all, expected);
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_background_command_runs_beside_its_lane_and_a_daemon_ends_with_it() {
    let place = Place::new(
        r#"
[job]
workers = 1
[[step]]
name = "daemon"
state = "daemon"
run = "exec sleep 1000"
background = true
[[step]]
name = "zip"
state = "zip"
run = "until [ -e ready ]; do sleep 0.01; done; echo zipped"
background = true
[[step]]
state = "work"
run = "touch ready; sleep 0.2"
[[step]]
await = "zip"
[[step]]
run = "echo {{ last.output }} > out"
"#,
    );
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    assert!(number(&report["makespan_ns"]) < 60_000_000_000, "the daemon was cancelled");
    let states = report["states"].as_array().expect("states");
    let work = states.iter().find(|state| state["state"] == "work").expect("its state");
    assert!(number(&work["categories"]["user"]) >= 200_000_000, "the daemon does not hide it");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn code_tells_its_job_a_value_that_a_step_waits_for() {
    let place = Place::new(
        r#"
[job]
workers = 2
results = "out"
[[step]]
name = "server"
state = "serve"
run = "sleep 0.2; musec info port $((8000 + MUSEC_WORKER)); exec sleep 1000"
background = true
[[step]]
state = "wait"
wait_info = "port"
timeout = "30s"
[[step]]
run = "echo {{ info.port }} > port"
[[step]]
put = "port"
as = "port.{{ index }}"
"#,
    );
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    let teardown_ns = report["breakdown"]["categories"]["teardown"].as_u64().expect("a time");
    assert!(teardown_ns < 2_000_000_000, "two workers end without waiting: {teardown_ns} ns");
    for worker in 0..2 {
        let port = fs::read_to_string(place.path(&format!("out/port.{worker}")));
        assert_eq!(port.expect("it came back"), format!("800{worker}\n"));
    }
    place.assert_nothing_left(LIMIT);
    let outside = place.run(&["info", "port", "1"]);
    assert_eq!(outside.status.code(), Some(3));
    assert!(text(&outside.stderr).contains("MUSEC_SPANS is not set"), "{}", text(&outside.stderr));
}

#[test]
fn workers_meet_at_a_barrier_and_their_waiting_is_accounted_as_such() {
    let place = Place::new(
        r#"
[job]
workers = 4
[[step]]
state = "work"
run = "if [ $MUSEC_WORKER = 2 ]; then sleep 0.5; fi"
[[step]]
state = "meet"
barrier = "met"
[[step]]
state = "after"
echo = "on"
"#,
    );
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    for worker in [0, 1, 3] {
        let shown = place.show(worker);
        let waits = &shown["attempts"][0]["waits"];
        assert_eq!(waits[0]["reason"], "barrier", "{waits}");
    }
    let late = number(&place.show(2)["attempts"][0]["categories"]["wait"]);
    let early = number(&place.show(0)["attempts"][0]["categories"]["wait"]);
    assert!(late < early, "{late} of the one that was late, {early} of another");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn files_inputs_items_store_and_results_work_together() {
    let place = Place::new(
        r#"
[job]
name = "words"
inputs = "texts"
files = ["count"]
results = { from = "totals/*", to = "out" }
[params]
suffix = "n"
[[wave]]
name = "count"
items = "in:*.txt"
[[wave.step]]
get = "{{ item }}"
as = "text"
[[wave.step]]
state = "count"
run = "count text > count.{{ suffix }}"
[[wave.step]]
put = "count.{{ suffix }}"
as = "counts/{{ stem }}"
[[wave]]
name = "sum"
after = ["count"]
workers = 1
[[wave.step]]
for = { part = "['a b', 'c']" }
do = [{ get = "counts/{{ part }}", as = "counts/{{ part }}" }]
[[wave.step]]
run = "cat counts/* | awk '{ s += $1 } END { print s }' > total"
[[wave.step]]
put = "total"
as = "totals/all"
[[wave.step]]
print = "total"
"#,
    );
    fs::create_dir(place.path("texts")).expect("made");
    fs::write(place.path("texts/a b.txt"), "one two three\n").expect("written");
    fs::write(place.path("texts/c.txt"), "four\n").expect("written");
    fs::write(place.path("count"), "#!/bin/sh\nwc -w < \"$1\"\n").expect("written");
    let output = place.run(&["run", "job.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "4\n", "the job's answer");
    assert_eq!(fs::read_to_string(place.path("out/all")).expect("result"), "4\n");
    let report = place.report();
    assert_conserved(&report);
    assert!(number(&report["breakdown"]["categories"]["storage"]) > 0);
    let split = &report["breakdown"]["storage_split"];
    let storage = number(&report["breakdown"]["categories"]["storage"]);
    assert_eq!(number(&split["get_ns"]) + number(&split["put_ns"]), storage);
}

#[test]
fn every_command_has_stamps_on_both_clocks_and_bounds_that_contain_each_other() {
    let place = Place::new(
        r#"
[job]
workers = 1
timeout = "60s"
[[step]]
state = "work"
for = { k = "range(5)" }
do = [{ run = "true" }, { echo = "hello {{ k }}" }]
"#,
    );
    assert_eq!(place.run(&["run", "job.toml"]).status.code(), Some(0));
    let show = place.show(0);
    let commands = show["attempts"][0]["commands"].as_array().expect("commands");
    let steps: Vec<_> = commands.iter().filter(|c| c["state"] == "work").collect();
    assert_eq!(steps.len(), 10);
    for command in steps {
        let at = |key: &str| number(&command[key]);
        assert!(at("queued_ns") <= at("sent_ns") && at("sent_ns") <= at("replied_ns"));
        assert!(at("received_ns") <= at("started_ns") && at("started_ns") <= at("finished_ns"));
        assert!(at("finished_ns") <= at("reply_queued_ns"));
        let bounds = |key: &str| [number(&command[key][0]), number(&command[key][1])];
        let [start, end] = [bounds("start_bounds_ns"), bounds("end_bounds_ns")];
        assert!(start[0] <= start[1] && end[0] <= end[1], "{command}");
        assert!(at("sent_ns") <= start[0] && end[1] <= at("replied_ns"), "{command}");
    }
    let remaining = commands[0]["remaining_ms"].clone();
    assert!(remaining.to_string().contains("59") || remaining.to_string().contains("60"));
}

#[test]
fn interrupted_once_it_ends_in_order_with_a_report_and_leaves_nothing() {
    let place = Place::new("[job]\nworkers = 5\n[[step]]\nrun = \"sleep 3600; true\"\n");
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3600", 5);
    kill("INT", musec.id());
    let start = Instant::now();
    assert_eq!(musec.wait().expect("ended").code(), Some(130));
    assert!(start.elapsed() < LIMIT);
    place.assert_nothing_left(LIMIT);
    let report = place.report();
    assert_eq!(report["status"], "interrupted");
    assert_conserved(&report);
}

#[test]
fn interrupted_twice_it_ends_at_once_even_when_a_worker_does_not_answer() {
    let place = Place::new("[job]\nworkers = 2\n[[step]]\nrun = \"sleep 3600; true\"\n");
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3600", 2);
    let workers = place.await_processes("musec worker", 2);
    kill("STOP", workers[0]);
    kill("INT", musec.id());
    std::thread::sleep(Duration::from_millis(300));
    kill("INT", musec.id());
    let start = Instant::now();
    assert_eq!(musec.wait().expect("ended").code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_killed_coordinator_takes_everything_along_and_its_run_tells_what_was_done() {
    let place = Place::new(
        "[job]\nworkers = 4\n[[step]]\nstate = \"first\"\nrun = \"true\"\n\
         [[step]]\nstate = \"second\"\nrun = \"sleep 3600; true\"\n",
    );
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3600", 4);
    std::thread::sleep(Duration::from_millis(200));
    kill("KILL", musec.id());
    musec.wait().expect("reaped");
    place.assert_nothing_left(LIMIT);
    let report = place.report();
    assert_eq!(report["status"], "interrupted");
    assert_conserved(&report);
    let first = report["commands"]
        .as_array()
        .expect("commands")
        .iter()
        .find(|command| command["state"] == "first")
        .expect("what was done is told");
    assert_eq!(number(&first["count"]), 4);
    let shown = text(&place.run(&["report"]).stdout);
    assert!(shown.contains("interrupted"), "{shown}");
}

#[test]
fn a_killed_worker_is_named_its_child_is_gone_and_the_others_go_on() {
    let place =
        Place::new("[job]\nworkers = 3\n[[step]]\nstate = \"nap\"\nrun = \"sleep 4.5; true\"\n");
    let mut musec = place.start(&[]);
    place.await_processes("sleep 4.5", 3);
    let victim = place.await_processes("musec worker", 3)[1];
    let children = place.processes_like("sleep 4.5").len();
    kill("KILL", victim);
    let fewer = wait_for(Duration::from_secs(3), || {
        // Two processes a command: the shell and its sleep.
        (place.processes_like("sleep 4.5").len() < children - 1).then_some(())
    });
    assert!(fewer.is_some(), "the victim's child is left: {:?}", place.processes());
    assert_eq!(musec.wait().expect("ended").code(), Some(1));
    let report = place.report();
    assert_conserved(&report);
    assert_eq!(number(&report["workers"]["done"]), 2);
    assert_eq!(number(&report["workers"]["lost"]), 1);
    assert!(number(&report["breakdown"]["rollup"]["lost"]) > 0);
    let failure = &report["failures"][0];
    assert_eq!(failure["state"], "nap");
    assert!(failure["error"].as_str().expect("text").contains("signal 9"), "{failure}");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn when_coordinator_and_workers_are_killed_together_nothing_is_left() {
    let place = Place::new(
        "[job]\nworkers = 3\n[[step]]\nrun = \"sleep 3600 & sleep 3601; true\"\n[[step]]\nwait_info = \"x\"\n",
    );
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3601", 3);
    let workers = place.await_processes("musec worker", 3);
    kill("STOP", musec.id());
    for worker in workers {
        kill("KILL", worker);
    }
    kill("KILL", musec.id());
    musec.wait().expect("reaped");
    place.assert_nothing_left(LIMIT);
    assert_eq!(place.report()["status"], "interrupted");
}

#[test]
fn a_process_that_made_its_own_session_is_followed() {
    let place = Place::new(
        "[job]\nworkers = 1\n[[step]]\nrun = \"setsid sleep 3600 & sleep 3601; true\"\n",
    );
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3601", 1);
    place.await_processes("sleep 3600", 1);
    kill("INT", musec.id());
    assert_eq!(musec.wait().expect("ended").code(), Some(130));
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_time_limit_ends_a_command_with_all_its_processes() {
    let place = Place::new(
        r#"
[job]
workers = 1
[[step]]
state = "slow"
run = "sleep 3600 & trap '' TERM; sleep 3601; true"
timeout = "300ms"
grace = "200ms"
"#,
    );
    let start = Instant::now();
    let output = place.run(&["run", "job.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(start.elapsed() < LIMIT);
    let failure = place.report()["failures"][0].clone();
    let error = failure["error"].as_str().expect("text");
    assert!(error.contains("300"), "{error}");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_port_in_use_and_a_folder_that_cannot_be_written_are_errors_with_a_cure_and_exit_3() {
    let place = Place::new("[job]\nworkers = 1\n[[step]]\nrun = \"true\"\n");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = taken.local_addr().expect("address").to_string();
    let output = place.run(&["run", "job.toml", "--listen", &address]);
    assert_eq!(output.status.code(), Some(3));
    let error = text(&output.stderr);
    assert!(error.contains(&address) && error.contains("--listen"), "{error}");

    fs::write(place.path("file"), "not a folder").expect("written");
    let output = place.run(&["--runs", "file/runs", "run", "job.toml"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("--runs"), "{}", text(&output.stderr));
}

#[test]
fn a_job_file_with_errors_is_not_run_and_every_error_has_its_line() {
    let place =
        Place::new("[job]\nworkers = \"many\"\nwrokers = 3\n[[step]]\nrun = \"{{ nope }}\"\n");
    let output = place.run(&["run", "job.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    for part in ["wrokers", "workers", "nope", "job.toml:3", "job.toml:5"] {
        assert!(error.contains(part), "{part:?} is not in\n{error}");
    }
    assert!(!place.path(".musec").exists(), "nothing was launched or made");
}

#[test]
fn logs_tell_what_commands_printed_and_runs_lists_the_run() {
    let place = Place::new(
        "[job]\nworkers = 2\n[[step]]\nrun = \"echo out $MUSEC_WORKER; echo err $MUSEC_WORKER >&2\"\n",
    );
    assert_eq!(place.run(&["run", "job.toml"]).status.code(), Some(0));
    let all = text(&place.run(&["logs"]).stdout);
    for part in ["out 0", "out 1", "err 0", "err 1"] {
        assert!(all.contains(part), "{part:?} is not in\n{all}");
    }
    let one = text(&place.run(&["logs", "latest", "1"]).stdout);
    assert!(one.contains("out 1") && !one.contains("out 0"), "{one}");
    let runs = json(&place.run(&["runs", "--format", "json"]));
    assert_eq!(runs["runs"].as_array().expect("a list").len(), 1);
    assert_eq!(runs["runs"][0]["status"], "done");
    let missing = place.run(&["show", "latest", "7"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains('7'));
}

#[test]
fn what_a_command_wrote_before_the_time_of_its_attempt_was_over_is_told() {
    let place = Place::new(
        r#"
[job]
workers = 1
timeout = "2s"
[[step]]
run = "echo the last words; sleep 60"
"#,
    );
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let failure = &json(&output)["failures"][0];
    assert_eq!(failure["error"], "its timeout of 2s is over");
    assert_eq!(failure["output"], "the last words");
    let told = text(&place.run(&["report"]).stdout);
    assert!(told.contains("│ the last words"), "{told}");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_coordinator_that_was_stopped_for_a_while_goes_on_and_says_how_late_it_was() {
    let place = Place::new("[job]\nworkers = 1\n[[step]]\nrun = \"sleep 4\"\n");
    let mut musec = place.start(&[]);
    place.await_processes("sleep 4", 1);
    kill("STOP", musec.id());
    std::thread::sleep(Duration::from_millis(2500));
    kill("CONT", musec.id());
    assert_eq!(musec.wait().expect("ended").code(), Some(0));
    let report = place.report();
    assert_conserved(&report);
    assert_eq!(number(&report["clock_faults"]), 0);
    // Something of the loop is due at least once a second.
    let lag = number(&report["coordinator"]["loop_lag_max_ns"]);
    assert!(lag > 1_000_000_000, "{report}");
}

#[test]
fn interrupted_while_results_come_back_it_ends_and_leaves_no_half_of_a_file() {
    // A file that is one hole takes long to copy and no time to make.
    let place = Place::new(
        "[job]\nworkers = 1\nresults = \"res/\"\n[params]\nruns = \"\"\n[[step]]\n\
         run = \"truncate -s 50G {{ runs }}/${MUSEC_RUN%%/*}/out/hole\"\n",
    );
    let runs = format!("runs={}", place.path(".musec/runs").display());
    let mut musec = place.start(&["--param", &runs]);
    let results = place.path("res");
    let coming = wait_for(LIMIT, || fs::read_dir(&results).ok()?.next());
    assert!(coming.is_some(), "no result came");
    kill("INT", musec.id());
    assert_eq!(musec.wait().expect("ended").code(), Some(130));
    assert!(names(&results).is_empty(), "{:?}", names(&results));
    let log = fs::read_to_string(place.path("musec.log")).expect("log");
    assert!(log.contains("while results came back"), "{log}");
    assert_eq!(place.report()["status"], "done");
}

#[test]
fn a_run_that_cannot_be_prepared_leaves_no_folder() {
    let step = "[[step]]\necho = \"x\"\n";
    let no_file = format!("[job]\nworkers = 1\nfiles = [\"gone\"]\n{step}");
    let no_inputs = format!("[job]\nworkers = 1\ninputs = \"gone/\"\n{step}");
    for (job, code) in [(no_file, 2), (no_inputs, 3)] {
        let place = Place::new(&job);
        let output = place.run(&["run", "job.toml"]);
        assert_eq!(output.status.code(), Some(code));
        assert!(text(&output.stderr).contains("gone"), "{}", text(&output.stderr));
        assert!(names(&place.path(".musec/runs")).is_empty(), "{job}");
    }
}

#[test]
fn an_answer_that_is_too_long_is_told_to_be_cut_and_how_to_have_it_whole() {
    let place = Place::new(
        "[job]\nworkers = 1\n[[step]]\nrun = \"seq 1 30000 > f\"\n[[step]]\nprint = \"f\"\n",
    );
    let output = place.run(&["run", "job.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).ends_with("\n29999\n30000\n"));
    let whole: usize = (1..=30000).map(|n: u32| n.to_string().len() + 1).sum();
    let cut = whole - output.stdout.len();
    let told = text(&output.stderr);
    assert!(cut > 0 && told.contains(&format!("the first {cut} bytes")), "{told}");
}
