//! The one event type. A run is the sequence of its records: what was put in, what was decided and
//! what was measured. Live views, reports and replay are folds over it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::{
    AttemptNo, AttemptOutcome, CTime, Cause, CommandId, EndCause, Hello, LaunchId, Reply,
    RunStarted, RunStatus, StepCategory, Stream, Tail, Timer, WTime, WaitReason, WorkerId,
};

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was decided or handled, C. Never decreases within a journal.
    pub at: CTime,
    /// What.
    pub event: Event,
}

/// A wave's number within its run, from 0 in the order of the job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WaveId(pub u32);

/// A state's number within its run; [`Event::StateNamed`] tells its wave and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StateId(pub u32);

impl fmt::Display for WaveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What happened. Stamps named `t0`, `t3`, `tcp`, `tls`, `end` are C, of the moment itself; the
/// record's own `at` is when the coordinator handled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first record of every journal.
    RunStarted(Box<RunStarted>),
    /// A number that later records use for a state.
    StateNamed {
        /// The number.
        state: StateId,
        /// The wave whose program has it.
        wave: WaveId,
        /// The name.
        name: String,
    },
    /// A lane of a wave's program, as later records name it by its path.
    LaneNamed {
        /// The wave.
        wave: WaveId,
        /// For each lane around it, and itself, its number within the one around.
        path: Vec<u32>,
        /// Its name.
        name: String,
    },
    /// A wave's workers are about to be launched.
    WaveStarted {
        /// Which.
        wave: WaveId,
        /// Its name.
        name: String,
        /// Its first worker; the others follow.
        first_worker: WorkerId,
        /// How many workers it has.
        workers: u32,
        /// How many items its workers take; 0 without a queue.
        items: u64,
    },
    /// All of a wave's workers have ended.
    WaveEnded {
        /// Which.
        wave: WaveId,
    },
    /// A wave will not start, because one that it comes after did not end well.
    WaveSkipped {
        /// Which.
        wave: WaveId,
        /// Its name.
        name: String,
        /// Why, in words.
        reason: String,
    },
    /// An attempt begins: the launcher is asked for it.
    Requested {
        /// The attempt, as all later records name it.
        launch: LaunchId,
        /// Its worker.
        worker: WorkerId,
        /// Its number within the worker.
        attempt: AttemptNo,
        /// Its wave.
        wave: WaveId,
    },
    /// The launcher's engine took it.
    Accepted {
        /// Which.
        launch: LaunchId,
        /// When, C.
        accepted: CTime,
        /// The engine's name for it (pid, job id, request id).
        engine_id: String,
    },
    /// The launcher could not start it.
    NotLaunched {
        /// Which.
        launch: LaunchId,
        /// Why, and the cure.
        error: String,
    },
    /// Its hello was accepted.
    Joined(Box<Joined>),
    /// It was given an item of its wave's queue.
    ItemGiven {
        /// To whom.
        launch: LaunchId,
        /// The item's number in the queue.
        item: u64,
        /// The item's value, as JSON.
        value_json: String,
    },
    /// Its machine entered or left a state. `None` is outside of all states.
    Transition {
        /// Whose.
        launch: LaunchId,
        /// Path of the lane.
        lane: Vec<u32>,
        /// The state left.
        from: Option<StateId>,
        /// The state entered.
        to: Option<StateId>,
        /// Why.
        cause: Cause,
    },
    /// A worker is at a barrier.
    Arrived {
        /// Whose.
        launch: LaunchId,
        /// Path of the lane that waits.
        lane: Vec<u32>,
        /// The barrier's name.
        barrier: String,
    },
    /// All workers of a wave that a barrier waited for are there, and go on.
    Released {
        /// The wave.
        wave: WaveId,
        /// The barrier's name.
        barrier: String,
        /// How many go on.
        workers: u32,
        /// For whom they waited: the last that came, or that ended without coming.
        last: LaunchId,
    },
    /// A lane began others, and waits for them.
    Forked {
        /// Whose.
        launch: LaunchId,
        /// Path of the lane; empty for the program itself.
        lane: Vec<u32>,
        /// The last numbers of the others' paths, in the order of the program.
        lanes: Vec<u32>,
        /// Whether the first of them that ends well ends the others.
        first: bool,
    },
    /// A lane began a background command, which has a sub-lane of its own.
    Begun {
        /// Whose.
        launch: LaunchId,
        /// Path of the lane that goes on.
        lane: Vec<u32>,
        /// The last number of the sub-lane's path.
        background: u32,
    },
    /// A lane has awaited a background command.
    Awaited {
        /// Whose.
        launch: LaunchId,
        /// Path of the lane.
        lane: Vec<u32>,
        /// The last number of the sub-lane's path.
        background: u32,
    },
    /// The lanes that a lane began have ended.
    Merged {
        /// Whose.
        launch: LaunchId,
        /// Path of the lane that goes on.
        lane: Vec<u32>,
        /// The last number of the path of the lane that was the first to end well, where that
        /// ended the others.
        winner: Option<u32>,
    },
    /// A command was decided upon.
    Queued(Box<Queued>),
    /// A command's first byte is about to go to TLS.
    Sent {
        /// To whom.
        launch: LaunchId,
        /// Which command.
        id: CommandId,
        /// t0, C.
        t0: CTime,
    },
    /// An attempt's connection is gone, as core was told.
    Closed {
        /// Whose.
        launch: LaunchId,
        /// When, C.
        closed: CTime,
        /// Why, in words.
        why: String,
        /// Whether its peer broke the protocol.
        broke_protocol: bool,
    },
    /// An attempt's process is gone, as core was told by the launcher.
    Exited {
        /// Whose.
        launch: LaunchId,
        /// When, C.
        exited: CTime,
        /// How, in words.
        status: String,
    },
    /// A command's reply is there.
    Replied {
        /// Whose.
        launch: LaunchId,
        /// t3: after its last byte was read, C.
        t3: CTime,
        /// The reply; outputs are empty unless the command failed or the program reads them, while
        /// `total_bytes` always tells how long they were.
        reply: Box<Reply>,
    },
    /// A heartbeat's answer is there: an exchange like that of a command.
    Pulse {
        /// Whose.
        launch: LaunchId,
        /// Its number.
        seq: u64,
        /// t0, C.
        t0: CTime,
        /// t3, C.
        t3: CTime,
        /// a, W.
        received: WTime,
        /// b, W.
        encoded: WTime,
        /// BOOTTIME − MONOTONIC at the worker, in nanoseconds.
        clock_gap_ns: i64,
    },
    /// The worker's ticker found a gap.
    Stalled {
        /// Whose.
        launch: LaunchId,
        /// When its report came, C.
        t3: CTime,
        /// Last tick before, W.
        from: WTime,
        /// First tick after, W.
        to: WTime,
    },
    /// User code told a value for a key.
    Info {
        /// Whose.
        launch: LaunchId,
        /// When it came, C.
        t3: CTime,
        /// When its worker read it, W.
        received: WTime,
        /// The key.
        key: String,
        /// The value, as bytes.
        value: Vec<u8>,
    },
    /// User code told what nobody understands.
    Garbled {
        /// Whose.
        launch: LaunchId,
        /// When it came, C.
        t3: CTime,
        /// When its worker read it, W.
        received: WTime,
        /// What is wrong with it, in words.
        why: String,
        /// How long it was, in bytes.
        bytes: u64,
    },
    /// A reply came that breaks the protocol: it was not to come now, or has objects that its
    /// command cannot have moved.
    WrongReply {
        /// Whose.
        launch: LaunchId,
        /// t3, C.
        t3: CTime,
        /// The command that it answers.
        id: CommandId,
        /// How many objects it has.
        objects: u32,
    },
    /// A connected worker has not answered several heartbeats, or does so again.
    Frozen {
        /// Whose.
        launch: LaunchId,
        /// Its last sign of life before, C.
        since: CTime,
        /// Whether it is back.
        thawed: bool,
    },
    /// The program itself waits, until the attempt's next command is queued or quit.
    Waiting {
        /// Whose.
        launch: LaunchId,
        /// For what.
        reason: WaitReason,
    },
    /// A deadline was reached.
    TimerFired {
        /// Which.
        timer: Timer,
        /// Of which attempt; `None` for those of the run.
        launch: Option<LaunchId>,
    },
    /// Why an attempt has no result.
    Failure(Box<Failure>),
    /// An attempt's last record.
    Ended {
        /// Which.
        launch: LaunchId,
        /// When, C.
        end: CTime,
        /// Its last sign of life, C; of one that never joined, when it was requested.
        last_sign: CTime,
        /// What ended it.
        cause: EndCause,
        /// What came of it.
        outcome: AttemptOutcome,
    },
    /// Part of the job's answer, shown at the end.
    Printed {
        /// Whose.
        launch: LaunchId,
        /// The text, as bytes: its end, where it was longer than a tail may be.
        text: Vec<u8>,
        /// How long it was in all, in bytes.
        total_bytes: u64,
    },
    /// What a store listed for a wave's items.
    Listed {
        /// For which wave.
        wave: WaveId,
        /// The keys, sorted by bytes.
        keys: Vec<String>,
    },
    /// What was read of a file for a wave's items.
    Read {
        /// For which wave.
        wave: WaveId,
        /// The file.
        text: Vec<u8>,
    },
    /// Items that a wave was given beside the job file, in their order; a further record goes on.
    Given {
        /// Which wave.
        wave: WaveId,
        /// The items, as bytes.
        items: Vec<Vec<u8>>,
    },
    /// How the coordinator itself is doing, about once a second.
    Sample(Box<Sample>),
    /// The run was told to stop.
    Cancelled {
        /// By what (a signal's name, a command).
        cause: String,
    },
    /// The end of a command's output; in the outputs' file, never in the journal itself.
    Output {
        /// Whose.
        launch: LaunchId,
        /// Of which command.
        id: CommandId,
        /// Which stream.
        stream: Stream,
        /// Its end.
        tail: Tail,
    },
    /// The last decision of a run that ended by itself; only a last sample may follow.
    RunEnded {
        /// How.
        status: RunStatus,
    },
}

