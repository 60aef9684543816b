//! The local launcher: processes of the same binary on this machine.
//!
//! A thread of its own spawns them, so that a burst of launches does not hold up the loop; a task
//! a process waits for its exit. One guard process stands by for the whole run: should this
//! process and workers die by any signal, it kills what is left (see `musec-worker`).

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::Duration;

use musec_protocol::{LaunchId, Ticket};
use musec_trace::CClock;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::LauncherEvent;
use super::guard::{self, Guard};
use crate::cure::cure;

/// How long processes have that were told to end: they have only a scratch folder to remove.
const EXIT_TIME_MAX: Duration = Duration::from_secs(2);

/// Bytes of the workers' log that are searched for the words of one that has just ended.
const LAST_WORDS_BYTES_MAX: u64 = 64 << 10;

/// What the local launcher needs to know.
#[derive(Clone)]
pub(crate) struct LocalSetup {
    /// The binary that has the hidden `worker` and `guard` commands.
    pub(crate) program: PathBuf,
    /// Folder for scratch folders and the guard's socket; made here, mode 0700.
    pub(crate) scratch_root: PathBuf,
    /// File that takes what workers write to their own standard error.
    pub(crate) log: PathBuf,
}

pub(crate) struct Local {
    /// Never holds more than the fleet has alive at once.
    spawner: Option<std::sync::mpsc::Sender<(LaunchId, String)>>,
    alive: BTreeMap<LaunchId, Alive>,
    guard: Guard,
    setup: LocalSetup,
}

/// A process that was not reaped yet. The descriptor is used for signals, so that a number that
/// was given to another process in the meantime is never hit.
struct Alive {
    child: Child,
    pidfd: Rc<AsyncFd<OwnedFd>>,
}

/// From the spawning thread to the loop.
pub(crate) type Spawned = (LaunchId, io::Result<(Child, OwnedFd)>);

impl Local {
    /// Starts the guard and the spawning thread.
    pub(crate) fn start(
        setup: &LocalSetup,
        spawned: mpsc::UnboundedSender<Spawned>,
        events: mpsc::UnboundedSender<LauncherEvent>,
    ) -> io::Result<Self> {
        socket_path_fits(&guard::socket(&setup.scratch_root))?;
        make_private_folder(&setup.scratch_root)?;
        Self::start_within(setup, spawned, events)
            .inspect_err(|_| remove_leftovers(&setup.scratch_root))
    }

    fn start_within(
        setup: &LocalSetup,
        spawned: mpsc::UnboundedSender<Spawned>,
        events: mpsc::UnboundedSender<LauncherEvent>,
    ) -> io::Result<Self> {
        let guard = Guard::start(setup, events)?;
        let (spawner, launches) = std::sync::mpsc::channel::<(LaunchId, String)>();
        let program = setup.program.clone();
        let log = setup.log.clone();
        std::thread::Builder::new().name("launcher".into()).spawn(move || {
            while let Ok((launch, ticket)) = launches.recv() {
                if spawned.send((launch, spawn(&program, &log, &ticket))).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { spawner: Some(spawner), alive: BTreeMap::new(), guard, setup: setup.clone() })
    }

    pub(crate) fn scratch_root(&self) -> &Path {
        &self.setup.scratch_root
    }

    pub(crate) fn guard_socket(&self) -> PathBuf {
        guard::socket(&self.setup.scratch_root)
    }

    /// Asks for an attempt; the answer comes through [`Self::spawned`].
    pub(crate) fn launch(&self, launch: LaunchId, ticket: &Ticket) -> Result<(), String> {
        let spawner = self.spawner.as_ref().ok_or("the launcher has ended")?;
        spawner.send((launch, ticket.to_text())).map_err(|error| error.to_string())
    }

    /// Takes what the spawning thread answered, and watches the process from now on.
    pub(crate) fn spawned(
        &mut self,
        (launch, result): Spawned,
        clock: CClock,
        events: &mpsc::UnboundedSender<LauncherEvent>,
    ) -> LauncherEvent {
        let watched = result.and_then(|(child, pidfd)| {
            let pid = child.id();
            let pidfd = Rc::new(watch(pidfd)?);
            self.alive.insert(launch, Alive { child, pidfd: Rc::clone(&pidfd) });
            let events = events.clone();
            tokio::task::spawn_local(async move {
                // An error would mean that the descriptor is none: reaping waits all the same.
                drop(pidfd.readable().await);
                drop(events.send(LauncherEvent::Exited { launch, at: clock.now() }));
            });
            Ok(pid)
        });
        let at = clock.now();
        match watched {
            Ok(pid) => LauncherEvent::Accepted { launch, at, engine_id: pid.to_string() },
            Err(error) => LauncherEvent::NotLaunched { launch, error: explain(&error) },
        }
    }

    /// Reaps an attempt whose process is gone and says in words how it ended.
    pub(crate) fn reap(&mut self, launch: LaunchId) -> String {
        let Some(mut alive) = self.alive.remove(&launch) else { return "gone".into() };
        let pid = alive.child.id();
        match alive.child.wait() {
            Ok(status) if status.code().is_some_and(|code| code != 0) => {
                let words = last_words(&self.setup.log, pid);
                words.map_or_else(
                    || describe(status),
                    |words| format!("{}: {words}", describe(status)),
                )
            }
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        }
    }

    /// Starts the guard again, which is gone.
    pub(crate) fn restart_guard(&mut self) {
        self.guard.restart(&self.setup);
    }

    /// Kills an attempt's process. What it has started dies with it, by the guard.
    pub(crate) fn stop(&self, launch: LaunchId) {
        if let Some(alive) = self.alive.get(&launch)
            && let Err(error) = pidfd_send_signal(alive.pidfd.get_ref(), Signal::KILL)
        {
            tracing::debug!("cannot kill launch {launch}: {error}");
        }
    }

    /// Waits for processes that are about to end, kills what is left, and has the guard clean up.
    pub(crate) async fn finish(mut self) {
        self.spawner = None;
        let all_gone = |alive: &mut BTreeMap<LaunchId, Alive>| {
            alive.retain(|_, process| matches!(process.child.try_wait(), Ok(None)));
            alive.is_empty()
        };
        wait_until(EXIT_TIME_MAX, || all_gone(&mut self.alive)).await;
        for process in self.alive.values_mut() {
            drop(process.child.kill());
            drop(process.child.wait());
        }
        self.guard.finish().await;
        remove_leftovers(&self.setup.scratch_root);
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that change their descriptor; an \
              OwnedFd keeps the one that it owns"
)]
pub(super) fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}

pub(super) async fn wait_until(limit: Duration, mut reached: impl FnMut() -> bool) {
    let step = Duration::from_millis(2);
    let mut waited = Duration::ZERO;
    while !reached() && waited < limit {
        tokio::time::sleep(step).await;
        waited += step;
    }
}

/// Bytes of a socket's path, by the systems' `sockaddr_un` (104 on macOS, 108 on Linux, the zero at
/// its end included).
const SOCKET_PATH_BYTES_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// A guard that cannot listen could not clean up: that is known before anything is launched.
fn socket_path_fits(socket: &Path) -> io::Result<()> {
    let length = socket.as_os_str().len();
    if length <= SOCKET_PATH_BYTES_MAX {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the guard's socket {} would have a path of {length} bytes, the system allows \
         {SOCKET_PATH_BYTES_MAX}; set TMPDIR to a shorter one",
        socket.display()
    )))
}

