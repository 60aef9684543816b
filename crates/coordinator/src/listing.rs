//! A folder's files as the keys of a store.
//!
//! In: a folder, and a glob. Out: the keys that match, sorted by bytes; and the names that match
//! and can be no key (bytes that are no UTF-8, control characters), which affect nobody else. Links
//! are followed, but not in a circle. (The store's own listing ends at the first such name, and
//! leaves out files whose names end like `#1`, as unfinished uploads have.)

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use musec_core::Glob;

/// Names that are told of those that can be no key.
const UNFIT_MAX: usize = 20;

/// What is in a folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) keys: Vec<String>,
    /// The first of those that can be no key.
    pub(crate) unfit: Vec<PathBuf>,
}

/// Lists the files below `root` that match, `most` and one more at most; with their path, an error.
pub(crate) fn list(
    root: &Path,
    glob: &Glob,
    hides_uploads: bool,
    most: usize,
) -> Result<Listing, (PathBuf, io::Error)> {
    let mut found = Listing::default();
    let mut folders = vec![PathBuf::from(&glob.folder)];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        let entries = match fs::read_dir(&path) {
            // What is not there, or went away, has no files.
            Err(error) if is_gone(&error) => continue,
            entries => entries.map_err(|error| (path.clone(), error))?,
        };
        for entry in entries {
            let entry = entry.map_err(|error| (path.clone(), error))?;
            let name = entry.file_name();
            let key = folder.join(&name);
            let Ok(facts) = fs::metadata(entry.path()) else { continue };
            if facts.is_dir() {
                if !leads_back(&entry) {
                    folders.push(key);
                }
            } else if facts.is_file()
                && glob.matches_path(&key)
                && !(hides_uploads && is_upload(&name))
            {
                found.add(key);
            }
        }
        if found.keys.len() > most {
            break;
        }
    }
    found.keys.sort_unstable();
    Ok(found)
}

/// Whether a folder is a link to one that it lies in.
fn leads_back(entry: &fs::DirEntry) -> bool {
    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let path = entry.path();
    let real = |path: &Path| path.canonicalize().ok();
    is_link
        && path.parent().and_then(real).zip(real(&path)).is_some_and(|(at, to)| at.starts_with(to))
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a file is named as the store names uploads that are under way: `key#1`. It opens none.
pub(crate) fn is_upload(name: &OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.split_once('#'));
    parts.is_some_and(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

impl Listing {
    fn add(&mut self, key: PathBuf) {
        match key.to_str().filter(|key| object_store::path::Path::parse(key).is_ok()) {
            Some(key) => self.keys.push(key.to_owned()),
            None if self.unfit.len() < UNFIT_MAX => self.unfit.push(key),
            None => {}
        }
    }
}
