//! What user code tells: a socket for datagrams, and a `musec` to tell with.
//!
//! In: datagrams of the processes of this attempt's `run`s. Out: the same bytes, stamped, to the
//! coordinator; nothing is understood here. Invariants: at most [`WAITING_MAX`] notes wait to be
//! written, then senders wait; what a process told before its end is said before the reply to its
//! `run`. The folder lies beside the scratch folder, for this user alone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use musec_protocol::limits::NOTE_BYTES_MAX;
use musec_protocol::{Note, note};
use tokio::sync::Semaphore;

use crate::clock::WClock;
use crate::scratch::{Scratch, remove_folder};
use crate::writer::{Say, Speaker};

/// Notes that were read and wait to be written: some screens of them, and at most half a megabyte.
const WAITING_MAX: usize = 64;

/// Notes read at a time before a reply: more than a kernel's queue holds.
const DRAINED_MAX: usize = 1024;

/// The socket, its folder, and where its notes go.
#[derive(Debug)]
pub(crate) struct Notes {
    socket: tokio::net::UnixDatagram,
    /// The same socket, read without asking the event loop whether there is something.
    direct: UnixDatagram,
    folder: PathBuf,
    waiting: Arc<Semaphore>,
    clock: WClock,
}

impl Notes {
    /// Makes the folder beside the scratch folder, the socket and the link in it.
    ///
    /// # Errors
    /// If one of them cannot be made.
    pub(crate) fn create(scratch: &Scratch, clock: WClock) -> io::Result<Self> {
        let folder = notes_folder(scratch.path());
        DirBuilder::new().mode(0o700).create(&folder)?;
        let made = || -> io::Result<_> {
            symlink(std::env::current_exe()?, folder.join("musec"))?;
            let socket = UnixDatagram::bind(folder.join("notes"))?;
            socket.set_nonblocking(true)?;
            let direct = socket.try_clone()?;
            Ok((tokio::net::UnixDatagram::from_std(socket)?, direct))
        };
        match made() {
            Ok((socket, direct)) => {
                let waiting = Arc::new(Semaphore::new(WAITING_MAX));
                Ok(Self { socket, direct, folder, waiting, clock })
            }
            Err(error) => {
                drop(fs::remove_dir_all(&folder));
                Err(error)
            }
        }
    }

    /// The folder, for the PATH of `run`s.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket's name, for the environment of `run`s.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("notes")
    }

    /// Forwards what comes, for ever.
    pub(crate) async fn forward(self: Rc<Self>, speaker: Speaker) {
        loop {
            // A note that is read is said without a pause, so that none can be overtaken.
            let Ok(permit) = Arc::clone(&self.waiting).acquire_owned().await else { return };
            if self.socket.readable().await.is_err() {
                return;
            }
            if let Some(note) = self.read(|buffer| self.socket.try_recv(buffer)) {
                speaker.say(Say::Note { note, permit: Some(permit) });
            }
        }
    }

    /// Forwards what is there now, because a reply comes after it.
    pub(crate) fn drain(&self, speaker: &Speaker) {
        let direct = || self.read(|buffer| self.direct.recv(buffer));
        for note in std::iter::from_fn(direct).take(DRAINED_MAX) {
            speaker.say(Say::Note { note, permit: None });
        }
    }

    fn read(&self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> Option<Note> {
        // One byte more, so that a datagram that is too long shows.
        let mut buffer = [0; NOTE_BYTES_MAX + 1];
        let length = receive(&mut buffer).ok()?;
        let received = self.clock.now();
        let text = buffer.get(..length.min(NOTE_BYTES_MAX)).unwrap_or_default();
        // What is cut is no note: the coordinator counts it as garbled.
        let text = if length > NOTE_BYTES_MAX { &[][..] } else { text };
        Some(Note { received, text: text.to_vec() })
    }

    /// Removes the folder.
    pub(crate) fn remove(&self) {
        if let Err(error) = remove_folder(&self.folder) {
            tracing::warn!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// The folder that goes with a scratch folder.
pub(crate) fn notes_folder(scratch: &Path) -> PathBuf {
    let mut folder = scratch.as_os_str().to_owned();
    folder.push(".notes");
    folder.into()
}

/// Tells a note to the worker that runs this process.
///
/// # Errors
/// If there is none, or it cannot be reached.
pub fn tell(text: &[u8]) -> io::Result<()> {
    let socket = std::env::var_os(note::VARIABLE).ok_or_else(|| {
        let why = format!(
            "{} is not set: this is no `run` of a job that waits for infos",
            note::VARIABLE
        );
        io::Error::new(io::ErrorKind::NotFound, why)
    })?;
    UnixDatagram::unbound()?.send_to(text, socket).map(drop)
}
