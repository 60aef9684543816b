//! What the documents promise: every block of `console` in the guide and in `tests/cmd` is run, and
//! must print what stands there. `TRYCMD=overwrite` writes what is printed.

use std::fs;
use std::path::Path;

#[test]
fn commands_print_what_the_documents_say() {
    trycmd::TestCases::new()
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
