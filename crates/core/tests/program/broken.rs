//! Broken job files, each with a snapshot of all that is wrong with it.

use std::path::Path;

use crate::wrong;

#[test]
fn every_broken_job_file_is_told_what_is_wrong_with_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 40, "{}", files.len());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        insta::with_settings!({ snapshot_path => "../broken", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, wrong(&text));
        });
    }
}
