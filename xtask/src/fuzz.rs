//! `cargo xtask fuzz`: random bytes on the laws of `fuzz/`, guided by coverage.
//!
//! In: nothing, or one law's name. Out: what libFuzzer says, kept in a file for each law; on a
//! breach the input's path, and how to try it again. The stable compiler has all that libFuzzer
//! needs, behind flags of LLVM: no other toolchain is installed. Seeds are only read: what is found
//! on the way stays in the target folder, where the next call goes on from it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::needs::{CXX, perform, provide};
use crate::tree;

/// The laws, as `fuzz/src/lib.rs` has them.
const LAWS: [&str; 5] = ["frames", "handshake", "journal", "job", "expression"];

/// How long each law is tried, unless it is said.
const SECONDS: u32 = 60;

/// Longest time for one input, in seconds of wall time. The costliest inputs take one second with
/// all checks compiled in; a machine that others use too may need some ten times as long. What has
/// no bound takes minutes.
const INPUT_SECONDS_MAX: u32 = 60;

/// Most memory of the whole process, in MiB: the laws need a tenth of it.
const RSS_MIB_MAX: u32 = 1024;

/// Longest input, in bytes: two of the longest seeds. Long inputs are slow, and find what short
/// ones find.
const INPUT_BYTES_MAX: u32 = 16 << 10;

/// What LLVM is asked for: counters on edges, a table of their places, and every comparison, so
/// that magic numbers are found.
const COVERAGE: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

/// What is asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    laws: Vec<&'a str>,
    seconds: u32,
    replay: Option<&'a str>,
}

/// Builds the targets and tries them, or one input.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let asked = parse(words)?;
    provide(&CXX)?;
    let root = tree::root()?;
    let program = build(&root)?;
    if let Some(input) = asked.replay {
        return replay(&program, asked.laws[0], input);
    }
    let mut broken = Vec::new();
    for law in asked.laws {
        if let Err(error) = try_law(&root, &program, law, asked.seconds) {
            println!("fuzz: {error}");
            broken.push(law);
        }
    }
    if broken.is_empty() {
        println!("fuzz: every law held");
        return Ok(());
    }
    Err(format!("broken laws: {}", broken.join(", ")))
}

fn parse<'a>(words: &[&'a str]) -> Result<Asked<'a>, String> {
    let mut asked = Asked { laws: Vec::new(), seconds: SECONDS, replay: None };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "--seconds" => {
                let seconds = words.next().and_then(|seconds| seconds.parse().ok());
                asked.seconds = seconds
                    .filter(|seconds| *seconds > 0)
                    .ok_or("--seconds takes a number of seconds")?;
            }
            "--replay" => asked.replay = Some(words.next().ok_or("--replay takes a file")?),
            law if LAWS.contains(&law) => asked.laws.push(law),
            other => return Err(format!("no law is called `{other}`: {}", LAWS.join(", "))),
        }
    }
    match (asked.replay, asked.laws.len()) {
        (Some(_), 1) | (None, 1..) => {}
        (Some(_), _) => return Err("name the law of the input".to_owned()),
        (None, 0) => asked.laws = LAWS.to_vec(),
    }
    Ok(asked)
}

/// The program with all laws, instrumented. Build scripts and macros are not: with a target of its
/// own, cargo gives the flags to nothing that runs at build time.
fn build(root: &Path) -> Result<PathBuf, String> {
    let target = host()?;
    let folder = folder(root);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    perform(
        Command::new(cargo)
            .args(["build", "--locked", "--profile", "fuzz", "--package", "musec-fuzz"])
            .args(["--bin", "fuzz", "--features", "libfuzzer", "--target", &target])
            .arg("--target-dir")
            .arg(&folder)
            .env("RUSTFLAGS", COVERAGE.join(" ")),
    )?;
    Ok(folder.join(target).join("fuzz/fuzz"))
}

/// Where all of fuzzing is kept.
fn folder(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root.join(target.unwrap_or_else(|| "target".into())).join("fuzz")
}

/// The machine's own target, as `rustc` calls it.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("cannot run rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not tell its host".to_owned())
}

