//! The processes that this worker has started, and the end of all of them.
//!
//! In: process groups as they begin and end. Out: signals. Invariants: a group is signalled only
//! while its leader is not reaped, so that its number cannot be another's; at the end no
//! descendant of this process is left, whatever session it made for itself.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, set_child_subreaper,
    waitid,
};

use crate::guard::marked;

/// Rounds of killing descendants, a moment apart: each ends what the one before had missed. A
/// process that the kernel holds is not waited for longer than this.
const ROUNDS_MAX: usize = 250;
const ROUND_PAUSE: Duration = Duration::from_millis(1);

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
        for child in children().unwrap_or_default() {
            if !self.groups.borrow().contains(&child.as_raw_nonzero().get()) {
                let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
                // One that is still running is left alone, as it was.
                let _ = waitid(WaitId::Pid(child), ended);
            }
        }
    }

    /// Kills all groups and then all other descendants, at once, and reaps them. `marker` finds
    /// them where the system does not list a process's children.
    pub(crate) fn kill_all(&self, marker: &[u8]) {
        for group in self.groups.take().into_iter().filter_map(Pid::from_raw) {
            // A group that is gone is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
        for _ in 0..ROUNDS_MAX {
            let left = children().unwrap_or_else(|| marked(&[marker]));
            if left.is_empty() {
                return;
            }
            for process in left {
                let _ = kill_process(process, Signal::KILL);
                let _ = waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            }
            std::thread::sleep(ROUND_PAUSE);
        }
    }
}

/// All children of this process, adopted ones among them; `None` where the system cannot tell.
fn children() -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let list = match fs::read_to_string(thread.ok()?.path().join("children")) {
            Ok(list) => list,
            // The thread may have ended meanwhile; this one, the main one, has not.
            Err(_) if Path::new("/proc/thread-self/children").exists() => continue,
            Err(_) => return None,
        };
        let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        children.extend(pids.filter_map(Pid::from_raw));
    }
    Some(children)
}
