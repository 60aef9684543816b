//! A worker's line to its guard.
//!
//! In: what the worker starts and ends. Out: lines on the guard's socket. Invariants: the worker
//! never waits for its guard; the connection stays open as long as the process lives, as its end is
//! what tells the guard that the worker is dead.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;

/// A guard that is just starting is tried this often, a moment apart.
const TRIES_MAX: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// The line; without a guard nothing is said.
#[derive(Debug, Default)]
pub(crate) struct GuardLine {
    stream: Option<UnixStream>,
    /// Nobody listens any more: what is said is lost, the worker goes on.
    is_mute: Cell<bool>,
}

impl GuardLine {
    /// Connects to the guard and says who this is. A worker does without one rather than fail.
    pub(crate) async fn connect(socket: &[u8], marker: &OsStr, scratch: &Path) -> Self {
        if socket.is_empty() {
            return Self::default();
        }
        let stream = dial(Path::new(OsStr::from_bytes(socket))).await;
        let stream = stream.map_err(|error| tracing::warn!("goes without a guard: {error}")).ok();
        let line = Self { stream, is_mute: Cell::new(false) };
        let (marker, scratch) = (marker.as_bytes(), scratch.as_os_str().as_bytes());
        line.say(&[b"hello ", marker, b" ", scratch].concat());
        line
    }

    /// Scratch folders of this run are to stay.
    pub(crate) fn keep(&self) {
        self.say(b"keep");
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

    /// Says one line at once or, with half of it said, nothing more.
    fn say(&self, words: &[u8]) {
        let Some(mut stream) = self.stream.as_ref().filter(|_| !self.is_mute.get()) else { return };
        let line = [words, b"\n"].concat();
        if !matches!(stream.write(&line), Ok(bytes) if bytes == line.len()) {
            tracing::warn!("lost the guard");
            self.is_mute.set(true);
        }
    }
}

async fn dial(socket: &Path) -> io::Result<UnixStream> {
    let mut tries = 0;
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => {
                stream.set_nonblocking(true)?;
                return Ok(stream);
            }
            Err(error) if tries >= TRIES_MAX => return Err(error),
            Err(_) => tries += 1,
        }
        tokio::time::sleep(PAUSE).await;
    }
}
