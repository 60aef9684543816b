//! Writing: records are encoded where they arise, and handed in chunks to a thread that writes.
//!
//! The queue to that thread is bounded. When it is full the caller waits, and how often and how
//! long is counted, so that a slow disk shows in the report and never as lost records.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{append_entry, file_header};
use crate::{CClock, Record};

/// Bytes collected before they are handed over without waiting for the next flush: large enough to
/// make writes cheap, small enough to keep memory and the loss of a crash small.
const CHUNK_BYTES: usize = 256 << 10;

/// Chunks on their way to the disk: with the chunk's size this bounds memory to 16 MiB.
const CHUNKS_MAX: usize = 64;

/// Room in a chunk beyond [`CHUNK_BYTES`]: the entry that fills a chunk ends beyond it, and should
/// not make it move. Longer entries do.
const CHUNK_ROOM_BYTES: usize = 4 << 10;

/// Written chunks that are kept to be filled again: one is filled while the other is written.
/// Memory that is new costs more than what is written into it.
const CHUNKS_KEPT_MAX: usize = 2;

/// A journal being written. Dropping it without [`Journal::close`] still writes what was recorded,
/// but tells nobody whether that worked.
#[derive(Debug)]
pub struct Journal {
    chunk: Vec<u8>,
    queue: Option<SyncSender<Job>>,
    /// Chunks that were written, empty.
    written: Receiver<Vec<u8>>,
    writer: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<io::Error>>>,
    clock: CClock,
    waits: JournalWaits,
}

/// How often recording had to wait for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalWaits {
    /// How often the queue was full.
    pub count: u64,
    /// How long recording waited in all, in nanoseconds of C.
    pub total_ns: u64,
}

#[derive(Debug)]
enum Job {
    Write(Vec<u8>),
    Sync,
}

impl Journal {
    /// Longest time from record to write; a caller that flushes this often keeps the promise that
    /// at most this much is lost when its process is killed.
    pub const FLUSH_EVERY: Duration = Duration::from_millis(50);

    /// Creates the file, which must not exist yet, locks it for as long as this value lives, and
    /// starts its writer thread.
    ///
    /// # Errors
    /// If the file cannot be created, locked or written.
    pub fn create(path: &Path, clock: CClock) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.lock()?;
        file.write_all(&file_header())?;
        let (queue, jobs) = sync_channel(CHUNKS_MAX);
        let (emptied, written) = sync_channel(CHUNKS_KEPT_MAX);
        let failure = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&failure);
        let writer = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || write_all(&mut file, &jobs, &emptied, &theirs))?;
        Ok(Self {
            chunk: new_chunk(),
            queue: Some(queue),
            written,
            writer: Some(writer),
            failure,
            clock,
            waits: JournalWaits::default(),
        })
    }

    /// Records. The bytes reach the disk's cache with the next flush, or earlier.
    pub fn record(&mut self, record: Record) {
        append_entry(&mut self.chunk, record);
        if self.chunk.len() >= CHUNK_BYTES {
            self.flush();
        }
    }

    /// Hands over what was recorded; does nothing when that is nothing.
    pub fn flush(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let empty = self.written.try_recv().unwrap_or_else(|_| new_chunk());
        let full = std::mem::replace(&mut self.chunk, empty);
        self.send(Job::Write(full));
    }

    /// Flushes and asks for the disk itself to have it: at the end of a wave, of a run.
    pub fn sync(&mut self) {
        self.flush();
        self.send(Job::Sync);
    }

    fn send(&mut self, job: Job) {
        let Some(queue) = &self.queue else { return };
        match queue.try_send(job) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(job)) => {
                let from = self.clock.now();
                // Only a dead writer refuses, and that has left its reason in `failure`.
                drop(queue.send(job));
                self.waits.count += 1;
                self.waits.total_ns += self.clock.now().since(from);
            }
        }
    }

    /// Whether records are waiting for a flush.
    #[must_use]
    pub const fn is_dirty(&self) -> bool {
        !self.chunk.is_empty()
    }

    /// How often and how long recording waited so far.
    #[must_use]
    pub const fn waits(&self) -> JournalWaits {
        self.waits
    }

    /// The writer's error, once; after it nothing more is written.
    #[must_use]
    pub fn take_failure(&self) -> Option<io::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes and syncs the rest, and unlocks the file.
    ///
    /// # Errors
    /// If the disk refused anything that was not reported by [`Self::take_failure`] before.
    pub fn close(mut self) -> io::Result<()> {
        self.finish();
        self.take_failure().map_or(Ok(()), Err)
    }

    fn finish(&mut self) {
        self.sync();
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the writer would have been an I/O error of its own; there is none to add.
            drop(writer.join());
        }
    }
}

fn new_chunk() -> Vec<u8> {
    Vec::with_capacity(CHUNK_BYTES + CHUNK_ROOM_BYTES)
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.writer.is_some() {
            self.finish();
        }
    }
}

/// The writer thread. After an error it goes on taking chunks, so that nobody waits for it, and
/// writes none of them: a journal with a hole would be worse than one that ends.
fn write_all(
    file: &mut File,
    jobs: &Receiver<Job>,
    emptied: &SyncSender<Vec<u8>>,
    failure: &Mutex<Option<io::Error>>,
) {
    let mut failed = false;
    while let Ok(job) = jobs.recv() {
        if failed {
            continue;
        }
        let done = match job {
            Job::Write(mut chunk) => {
                let written = file.write_all(&chunk);
                chunk.clear();
                if chunk.capacity() <= 2 * CHUNK_BYTES {
                    // Enough of them may be kept already, or nobody may be left to fill it.
                    drop(emptied.try_send(chunk));
                }
                written
            }
            Job::Sync => file.sync_data(),
        };
        if let Err(error) = done {
            failed = true;
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}
