//! The one fold: live progress, the live page, reports, `show`, imports all see a run through it.
//!
//! In: records in the order of the journal. Out: a [`Trace`], and cheap answers about now.
//! Invariants: any sequence of records is accepted; what names an attempt that was never requested
//! is counted ([`Trace::strays`]) and otherwise ignored; of a thing told twice the first stands;
//! folding a run at once or in parts gives the same. Absent: output tails, which would grow with
//! the run and are kept in a file of their own.

mod apply;
mod attempt;
mod live;
mod moves;

use std::collections::BTreeMap;

use musec_trace::{
    AttemptOutcome, CTime, CommandId, Failure, LaunchId, RunStarted, RunStatus, Sample, StateId,
    WaveId, WorkerId,
};

pub use attempt::{
    Attempt, Awaited, Command, Ended, Given, Pulse, QueuedFacts, ReplyFacts, Stamps, Wait,
};
use live::Live;
pub use live::{Present, WorkerStatus};
pub use moves::{MachineStep, Move, StepKind};

/// A run as its records tell it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    run: Option<(CTime, Box<RunStarted>)>,
    waves: BTreeMap<WaveId, Wave>,
    states: BTreeMap<StateId, State>,
    lanes: BTreeMap<(WaveId, Vec<u32>), String>,
    attempts: BTreeMap<LaunchId, Attempt>,
    workers: BTreeMap<WorkerId, Worker>,
    failures: Vec<(CTime, Failure)>,
    /// Places in `failures` of those whose command has not replied yet.
    unheard: BTreeMap<(LaunchId, CommandId), usize>,
    prints: Vec<Print>,
    samples: Vec<SamplePoint>,
    last_sample: Option<Box<Sample>>,
    cancelled: Option<(CTime, String)>,
    ended: Option<(CTime, RunStatus)>,
    last: CTime,
    strays: u64,
    live: Live,
}

/// A wave. All times C.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wave {
    /// Its name.
    pub name: String,
    /// When it began; `None` if it has not.
    pub started: Option<CTime>,
    /// Its first worker.
    pub first_worker: WorkerId,
    /// How many workers it has.
    pub workers: u32,
    /// How many items its workers take; 0 without a queue.
    pub items: u64,
    /// When all its workers had ended.
    pub ended: Option<CTime>,
    /// Why it will not start.
    pub skipped: Option<String>,
    /// When that was decided.
    pub skipped_at: Option<CTime>,
}

/// A state of a wave's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Whose.
    pub wave: WaveId,
    /// Its name.
    pub name: String,
}

/// A worker: its attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worker {
    /// Its attempts, in order of their numbers.
    pub attempts: Vec<LaunchId>,
    /// Its status now, as counted by [`Trace::counts`].
    status: Option<(WaveId, WorkerStatus)>,
}

/// Part of the job's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Print {
    /// When, C.
    pub at: CTime,
    /// Whose.
    pub launch: LaunchId,
    /// The text.
    pub text: Vec<u8>,
    /// Bytes before it that were not kept, as it was longer than a tail may be.
    pub cut_bytes: u64,
}

/// What is kept of every second of the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplePoint {
    /// When, C.
    pub at: CTime,
    /// CPU time of the coordinator so far, in nanoseconds.
    pub cpu_ns: u64,
    /// 99th percentile of its loop's lag since the sample before, in nanoseconds.
    pub lag_p99_ns: u64,
    /// The maximum of the same.
    pub lag_max_ns: u64,
    /// BOOTTIME − MONOTONIC of the coordinator, in nanoseconds.
    pub clock_gap_ns: i64,
}

impl Trace {
    /// What was known when the run started; `None` before its first record.
    #[must_use]
    pub fn run(&self) -> Option<&RunStarted> {
        self.run.as_ref().map(|(_, run)| &**run)
    }

    /// When the run started (C); 0 before its first record.
    #[must_use]
    pub fn started(&self) -> CTime {
        self.run.as_ref().map_or(CTime::ZERO, |(at, _)| *at)
    }

