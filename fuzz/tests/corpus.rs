//! The corpora, replayed without libFuzzer: what once broke a law does not break it again.

#![allow(clippy::unwrap_used, reason = "a helper's panic is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use musec_fuzz::{LAWS, Law};
use musec_protocol::{FrameDecoder, FromWorker, ToWorker};

/// Longest time that one input may take: a hundred times what any takes here, without optimisation
/// on a busy machine; blow-ups are far beyond.
const INPUT_TIME_MAX: Duration = Duration::from_secs(20);

/// Longest seed, in bytes: libFuzzer starts with the short ones, and a long one shows no more.
const SEED_BYTES_MAX: u64 = 8 << 10;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn replay(law: Law, file: &Path) {
    let bytes = fs::read(file).unwrap();
    let started = Instant::now();
    let done = std::panic::catch_unwind(|| (law.check)(&bytes));
    assert!(done.is_ok(), "{} breaks the law `{}`: see above", file.display(), law.name);
    let took = started.elapsed();
    assert!(took < INPUT_TIME_MAX, "{} took {took:?} of `{}`", file.display(), law.name);
}

#[test]
fn every_law_holds_for_its_whole_corpus() {
    for law in LAWS {
        let seeds = files(&root().join("fuzz/corpus").join(law.name));
        assert!(seeds.len() >= 2, "{}: {} seeds", law.name, seeds.len());
        for seed in seeds {
            replay(law, &seed);
        }
    }
}

#[test]
fn every_job_file_of_the_tree_keeps_the_law_of_job_files() {
    let law = musec_fuzz::law("job").unwrap();
    let jobs = files(&root().join("jobs")).into_iter().map(|folder| folder.join("job.toml"));
    let broken = files(&root().join("crates/core/tests/broken"));
    let files: Vec<PathBuf> =
        jobs.chain(broken).filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    assert!(files.len() > 50, "{} files", files.len());
    for file in files {
        replay(law, &file);
    }
}

#[test]
fn every_kind_of_message_is_among_the_seeds_of_frames() {
    let mut kinds = BTreeSet::new();
    // `Command { … action: Run(…` and the like: the first words of a message's own shape.
    let word = |text: String| {
        text.split(|c: char| !c.is_alphanumeric()).find(|w| !w.is_empty()).unwrap().to_owned()
    };
    for seed in files(&root().join("fuzz/corpus/frames")) {
        let mut decoder = FrameDecoder::default();
        decoder.push(&fs::read(seed).unwrap()[1..]);
        while let Ok(Some(frame)) = decoder.next_frame() {
            match ToWorker::decode(frame) {
                Ok(ToWorker::Command(command)) => {
                    kinds.insert(command.action.name().to_owned());
                }
                Ok(message) => {
                    kinds.insert(word(format!("{message:?}")));
                }
                Err(_) => {}
            }
            match FromWorker::decode(frame) {
                Ok(FromWorker::Reply(reply)) => {
                    kinds.insert(word(format!("{:?}", reply.outcome)));
                }
                Ok(message) => {
                    kinds.insert(word(format!("{message:?}")));
                }
                Err(_) => {}
            }
        }
    }
    for kind in [
        "Welcome",
        "Ping",
        "run",
        "get",
        "put",
        "echo",
        "sleep",
        "cancel",
        "print",
        "clean",
        "mark",
        "quit",
        "Hello",
        "Pong",
        "Stall",
        "Note",
        "Ok",
        "Exited",
        "Signalled",
        "TimedOut",
        "Failed",
        "Cancelled",
    ] {
        assert!(kinds.contains(kind), "no seed has {kind}: {kinds:?}");
    }
}

#[test]
fn a_run_cut_at_any_byte_has_a_report_that_sums_up() {
    let law = musec_fuzz::law("journal").unwrap();
    let sample = fs::read(root().join("fuzz/corpus/journal/sample")).unwrap();
    for cut in 0..sample.len() {
        (law.check)(&sample[..cut]);
    }
}

#[test]
fn seeds_are_short() {
    for law in LAWS {
        for seed in files(&root().join("fuzz/corpus").join(law.name)) {
            let bytes = fs::metadata(&seed).unwrap().len();
            assert!(bytes <= SEED_BYTES_MAX, "{} has {bytes} bytes", seed.display());
        }
    }
}
