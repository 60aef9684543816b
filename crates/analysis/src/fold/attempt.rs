//! What is kept of an attempt and its commands. Stamps are kept as they were recorded; only a
//! reply whose own four stamps run backwards, which no journal can hold, is put in order.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use musec_trace::{
    AttemptNo, AttemptOutcome, CTime, CommandId, EndCause, Hello, LaunchId, Outcome, Phase, Queued,
    Reply, StateId, StepCategory, Usage, WTime, WaitReason, WaveId, WorkerId,
};

use super::Move;

/// One launch of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number in the run.
    pub launch: LaunchId,
    /// Its worker.
    pub worker: WorkerId,
    /// Its number within the worker.
    pub number: AttemptNo,
    /// Its wave.
    pub wave: WaveId,
    /// The launcher was asked, C.
    pub requested: CTime,
    /// The launcher's engine took it, C.
    pub accepted: Option<CTime>,
    /// The engine's name for it; empty if it told none.
    pub engine_id: String,
    /// Why it could not be started.
    pub launch_error: Option<String>,
    /// The connection was accepted, C.
    pub tcp: Option<CTime>,
    /// TLS was done, C.
    pub tls: Option<CTime>,
    /// Its hello was read, C (t3 of the hello).
    pub hello_at: Option<CTime>,
    /// Its hello.
    pub hello: Option<Box<Hello>>,
    /// Its `quit` was sent, C.
    pub quit_sent: Option<CTime>,
    /// The latest of its hello, replies, heartbeats and stalls, C.
    pub last_sign: CTime,
    /// Its end; `None` while it is alive.
    pub ended: Option<Ended>,
    /// Its commands, `quit` among them.
    pub commands: BTreeMap<CommandId, Command>,
    /// Its heartbeats.
    pub pulses: Vec<Pulse>,
    /// Gaps of its ticker, W, in order of arrival.
    pub stalls: Vec<(WTime, WTime)>,
    /// When the program itself waited.
    pub waits: Vec<Wait>,
    /// The background commands that were awaited.
    pub awaits: Vec<Awaited>,
    /// The items it was given.
    pub items: Vec<Given>,
    /// What its machine did, in the order of the records.
    pub moves: Vec<Move>,
    /// The state that each lane is in now.
    pub present: BTreeMap<Vec<u32>, StateId>,
    /// How often it entered each state.
    pub entered: BTreeMap<StateId, u32>,
    /// Since when it has not answered, C.
    pub frozen: Option<CTime>,
    /// How often it was reported frozen.
    pub freezes: u32,
    /// Commands sent and not replied.
    pub(crate) outstanding: BTreeSet<CommandId>,
}

/// An attempt's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When, C.
    pub end: CTime,
    /// The last sign of life that the coordinator knew, C.
    pub last_sign: CTime,
    /// What ended it.
    pub cause: EndCause,
    /// What came of it.
    pub outcome: AttemptOutcome,
}

/// A heartbeat's exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Sent, C.
    pub t0: CTime,
    /// Answer read, C.
    pub t3: CTime,
    /// Decoded, W.
    pub received: WTime,
    /// Answer about to be encoded, W.
    pub encoded: WTime,
    /// BOOTTIME − MONOTONIC at the worker, in nanoseconds.
    pub clock_gap_ns: i64,
}

/// The program itself waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Since, C.
    pub from: CTime,
    /// Until the next command was queued, C; `None` if none was.
    pub to: Option<CTime>,
    /// For what.
    pub reason: WaitReason,
}

/// A lane waited for a background command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Since its last reply before, or since the command was sent, C.
    pub from: CTime,
    /// Until it went on, C.
    pub to: CTime,
}

/// An item of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// When, C.
    pub at: CTime,
    /// Its number in the queue.
    pub item: u64,
    /// Its value, as JSON.
    pub value_json: String,
}

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The decision; `None` if no record told it.
    pub queued: Option<QueuedFacts>,
    /// Sent, C.
    pub t0: Option<CTime>,
    /// Its reply, with t3.
    pub reply: Option<ReplyFacts>,
}

/// A command's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedFacts {
    /// When it was decided, C.
    pub at: CTime,
    /// Path of its lane.
    pub lane: Vec<u32>,
    /// Its state.
    pub state: Option<StateId>,
    /// Which visit of it, from 0.
    pub visit: u32,
    /// The command's name.
    pub name: Cow<'static, str>,
    /// What it was given.
    pub arguments: Vec<Vec<u8>>,
    /// Whether it belongs to a pipelined list, whose commands are sent without awaiting replies.
    pub pipelined: bool,
    /// Whether its lane goes on without it.
    pub background: bool,
    /// Where its step says that its own time goes.
    pub category: Option<StepCategory>,
    /// Which step of its wave's program it is of; 0 outside of it.
    pub step: u32,
}

