//! The guard: one process a host and run, for the case that workers are killed by force.
//!
//! In: a lifeline (standard input, held open by whoever launched it), and lines of workers on a
//! socket: `hello MARKER SCRATCH`, `keep`, `run GROUP`, `end GROUP`, `bye`. Out: when a worker's
//! connection ends without `bye`, its process groups and everything that carries its marker are
//! killed and its scratch folder is removed; when the lifeline has ended and no worker is left, so
//! is the scratch root. Invariants: nothing outside the scratch root is removed; no group that a
//! worker did not name, and no process without its marker, is killed; lines and connections are
//! bounded.

mod line;
mod marked;
mod ward;

pub(crate) use line::GuardLine;
pub(crate) use marked::{MARKER_VARIABLE, marked, marker_value};

use std::cell::Cell;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

use crate::error::GuardError;
use crate::scratch::remove_folder;
use ward::Ward;

/// Longest line of a worker, in bytes: a marker and a path.
const LINE_BYTES_MAX: usize = 8 << 10;

/// Connections at a time; a host has fewer workers.
const WORKERS_MAX: usize = 100_000;

/// After the lifeline's end: how long workers that are still starting may take to connect.
const START_TIME_MAX: Duration = Duration::from_secs(2);

/// Rounds of looking for processes with a dead worker's marker: each finds what the one before
/// had started meanwhile.
const ROUNDS_MAX: usize = 20;
const ROUND_PAUSE: Duration = Duration::from_millis(10);

/// What the lifeline says when all is over and nobody is to be waited for.
const ALL_DONE: &[u8] = b"done\n";

/// What all connections share.
struct Shared {
    /// Workers that are connected, or dead and not yet cleaned up after.
    wards: Cell<usize>,
    /// Some worker wants its scratch folder to stay.
    keeps: Cell<bool>,
    /// Workers that died.
    dead: mpsc::UnboundedSender<Ward>,
}

/// Guards the workers that connect to `socket`, until the lifeline and all of them have ended.
/// Standard input is the lifeline: its end means that who launched the guard is gone, and workers
/// that are still starting are waited for; `done` and a line's end before it that none are.
///
/// # Errors
/// If the socket cannot be made, or `scratch_root` is not a folder that can be guarded.
pub fn run_guard(socket: &Path, scratch_root: &Path) -> Result<(), GuardError> {
    // Whoever kills all that is called musec by name shall not take the guard along.
    if let Err(error) = rustix::thread::set_name(c"run-guard") {
        tracing::debug!("cannot rename: {error}");
    }
    raise_descriptor_limit();
    let root = scratch_root.canonicalize().ok().filter(|root| root.parent().is_some());
    let root = root.ok_or_else(|| GuardError::Root(scratch_root.to_owned()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(GuardError::Runtime)?;
    tokio::task::LocalSet::new().block_on(&runtime, guard(socket, &root))
}

/// Each worker takes a descriptor.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!("cannot raise the limit of descriptors: {error}");
    }
}

async fn guard(socket: &Path, root: &Path) -> Result<(), GuardError> {
    ignore_signals();
    let listener = UnixListener::bind(socket)
        .map_err(|source| GuardError::Listen { path: socket.to_owned(), source })?;
    // Each worker dies once, and there are at most WORKERS_MAX.
    let (dead, deaths) = mpsc::unbounded_channel();
    let shared = Rc::new(Shared { wards: Cell::new(0), keeps: Cell::new(false), dead });
    tokio::task::spawn_local(clean_up_all(deaths, root.to_owned(), Rc::clone(&shared)));
    let accepting = tokio::task::spawn_local(accept_all(listener, Rc::clone(&shared)));
    if !lifeline().await {
        tokio::time::sleep(START_TIME_MAX).await;
    }
    while shared.wards.get() > 0 {
        tokio::time::sleep(ROUND_PAUSE).await;
    }
    accepting.abort();
    if shared.keeps.get() {
        drop(fs::remove_file(socket));
    } else {
        remove(root);
    }
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

async fn accept_all(listener: UnixListener, shared: Rc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if shared.wards.get() < WORKERS_MAX => {
                shared.wards.set(shared.wards.get() + 1);
                tokio::task::spawn_local(serve(stream, Rc::clone(&shared)));
            }
            Ok(_) => tracing::warn!("the guard has too many workers"),
            Err(error) => {
                tracing::warn!("the guard cannot accept: {error}");
                tokio::time::sleep(ROUND_PAUSE).await;
            }
        }
    }
}

/// Listens to one worker until its connection ends.
async fn serve(stream: UnixStream, shared: Rc<Shared>) {
    let mut lines = BufReader::with_capacity(1024, stream);
    let mut ward = Ward::default();
    let mut line = Vec::new();
    let mut is_cut = false;
    loop {
        line.clear();
        let mut bounded = (&mut lines).take(LINE_BYTES_MAX as u64);
        if !matches!(bounded.read_until(b'\n', &mut line).await, Ok(bytes) if bytes > 0) {
            break;
        }
        // A line that is too long, or that the worker could not finish, says nothing.
        let is_whole = line.pop_if(|last| *last == b'\n').is_some();
        if is_whole && !is_cut {
            ward.hear(&line);
            shared.keeps.set(shared.keeps.get() || ward.keeps);
        }
        is_cut = !is_whole;
    }
    if ward.is_gone {
        shared.wards.set(shared.wards.get() - 1);
        return;
    }
    ward.kill_groups();
    // The receiver lives as long as the guard.
    drop(shared.dead.send(ward));
}

/// Cleans up after the dead; one look at all processes serves all that died meanwhile.
async fn clean_up_all(
    mut deaths: mpsc::UnboundedReceiver<Ward>,
    root: PathBuf,
    shared: Rc<Shared>,
) {
    while let Some(first) = deaths.recv().await {
        let mut wards = vec![first];
        while let Ok(ward) = deaths.try_recv() {
            wards.push(ward);
        }
        kill_marked(&wards).await;
        wards.iter().filter_map(|ward| ward.scratch_within(&root)).for_each(remove);
        wards.iter().filter_map(|ward| ward.notes_within(&root)).for_each(|notes| remove(&notes));
        shared.wards.set(shared.wards.get() - wards.len());
    }
}

async fn kill_marked(wards: &[Ward]) {
    let markers: Vec<&[u8]> =
        wards.iter().map(|ward| &*ward.marker).filter(|marker| !marker.is_empty()).collect();
    for _ in 0..ROUNDS_MAX {
        let left = marked(&markers);
        if left.is_empty() {
            return;
        }
        for process in left {
            // One that is gone is what is wanted.
            let _ = kill_process(process, Signal::KILL);
        }
        tokio::time::sleep(ROUND_PAUSE).await;
    }
}

fn remove(folder: &Path) {
    if let Err(error) = remove_folder(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("cannot remove {}: {error}", folder.display());
    }
}
