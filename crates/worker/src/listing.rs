//! The files of a folder that is a store, by their keys.
//!
//! In: a folder below the store's, and which names are wanted. Out: their keys, sorted. Invariants:
//! a name that can be no key (bytes that are no UTF-8, control characters) fails who wants it, and
//! nobody else; links are followed, but not in a circle. (The store's own listing ends at the first
//! such name, and leaves out files whose names end like `#1`, as unfinished uploads have.)

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use musec_protocol::ErrorKind;
use musec_protocol::limits::OBJECTS_MAX;

use crate::failure::Failure;
use crate::scratch::show;

/// Whether a file is named as the store names uploads that are under way: `key#1`. It opens none.
pub(crate) fn is_upload(name: &OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.split_once('#'));
    parts.is_some_and(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The files below `folder` of `root` that are wanted; one more than a reply can tell of at most.
pub(crate) fn list(
    root: &Path,
    folder: &str,
    hides_uploads: bool,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<String>, Failure> {
    let mut keys = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        let failed = |error: &io::Error| {
            let path = show(path.as_os_str().as_bytes());
            Failure::new(crate::failure::kind_of(error), format!("cannot list {path}: {error}"))
        };
        let entries = match fs::read_dir(&path) {
            // What is not there, or went away, has no files.
            Err(error) if is_gone(&error) => continue,
            entries => entries.map_err(|error| failed(&error))?,
        };
        for entry in entries {
            let entry = entry.map_err(|error| failed(&error))?;
            let key = folder.join(entry.file_name());
            let Ok(facts) = fs::metadata(entry.path()) else { continue };
            if facts.is_dir() {
                if !leads_back(&entry) {
                    folders.push(key);
                }
            } else if facts.is_file()
                && wanted(&key.to_string_lossy())
                && !(hides_uploads && is_upload(&entry.file_name()))
            {
                keys.push(checked(&key)?);
            }
        }
        if keys.len() > OBJECTS_MAX {
            break;
        }
    }
    keys.sort_unstable();
    Ok(keys)
}

fn checked(path: &Path) -> Result<String, Failure> {
    let key = path.to_str().filter(|key| object_store::path::Path::parse(key).is_ok());
    key.map(str::to_owned).ok_or_else(|| {
        let name = show(path.as_os_str().as_bytes());
        Failure::new(ErrorKind::Invalid, format!("{name} can be no key; rename it"))
    })
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a folder is a link to one that it lies in.
fn leads_back(entry: &fs::DirEntry) -> bool {
    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let path = entry.path();
    let real = |path: &Path| path.canonicalize().ok();
    is_link
        && path.parent().and_then(real).zip(real(&path)).is_some_and(|(at, to)| at.starts_with(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_can_be_no_key_fails_who_wants_it_and_nobody_else() {
        let place = tempfile::tempdir().expect("a folder");
        for name in [&b"line\nbreak.txt"[..], b"\xff.txt", b"a", b"a#1"] {
            fs::write(place.path().join(OsStr::from_bytes(name)), "").expect("written");
        }
        std::os::unix::fs::symlink("..", place.path().join("up")).expect("linked");
        std::os::unix::fs::symlink(".", place.path().join("circle")).expect("linked");
        let some = |key: &str| !key.ends_with(".txt") && !key.starts_with("up/");
        assert_eq!(list(place.path(), "", false, some).expect("listed"), ["a", "a#1"]);
        assert_eq!(list(place.path(), "", true, some).expect("listed"), ["a"]);
        let all = |key: &str| key.ends_with(".txt") && !key.contains('/');
        let failure = list(place.path(), "", false, all).expect_err("they are wanted");
        assert!(failure.text.contains("rename it"), "{}", failure.text);
    }
}