/// A worker that joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Which attempt.
    pub launch: LaunchId,
    /// The connection was accepted, C.
    pub tcp: CTime,
    /// TLS was done, C.
    pub tls: CTime,
    /// t3 of the hello, C.
    pub t3: CTime,
    /// The hello.
    pub hello: Hello,
}

/// A command that was decided upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// For whom.
    pub launch: LaunchId,
    /// Its number within the attempt.
    pub id: CommandId,
    /// Path of its lane.
    pub lane: Vec<u32>,
    /// Its state; `None` for those outside the program (`clean`, `quit`).
    pub state: Option<StateId>,
    /// Which visit of that state by this attempt, from 0.
    pub visit: u32,
    /// The command's name.
    pub name: Cow<'static, str>,
    /// What it was given; no secrets.
    pub arguments: Vec<Vec<u8>>,
    /// Whether it belongs to a pipelined list, whose commands are sent without awaiting replies.
    pub pipelined: bool,
    /// Whether its lane goes on without it.
    pub background: bool,
    /// Where its own time is to be counted, if its step says so.
    pub category: Option<StepCategory>,
    /// Which step of its wave's program it is of; 0 for those outside the program.
    pub step: u32,
}

/// Why an attempt, or a launch, has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whose.
    pub launch: LaunchId,
    /// In which state.
    pub state: Option<StateId>,
    /// At which command, if one is to blame.
    pub command: Option<CommandId>,
    /// That command's name, or what else failed.
    pub name: String,
    /// The error in words.
    pub error: String,
    /// The last lines of output, as bytes.
    pub output: Vec<u8>,
}

/// One second of the coordinator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// CPU time of the coordinator's process so far, in nanoseconds.
    pub cpu_ns: u64,
    /// Ready → handled since the last sample: median, in nanoseconds.
    pub lag_p50_ns: u64,
    /// The same: 99th percentile.
    pub lag_p99_ns: u64,
    /// The same: maximum.
    pub lag_max_ns: u64,
    /// Bytes received from workers so far.
    pub bytes_in: u64,
    /// Bytes sent to workers so far.
    pub bytes_out: u64,
    /// Connections now.
    pub connections: u32,
    /// Refused connections so far, by reason.
    pub refused: BTreeMap<String, u64>,
    /// BOOTTIME − MONOTONIC of the coordinator, in nanoseconds; a jump is a fault of C.
    pub clock_gap_ns: i64,
    /// How often the loop had to wait for the journal's writer so far.
    pub journal_waits: u64,
    /// How long, in nanoseconds.
    pub journal_wait_ns: u64,
}
