//! What the documents promise: every block of `console` in the guide and in `tests/cmd` is run, and
//! must print what stands there; every run of one is decided again. `TRYCMD=overwrite` writes what
//! is printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// `musec`; a run that it makes is decided again from its journal, and must agree.
const REPLAYING: &str = r#"#!/bin/sh
MUSEC "$@"
code=$?
case "$1" in
run | map)
    if [ -d .musec/runs ] && ! told=$(MUSEC replay 2>&1); then
        echo "$told"
        exit 99
    fi
    ;;
esac
exit $code
"#;

#[test]
fn commands_print_what_the_documents_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let musec = folder.path().join("musec");
    let script = REPLAYING.replace("MUSEC", env!("CARGO_BIN_EXE_musec"));
    fs::write(&musec, script).expect("written");
    fs::set_permissions(&musec, fs::Permissions::from_mode(0o755)).expect("executable");
    trycmd::TestCases::new()
        .register_bin("musec", musec.as_path())
        // No command takes longer; one that hangs is ended, and its guard ends the rest.
        .timeout(std::time::Duration::from_secs(120))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "80")
        .case("tests/cmd/*.md")
        .case("../../README.md")
        .case("../../docs/src/*.md");
}

/// A chapter's commands run in its folder `.in`; files there must be what the reader sees. (Folders
/// hold what commands work on, and are told in words.)
#[test]
fn files_that_the_guide_works_on_are_those_that_it_shows() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let mut files = 0;
    for entry in fs::read_dir(&guide).expect("the guide").flatten() {
        let folder = entry.path();
        if folder.extension().is_none_or(|extension| extension != "in") {
            continue;
        }
        let chapter = fs::read_to_string(folder.with_extension("md")).expect("its chapter");
        for file in fs::read_dir(&folder).expect("its files").flatten() {
            if file.path().is_dir() {
                continue;
            }
            let text = fs::read_to_string(file.path()).expect("a text");
            let shown = format!("```toml\n{text}```\n");
            assert!(chapter.contains(&shown), "{} is not shown", file.path().display());
            files += 1;
        }
    }
    assert!(files > 0, "no chapter works on files");
}

/// Each promise of the threat model names its test, and that test is there.
#[test]
fn tests_that_the_threat_model_names_are_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/threat-model.md")).expect("the threat model");
    let mut sources = String::new();
    for folder in ["crates", "scenarios", "jobs"] {
        gather(&root.join(folder), &mut sources);
    }
    let is_name = |word: &&str| {
        let is_letter = |of: char| of.is_ascii_lowercase() || of.is_ascii_digit() || of == '_';
        word.matches('_').count() >= 3 && word.chars().all(is_letter)
    };
    let names: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(sources.contains(&format!("#[test]\nfn {name}()")), "no test `{name}`");
    }
}

/// All Rust of a folder, without indentation.
fn gather(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            for line in fs::read_to_string(&path).expect("a text").lines() {
                sources.push_str(line.trim_start());
                sources.push('\n');
            }
        }
    }
}