    /// The time of the latest record, C.
    #[must_use]
    pub fn last(&self) -> CTime {
        self.last
    }

    /// Waves by number.
    #[must_use]
    pub fn waves(&self) -> &BTreeMap<WaveId, Wave> {
        &self.waves
    }

    /// A wave's name; its number if it has none.
    #[must_use]
    pub fn wave_name(&self, wave: WaveId) -> String {
        let known = self.waves.get(&wave).filter(|wave| !wave.name.is_empty());
        known.map_or_else(|| format!("wave {wave}"), |wave| wave.name.clone())
    }

    /// A state's name; `(none)` outside of all states.
    #[must_use]
    pub fn state_name(&self, state: Option<StateId>) -> String {
        let Some(state) = state else {
            return "(none)".to_owned();
        };
        let known = self.states.get(&state);
        known.map_or_else(|| format!("state {}", state.0), |state| state.name.clone())
    }

    /// A lane's name; its path's last number if it has none, and nothing for the program itself.
    #[must_use]
    pub fn lane_name(&self, wave: WaveId, path: &[u32]) -> String {
        let known = self.lanes.get(&(wave, path.to_vec())).filter(|name| !name.is_empty());
        let number = || path.last().map(|last| format!("lane {last}")).unwrap_or_default();
        known.cloned().unwrap_or_else(number)
    }

    /// States by number.
    #[must_use]
    pub fn states(&self) -> &BTreeMap<StateId, State> {
        &self.states
    }

    /// Attempts in order of their requests.
    #[must_use]
    pub fn attempts(&self) -> &BTreeMap<LaunchId, Attempt> {
        &self.attempts
    }

    /// Workers that had an attempt.
    #[must_use]
    pub fn workers(&self) -> &BTreeMap<WorkerId, Worker> {
        &self.workers
    }

    /// The attempt by which `worker` counts: its last one that was not superseded or dismissed; if
    /// all were, its last one.
    #[must_use]
    pub fn deciding_attempt(&self, worker: WorkerId) -> Option<&Attempt> {
        let launches = &self.workers.get(&worker)?.attempts;
        let mut attempts = launches.iter().rev().filter_map(|id| self.attempts.get(id));
        let last = attempts.clone().next();
        attempts.find(|attempt| !attempt.stood_aside()).or(last)
    }

    /// Failures with the time of their record, in that order.
    #[must_use]
    pub fn failures(&self) -> &[(CTime, Failure)] {
        &self.failures
    }

    /// The job's answer: in order of workers, of each in order of time.
    #[must_use]
    pub fn prints(&self) -> Vec<&Print> {
        let mut prints: Vec<&Print> = self.prints.iter().collect();
        let worker = |launch| self.attempts.get(launch).map(|attempt: &Attempt| attempt.worker);
        // They were recorded in order of time, and sorting is stable.
        prints.sort_by_key(|print| worker(&print.launch));
        prints
    }

    /// How the coordinator did, second by second.
    #[must_use]
    pub fn samples(&self) -> &[SamplePoint] {
        &self.samples
    }

    /// The latest sample as it was recorded.
    #[must_use]
    pub fn last_sample(&self) -> Option<&Sample> {
        self.last_sample.as_deref()
    }

    /// When (C) and by what the run was told to stop.
    #[must_use]
    pub fn cancelled(&self) -> Option<(CTime, &str)> {
        let (at, cause) = self.cancelled.as_ref()?;
        Some((*at, cause))
    }

    /// When (C) and how the run ended by itself.
    #[must_use]
    pub fn ended(&self) -> Option<(CTime, RunStatus)> {
        self.ended
    }

    /// Records that named an attempt that was never requested.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.strays
    }
}

impl Attempt {
    /// Whether it ended because another one, or none at all, was needed.
    #[must_use]
    pub fn stood_aside(&self) -> bool {
        self.ended.is_some_and(|ended| {
            matches!(ended.outcome, AttemptOutcome::Superseded | AttemptOutcome::Dismissed)
        })
    }
}
