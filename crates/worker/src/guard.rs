//! The guard: one process a host and run, for the case that workers are killed by force.
//!
//! In: a lifeline (standard input, held open by whoever launched it), and lines of workers on a
//! socket: `hello MARKER SCRATCH`, `run GROUP`, `end GROUP`, `bye`. Out: when a worker's connection
//! ends without `bye`, its process groups and everything that carries its marker are killed and its
//! scratch folder is removed; when the lifeline has ended and no worker is left, so is the scratch
//! root. Invariants: nothing outside the scratch root is removed; no number that a worker did not
//! name, and no process without its marker, is signalled; lines and connections are bounded.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

use crate::error::GuardError;

/// Longest line of a worker, in bytes: a marker and a path.
const LINE_BYTES_MAX: u64 = 8 << 10;

/// Connections at a time; a host has fewer workers.
const WORKERS_MAX: usize = 100_000;

/// After the lifeline's end: how long workers that are still starting may take to connect.
const START_TIME_MAX: Duration = Duration::from_secs(2);

/// Rounds of looking for processes with a dead worker's marker: each finds what the one before
/// had started meanwhile.
const ROUNDS_MAX: usize = 20;
const ROUND_PAUSE: Duration = Duration::from_millis(10);

/// The variable that marks every process that an attempt has started.
pub(crate) const MARKER_VARIABLE: &str = "MUSEC_RUN";

/// What the lifeline says when all is over and nobody is to be waited for.
const ALL_DONE: &[u8] = b"done\n";

/// A worker's line to its guard; without a guard it says nothing.
#[derive(Debug, Default)]
pub(crate) struct GuardLine(RefCell<Option<StdUnixStream>>);

impl GuardLine {
    /// Connects to the guard and says who this is. A worker does without one rather than fail.
    pub(crate) fn connect(socket: &[u8], marker: &OsStr, scratch: &Path) -> Self {
        if socket.is_empty() {
            return Self::default();
        }
        match StdUnixStream::connect(OsStr::from_bytes(socket)) {
            Ok(stream) => {
                let line = Self(RefCell::new(Some(stream)));
                let mut words = b"hello ".to_vec();
                words.extend_from_slice(marker.as_bytes());
                words.push(b' ');
                words.extend_from_slice(scratch.as_os_str().as_bytes());
                line.say(&words);
                line
            }
            Err(error) => {
                tracing::warn!("no guard: {error}");
                Self::default()
            }
        }
    }

    /// A process group begins.
    pub(crate) fn run(&self, leader: Pid) {
        self.say(format!("run {}", leader.as_raw_nonzero()).as_bytes());
    }

    /// A process group is gone.
    pub(crate) fn end(&self, leader: Pid) {
        self.say(format!("end {}", leader.as_raw_nonzero()).as_bytes());
    }

    /// Nothing of this worker is left.
    pub(crate) fn bye(&self) {
        self.say(b"bye");
    }

    fn say(&self, words: &[u8]) {
        let mut stream = self.0.borrow_mut();
        let Some(guard) = stream.as_mut() else { return };
        let line = [words, b"\n"].concat();
        if let Err(error) = guard.write_all(&line) {
            tracing::warn!("lost the guard: {error}");
            *stream = None;
        }
    }
}

