//! The machine's limits, each reached by a run of the real binary: it ends, says what, where and
//! the cure, and what it had recorded can be reported.

mod support;

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use musec_trace::journal::{JournalReader, Next};
use serde_json::Value;
use support::machine::{
    Full, limit_process, listening_port, namespace, with_limit, with_processes,
};
use support::{Place, assert_conserved, json, names, number, text, wait_for};

const LIMIT: Duration = Duration::from_secs(10);

/// Three workers whose commands fill a journal: 200 KiB of it.
const TALK: &str = r#"
[job]
workers = 3
[[step]]
for = { k = "range(700)" }
do = [{ echo = "number {{ k }} of many, of which each makes the journal a little longer" }]
"#;

/// Two workers that put files of 3 bytes and 1.5 MB, one after the other.
const PUT: &str = r#"
[job]
workers = 2
store = "objects"
[params]
folder = ""
[[step]]
if = "index"
run = "while ! test -e {{ folder }}/objects/file0; do sleep 0.02; done"
[[step]]
run = "ulimit -f unlimited; head -c {{ 1500000 if index else 3 }} /dev/zero > f"
[[step]]
put = "f"
as = "file{{ index }}"
"#;

/// The same into the run's own store, and back as results; past the worker, whose limits are those
/// of the coordinator.
const RESULTS: &str = r#"
[job]
workers = 2
results = "res/"
[params]
runs = ""
[[step]]
run = """
ulimit -f unlimited
head -c {{ 1500000 if index else 3 }} /dev/zero > {{ runs }}/${MUSEC_RUN%%/*}/out/file{{ index }}
"""
"#;

const TRUE: &str = "[job]\nworkers = 2\n[[step]]\nrun = \"true\"\n";

