//! Writing: records are encoded where they arise, and handed in chunks to a thread that writes.
//!
//! The queue to that thread is bounded. When it is full the caller waits, and how often and how
//! long is counted, so that a slow disk shows in the report and never as lost records. A disk that
//! takes nothing at all for [`DISK_TIME_MAX`] has failed: nobody waits for it any longer.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// Room in a chunk beyond [`CHUNK_BYTES`]: the entry that fills a chunk ends beyond it, and should
/// not make it move. Longer entries do.
const CHUNK_ROOM_BYTES: usize = 4 << 10;

/// Written chunks that are kept to be filled again: one is filled while the other is written.
/// Memory that is new costs more than what is written into it.
const CHUNKS_KEPT_MAX: usize = 2;

/// How long a disk may take nothing: longer than any goes on being of use, and than workers wait
/// for a coordinator that is held up.
const DISK_TIME_MAX: Duration = Duration::from_secs(60);

/// Time between two tries to hand over a chunk while the queue is full.
const PAUSE: Duration = Duration::from_millis(1);

/// A journal being written. Dropping it without [`Journal::close`] still writes what was recorded,
/// but tells nobody whether that worked.
#[derive(Debug)]
pub struct Journal {
    chunk: Vec<u8>,
    /// Records in `chunk`.
    chunk_records: u64,
    queue: Option<SyncSender<Job>>,
    /// Chunks that were written, empty.
    written: Receiver<Vec<u8>>,
    writer: Option<JoinHandle<()>>,
    /// Nothing more comes from here once the writer has ended.
    ended: Receiver<()>,
    disk_time_max: Duration,
    state: Arc<Mutex<State>>,
    clock: CClock,
    waits: JournalWaits,
}

/// What the writer has done.
#[derive(Debug)]
struct State {
    records: u64,
    bytes: u64,
    failure: Option<WriteFailure>,
}

impl State {
    fn fail(&mut self, source: io::Error) {
        let (records, bytes) = (self.records, self.bytes);
        self.failure.get_or_insert(WriteFailure { source, records, bytes });
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
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
        Self::over(file, clock, DISK_TIME_MAX)
    }

