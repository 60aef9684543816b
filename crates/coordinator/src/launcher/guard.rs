//! The guard as its launcher sees it: one process for the whole run, that is started again when it
//! was killed.
//!
//! In: where it is to listen, and the news that it is gone. Out: a process that holds a pipe of
//! this one, whose end tells it that this process is gone. Invariants: while this process lives and
//! the guard can be started, there is one; starts are bounded, so that one that dies at once is not
//! started for ever. Workers find a new guard at the socket of the old one, and tell it again what
//! runs (see `musec-worker`).

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::mpsc;

use super::LauncherEvent;
use super::local::{LocalSetup, append, wait_until, watch};
use crate::cure::cure;

/// What tells the guard that it need not wait for workers that are still starting.
const ALL_DONE: &[u8] = b"done\n";

/// How long the guard is waited for when all is done: it has only folders to remove.
const END_TIME_MAX: Duration = Duration::from_secs(3);

/// Starts in one run. Nobody kills a guard this often by mistake.
const STARTS_MAX: u32 = 32;

/// From the news that it is gone to its new start, when the one before came to nothing.
const PAUSE: Duration = Duration::from_millis(200);

/// The guard; see the file's head.
pub(super) struct Guard {
    child: Option<Child>,
    starts: u32,
    events: mpsc::UnboundedSender<LauncherEvent>,
}

impl Guard {
    /// Starts it.
    pub(super) fn start(
        setup: &LocalSetup,
        events: mpsc::UnboundedSender<LauncherEvent>,
    ) -> io::Result<Self> {
        let mut guard = Self { child: None, starts: 0, events };
        guard.start_one(setup)?;
        Ok(guard)
    }

    fn start_one(&mut self, setup: &LocalSetup) -> io::Result<()> {
        self.starts += 1;
        let child = spawn(setup)?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::NONBLOCK);
        self.child = Some(child);
        let pidfd = Rc::new(watch(pidfd?)?);
        let events = self.events.clone();
        tokio::task::spawn_local(async move {
            // An error would mean that the descriptor is none.
            drop(pidfd.readable().await);
            drop(events.send(LauncherEvent::GuardGone));
        });
        Ok(())
    }

    /// Starts it again: it is gone.
    pub(super) fn restart(&mut self, setup: &LocalSetup) {
        if let Some(mut gone) = self.child.take() {
            // It is to be reaped; how it ended does not matter.
            drop(gone.wait());
        }
        if self.starts >= STARTS_MAX {
            tracing::error!(
                "the guard was lost {STARTS_MAX} times and is not started any more: what workers \
                 leave behind that are killed by force is not cleaned up"
            );
            return;
        }
        // The socket is the old one's.
        drop(std::fs::remove_file(socket(&setup.scratch_root)));
        match self.start_one(setup) {
            Ok(()) => tracing::warn!(
                "the guard was killed, and is started again; what workers left behind that were \
                 killed by force meanwhile is not cleaned up"
            ),
            Err(error) => {
                tracing::error!("cannot start the guard again: {error}{}", cure(&error));
                let events = self.events.clone();
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(PAUSE).await;
                    drop(events.send(LauncherEvent::GuardGone));
                });
            }
        }
    }

    /// Tells it that all is done, and waits for its end.
    pub(super) async fn finish(&mut self) {
        let Some(mut guard) = self.child.take() else { return };
        if let Some(mut lifeline) = guard.stdin.take() {
            // A guard that is gone has nobody to wait for either.
            drop(lifeline.write_all(ALL_DONE));
        }
        wait_until(END_TIME_MAX, || !matches!(guard.try_wait(), Ok(None))).await;
    }
}

pub(super) fn socket(root: &Path) -> PathBuf {
    root.join("guard")
}

/// The guard holds a pipe of this process: its end tells the guard that this process is gone.
fn spawn(setup: &LocalSetup) -> io::Result<Child> {
    Command::new(&setup.program)
        .arg0("run-guard")
        .arg("guard")
        .arg(socket(&setup.scratch_root))
        .arg(&setup.scratch_root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(append(&setup.log)?)
        .process_group(0)
        .spawn()
}