/// Tries one law on random inputs.
fn try_law(root: &Path, program: &Path, law: &str, seconds: u32) -> Result<(), String> {
    let own = folder(root).join("found").join(law);
    let artifacts = folder(root).join("broken");
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| format!("{path}: {error}")
    };
    for folder in [&own, &artifacts] {
        fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    let mut command = Command::new(program);
    command
        .env("MUSEC_FUZZ", law)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-report_slow_units={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={RSS_MIB_MAX}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-artifact_prefix={}/{law}-", artifacts.display()))
        .args(["-use_value_profile=1", "-print_final_stats=1"])
        .arg(&own)
        .arg(root.join("fuzz/corpus").join(law));
    // What CI tries is the same each time, so that it is not red by chance; elsewhere each call
    // explores anew.
    if std::env::var_os("CI").is_some() {
        command.arg("-seed=1");
    }
    let dictionary = root.join("fuzz/dictionaries").join(format!("{law}.dict"));
    if dictionary.exists() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    if law == "job" {
        command.arg(job_files(root)?);
    }
    println!("fuzz: {law}, {seconds} s");
    let said = own.with_extension("log");
    let mut log = fs::File::create(&said).map_err(failed(&said))?;
    let mut child =
        command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed(program))?;
    let mut input = None;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            writeln!(log, "{line}").map_err(failed(&said))?;
            input = input.or_else(|| {
                let at = line.find("Test unit written to ")?;
                line.get(at + "Test unit written to ".len()..).map(str::to_owned)
            });
            if is_worth_showing(&line) {
                println!("fuzz: {law}: {line}");
            }
        }
    }
    let status = child.wait().map_err(failed(program))?;
    if status.success() {
        return Ok(());
    }
    let again = input.map_or_else(String::new, |input| {
        format!("\n  try it again: cargo xtask fuzz {law} --replay {input}")
    });
    Err(format!(
        "the law `{law}` is broken ({status}); all that was said: {}{again}",
        said.display()
    ))
}

/// Figures of the end, and what a law says when it is broken.
fn is_worth_showing(line: &str) -> bool {
    let starts = [
        "stat::number_of_executed_units",
        "stat::peak_rss_mb",
        "Done ",
        "SUMMARY:",
        "==",
        "thread ",
    ];
    starts.iter().any(|start| line.starts_with(start))
        || line.contains("panicked at")
        || line.contains("Test unit written")
}

fn replay(program: &Path, law: &str, input: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    perform(command.env("MUSEC_FUZZ", law).env("RUST_BACKTRACE", "1").arg(input))
}

/// The tree's job files, sound and broken, in one folder.
fn job_files(root: &Path) -> Result<PathBuf, String> {
    let seeds = folder(root).join("job-files");
    fs::create_dir_all(&seeds).map_err(|error| format!("{}: {error}", seeds.display()))?;
    for place in ["jobs", "crates/core/tests/broken"] {
        for file in tree::files(&root.join(place), "toml")? {
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            let copy = seeds.join(name.replace('/', "_"));
            fs::copy(&file, &copy).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_laws_are_tried_unless_one_is_named() {
        assert_eq!(parse(&[]).unwrap().laws, LAWS);
        let one = parse(&["--seconds", "5", "job"]).unwrap();
        assert_eq!(one, Asked { laws: vec!["job"], seconds: 5, replay: None });
        assert!(parse(&["jobs"]).unwrap_err().contains("frames, handshake"));
        assert!(parse(&["--seconds", "0"]).is_err());
        assert!(parse(&["--replay", "file"]).is_err());
        assert_eq!(parse(&["job", "--replay", "file"]).unwrap().replay, Some("file"));
    }

    #[test]
    fn the_laws_are_those_of_the_crate_and_each_has_a_corpus() {
        let root = tree::root().unwrap();
        let source = tree::read(&root.join("fuzz/src/lib.rs")).unwrap();
        let named: Vec<&str> = source
            .split("Law { name: \"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert_eq!(named, LAWS);
        for law in LAWS {
            assert!(root.join("fuzz/corpus").join(law).is_dir(), "{law}");
        }
    }
}
