//! `cargo xtask performance`: measures, and writes `docs/src/performance.md`.
//!
//! In: the tree, a machine with nothing else to do. Out: the chapter, made of this run's figures
//! alone, but for those of others, which are cited; the JSON of every bench beside it, in the
//! target folder. Every floor is measured in the same run as what stands beside it.

mod machine;
mod page;
mod rows;
mod whole;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::needs::cargo;
use crate::tree;

/// The chapter, from the tree's root.
const CHAPTER: &str = "docs/src/performance.md";

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    /// Workers of the large cases; the largest one has ten times as many.
    workers: u32,
    /// Commands of each worker where all are busy, and of the only busy one.
    commands: u32,
    commands_of_one: u32,
    rounds: u32,
    events: u32,
    /// Workers of the simulation.
    simulated: u32,
    /// Items of the whole command, and how often it is timed.
    items: u32,
    times: usize,
    is_quick: bool,
}

/// What the figures of issue and chapter speak of.
const FULL: Sizes = Sizes {
    workers: 1000,
    commands: 100,
    commands_of_one: 20_000,
    rounds: 5,
    events: 1_000_000,
    simulated: 100_000,
    items: 1000,
    times: 7,
    is_quick: false,
};

/// Whether all of it works, in less than a minute; its figures say little.
const QUICK: Sizes = Sizes {
    workers: 20,
    commands: 20,
    commands_of_one: 200,
    rounds: 1,
    events: 20_000,
    simulated: 2_000,
    items: 40,
    times: 3,
    is_quick: true,
};

/// All that was measured, as the benches tell it in JSON.
struct Measured {
    busy: Value,
    untraced: Value,
    pipelined: Value,
    one: Value,
    one_of_many: Value,
    one_of_most: Value,
    launch: Value,
    record: Value,
    simulate: Value,
    whole: whole::Whole,
}

/// Measures and writes; with `--quick` little of it, to see that it works.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let sizes = match words {
        [] => FULL,
        ["--quick"] => QUICK,
        other => return Err(format!("unknown words {other:?}; there is --quick")),
    };
    let root = tree::root()?;
    cargo(&["build", "--release", "--locked", "--package", "musec"])?;
    let folder = target(&root).join("performance");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let program = target(&root).join("release/musec");
    let measured = measure(&Bench { program: &program, folder: &folder }, sizes)?;
    let text = page::page(&machine::facts(&root), sizes, &measured)?;
    let chapter = root.join(CHAPTER);
    fs::write(&chapter, text).map_err(|error| format!("{}: {error}", chapter.display()))?;
    println!("performance: wrote {CHAPTER}; all figures are in {}", folder.display());
    Ok(())
}

fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Runs benches one after the other and keeps what they say.
struct Bench<'a> {
    program: &'a Path,
    folder: &'a Path,
}

impl Bench<'_> {
    fn run(&self, name: &str, words: &[&str]) -> Result<Value, String> {
        println!("performance: musec bench {}", words.join(" "));
        let mut command = Command::new(self.program);
        command.arg("bench").args(words).args(["--format", "json"]).stdin(Stdio::null());
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !output.status.success() {
            return Err(format!("`musec bench {}` ended with {}", words.join(" "), output.status));
        }
        let kept = self.folder.join(format!("{name}.json"));
        fs::write(&kept, &output.stdout).map_err(|error| format!("{}: {error}", kept.display()))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`musec bench {}`: {error}", words.join(" ")))
    }

    /// `bench coordinator`; `more` are further words.
    fn coordinator(
        &self,
        name: &str,
        workers: u32,
        commands: u32,
        rounds: u32,
        more: &[&str],
    ) -> Result<Value, String> {
        let [workers, commands, rounds] = [workers, commands, rounds].map(|n| n.to_string());
        let words = ["coordinator", "--workers", &workers, "--commands", &commands, "--rounds"];
        self.run(name, &[&words[..], &[&rounds], more].concat())
    }
}

fn measure(bench: &Bench<'_>, sizes: Sizes) -> Result<Measured, String> {
    let Sizes { workers, commands, commands_of_one, rounds, .. } = sizes;
    let all = |name, more: &[&str]| bench.coordinator(name, workers, commands, rounds, more);
    let one = |name, workers, more: &[&str]| {
        bench.coordinator(name, workers, commands_of_one, rounds, more)
    };
    let said = [workers, sizes.events, rounds, sizes.simulated].map(|number| number.to_string());
    let (busy, untraced) = with_and_without_trace(bench, sizes)?;
    Ok(Measured {
        busy,
        untraced,
        pipelined: all("pipelined", &["--pipelined"])?,
        one: one("one", 1, &[])?,
        one_of_many: one("one_of_many", workers, &["--busy", "1"])?,
        one_of_most: one("one_of_most", workers * 10, &["--busy", "1"])?,
        launch: bench.run("launch", &["launch", "--workers", &said[0]])?,
        record: bench.run("record", &["record", "--events", &said[1], "--rounds", &said[2]])?,
        simulate: bench.run("simulate", &["simulate", "--workers", &said[3]])?,
        whole: whole::measure(bench.program, bench.folder, sizes)?,
    })
}

/// All workers busy, with a journal and without, in turn: their difference is small, and a
/// machine's mood lasts for minutes.
fn with_and_without_trace(bench: &Bench<'_>, sizes: Sizes) -> Result<(Value, Value), String> {
    let (mut traced, mut untraced) = (Vec::new(), Vec::new());
    for round in 0..sizes.rounds {
        for (kind, more, kept) in
            [("busy", &[][..], &mut traced), ("untraced", &["--no-trace"][..], &mut untraced)]
        {
            let name = format!("{kind}-{round}");
            kept.push(bench.coordinator(&name, sizes.workers, sizes.commands, 1, more)?);
        }
    }
    Ok((medians(&traced), medians(&untraced)))
}

/// Of several figures of one bench, the middle one of each key; of an even number the lower one.
fn medians(all: &[Value]) -> Value {
    let Some(first) = all.first().and_then(Value::as_object) else { return Value::Null };
    let middle = |key: &str| {
        let mut numbers: Vec<u64> =
            all.iter().filter_map(|of| of.get(key).and_then(Value::as_u64)).collect();
        numbers.sort_unstable();
        numbers.get(numbers.len().checked_sub(1)? / 2).copied().map(Value::from)
    };
    let keys = first
        .iter()
        .map(|(key, value)| (key.clone(), middle(key).unwrap_or_else(|| value.clone())));
    Value::Object(keys.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_taken_key_by_key() {
        let all = [3, 1, 2, 9].map(|n| serde_json::json!({ "a": n, "b": 10 - n, "c": true }));
        assert_eq!(medians(&all), serde_json::json!({ "a": 2, "b": 7, "c": true }));
        assert_eq!(medians(&[]), Value::Null);
    }
}
