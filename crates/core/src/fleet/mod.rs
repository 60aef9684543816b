//! The fleet: waves, workers and their attempts, and every deadline.
//!
//! In: [`Input`]s with the instant at which they are handled. Out: [`Output`]s, in order, among
//! them a record of every input and every decision. Invariants: an attempt changes its state in one
//! function alone, and its beginning and end are recorded; every attempt ends exactly once; a run
//! ends when nothing is alive and no wave can start; work per input does not grow with the number
//! of workers. No I/O, no clock, no task: the same inputs at the same instants give the same
//! outputs. An input without a record changes nothing, and a `tick` does what is due by then, no
//! matter which ticks there were before: so the records are enough to decide again
//! ([`crate::replay`]).
//!
//! ```text
//! attempt:  Requested ─joined─► Working ─program done, failed, cancelled─► Quitting ─► Ended
//!               │                  └─connection lost─► Vanished ─exit told, or a moment─► Ended
//!               └─not launched, exited, connect timeout, cancelled─────────────────────► Ended
//! wave:     Waiting ─► Looking ─► Running ─► Ended
//!               │ └───► Open ───────┘ (with `each`: open until the waves before it are over)
//!               └──────────┴─► Skipped
//! ```

mod attempt;
mod barrier;
mod deadlines;
mod each;
mod io;
mod notes;
mod order;
mod outstanding;
mod pace;
mod steps;
mod wave;
mod work;

pub use io::{Closed, Heard, Input, MayJoin, Output};

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use musec_protocol::{LaunchId, Refusal, WorkerId};
use musec_trace::{CTime, Event, RunStatus, StateId, Timer};

use self::attempt::{Attempt, AttemptState};
use self::barrier::Touched;
use self::pace::Starting;
use self::wave::WaveRun;
use crate::machine::Effect;
use crate::program::Program;

/// Time from `quit` to the end of its connection, before an attempt is killed. A worker gives its
/// processes no grace at quit, so that this covers a slow disk's removal of the scratch folder.
pub const QUIT_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a vanished worker's exit status is waited for, so that its failure can name it.
pub const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// A worker without a sign of life for this long, on a connection that still stands, is given up.
pub const FROZEN_TIME_MAX: Duration = Duration::from_secs(60);

/// What the fleet needs to know besides the program.
#[derive(Clone, Debug, Default)]
pub struct FleetOptions {
    /// Processors of the launcher's machines that count for `cores`.
    pub cores: u32,
    /// Attempts that may be on their way to their hello at a time; `None` where the launcher's
    /// engine paces them itself. On one machine, starting many at once only slows down those that
    /// work already.
    pub starting_max: Option<u32>,
    /// URL of the store, for workers.
    pub store_url: String,
    /// URL of the inputs, for workers.
    pub inputs_url: String,
    /// Folders of shipped files, for workers' PATH.
    pub path_dirs: Vec<Vec<u8>>,
}

/// All waves and workers of one run.
#[derive(Debug)]
pub struct Fleet {
    program: Arc<Program>,
    options: FleetOptions,
    waves: Vec<WaveRun>,
    workers: u32,
    attempts: Vec<Attempt>,
    /// Attempts with a connection.
    joined: BTreeSet<LaunchId>,
    starting: Starting,
    deadlines: BTreeSet<(CTime, LaunchId, Timer)>,
    /// Nobody is to be called frozen, or given up as silent, before this instant, C.
    next_sweep: Option<CTime>,
    outputs: VecDeque<Output>,
    /// Barriers that may have become complete.
    touched: Vec<Touched>,
    /// When they are to be looked at, C: at once, once the present input is over.
    release_due: Option<CTime>,
    /// Room for what a machine wants; empty between two machines.
    effects: Vec<Effect>,
    cancelled: bool,
    failed: bool,
    finished: bool,
}

impl Fleet {
    /// A fleet that awaits [`Input::Start`].
    #[must_use]
    pub fn new(program: Arc<Program>, options: FleetOptions) -> Self {
        let waves = WaveRun::all(&program);
        Self {
            program,
            options,
            waves,
            workers: 0,
            attempts: Vec::new(),
            joined: BTreeSet::new(),
            starting: Starting::default(),
            deadlines: BTreeSet::new(),
            next_sweep: None,
            outputs: VecDeque::new(),
            touched: Vec::new(),
            release_due: None,
            effects: Vec::new(),
            cancelled: false,
            failed: false,
            finished: false,
        }
    }

    /// How many waves its program has.
    pub(crate) fn waves_count(&self) -> usize {
        self.waves.len()
    }

