//! Recording: the journal, the file of outputs, and one sample a second of how the coordinator
//! itself is doing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use musec_protocol::{CommandId, LaunchId, Tail};
use musec_trace::journal::{Journal, WriteFailure};
use musec_trace::{CClock, CTime, Event, Record, Sample, Stream};
use rustix::time::{ClockId, clock_gettime};

use crate::lag::Lag;

pub(crate) struct Recorder {
    clock: CClock,
    paths: [PathBuf; 2],
    journal: Journal,
    /// What commands printed, apart from the journal: it can be long, and no figure depends on it.
    outputs: Journal,
    flushed: CTime,
    sampled: CTime,
    pub(crate) lag: Lag,
    pub(crate) refused: BTreeMap<String, u64>,
}

/// One of the files could not be written on.
#[derive(Debug)]
pub(crate) struct RecordFailure {
    pub(crate) path: PathBuf,
    pub(crate) failure: WriteFailure,
}

/// The state of all connections, for a sample.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) connections: u32,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// Interval of samples, in nanoseconds of C.
const SAMPLE_EVERY_NS: u64 = 1_000_000_000;

impl Recorder {
    /// Makes both files.
    ///
    /// # Errors
    /// Which of them could not be made, and why.
    pub(crate) fn create(
        journal: &Path,
        outputs: &Path,
        clock: CClock,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let create =
            |path: &Path| Journal::create(path, clock).map_err(|error| (path.to_owned(), error));
        Ok(Self {
            clock,
            paths: [journal.to_owned(), outputs.to_owned()],
            journal: create(journal)?,
            outputs: create(outputs)?,
            flushed: CTime::ZERO,
            sampled: CTime::ZERO,
            lag: Lag::default(),
            refused: BTreeMap::new(),
        })
    }

    pub(crate) fn record(&mut self, at: CTime, event: Event) {
        self.journal.record(Record { at, event });
    }

    pub(crate) fn keep_output(
        &mut self,
        at: CTime,
        launch: LaunchId,
        id: CommandId,
        [stdout, stderr]: [Tail; 2],
    ) {
        for (stream, tail) in [(Stream::Stdout, stdout), (Stream::Stderr, stderr)] {
            if tail.total_bytes > 0 {
                let event = Event::Output { launch, id, stream, tail };
                self.outputs.record(Record { at, event });
            }
        }
    }

    pub(crate) fn refuse(&mut self, reason: &str) {
        match self.refused.get_mut(reason) {
            Some(count) => *count += 1,
            None => {
                self.refused.insert(reason.to_owned(), 1);
            }
        }
    }

    /// Whether [`Self::sample`] is due.
    pub(crate) const fn is_sample_due(&self, now: CTime) -> bool {
        now.since(self.sampled) >= SAMPLE_EVERY_NS
    }

    /// Does what is due now, and says when something will be due again.
    pub(crate) fn tick(&mut self, now: CTime) -> CTime {
        let dirty = self.journal.is_dirty() || self.outputs.is_dirty();
        let flush_due = self.flushed.after(Journal::FLUSH_EVERY);
        if dirty && flush_due <= now {
            self.flush(now);
        }
        let sample_due = CTime::from_ns(self.sampled.ns + SAMPLE_EVERY_NS);
        let still_dirty = self.journal.is_dirty() || self.outputs.is_dirty();
        if still_dirty { flush_due.min(sample_due) } else { sample_due }
    }

    fn flush(&mut self, now: CTime) {
        self.journal.flush();
        self.outputs.flush();
        self.flushed = now;
    }

    pub(crate) fn sync(&mut self) {
        self.journal.sync();
        self.outputs.sync();
    }

    pub(crate) fn sample(&mut self, now: CTime, traffic: Traffic) {
        self.sampled = now;
        let waits = self.journal.waits();
        let [lag_p50_ns, lag_p99_ns, lag_max_ns] = self.lag.take();
        let sample = Sample {
            cpu_ns: process_cpu_ns(),
            lag_p50_ns,
            lag_p99_ns,
            lag_max_ns,
            bytes_in: traffic.bytes_in,
            bytes_out: traffic.bytes_out,
            connections: traffic.connections,
            refused: self.refused.clone(),
            clock_gap_ns: self.clock.gap_ns(),
            journal_waits: waits.count,
            journal_wait_ns: waits.total_ns,
        };
        self.record(now, Event::Sample(Box::new(sample)));
    }

    /// The disk's refusal, once.
    pub(crate) fn take_failure(&self) -> Option<RecordFailure> {
        let [journal, outputs] = &self.paths;
        self.journal
            .take_failure()
            .map(|failure| RecordFailure { path: journal.clone(), failure })
            .or_else(|| {
                let failure = self.outputs.take_failure()?;
                Some(RecordFailure { path: outputs.clone(), failure })
            })
    }

    /// Writes and closes both files, whatever becomes of either.
    pub(crate) fn close(self) -> Result<(), RecordFailure> {
        let [journal, outputs] = self.paths;
        let kept = self.outputs.close();
        self.journal.close().map_err(|failure| RecordFailure { path: journal, failure })?;
        kept.map_err(|failure| RecordFailure { path: outputs, failure })
    }
}

/// CPU time of this process so far, in nanoseconds.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
