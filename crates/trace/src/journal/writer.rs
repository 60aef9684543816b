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

use thiserror::Error;

use super::{ENTRY_HEADER_BYTES, FILE_HEADER_BYTES, append_entry, file_header};
use crate::{CClock, Record};

/// Bytes collected before they are handed over without waiting for the next flush: large enough to
/// make writes cheap, small enough to keep memory and the loss of a crash small.
const CHUNK_BYTES: usize = 256 << 10;

/// Chunks on their way to the disk: with the chunk's size this bounds memory to 16 MiB.
const CHUNKS_MAX: usize = 64;

/// A journal being written. Dropping it without [`Journal::close`] still writes what was recorded,
/// but tells nobody whether that worked.
#[derive(Debug)]
pub struct Journal {
    chunk: Vec<u8>,
    /// Records in `chunk`.
    chunk_records: u64,
    queue: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<WriteFailure>>>,
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

/// Why a journal could not be written on, and how much of it is written: whole records only, for
/// the torn end was cut off.
#[derive(Debug, Error)]
#[error("{source}")]
pub struct WriteFailure {
    /// The system's words.
    pub source: io::Error,
    /// Records in the file.
    pub records: u64,
    /// Length of the file, in bytes.
    pub bytes: u64,
}

#[derive(Debug)]
enum Job {
    Write { chunk: Vec<u8>, records: u64 },
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
        let failure = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&failure);
        let writer = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || write_all(Writer::new(file), &jobs, &theirs))?;
        Ok(Self {
            chunk: Vec::with_capacity(CHUNK_BYTES),
            chunk_records: 0,
            queue: Some(queue),
            writer: Some(writer),
            failure,
            clock,
            waits: JournalWaits::default(),
        })
    }

    /// Records. The bytes reach the disk's cache with the next flush, or earlier.
    pub fn record(&mut self, record: Record) {
        append_entry(&mut self.chunk, record);
        self.chunk_records += 1;
        if self.chunk.len() >= CHUNK_BYTES {
            self.flush();
        }
    }

    /// Hands over what was recorded; does nothing when that is nothing.
    pub fn flush(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
        let records = std::mem::take(&mut self.chunk_records);
        self.send(Job::Write { chunk, records });
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
    pub fn take_failure(&self) -> Option<WriteFailure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes and syncs the rest, and unlocks the file.
    ///
    /// # Errors
    /// If the disk refused anything that was not reported by [`Self::take_failure`] before.
    pub fn close(mut self) -> Result<(), WriteFailure> {
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

impl Drop for Journal {
    fn drop(&mut self) {
        if self.writer.is_some() {
            self.finish();
        }
    }
}

/// The writer thread. After an error it goes on taking chunks, so that nobody waits for it, and
/// writes none of them: a journal with a hole would be worse than one that ends.
fn write_all(mut writer: Writer, jobs: &Receiver<Job>, failure: &Mutex<Option<WriteFailure>>) {
    let mut failed = false;
    while let Ok(job) = jobs.recv() {
        if failed {
            continue;
        }
        let done = match job {
            Job::Write { chunk, records } => writer.write(&chunk, records),
            Job::Sync => writer.file.sync_data(),
        };
        if let Err(source) = done {
            failed = true;
            let Writer { records, bytes, .. } = writer;
            let failed = WriteFailure { source, records, bytes };
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
        }
    }
}

/// The file, and what is in it.
struct Writer {
    file: File,
    records: u64,
    bytes: u64,
}

impl Writer {
    const fn new(file: File) -> Self {
        Self { file, records: 0, bytes: FILE_HEADER_BYTES as u64 }
    }

    fn write(&mut self, chunk: &[u8], records: u64) -> io::Result<()> {
        let mut done = 0;
        while done < chunk.len() {
            match self.file.write(&chunk[done..]) {
                Ok(0) => return self.give_up(&chunk[..done], io::ErrorKind::WriteZero.into()),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.give_up(&chunk[..done], error),
            }
        }
        self.records += records;
        self.bytes += chunk.len() as u64;
        Ok(())
    }

    /// Counts the whole entries of what was written of a chunk, and cuts off the torn one.
    fn give_up(&mut self, written: &[u8], error: io::Error) -> io::Result<()> {
        let mut rest = written;
        while let Some((header, after)) = rest.split_at_checked(ENTRY_HEADER_BYTES) {
            let length = usize::try_from(super::number(header, 0)).unwrap_or(usize::MAX);
            let Some((_, after)) = after.split_at_checked(length) else { break };
            self.records += 1;
            self.bytes += (ENTRY_HEADER_BYTES + length) as u64;
            rest = after;
        }
        // Where it stays, readers know it for what it is.
        drop(self.file.set_len(self.bytes));
        Err(error)
    }
}