    /// A journal in a file that has its header.
    fn over(file: File, clock: CClock, disk_time_max: Duration) -> io::Result<Self> {
        let (queue, jobs) = sync_channel(CHUNKS_MAX);
        let (emptied, written) = sync_channel(CHUNKS_KEPT_MAX);
        let (end, ended) = channel();
        let state = State { records: 0, bytes: FILE_HEADER_BYTES as u64, failure: None };
        let state = Arc::new(Mutex::new(state));
        let theirs = Arc::clone(&state);
        let writer = std::thread::Builder::new().name("journal".into()).spawn(move || {
            write_all(file, &jobs, &emptied, &theirs);
            drop(end);
        })?;
        Ok(Self {
            chunk: new_chunk(),
            chunk_records: 0,
            queue: Some(queue),
            written,
            writer: Some(writer),
            ended,
            disk_time_max,
            state,
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
        let empty = self.written.try_recv().unwrap_or_else(|_| new_chunk());
        let chunk = std::mem::replace(&mut self.chunk, empty);
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
        // Only a dead writer refuses, and that has left its reason in `state`.
        let Err(TrySendError::Full(mut job)) = queue.try_send(job) else { return };
        let from = self.clock.now();
        loop {
            std::thread::sleep(PAUSE);
            match queue.try_send(job) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => break,
                Err(TrySendError::Full(same)) => job = same,
            }
            if u128::from(self.clock.now().since(from)) > self.disk_time_max.as_nanos() {
                self.give_up();
                break;
            }
        }
        self.waits.count += 1;
        self.waits.total_ns += self.clock.now().since(from);
    }

    /// Waits no longer for the disk. What it may still take stays whole: nothing follows it.
    fn give_up(&mut self) {
        let text = format!("the disk took nothing for {:?}", self.disk_time_max);
        lock(&self.state).fail(io::Error::new(io::ErrorKind::TimedOut, text));
        self.queue = None;
        self.writer = None;
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
        lock(&self.state).failure.take()
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
        if self.writer.is_none() {
            return;
        }
        match self.ended.recv_timeout(self.disk_time_max) {
            Err(RecvTimeoutError::Timeout) => self.give_up(),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                let writer = self.writer.take();
                // A panic of the writer would have been an I/O error of its own; there is none to
                // add.
                drop(writer.map(JoinHandle::join));
            }
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
    mut file: File,
    jobs: &Receiver<Job>,
    emptied: &SyncSender<Vec<u8>>,
    state: &Mutex<State>,
) {
    let mut failed = false;
    while let Ok(job) = jobs.recv() {
        if failed {
            continue;
        }
        let done = match job {
            Job::Write { mut chunk, records } => {
                let written = write(&mut file, &chunk, records, state);
                chunk.clear();
                if chunk.capacity() <= 2 * CHUNK_BYTES {
                    // Enough of them may be kept already, or nobody may be left to fill it.
                    drop(emptied.try_send(chunk));
                }
                written
            }
            Job::Sync => file.sync_data(),
        };
        if let Err(source) = done {
            failed = true;
            let mut state = lock(state);
            // The torn end is cut off; where it stays, readers know it for what it is.
            drop(file.set_len(state.bytes));
            state.fail(source);
        }
    }
}

/// Writes a chunk, and counts what is written of it.
fn write(file: &mut File, chunk: &[u8], records: u64, state: &Mutex<State>) -> io::Result<()> {
    let mut done = 0;
    let result = loop {
        match file.write(&chunk[done..]) {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
        if done == chunk.len() {
            break Ok(());
        }
    };
    let (records, bytes) = match &result {
        Ok(()) => (records, chunk.len() as u64),
        Err(_) => whole(&chunk[..done]),
    };
    let mut state = lock(state);
    state.records += records;
    state.bytes += bytes;
    result
}

/// The whole entries at the beginning of what was written of a chunk, and their bytes.
fn whole(mut written: &[u8]) -> (u64, u64) {
    let (mut records, mut bytes) = (0, 0);
    while let Some((header, after)) = written.split_at_checked(ENTRY_HEADER_BYTES) {
        let length = usize::try_from(super::number(header, 0)).unwrap_or(usize::MAX);
        let Some((_, rest)) = after.split_at_checked(length) else { break };
        records += 1;
        bytes += (ENTRY_HEADER_BYTES + length) as u64;
        written = rest;
    }
    (records, bytes)
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use super::*;
    use crate::{CTime, Event, RunStatus};

    const RECORD: Record =
        Record { at: CTime::ZERO, event: Event::RunEnded { status: RunStatus::Done } };

    /// A file that takes what a pipe has room for, and then nothing, for as long as nobody reads.
    fn stuck() -> (io::PipeReader, Journal) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let file = File::from(OwnedFd::from(writer));
        let limit = Duration::from_millis(100);
        (reader, Journal::over(file, CClock::start(), limit).expect("a thread"))
    }

    #[test]
    fn a_disk_that_takes_nothing_is_given_up_and_holds_up_nobody_after_that() {
        let (_reader, mut journal) = stuck();
        let mut records = 0;
        while journal.take_failure().is_none() {
            journal.record(RECORD);
            records += 1;
            assert!(records < 10_000_000, "more than the queue holds");
        }
        let begun = Instant::now();
        for _ in 0..1_000_000 {
            journal.record(RECORD);
        }
        journal.close().expect("told before");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_disk_that_does_not_take_the_end_is_given_up_and_told() {
        let (_reader, mut journal) = stuck();
        for _ in 0..20_000 {
            journal.record(RECORD);
        }
        let failure = journal.close().expect_err("a pipe has room for less");
        assert_eq!(failure.source.kind(), io::ErrorKind::TimedOut);
        assert!(failure.to_string().contains("took nothing for 100ms"), "{failure}");
    }
}
