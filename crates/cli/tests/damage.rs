//! Journals cut anywhere and flipped anywhere, through `musec report`.
//!
//! The journal is a run's, by hand. What is read before the damage is the reader's affair, and its
//! tests' (`crates/trace/tests/journal.rs`); here it is what a user sees.

mod fixture;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fixture::tiles;
use serde_json::Value;
use tempfile::TempDir;

/// A run whose journal is broken in turn.
struct Victim {
    runs: TempDir,
    journal: PathBuf,
    sound: Vec<u8>,
}

impl Victim {
    fn new() -> Self {
        let runs = tempfile::tempdir().expect("temporary folder");
        let id = tiles().write(runs.path());
        let journal = runs.path().join(id).join("journal.musec");
        let sound = std::fs::read(&journal).expect("journal");
        Self { runs, journal, sound }
    }

    fn report(&self, journal: &[u8]) -> Output {
        std::fs::write(&self.journal, journal).expect("written");
        report(self.runs.path())
    }
}

fn report(runs: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_musec"))
        .arg("--runs")
        .arg(runs)
        .args(["report", "--format", "json"])
        .env_remove("MUSEC_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("musec runs")
}

/// Where each entry begins, and where the last one ends.
fn borders(journal: &[u8]) -> Vec<usize> {
    let mut borders = vec![16];
    while let Some(at) = borders.last().copied().filter(|at| *at < journal.len()) {
        let length = journal[at..at + 4].try_into().expect("four bytes");
        borders.push(at + 12 + u32::from_le_bytes(length) as usize);
    }
    assert_eq!(borders.last(), Some(&journal.len()), "a sound journal");
    borders
}

#[test]
fn a_journal_cut_anywhere_has_a_report_of_what_is_left() {
    let victim = Victim::new();
    let borders = borders(&victim.sound);
    // Around each border, and within each part of an entry.
    let offsets = [0, 1, 4, 11, 12, 13];
    let cuts = borders.iter().flat_map(|border| offsets.map(|offset| border + offset));
    let mut cuts: Vec<usize> = cuts.chain([0, 1, 8, 15]).collect();
    cuts.retain(|cut| *cut <= victim.sound.len());
    for cut in cuts {
        let output = victim.report(&victim.sound[..cut]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "cut at {cut}: {error}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        let whole = cut == victim.sound.len();
        let status = if whole { "done" } else { "interrupted" };
        assert_eq!(report["status"], status, "cut at {cut}");
        let is_torn = cut < 16 && cut > 0 || cut > 16 && !borders.contains(&cut);
        assert_eq!(error.contains("within a record"), is_torn, "cut at {cut}: {error}");
    }
}

#[test]
fn a_journal_flipped_anywhere_is_an_error_that_names_the_place() {
    let victim = Victim::new();
    let borders = borders(&victim.sound);
    let last = borders[borders.len() - 2];
    // A prime step, so that all parts of entries are met.
    for place in (0..victim.sound.len()).step_by(37) {
        let mut journal = victim.sound.clone();
        journal[place] ^= 1 << (place % 8);
        let output = victim.report(&journal);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        // Reserved bytes mean nothing yet; the payload of the last entry may be a torn write.
        let is_harmless = (12..16).contains(&place) || place >= last + 12;
        let code = if is_harmless { 0 } else { 4 };
        assert_eq!(output.status.code(), Some(code), "flipped at {place}: {error}");
        if is_harmless {
            continue;
        }
        // What precedes the damage is reported, if there is anything.
        let report = serde_json::from_slice::<Value>(&output.stdout);
        let has_start = place >= borders[1];
        assert_eq!(report.is_ok(), has_start, "flipped at {place}");
        assert!(has_start || output.stdout.is_empty(), "flipped at {place}");
        let entry = borders.iter().rfind(|border| **border <= place);
        let named = entry.map_or_else(
            || if place < 8 { "not a musec journal" } else { "journal of version" }.to_owned(),
            |entry| format!("damaged at byte {entry}: "),
        );
        assert!(error.contains(&named), "flipped at {place}: {named:?} is not in {error}");
    }
}