/// Removes what a guard that was killed by force could not: its socket and, where nothing else is
/// in it, the folder. Scratch folders that are to stay, stay.
fn remove_leftovers(scratch_root: &Path) {
    for removed in
        [std::fs::remove_file(guard::socket(scratch_root)), std::fs::remove_dir(scratch_root)]
    {
        if let Err(error) = removed {
            tracing::debug!("{}: {error}", scratch_root.display());
        }
    }
}

fn make_private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

pub(super) fn append(log: &Path) -> io::Result<Stdio> {
    Ok(std::fs::OpenOptions::new().create(true).append(true).open(log)?.into())
}

/// A group of its own keeps the terminal's Ctrl-C from the worker: the coordinator decides.
fn spawn(program: &Path, log: &Path, ticket: &str) -> io::Result<(Child, OwnedFd)> {
    let mut child = Command::new(program)
        .arg("worker")
        .env(Ticket::VARIABLE, ticket)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(append(log)?)
        .process_group(0)
        .spawn()?;
    let pid = Pid::from_child(&child);
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(pidfd) => Ok((child, pidfd)),
        Err(error) => {
            drop(child.kill());
            drop(child.wait());
            Err(error.into())
        }
    }
}

fn explain(error: &io::Error) -> String {
    format!("cannot start a worker process: {error}{}", cure(error))
}

/// What a worker that has ended said of its end, in the log that all workers share.
fn last_words(log: &Path, pid: u32) -> Option<String> {
    let mut file = std::fs::File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES_MAX))).ok()?;
    let mut text = Vec::new();
    file.take(LAST_WORDS_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mine = format!("musec worker, pid {pid}: ");
    text.lines().rev().find_map(|line| line.strip_prefix(&mine)).map(str::to_owned)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(9)) => {
            "killed by signal 9, which is also how a process ends when memory runs out".into()
        }
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_no_socket_can_have_is_refused_with_the_cure() {
        assert!(socket_path_fits(Path::new("/tmp/musec-0123456789abcdef/guard")).is_ok());
        let long = PathBuf::from("/").join("x".repeat(SOCKET_PATH_BYTES_MAX));
        let refused = socket_path_fits(&long).expect_err("one byte too many");
        assert!(refused.to_string().contains("TMPDIR"), "{refused}");
    }

    #[test]
    fn leftovers_of_a_killed_guard_are_removed_but_no_scratch_folder() {
        let place = tempfile::tempdir().expect("temporary folder");
        let root = place.path().join("root");
        for kept in [true, false] {
            std::fs::create_dir_all(&root).expect("made");
            std::fs::write(guard::socket(&root), "").expect("written");
            let scratch = root.join("w0.0");
            if kept {
                std::fs::create_dir(&scratch).expect("made");
            }
            remove_leftovers(&root);
            assert!(!guard::socket(&root).exists());
            assert_eq!(root.exists(), kept);
            if kept {
                std::fs::remove_dir(&scratch).expect("it was left");
            }
        }
    }
}
