//! What a guard knows of one worker, and what it may do in the worker's name.
//!
//! In: the worker's lines. Out: kills and removals after its death. Invariants: only groups that
//! the worker named are killed, and not when the number has meanwhile become another process's;
//! only a folder directly within the scratch root is removed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process_group};

use super::marked::start_ticks;
use crate::notes::notes_folder;

/// Groups of one worker at a time: more than a machine runs.
const GROUPS_MAX: usize = 100_000;

/// One worker.
#[derive(Debug, Default)]
pub(super) struct Ward {
    /// Empty until it said hello.
    pub(super) marker: Vec<u8>,
    scratch: Option<PathBuf>,
    /// Its groups, and when their leaders started.
    groups: BTreeMap<i32, Option<u64>>,
    /// It said that its scratch folder is to stay.
    pub(super) keeps: bool,
    /// It said that nothing of it is left.
    pub(super) is_gone: bool,
}

impl Ward {
    /// Takes one line; what is none of those that are known is passed over.
    pub(super) fn hear(&mut self, line: &[u8]) {
        let (word, rest) = split(line);
        match word {
            b"hello" => {
                let (marker, scratch) = split(rest);
                self.marker = marker.to_vec();
                self.scratch = Some(OsStr::from_bytes(scratch).into());
            }
            b"run" => {
                if let Some(group) = group(rest)
                    && self.groups.len() < GROUPS_MAX
                {
                    self.groups.insert(group.as_raw_nonzero().get(), start_ticks(group));
                }
            }
            b"end" => {
                if let Some(group) = group(rest) {
                    self.groups.remove(&group.as_raw_nonzero().get());
                }
            }
            b"keep" => self.keeps = true,
            b"bye" => self.is_gone = true,
            _ => {}
        }
    }

    /// Kills its groups. One whose leader is gone keeps its number while it has members.
    pub(super) fn kill_groups(&self) {
        for (group, started) in &self.groups {
            let Some(group) = Pid::from_raw(*group) else { continue };
            let now = start_ticks(group);
            if now.is_none() || now == *started {
                // A group that is gone is what is wanted.
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    }

    /// The folder to remove, if it lies where a worker's folder lies.
    pub(super) fn scratch_within(&self, root: &Path) -> Option<&Path> {
        self.child_of(root).filter(|_| !self.keeps)
    }

    /// The folder for notes beside it, which never stays.
    pub(super) fn notes_within(&self, root: &Path) -> Option<PathBuf> {
        self.child_of(root).map(notes_folder)
    }

    fn child_of(&self, root: &Path) -> Option<&Path> {
        let scratch = self.scratch.as_deref()?;
        let is_child = scratch.parent() == Some(root) && scratch.file_name().is_some();
        is_child.then_some(scratch)
    }
}

/// The first word and the rest.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &[]),
    }
}

/// A group that may be killed: 0 would be the guard's own, 1 the system's first process.
fn group(word: &[u8]) -> Option<Pid> {
    let number: i32 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (number > 1).then(|| Pid::from_raw(number)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_lines_of_a_worker_are_passed_over() {
        let mut ward = Ward::default();
        for line in ["", "run", "run x", "run 0", "run 1", "run -7", "run 99999999999", "fly 3"] {
            ward.hear(line.as_bytes());
        }
        ward.hear(&[0xff, b' ', 0xfe]);
        assert!(ward.groups.is_empty(), "{ward:?}");
        assert!(!ward.is_gone);
    }

    #[test]
    fn a_group_that_ended_is_not_killed() {
        let mut ward = Ward::default();
        ward.hear(b"run 12345");
        ward.hear(b"run 12346");
        ward.hear(b"end 12345");
        assert_eq!(ward.groups.keys().collect::<Vec<_>>(), [&12346]);
    }

    #[test]
    fn only_a_folder_directly_within_the_root_is_removed() {
        let root = Path::new("/tmp/run");
        let asked = |scratch: &str| {
            let mut ward = Ward::default();
            ward.hear(format!("hello ab/1 {scratch}").as_bytes());
            (ward.scratch_within(root).map(Path::to_owned), ward.notes_within(root))
        };
        let both = (Some("/tmp/run/w0.0".into()), Some("/tmp/run/w0.0.notes".into()));
        assert_eq!(asked("/tmp/run/w0.0"), both);
        for other in ["", "/", "/tmp", "/tmp/run", "/tmp/run/..", "/tmp/run/../x", "w0.0"] {
            assert_eq!(asked(other), (None, None), "{other}");
        }
    }
}
