//! Reading runs: the real binary over folders of runs by hand.

mod fixture;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use fixture::{cut_short, failing, tiles};
use serde_json::Value;
use tempfile::TempDir;

fn musec(runs: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_musec"));
    command.arg("--runs").arg(runs).args(words).env_remove("MUSEC_LOG").stdin(Stdio::null());
    command
}

fn run(runs: &TempDir, words: &[&str]) -> Output {
    musec(runs.path(), words).output().expect("musec runs")
}

fn printed(runs: &TempDir, words: &[&str]) -> String {
    let output = run(runs, words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(runs: &TempDir, words: &[&str]) -> Value {
    let text = printed(runs, &[words, &["--format", "json"]].concat());
    serde_json::from_str(&text).expect("one JSON value")
}

fn all() -> TempDir {
    let runs = tempfile::tempdir().expect("temporary folder");
    tiles().write(runs.path());
    failing().write(runs.path());
    cut_short().write(runs.path());
    runs
}

#[test]
fn runs_are_listed_the_newest_first_with_status_and_size() {
    let runs = all();
    std::fs::create_dir(runs.path().join("no run")).expect("made");
    let table = printed(&runs, &["runs"]);
    // Sizes depend on the journal's encoding, which is no matter of this table.
    let table: Vec<&str> =
        table.lines().map(|line| line.rsplit_once("  ").expect("columns").0.trim_end()).collect();
    insta::assert_snapshot!(table.join("\n"));
    let rows = json(&runs, &["runs"]);
    assert_eq!(rows["schema"], 1);
    let rows = rows["runs"].as_array().expect("rows");
    let statuses: Vec<&Value> = rows.iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, ["interrupted", "failed", "done"]);
    assert!(rows.iter().all(|row| row["size_bytes"].as_u64() > Some(0)), "{rows:?}");
}

#[test]
fn pipes_where_files_should_be_hold_nobody_up() {
    let runs = all();
    let pipe = |path: &Path| {
        let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
        assert!(made.success());
    };
    std::fs::create_dir(runs.path().join("pipes")).expect("made");
    pipe(&runs.path().join("pipes/run.json"));
    let rows = json(&runs, &["runs"]);
    let newest = rows["runs"][0]["run"].as_str().expect("an id").to_owned();
    let folder = runs.path().join(&newest);
    for file in ["journal.musec", "outputs.musec"] {
        if folder.join(file).exists() {
            std::fs::remove_file(folder.join(file)).expect("removed");
        }
        pipe(&folder.join(file));
    }
    assert_eq!(json(&runs, &["runs"])["runs"].as_array().map(Vec::len), Some(3));
    for words in [&["report", &newest][..], &["logs", &newest], &["show", &newest, "0"]] {
        let output = run(&runs, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains("no regular file"), "{words:?}: {error}");
    }
}

#[test]
fn a_job_file_without_an_end_is_refused_in_a_few_words() {
    let runs = all();
    let output = run(&runs, &["check", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("longer than") && error.len() < 300, "{error}");
}

#[test]
fn a_damaged_journal_is_listed_as_such_and_its_report_is_an_error_that_names_the_place() {
    let runs = tempfile::tempdir().expect("temporary folder");
    let id = tiles().write(runs.path());
    failing().write(runs.path());
    let path = runs.path().join(&id).join("journal.musec");
    let mut bytes = std::fs::read(&path).expect("journal");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let rows = json(&runs, &["runs"]);
    let damaged = &rows["runs"][1];
    assert_eq!(damaged["status"], "damaged");
    assert_eq!(damaged["job"], "tiles");
    assert!(printed(&runs, &["runs"]).contains("damaged at byte"));
    let report = run(&runs, &["report", &id]);
    assert_eq!(report.status.code(), Some(4));
    let before = String::from_utf8_lossy(&report.stdout);
    assert!(before.contains("tiles") && before.contains("interrupted"), "{before}");
    assert!(String::from_utf8_lossy(&report.stderr).contains("damaged at byte"));
}

#[test]
fn a_torn_end_is_said_beside_the_report_and_json_stays_alone() {
    let runs = tempfile::tempdir().expect("temporary folder");
    let id = tiles().write(runs.path());
    let path = runs.path().join(&id).join("journal.musec");
    let bytes = std::fs::read(&path).expect("journal");
    std::fs::write(&path, &bytes[..bytes.len() - 3]).expect("written");
    assert!(printed(&runs, &["report"]).contains("the journal ends within a record"));
    let output = run(&runs, &["report", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    assert_eq!(report["status"], "interrupted", "its end was in the record that was torn");
    assert!(String::from_utf8_lossy(&output.stderr).contains("within a record"));
}

#[test]
fn outputs_are_printed_byte_for_byte_below_a_line_that_says_whose_they_are() {
    let runs = all();
    let output = run(&runs, &["logs", "a1"]);
    let expected: &[u8] = b"\
== worker 0, attempt 0, render: run render --tile 7 (stdout, 16 B)
tile 0 rendered
== worker 1, attempt 0, render: run render --tile 7 (stderr, last 10 B of 68.4 KiB)
\xffslow tile
";
    assert_eq!(output.stdout.escape_ascii().to_string(), expected.escape_ascii().to_string());
    let one = json(&runs, &["logs", "a1", "1"]);
    let outputs = one["outputs"].as_array().expect("outputs");
    assert_eq!(outputs.len(), 1, "only worker 1's");
    assert_eq!(outputs[0]["worker"], 1);
    assert_eq!(outputs[0]["stream"], "stderr");
    assert_eq!(outputs[0]["total_bytes"], 70_000);
    assert_eq!(outputs[0]["text"], "\u{fffd}slow tile");
    let none = run(&runs, &["logs", "b2"]);
    assert!(none.stdout.is_empty() && none.status.success());
    assert!(String::from_utf8_lossy(&none.stderr).contains("no command has printed"));
}

#[test]
fn a_worker_that_is_not_there_is_an_error() {
    let runs = all();
    for words in [["show", "a1", "17"], ["logs", "a1", "17"]] {
        let output = run(&runs, &words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no worker 17"), "{words:?}");
    }
}

#[test]
fn show_has_every_command_raw_placed_and_not_pipelined() {
    let runs = all();
    insta::assert_snapshot!(printed(&runs, &["show", "a1", "0"]));
    let text = printed(&runs, &["show", "b2", "3"]);
    assert!(text.contains("no reply"), "{text}");
}

#[test]
fn the_report_without_a_terminal_has_no_escape_codes_even_where_output_had() {
    let runs = all();
    for run in ["a1", "b2", "c3"] {
        assert!(!printed(&runs, &["report", run]).contains('\x1b'));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let runs = all();
    for words in [&["report", "a1"][..], &["logs", "a1"], &["report", "a1", "--format", "json"]] {
        let mut child = musec(runs.path(), words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("musec starts");
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut errors).expect("read");
        assert_eq!(child.wait().expect("ended").code(), Some(0), "{words:?}: {errors}");
        assert_eq!(errors, "", "{words:?}");
    }
}
