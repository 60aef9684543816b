//! A worker's line to its guard.
//!
//! In: what the worker starts and ends. Out: lines on the guard's socket. Invariants: the worker
//! never waits for its guard; the connection stays open as long as the process lives, as its end is
//! what tells the guard that the worker is dead; a guard that is started again in the place of one
//! that was killed is told again what it must know.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::UnixStream;

/// A guard that is just starting is tried this often, a moment apart.
const TRIES_MAX: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// The same for one that is started again after it was killed; the worker goes on meanwhile.
const TRIES_AGAIN_MAX: usize = 1_000;

/// Guards that are found one after another: more than are ever started.
const GUARDS_MAX: usize = 64;

/// The line; without a guard nothing is said.
#[derive(Debug, Default)]
pub(crate) struct GuardLine(Option<Rc<Line>>);

#[derive(Debug)]
struct Line {
    socket: PathBuf,
    /// Who this is, and what is to stay.
    begin: RefCell<Vec<Vec<u8>>>,
    /// The process groups that run.
    groups: RefCell<BTreeSet<i32>>,
    stream: RefCell<Option<Rc<UnixStream>>>,
    /// Half a line was said: nothing more is on this connection.
    is_mute: Cell<bool>,
    /// Nothing is left to guard.
    is_over: Cell<bool>,
}

impl GuardLine {
    /// Connects to the guard and says who this is. A worker does without one rather than fail.
    pub(crate) async fn connect(socket: &[u8], marker: &OsStr, scratch: &Path) -> Self {
        if socket.is_empty() {
            return Self::default();
        }
        let (marker, scratch) = (marker.as_bytes(), scratch.as_os_str().as_bytes());
        let line = Rc::new(Line {
            socket: OsStr::from_bytes(socket).into(),
            begin: RefCell::new(vec![[b"hello ", marker, b" ", scratch].concat()]),
            groups: RefCell::default(),
            stream: RefCell::default(),
            is_mute: Cell::new(false),
            is_over: Cell::new(false),
        });
        if let Err(error) = line.dial(TRIES_MAX).await {
            tracing::warn!("begins without a guard: {error}");
        }
        tokio::task::spawn_local(Rc::clone(&line).follow());
        Self(Some(line))
    }

    /// Scratch folders of this run are to stay.
    pub(crate) fn keep(&self) {
        if let Some(line) = &self.0 {
            line.begin.borrow_mut().push(b"keep".to_vec());
            line.say(b"keep");
        }
    }

    /// A process group begins.
    pub(crate) fn run(&self, leader: Pid) {
        if let Some(line) = &self.0 {
            line.groups.borrow_mut().insert(leader.as_raw_nonzero().get());
            line.say(format!("run {}", leader.as_raw_nonzero()).as_bytes());
        }
    }

    /// A process group is gone.
    pub(crate) fn end(&self, leader: Pid) {
        if let Some(line) = &self.0 {
            line.groups.borrow_mut().remove(&leader.as_raw_nonzero().get());
            line.say(format!("end {}", leader.as_raw_nonzero()).as_bytes());
        }
    }

    /// Nothing of this worker is left.
    pub(crate) fn bye(&self) {
        if let Some(line) = &self.0 {
            line.is_over.set(true);
            line.say(b"bye");
        }
    }
}

impl Line {
    /// Finds another guard whenever the present one is gone.
    async fn follow(self: Rc<Self>) {
        for _ in 0..GUARDS_MAX {
            let stream = self.stream.borrow().clone();
            if let Some(stream) = stream {
                hang_up(&stream).await;
                self.stream.take();
            }
            if self.is_over.get() {
                return;
            }
            tracing::warn!("lost the guard; looks for another");
            if let Err(error) = self.dial(TRIES_AGAIN_MAX).await {
                tracing::warn!("goes on without a guard: {error}");
                return;
            }
        }
    }

    /// Connects, and says all that a guard must know.
    async fn dial(&self, tries_max: usize) -> io::Result<()> {
        let mut tries = 0;
        let stream = loop {
            match UnixStream::connect(&self.socket).await {
                Ok(stream) => break stream,
                Err(error) if tries >= tries_max => return Err(error),
                Err(_) => tries += 1,
            }
            tokio::time::sleep(PAUSE).await;
        };
        self.is_mute.set(false);
        self.stream.replace(Some(Rc::new(stream)));
        for line in self.begin.borrow().iter() {
            self.say(line);
        }
        for group in self.groups.borrow().iter() {
            self.say(format!("run {group}").as_bytes());
        }
        Ok(())
    }

    /// Says one line at once or, with half of it said, nothing more on this connection.
    fn say(&self, words: &[u8]) {
        let stream = self.stream.borrow();
        let Some(stream) = stream.as_ref().filter(|_| !self.is_mute.get()) else { return };
        let line = [words, b"\n"].concat();
        if !matches!(stream.try_write(&line), Ok(bytes) if bytes == line.len()) {
            tracing::warn!("cannot tell the guard");
            self.is_mute.set(true);
        }
    }
}

/// Waits for the end of a connection on which the other side says nothing.
async fn hang_up(stream: &UnixStream) {
    let mut byte = [0];
    loop {
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_read(&mut byte) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
