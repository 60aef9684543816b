//! The processes that this worker has started, and the end of all of them.
//!
//! In: process groups as they begin and end. Out: signals. Invariants: a group is signalled only
//! while its leader is not reaped, so that its number cannot be another's; at the end no
//! descendant of this process is left, whatever session it made for itself.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, set_child_subreaper,
    waitid,
};

/// Rounds of killing descendants: each round ends one generation that hid from the one before.
const ROUNDS_MAX: usize = 64;

/// The groups whose leaders are not reaped.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    groups: RefCell<BTreeSet<i32>>,
}

impl Processes {
    /// Makes orphans among its descendants children of this process, so that they can be found.
    pub(crate) fn new() -> Self {
        // Without it (no Linux) only process groups are followed.
        if let Err(error) = set_child_subreaper(Some(rustix::process::getpid())) {
            tracing::warn!("orphans of commands cannot be followed: {error}");
        }
        Self::default()
    }

    /// A group begins: its leader was just spawned.
    pub(crate) fn begin(&self, leader: Pid) {
        self.groups.borrow_mut().insert(leader.as_raw_nonzero().get());
    }

    /// A group ended and its leader was reaped.
    pub(crate) fn end(&self, leader: Pid) {
        self.groups.borrow_mut().remove(&leader.as_raw_nonzero().get());
        self.reap_orphans();
    }

    /// Reaps adopted processes that have ended.
    fn reap_orphans(&self) {
        for child in children() {
            if !self.groups.borrow().contains(&child.as_raw_nonzero().get()) {
                let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
                // One that is still running is left alone, as it was.
                let _ = waitid(WaitId::Pid(child), ended);
            }
        }
    }

    /// Kills all groups and then all other descendants, at once.
    pub(crate) fn kill_all(&self) {
        for group in self.groups.borrow().iter().filter_map(|group| Pid::from_raw(*group)) {
            // A group that is gone is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
        for _ in 0..ROUNDS_MAX {
            let children = children();
            if children.is_empty() {
                return;
            }
            for child in children {
                let _ = kill_process(child, Signal::KILL);
                let ours = self.groups.borrow().contains(&child.as_raw_nonzero().get());
                if !ours {
                    let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED);
                }
            }
        }
    }
}

/// All children of this process, adopted ones among them; none where the system cannot tell.
fn children() -> Vec<Pid> {
    let mut children = Vec::new();
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return children };
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        children.extend(pids.filter_map(Pid::from_raw));
    }
    children
}
