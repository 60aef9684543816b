//! Every job file of the tree, sound, broken or found by fuzzing, through the commands that read
//! one: each is shown, or refused in words.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn job_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["fuzz/corpus/job", "crates/core/tests/broken", "jobs"];
    let mut files = Vec::new();
    for folder in folders.map(|folder| root.join(folder)) {
        for entry in std::fs::read_dir(&folder).expect("a folder of the tree") {
            let path = entry.expect("read").path();
            let path = if path.is_dir() { path.join("job.toml") } else { path };
            if path.extension().is_none_or(|extension| extension != "snap") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 60, "{} files", files.len());
    files
}

#[test]
fn job_files_are_shown_drawn_and_tried_or_refused_in_words() {
    let words: [&[&str]; 4] =
        [&["check"], &["graph"], &["graph", "--format", "dot"], &["run", "--dry-run"]];
    for file in job_files() {
        let mut codes = Vec::new();
        for words in words {
            let output = Command::new(env!("CARGO_BIN_EXE_musec"))
                .args(words)
                .arg(&file)
                .stdin(Stdio::null())
                .env_remove("MUSEC_LOG")
                .output()
                .expect("musec runs");
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 2)), "{words:?} {}: {error}", file.display());
            assert_eq!(code == Some(2), !error.is_empty(), "{words:?} {}", file.display());
            codes.push(code);
        }
        // A dry run also looks at the files that the job names.
        assert!(codes[..3].iter().all(|code| *code == codes[0]), "{codes:?} {}", file.display());
    }
}