/// Guards the workers that connect to `socket`, until the lifeline and all of them have ended.
///
/// # Errors
/// If the socket cannot be made, or `scratch_root` is not a folder that can be guarded.
pub fn run_guard(socket: &Path, scratch_root: &Path) -> Result<(), GuardError> {
    // Whoever kills all that is called musec by name shall not take the guard along.
    if let Err(error) = rustix::thread::set_name(c"run-guard") {
        tracing::debug!("cannot rename: {error}");
    }
    let root = scratch_root.canonicalize().ok().filter(|root| root.parent().is_some());
    let root = root.ok_or_else(|| GuardError::Root(scratch_root.to_owned()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(GuardError::Runtime)?;
    tokio::task::LocalSet::new().block_on(&runtime, guard(socket, &root))
}

async fn guard(socket: &Path, root: &Path) -> Result<(), GuardError> {
    let listener = UnixListener::bind(socket)
        .map_err(|source| GuardError::Listen { path: socket.to_owned(), source })?;
    ignore_signals();
    let connected = Rc::new(Cell::new(0));
    let accepting =
        tokio::task::spawn_local(accept_all(listener, root.to_owned(), Rc::clone(&connected)));
    let ended_well = lifeline().await;
    if !ended_well {
        tokio::time::sleep(START_TIME_MAX).await;
    }
    while connected.get() > 0 {
        tokio::time::sleep(ROUND_PAUSE).await;
    }
    accepting.abort();
    remove(root);
    Ok(())
}

/// A signal to the guard is meant for somebody else: it ends when its work is done.
fn ignore_signals() {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        if let Ok(mut signals) = signal(kind) {
            tokio::task::spawn_local(async move { while signals.recv().await.is_some() {} });
        }
    }
}

/// Waits for the end of standard input; true if it said that all is done. A thread reads: one of
/// the runtime's own would keep it from ending.
async fn lifeline() -> bool {
    let (ended, end) = oneshot::channel();
    let reader = std::thread::Builder::new().name("lifeline".into()).spawn(move || {
        let mut words = Vec::new();
        // However it ends, it has ended.
        drop(std::io::stdin().lock().take(64).read_to_end(&mut words));
        let _ = ended.send(words == ALL_DONE);
    });
    if let Err(error) = reader {
        tracing::warn!("no thread for the lifeline: {error}");
    }
    end.await.unwrap_or(false)
}

async fn accept_all(listener: UnixListener, root: PathBuf, connected: Rc<Cell<usize>>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if connected.get() < WORKERS_MAX => {
                connected.set(connected.get() + 1);
                let (root, connected) = (root.clone(), Rc::clone(&connected));
                tokio::task::spawn_local(async move {
                    serve(stream, &root).await;
                    connected.set(connected.get() - 1);
                });
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("the guard cannot accept: {error}");
                tokio::time::sleep(ROUND_PAUSE).await;
            }
        }
    }
}

/// What a worker has said of itself.
#[derive(Default)]
struct Ward {
    marker: Vec<u8>,
    scratch: Option<PathBuf>,
    groups: BTreeSet<i32>,
    is_gone: bool,
}

async fn serve(stream: UnixStream, root: &Path) {
    let mut lines = BufReader::new(stream);
    let mut ward = Ward::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => ward.hear(line.trim_ascii_end()),
        }
    }
    if !ward.is_gone {
        ward.clean_up(root).await;
    }
}

impl Ward {
    /// Takes one line; what is none of the four is passed over.
    fn hear(&mut self, line: &[u8]) {
        let (word, rest) = match line.iter().position(|byte| *byte == b' ') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let group = || std::str::from_utf8(rest).ok()?.parse::<i32>().ok().filter(|id| *id > 1);
        match word {
            b"hello" => {
                let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
                self.marker = rest[..end].to_vec();
                self.scratch = rest.get(end + 1..).map(|path| OsStr::from_bytes(path).into());
            }
            b"run" => self.groups.extend(group()),
            b"end" => {
                if let Some(group) = group() {
                    self.groups.remove(&group);
                }
            }
            b"bye" => self.is_gone = true,
            _ => {}
        }
    }

    /// Kills all that the worker has started and removes its scratch folder.
    async fn clean_up(&self, root: &Path) {
        for round in 0..ROUNDS_MAX {
            for group in self.groups.iter().filter_map(|group| Pid::from_raw(*group)) {
                // Only a group of this worker: its members carry the marker.
                if round > 0 || group_is_marked(group, &self.marker) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
            }
            let marked = marked(&self.marker);
            if marked.is_empty() {
                break;
            }
            for pid in marked {
                let _ = kill_process(pid, Signal::KILL);
            }
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        let scratch = self.scratch.as_ref().filter(|scratch| scratch.parent() == Some(root));
        if let Some(scratch) = scratch {
            remove(scratch);
        }
    }
}

fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("cannot remove {}: {error}", folder.display());
    }
}

/// Whether the leader of a group, if it is still there, carries the marker.
fn group_is_marked(group: Pid, marker: &[u8]) -> bool {
    is_marked(&PathBuf::from(format!("/proc/{}", group.as_raw_nonzero())), marker)
}

/// All living processes that carry the marker, whatever their group or session.
fn marked(marker: &[u8]) -> Vec<Pid> {
    if marker.is_empty() {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let own = rustix::process::getpid();
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            (pid != own && is_marked(&entry.path(), marker)).then_some(pid)
        })
        .collect()
}

fn is_marked(process: &Path, marker: &[u8]) -> bool {
    let environ = fs::read(process.join("environ")).unwrap_or_default();
    let wanted = [MARKER_VARIABLE.as_bytes(), b"=", marker].concat();
    environ.split(|byte| *byte == 0).any(|variable| variable == wanted)
}