/// What is kept of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyFacts {
    /// Read, C.
    pub t3: CTime,
    /// The worker's stamps.
    pub stamps: Stamps,
    /// BOOTTIME − MONOTONIC at the worker, in nanoseconds.
    pub clock_gap_ns: i64,
    /// Milliseconds until the deadline at s.
    pub remaining_started_ms: Option<i64>,
    /// Milliseconds until the deadline at f.
    pub remaining_finished_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it was doing, W.
    pub phases: Vec<Phase>,
    /// What its process used.
    pub usage: Option<Usage>,
    /// Bytes moved by `get` and `put`.
    pub bytes: u64,
    /// Length of its standard output.
    pub stdout_bytes: u64,
    /// Length of its standard error.
    pub stderr_bytes: u64,
}

/// The four stamps of a reply, W, never descending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// a: the command was decoded.
    pub received: WTime,
    /// s: its execution began.
    pub started: WTime,
    /// f: its execution ended.
    pub finished: WTime,
    /// b: the reply was about to be encoded.
    pub encoded: WTime,
}

impl Attempt {
    pub(crate) fn new(
        at: CTime,
        launch: LaunchId,
        worker: WorkerId,
        number: AttemptNo,
        wave: WaveId,
    ) -> Self {
        Self {
            launch,
            worker,
            number,
            wave,
            requested: at,
            accepted: None,
            engine_id: String::new(),
            launch_error: None,
            tcp: None,
            tls: None,
            hello_at: None,
            hello: None,
            quit_sent: None,
            last_sign: at,
            ended: None,
            commands: BTreeMap::new(),
            pulses: Vec::new(),
            stalls: Vec::new(),
            waits: Vec::new(),
            awaits: Vec::new(),
            items: Vec::new(),
            moves: Vec::new(),
            present: BTreeMap::new(),
            entered: BTreeMap::new(),
            frozen: None,
            freezes: 0,
            outstanding: BTreeSet::new(),
        }
    }

    /// Its outcome; `None` while it is alive.
    #[must_use]
    pub fn outcome(&self) -> Option<AttemptOutcome> {
        self.ended.map(|ended| ended.outcome)
    }

    /// Its end (C); where it is alive, `journal_end`.
    #[must_use]
    pub fn end_or(&self, journal_end: CTime) -> CTime {
        self.ended.map_or(journal_end, |ended| ended.end)
    }
}

impl Command {
    /// Its name; `?` if no record told it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.queued.as_ref().map_or("?", |queued| &queued.name)
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> Option<StateId> {
        self.queued.as_ref().and_then(|queued| queued.state)
    }

    /// Its state and which visit of it.
    #[must_use]
    pub fn visit(&self) -> Option<(StateId, u32)> {
        let queued = self.queued.as_ref()?;
        Some((queued.state?, queued.visit))
    }

    /// Path of its lane.
    #[must_use]
    pub fn lane(&self) -> &[u32] {
        self.queued.as_ref().map_or(&[], |queued| &queued.lane)
    }

    /// Whether it is the command that ends a worker.
    #[must_use]
    pub fn is_quit(&self) -> bool {
        self.name() == "quit"
    }

    /// Where its step says that its own time goes.
    #[must_use]
    pub fn category(&self) -> Option<StepCategory> {
        self.queued.as_ref().and_then(|queued| queued.category)
    }

    /// Whether its lane goes on without it.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.queued.as_ref().is_some_and(|queued| queued.background)
    }
}

impl From<(CTime, &Queued)> for QueuedFacts {
    fn from((at, queued): (CTime, &Queued)) -> Self {
        Self {
            at,
            lane: queued.lane.clone(),
            state: queued.state,
            visit: queued.visit,
            name: queued.name.clone(),
            arguments: queued.arguments.clone(),
            pipelined: queued.pipelined,
            background: queued.background,
            category: queued.category,
            step: queued.step,
        }
    }
}

impl From<(CTime, &Reply)> for ReplyFacts {
    fn from((t3, reply): (CTime, &Reply)) -> Self {
        Self {
            t3,
            stamps: Stamps::ordered(reply),
            clock_gap_ns: reply.clock_gap_ns,
            remaining_started_ms: reply.remaining_started_ms,
            remaining_finished_ms: reply.remaining_finished_ms,
            outcome: reply.outcome.clone(),
            phases: reply.phases.clone(),
            usage: reply.usage,
            bytes: reply.bytes,
            stdout_bytes: reply.stdout.total_bytes,
            stderr_bytes: reply.stderr.total_bytes,
        }
    }
}

impl Stamps {
    /// The reply's stamps; one that is before its predecessor takes the predecessor's value.
    fn ordered(reply: &Reply) -> Self {
        let started = reply.started.max(reply.received);
        let finished = reply.finished.max(started);
        Self { received: reply.received, started, finished, encoded: reply.encoded.max(finished) }
    }

    /// f − s, in nanoseconds of W.
    #[must_use]
    pub fn service_ns(&self) -> u64 {
        self.finished.since(self.started)
    }

    /// b − a, in nanoseconds of W.
    #[must_use]
    pub fn at_worker_ns(&self) -> u64 {
        self.encoded.since(self.received)
    }
}