fn assert_told(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// The one run in a folder of runs.
fn the_run(runs: &Path) -> std::path::PathBuf {
    let ids = names(runs);
    assert_eq!(ids.len(), 1, "{ids:?}");
    runs.join(&ids[0])
}

/// Whole records of a journal, and its length; it has no torn end.
fn whole(journal: &Path) -> (u64, u64) {
    let mut reader = JournalReader::new(File::open(journal).expect("a journal"));
    let mut records = 0;
    loop {
        match reader.read_next().expect("undamaged") {
            Next::Record(_) => records += 1,
            Next::End { torn_bytes } => {
                assert_eq!(torn_bytes, 0, "{}", journal.display());
                return (records, fs::metadata(journal).expect("there").len());
            }
        }
    }
}

fn failure(report: &Value) -> &str {
    report["failures"][0]["error"].as_str().unwrap_or_else(|| panic!("no failure in {report}"))
}

/// Runs a job that cannot record all that it would; checks what was said, what is safe, and that it
/// can be reported. On a full disk no other file than the one that filled it can grow either, and
/// whichever is first found to is named.
fn run_with_a_full(full: Full, job: &str, of: &[&str]) {
    let place = Place::new(job);
    let output = full.musec(&place, "runs", 100_000, &["--runs", "runs", "run", "job.toml"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{full:?}: {told}");
    assert_told(&told, &["the run was ended", full.words(), full.cure()]);
    let named = of.iter().find(|name| told.contains(**name));
    let named = named.unwrap_or_else(|| panic!("none of {of:?} is in\n{told}"));
    let (records, bytes) = whole(&the_run(&place.path("kept")).join(named));
    assert!(records > 3, "{records}");
    assert_told(&told, &[&format!("the {records} records ({bytes} bytes) before that are safe")]);
    let report = json(&place.run(&["--runs", "kept", "report", "--format", "json"]));
    assert_eq!(report["status"], "interrupted");
    assert_conserved(&report);
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_disk_that_is_full_while_journalling_ends_the_run_and_tells_how_much_is_safe() {
    for full in Full::all() {
        run_with_a_full(full, TALK, &["journal.musec"]);
    }
}

#[test]
fn a_disk_that_is_full_while_outputs_are_kept_ends_the_run_and_names_the_file() {
    let job = "[job]\nworkers = 2\n[[step]]\nfor = { k = \"range(40)\" }\n\
               do = [{ run = \"seq 1 2000\" }]\n";
    let both = ["outputs.musec", "journal.musec"];
    run_with_a_full(Full::File, job, &both[..1]);
    if Full::all().contains(&Full::Disk) {
        run_with_a_full(Full::Disk, job, &both);
    }
}

#[test]
fn a_store_that_is_full_fails_the_put_that_it_has_no_room_for_and_no_other() {
    for full in Full::all() {
        let place = Place::new(PUT);
        let folder = format!("folder={}", place.path("").display());
        let words = ["run", "job.toml", "--param", &folder];
        let output = full.musec(&place, "objects", 1 << 20, &words);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let report = place.report();
        assert_conserved(&report);
        assert_eq!(number(&report["workers"]["done"]), 1, "{full:?}: {report}");
        assert_told(failure(&report), &["file1", full.words(), full.cure()]);
        assert_eq!(names(&place.path("kept")), ["file0"], "{full:?}: no half of an object");
        place.assert_nothing_left(LIMIT);
    }
}

#[test]
fn results_that_have_no_room_leave_the_run_done_and_can_be_fetched_later() {
    for full in Full::all() {
        let place = Place::new(RESULTS);
        let runs = format!("runs={}", place.path(".musec/runs").display());
        let words = ["run", "job.toml", "--param", &runs];
        let output = full.musec(&place, "res", 1 << 20, &words);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{full:?}: {told}");
        assert_told(&told, &["results did not come back", "file1", full.words(), full.cure()]);
        assert_told(&told, &["/out", "`musec fetch`"]);
        assert_eq!(place.report()["status"], "done");
        assert_eq!(names(&place.path("kept")), ["file0"], "no half of a file");
        let fetched = place.run(&["fetch", "latest", "-o", "later"]);
        assert_eq!(fetched.status.code(), Some(0), "{}", text(&fetched.stderr));
        assert_eq!(names(&place.path("later")), ["file0", "file1"]);
    }
}

#[test]
fn a_scratch_folder_that_is_full_fails_the_command_that_fills_it() {
    for full in Full::all() {
        // One is at work, with its scratch folder, before the other fills the disk.
        let place = Place::new(
            "[job]\nworkers = 2\n[params]\nfolder = \"\"\n\
             [[step]]\nif = \"not index\"\nrun = \"touch {{ folder }}/begun\"\n\
             [[step]]\nif = \"index\"\n\
             run = \"while ! test -e {{ folder }}/begun; do sleep 0.02; done\"\n\
             [[step]]\nif = \"index\"\nget = \"in:big\"\n",
        );
        fs::write(place.path("big"), vec![0; 3_000_000]).expect("written");
        let folder = format!("folder={}", place.path("").display());
        let run = ["run", "job.toml", "--param", &folder];
        let words = [&["env", "TMPDIR=tmp", support::MUSEC], &run[..]].concat();
        let output = full.run(&place, "tmp", 1 << 20, &words);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let report = place.report();
        assert_conserved(&report);
        assert_eq!(number(&report["workers"]["done"]), 1, "{full:?}: {report}");
        assert_told(failure(&report), &["cannot write \"big\"", full.words(), full.cure()]);
        assert!(full == Full::File || failure(&report).contains("TMPDIR"), "{report}");
        place.assert_nothing_left(LIMIT);
    }
}

/// A disk without room for a name more, where the system lets a test mount one; a file in the
/// folder's place elsewhere.
fn without_room(place: &Place, names: u32) -> std::process::Output {
    let words = ["env", "TMPDIR=tmp", support::MUSEC, "run", "job.toml"];
    let Some(flags) = namespace() else {
        fs::write(place.path("tmp"), "no folder").expect("written");
        return place.output(place.command("env").args(&words[1..]));
    };
    fs::create_dir(place.path("tmp")).expect("made");
    let script = format!("mount -t tmpfs -o nr_inodes={names} none tmp; \"$@\"");
    let mut command = place.command("unshare");
    place.output(command.args(flags).args(["sh", "-c", &script, "sh"]).args(words))
}

#[test]
fn without_room_for_the_scratch_folders_nothing_is_launched_and_musec_exits_3() {
    let place = Place::new(TRUE);
    let output = without_room(&place, 1);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_told(&told, &["cannot start the local launcher in", "TMPDIR", "because: "]);
    assert!(names(&place.path(".musec/runs")).is_empty(), "nothing was launched: {told}");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_worker_without_room_for_its_scratch_folder_says_so_in_the_report() {
    if namespace().is_none() {
        // What stands in for the full disk would be found before anything is launched.
        return without_room_for_the_scratch_folders_nothing_is_launched_and_musec_exits_3();
    }
    let place = Place::new(TRUE);
    // Room for the root, the run's folder and its guard's socket.
    let output = without_room(&place, 3);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = place.report();
    assert_conserved(&report);
    let parts = ["cannot make the scratch folder", "musec-", "TMPDIR", "No space left on device"];
    assert_told(failure(&report), &parts);
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_runs_folder_that_cannot_be_written_is_told_with_another_way_and_musec_exits_3() {
    let place = Place::new(TRUE);
    let output = place.run(&["--runs", "/proc/musec", "run", "job.toml"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_told(&told, &["cannot write /proc/musec", "--runs names another place"]);
    let Some(flags) = namespace() else { return };
    fs::create_dir(place.path("runs")).expect("made");
    let script = "mount -t tmpfs -o ro none runs; \"$@\"";
    let mut command = place.command("unshare");
    command.args(flags).args(["sh", "-c", script, "sh", support::MUSEC]);
    let output = place.output(command.args(["--runs", "runs", "run", "job.toml"]));
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_told(&told, &["cannot write", "choose a place that can be written", "Read-only"]);
    place.assert_nothing_left(LIMIT);
}

#[test]
fn an_address_of_another_machine_cannot_be_listened_on_and_musec_exits_3() {
    let place = Place::new(TRUE);
    let output = place.run(&["run", "job.toml", "--listen", "192.0.2.1:0"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_told(&told, &["cannot listen on 192.0.2.1:0", "--listen"]);
    assert!(!place.path(".musec").exists(), "no run was made");
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_kills_nobody() {
    let place = Place::new("[job]\nworkers = 1\n[[step]]\nrun = \"head -c 9000 /dev/zero > f\"\n");
    let output = with_limit(&place, "--fsize=8192", &["run", "job.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    // The command is as it would be without musec: the signal is its own affair.
    let report = place.report();
    assert_eq!(report["status"], "failed");
    assert_told(failure(&report), &["exit code 153"]);
    place.assert_nothing_left(LIMIT);
}

#[test]
fn two_workers_have_enough_with_64_open_files_and_a_lack_is_told_with_the_number_that_is_needed() {
    let place = Place::new(TRUE);
    let output = with_limit(&place, "--nofile=64:64", &["run", "job.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = with_limit(&place, "--nofile=32:32", &["run", "job.toml"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_told(&told, &["the limit of open files allows 0", "(ulimit -Hn 60)"]);
    let output = with_limit(&place, "--nofile=60:60", &["run", "job.toml"]);
    assert_eq!(output.status.code(), Some(0), "as was said: {}", text(&output.stderr));
}

#[test]
fn a_soft_limit_of_open_files_is_raised_as_far_as_the_workers_need_it() {
    let job = "[job]\nworkers = 30\nat_once = 30\n[[step]]\nrun = \"sleep 1\"\n";
    let place = Place::new(job);
    let output = with_limit(&place, "--nofile=40:4096", &["run", "job.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(number(&place.report()["workers"]["done"]), 30);
}

/// A worker that stays while another ends, in whose place a third is to come.
const ONE_AFTER_ANOTHER: &str = r#"
[job]
workers = 3
at_once = 2
[[step]]
run = "while ! test -e {{ folder }}/go{{ index }}; do sleep 0.05; done"
[params]
folder = ""
"#;

/// Runs [`ONE_AFTER_ANOTHER`] with a limit that is below what is used, set once two workers are at
/// work, and lifted when the third's launch has failed. What it failed of, and the report.
fn launch_beyond(limit: &str, lifted: &str, meanwhile: impl FnOnce(u16)) -> (String, Value) {
    let place = Place::new(ONE_AFTER_ANOTHER);
    let folder = format!("folder={}", place.path("").display());
    let mut musec = place.start(&["--quiet", "--param", &folder]);
    place.await_processes("while ! test", 2);
    let port = listening_port(musec.id());
    limit_process(musec.id(), limit);
    meanwhile(port);
    fs::write(place.path("go1"), "").expect("written");
    let failed = wait_for(LIMIT, || place.report()["failures"].get(0).cloned());
    limit_process(musec.id(), lifted);
    fs::write(place.path("go0"), "").expect("written");
    assert_eq!(musec.wait().expect("ended").code(), Some(1), "{}", place.log());
    let report = place.report();
    assert_conserved(&report);
    assert_eq!(number(&report["workers"]["done"]), 2, "{report}");
    place.assert_nothing_left(LIMIT);
    let failed = failed.expect("the third has no room");
    assert_eq!(number(&failed["worker"]), 2, "{failed}");
    (failed["error"].as_str().expect("words").to_owned(), report)
}

#[test]
fn open_files_that_run_out_on_the_way_fail_a_launch_by_name_and_nobody_else() {
    let mut strangers = Vec::new();
    // Fewer than are open: nothing can be opened any more.
    let (error, report) = launch_beyond("--nofile=8:4096", "--nofile=1024:4096", |port| {
        for _ in 0..3 {
            strangers.push(TcpStream::connect(("127.0.0.1", port)).expect("in the queue"));
        }
    });
    assert_told(&error, &["cannot start a worker process: Too many open files", "ulimit -n"]);
    let refused = &report["coordinator"]["refused"]["system refused to accept"];
    assert!(number(refused) > 0, "{report}");
}

#[test]
fn without_processes_whatever_cannot_be_started_is_named_and_the_run_ends() {
    let mut seen = Vec::new();
    // From no room for a thread to room for all: on the way everything has been refused once.
    for most in 1.. {
        assert!(most < 100, "two workers need {most} processes");
        let place = Place::new(TRUE);
        let output = with_processes(&place, most, &["run", "job.toml"]);
        let told = text(&output.stderr);
        match output.status.code() {
            Some(3) => {
                assert_told(&told, &["error: cannot ", "(ulimit -u)"]);
                assert!(!told.contains("panicked"), "{told}");
                seen.push("start");
            }
            Some(1) => {
                let report = place.report();
                assert_conserved(&report);
                for failure in report["failures"].as_array().expect("failures") {
                    assert_told(failure["error"].as_str().expect("words"), &["(ulimit -u)"]);
                    seen.push(if failure["command"] == "launch" { "launch" } else { "command" });
                }
            }
            code => {
                assert_eq!(code, Some(0), "{most} processes: {told}");
                break;
            }
        }
        place.assert_nothing_left(LIMIT);
    }
    for part in ["start", "launch", "command"] {
        assert!(seen.contains(&part), "never refused: {part}; {seen:?}");
    }
}

/// How large a process is that has done nothing for a while: what it needs it has by then.
fn settled_kib(pid: u32) -> u64 {
    let look = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        let facts = stat.rsplit(')').next().expect("facts").to_owned();
        let facts: Vec<u64> = facts.split_whitespace().map(|f| f.parse().unwrap_or(0)).collect();
        // Its time in user and system, and its size in bytes: fields 14, 15 and 23 of proc(5).
        (facts[11] + facts[12], facts[20] >> 10)
    };
    let mut last = look();
    let settled = wait_for(LIMIT, || {
        std::thread::sleep(Duration::from_millis(500));
        let now = look();
        (std::mem::replace(&mut last, now) == now).then_some(now.1)
    });
    settled.expect("a worker that waits does nothing")
}

#[test]
fn without_memory_for_a_command_it_fails_by_name_and_its_worker_lives() {
    let place = Place::new(
        "[job]\nworkers = 1\n[params]\nfolder = \"\"\n\
         [[step]]\nrun = \"while ! test -e {{ folder }}/go; do sleep 0.05; done\"\n\
         [[step]]\nstate = \"after\"\nrun = \"true\"\n",
    );
    let folder = format!("folder={}", place.path("").display());
    let mut musec = place.start(&["--param", &folder]);
    place.await_processes("while ! test", 1);
    let worker = place.await_processes("musec worker", 1)[0];
    let kib = settled_kib(worker);
    limit_process(worker, &format!("--as={}", kib << 10));
    fs::write(place.path("go"), "").expect("written");
    assert_eq!(musec.wait().expect("ended").code(), Some(1));
    let report = place.report();
    assert_conserved(&report);
    assert_eq!(number(&report["workers"]["failed"]), 1, "failed, and not lost: {report}");
    assert_told(failure(&report), &["cannot start \"/bin/sh\"", "memory", "lower -j"]);
    place.assert_nothing_left(LIMIT);
}

#[test]
fn a_result_that_cannot_be_printed_is_told_and_musec_exits_1() {
    let place = Place::new(TRUE);
    assert_eq!(place.run(&["run", "job.toml"]).status.code(), Some(0));
    for words in [&["report"][..], &["report", "--format", "json"], &["show", "latest", "0"]] {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let mut command = place.musec(words);
        let output = place.watch(command.stdout(full).stderr(Stdio::piped())).output();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {told}");
        assert_told(&told, &["error: cannot write to standard output", "No space left"]);
    }
}

#[test]
fn an_empty_variable_for_the_runs_folder_says_as_little_as_none() {
    let place = Place::new(TRUE);
    let output = place.output(place.musec(&["run", "job.toml"]).env("MUSEC_RUNS", ""));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(names(&place.path(".musec/runs")).len(), 1);
}

#[test]
fn a_run_that_makes_no_progress_fails_its_test_which_tells_what_was_seen() {
    let place = Place::new("[job]\nworkers = 1\n[[step]]\nrun = \"sleep 3600; true\"\n");
    let mut musec = place.start(&[]);
    place.await_processes("sleep 3600", 1);
    let hung = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        musec.wait_within(Duration::from_secs(2))
    }));
    let panic = hung.expect_err("it sleeps for an hour");
    let words = panic.downcast_ref::<String>().expect("words");
    for part in ["no progress for 2s", "Requested", "Joined", "sleep 3600", "musec worker"] {
        assert!(words.contains(part), "{part:?} is not in\n{words}");
    }
    assert!(place.processes().is_empty(), "all is killed: {}", place.tree());
}