    /// The next thing to do. Call until it is `None` after every [`Self::handle`] and
    /// [`Self::tick`].
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::tick`] is to be called next, C. Ask again after every input.
    #[must_use]
    pub fn next_deadline(&self) -> Option<CTime> {
        let first = self.deadlines.first().map(|(due, ..)| *due);
        let due = first.into_iter().chain(self.next_sweep).chain(self.next_start_due());
        due.chain(self.release_due).min()
    }

    /// Whether a worker that proved to be this launch may join now.
    ///
    /// # Errors
    /// With the reason that it is told.
    pub fn may_join(&self, launch: LaunchId) -> MayJoin {
        if self.finished || self.cancelled {
            return Err(Refusal::Over);
        }
        match self.attempt(launch).map(|attempt| &attempt.state) {
            Some(AttemptState::Requested) => Ok(()),
            Some(_) | None => Err(Refusal::Launch),
        }
    }

    /// Handles one input at the instant `now`, C, which never runs backwards.
    pub fn handle(&mut self, now: CTime, input: Input) {
        if self.finished {
            return;
        }
        match input {
            Input::Start => self.start(now),
            Input::Accepted { launch, at, engine_id } => {
                self.accepted(now, launch, at, engine_id);
            }
            Input::NotLaunched { launch, error } => self.not_launched(now, launch, error),
            Input::Joined(joined) => self.attempt_joined(now, *joined),
            Input::Replied { launch, t3, reply } => self.replied(now, launch, t3, *reply),
            Input::Pulsed { launch, t0, t3, pong } => self.pulsed(now, launch, t0, t3, pong),
            Input::Stalled { launch, t3, stall } => {
                if self.joined.contains(&launch) {
                    self.sign_of_life(now, launch, t3);
                    let musec_protocol::Stall { from, to } = stall;
                    self.record(now, Event::Stalled { launch, t3, from, to });
                }
            }
            Input::Noted { launch, t3, note } => self.noted(now, launch, t3, note),
            Input::Closed { launch, at, why } => self.closed(now, launch, at, why),
            Input::Exited { launch, at, status } => self.exited(now, launch, at, &status),
            Input::Seen { wave, seen } => self.seen(now, wave, seen),
            Input::Cancel { cause } => self.cancel(now, cause),
        }
        self.settle(now);
    }

    /// What comes of an input besides: barriers that are complete, the run's end.
    pub(crate) fn settle(&mut self, now: CTime) {
        self.release_barriers(now);
        self.release_due = (!self.touched.is_empty()).then_some(now);
        self.finish_if_over(now);
    }

    /// Handles the deadlines that have come by `now`, C.
    pub fn tick(&mut self, now: CTime) {
        while let Some((due, launch, timer)) = self.deadlines.first().copied() {
            if due > now || self.finished {
                break;
            }
            self.deadlines.pop_first();
            self.timer(now, launch, timer);
        }
        self.forget_slow_starts(now);
        if self.next_sweep.is_some_and(|due| due <= now) {
            self.sweep(now);
        }
        self.settle(now);
    }

    fn start(&mut self, now: CTime) {
        let states: Vec<_> = (0..).map(StateId).zip(self.program.states.clone()).collect();
        for (state, def) in states {
            self.record(now, Event::StateNamed { state, wave: def.wave, name: def.name });
        }
        let program = Arc::clone(&self.program);
        for (wave, def) in program.waves() {
            for (path, name) in def.lanes() {
                let named = Event::LaneNamed { wave, path: path.to_vec(), name: name.to_owned() };
                self.record(now, named);
            }
        }
        self.start_waves(now);
    }

    /// The first request ends what runs in an orderly way, the second one at once.
    fn cancel(&mut self, now: CTime, cause: String) {
        self.record(now, Event::Cancelled { cause });
        let again = std::mem::replace(&mut self.cancelled, true);
        for index in 0..self.attempts.len() {
            let launch = LaunchId(index as u64);
            if again {
                self.abort(now, launch);
            } else {
                self.dismiss(now, launch);
            }
        }
        self.close_waves(now);
    }

    fn finish_if_over(&mut self, now: CTime) {
        if self.finished || !self.waves.iter().all(WaveRun::is_over) {
            return;
        }
        self.finished = true;
        let status = if self.cancelled {
            RunStatus::Interrupted
        } else if self.failed {
            RunStatus::Failed
        } else {
            RunStatus::Done
        };
        self.record(now, Event::RunEnded { status });
        self.outputs.push_back(Output::Sync);
        self.outputs.push_back(Output::Finished(status));
    }

    fn record(&mut self, now: CTime, event: Event) {
        self.outputs.push_back(Output::Record(now, event));
    }

    fn attempt(&self, launch: LaunchId) -> Option<&Attempt> {
        self.attempts.get(usize::try_from(launch.0).ok()?)
    }

    fn attempt_mut(&mut self, launch: LaunchId) -> Option<&mut Attempt> {
        self.attempts.get_mut(usize::try_from(launch.0).ok()?)
    }

    /// The number of a worker that was not counted when its wave began.
    const fn one_more_worker(&mut self) -> WorkerId {
        let worker = self.next_worker();
        self.workers = self.workers.saturating_add(1);
        worker
    }

    const fn next_worker(&self) -> WorkerId {
        WorkerId(self.workers)
    }
}
