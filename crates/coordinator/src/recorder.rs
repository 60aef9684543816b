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
    files: Option<Files>,
    /// Of the last record.
    last: CTime,
    flushed: CTime,
    sampled: CTime,
    pub(crate) lag: Lag,
    pub(crate) refused: BTreeMap<String, u64>,
}

/// Where a run is recorded.
struct Files {
    paths: [PathBuf; 2],
    journal: Journal,
    /// What commands printed, apart from the journal: it can be long, and no figure depends on it.
    outputs: Journal,
}

impl Files {
    const fn is_dirty(&self) -> bool {
        self.journal.is_dirty() || self.outputs.is_dirty()
    }
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
        let files = Files {
            paths: [journal.to_owned(), outputs.to_owned()],
            journal: create(journal)?,
            outputs: create(outputs)?,
        };
        Ok(Self { files: Some(files), ..Self::of_nothing(clock) })
    }

    /// Records nothing.
    pub(crate) fn of_nothing(clock: CClock) -> Self {
        Self {
            clock,
            files: None,
            last: CTime::ZERO,
            flushed: CTime::ZERO,
            sampled: CTime::ZERO,
            lag: Lag::default(),
            refused: BTreeMap::new(),
        }
    }

    pub(crate) fn record(&mut self, at: CTime, event: Event) {
        self.last = at;
        if let Some(files) = &mut self.files {
            files.journal.record(Record { at, event });
        }
    }

    /// Records what belongs to the decision that was recorded last.
    pub(crate) fn record_on(&mut self, event: Event) {
        self.record(self.last, event);
    }

    pub(crate) fn keep_output(
        &mut self,
        at: CTime,
        launch: LaunchId,
        id: CommandId,
        [stdout, stderr]: [Tail; 2],
    ) {
        let Some(files) = &mut self.files else { return };
        for (stream, tail) in [(Stream::Stdout, stdout), (Stream::Stderr, stderr)] {
            if tail.total_bytes > 0 {
                let event = Event::Output { launch, id, stream, tail };
                files.outputs.record(Record { at, event });
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
        let is_dirty = |files: &Option<Files>| files.as_ref().is_some_and(Files::is_dirty);
        let flush_due = self.flushed.after(Journal::FLUSH_EVERY);
        if is_dirty(&self.files) && flush_due <= now {
            self.flush(now);
        }
        let sample_due = CTime::from_ns(self.sampled.ns + SAMPLE_EVERY_NS);
        if is_dirty(&self.files) { flush_due.min(sample_due) } else { sample_due }
    }

    fn flush(&mut self, now: CTime) {
        if let Some(files) = &mut self.files {
            files.journal.flush();
            files.outputs.flush();
        }
        self.flushed = now;
    }

    pub(crate) fn sync(&mut self) {
        if let Some(files) = &mut self.files {
            files.journal.sync();
            files.outputs.sync();
        }
    }

    pub(crate) fn sample(&mut self, now: CTime, traffic: Traffic) {
        self.sampled = now;
        let waits = self.files.as_ref().map(|files| files.journal.waits()).unwrap_or_default();
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
        let files = self.files.as_ref()?;
        let [journal, outputs] = &files.paths;
        let failure = files.journal.take_failure().map(|failure| (journal, failure));
        let failure = failure.or_else(|| Some((outputs, files.outputs.take_failure()?)));
        failure.map(|(path, failure)| RecordFailure { path: path.clone(), failure })
    }

    /// Writes and closes both files, whatever becomes of either.
    pub(crate) fn close(self) -> Result<(), RecordFailure> {
        let Some(files) = self.files else { return Ok(()) };
        let [journal, outputs] = files.paths;
        let kept = files.outputs.close();
        files.journal.close().map_err(|failure| RecordFailure { path: journal, failure })?;
        kept.map_err(|failure| RecordFailure { path: outputs, failure })
    }
}

/// CPU time of this process so far, in nanoseconds.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
