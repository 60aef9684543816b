//! Running the real binary on real jobs, and looking for what it leaves behind.
#![allow(dead_code, reason = "each test program uses the part that it needs")]

pub(crate) mod machine;
pub(crate) mod replay;
pub(crate) mod watchdog;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use watchdog::Watched;

/// The real binary.
pub(crate) const MUSEC: &str = env!("CARGO_BIN_EXE_musec");

/// A folder with a job, and everything that a run of it leaves.
pub(crate) struct Place {
    folder: TempDir,
    mark: String,
}

static MARKS: AtomicU32 = AtomicU32::new(0);

impl Place {
    /// A folder with this job file in it.
    pub(crate) fn new(job: &str) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        fs::write(folder.path().join("job.toml"), job).expect("job written");
        let number = MARKS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("MUSEC_TEST_MARK={}-{number}-", std::process::id());
        Self { folder, mark }
    }

    /// The variable that marks processes, with its value.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `musec` in this folder; every process it starts can be found by the mark.
    pub(crate) fn musec(&self, words: &[&str]) -> Command {
        let mut command = self.command(MUSEC);
        command.args(words);
        command
    }

    /// A program in this folder that starts `musec`, as [`Self::musec`].
    pub(crate) fn command(&self, program: &str) -> Command {
        let (name, value) = self.mark.split_once('=').expect("a variable");
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env(name, value)
            .env("TMPDIR", self.folder.path())
            .env_remove("MUSEC_RUNS")
            .env_remove("MUSEC_LOG")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.output(&mut self.musec(words))
    }

    /// What a program that runs something in this folder printed, and how it ended.
    pub(crate) fn output(&self, command: &mut Command) -> Output {
        self.watch(command.stdout(Stdio::piped()).stderr(Stdio::piped())).output()
    }

    /// Starts a program that runs something in this folder, with a watchdog.
    pub(crate) fn watch(&self, command: &mut Command) -> Watched<'_> {
        Watched::new(self, command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Starts `musec run job.toml` and leaves it running.
    pub(crate) fn start(&self, words: &[&str]) -> Watched<'_> {
        let log = fs::File::create(self.path("musec.log")).expect("log");
        let mut command = self.musec(&[&["run", "job.toml"], words].concat());
        self.watch(command.stdout(Stdio::null()).stderr(log))
    }

    /// What a run that was started has said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("musec.log")).unwrap_or_default()
    }

    pub(crate) fn report(&self) -> Value {
        json(&self.run(&["report", "--format", "json"]))
    }

    pub(crate) fn show(&self, worker: u32) -> Value {
        json(&self.run(&["show", "latest", &worker.to_string(), "--format", "json"]))
    }

    /// Processes with the mark in their environment, by pid, with their command lines.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("proc").flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            let marked = environ.split(|byte| *byte == 0).any(|var| var == self.mark.as_bytes());
            let state = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let is_zombie = state.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z"));
            if marked && !is_zombie {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }

    pub(crate) fn processes_like(&self, part: &str) -> Vec<u32> {
        let all = self.processes().into_iter();
        all.filter(|(_, line)| line.contains(part)).map(|(pid, _)| pid).collect()
    }

    /// Waits until as many processes as `count` have `part` in their command line.
    pub(crate) fn await_processes(&self, part: &str, count: usize) -> Vec<u32> {
        let limit = Duration::from_secs(60);
        let found = wait_for(limit, || {
            let found = self.processes_like(part);
            (found.len() >= count).then_some(found)
        });
        found.unwrap_or_else(|| {
            panic!("no {count} processes like {part}: {:?}\n{}", self.processes(), self.log())
        })
    }

    /// Asserts that within `limit` nothing with the mark is left, and no scratch folder.
    pub(crate) fn assert_nothing_left(&self, limit: Duration) {
        let gone = wait_for(limit, || self.processes().is_empty().then_some(()));
        assert!(gone.is_some(), "left after {limit:?}: {:?}", self.processes());
        let scratch = wait_for(limit, || self.scratch().is_empty().then_some(()));
        assert!(scratch.is_some(), "scratch left: {:?}", self.scratch());
    }

    /// Kills all processes with the mark.
    pub(crate) fn kill_all(&self) {
        for (pid, _) in self.processes() {
            kill("KILL", pid);
        }
    }

    /// The processes with the mark: number, parent, state, command line.
    pub(crate) fn tree(&self) -> String {
        let line = |(pid, line): (u32, String)| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let facts = stat.rsplit(')').next().unwrap_or_default();
            let mut facts = facts.split_ascii_whitespace();
            let (state, parent) = (facts.next().unwrap_or("?"), facts.next().unwrap_or("?"));
            format!("{pid:>8} of {parent:>8} {state} {line}\n")
        };
        self.processes().into_iter().map(line).collect()
    }

    fn scratch(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path()).expect("folder").flatten();
        let is_scratch = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("musec-"))
        };
        entries.map(|entry| entry.path()).filter(is_scratch).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A failed test must not leave processes to those after it.
        self.kill_all();
        if !std::thread::panicking() {
            replay::assert_decided_again(self);
        }
    }
}

pub(crate) fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
    assert!(status.is_ok(), "kill can be run");
}

/// Asks until there is an answer, for at most `limit`.
pub(crate) fn wait_for<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if start.elapsed() > limit {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("not JSON ({error}): {}\n{}", text(&output.stdout), text(&output.stderr))
    })
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asserts what must be true of every report: all sums are exact.
pub(crate) fn assert_conserved(report: &Value) {
    let breakdown = &report["breakdown"];
    let life = number(&breakdown["life_ns"]);
    let categories = sum(&breakdown["categories"]);
    let unaccounted = number(&breakdown["unaccounted_ns"]);
    assert_eq!(categories + unaccounted, life, "categories: {breakdown}");
    assert_eq!(sum(&breakdown["rollup"]) + unaccounted, life, "roll-up: {breakdown}");
    let states = report["states"].as_array().expect("states");
    let total: u64 = states.iter().map(|state| number(&state["total_ns"])).sum();
    assert_eq!(total, life, "states: {states:?}");
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}

fn sum(object: &Value) -> u64 {
    object.as_object().expect("an object").values().map(number).sum()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("folder").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
