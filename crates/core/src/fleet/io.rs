//! What the fleet is told, and what it decides.

use musec_protocol::note::Told;
use musec_protocol::{
    Command, CommandId, LaunchId, Note, Pong, Refusal, Reply, Stall, Tail, WTime, Welcome,
};
use musec_trace::{CTime, Event, Joined, RunStatus, WaveId};

use crate::program::{Look, Seen};

/// What the world tells the fleet. Stamps are C, of the moment itself.
#[derive(Clone, Debug)]
pub enum Input {
    /// The run begins.
    Start,
    /// The launcher's engine took an attempt.
    Accepted {
        /// Which.
        launch: LaunchId,
        /// When, C.
        at: CTime,
        /// The engine's name for it.
        engine_id: String,
    },
    /// The launcher could not start an attempt.
    NotLaunched {
        /// Which.
        launch: LaunchId,
        /// Why, and the cure.
        error: String,
    },
    /// A worker proved to be an attempt and said hello; first ask [`super::Fleet::may_join`].
    Joined(Box<Joined>),
    /// A reply came.
    Replied {
        /// Whose.
        launch: LaunchId,
        /// t3, C.
        t3: CTime,
        /// The reply.
        reply: Box<Reply>,
    },
    /// A heartbeat's answer came.
    Pulsed {
        /// Whose.
        launch: LaunchId,
        /// t0 of the heartbeat, C.
        t0: CTime,
        /// t3 of the answer, C.
        t3: CTime,
        /// The answer.
        pong: Pong,
    },
    /// A worker reported a gap in its own time.
    Stalled {
        /// Whose.
        launch: LaunchId,
        /// When it came, C.
        t3: CTime,
        /// The gap.
        stall: Stall,
    },
    /// User code told something.
    Noted {
        /// Whose.
        launch: LaunchId,
        /// When it came, C.
        t3: CTime,
        /// What.
        note: Heard,
    },
    /// An attempt's connection is gone.
    Closed {
        /// Whose.
        launch: LaunchId,
        /// When, C.
        at: CTime,
        /// Why.
        why: Closed,
    },
    /// An attempt's process is gone, says the launcher.
    Exited {
        /// Whose.
        launch: LaunchId,
        /// When, C.
        at: CTime,
        /// How, in words.
        status: String,
    },
    /// What was seen of a wave's items.
    Seen {
        /// Of which wave.
        wave: WaveId,
        /// What [`Output::Look`] asked for, or why it could not be seen.
        seen: Result<Seen, String>,
    },
    /// The run is to end now; the second time at once.
    Cancel {
        /// By what.
        cause: String,
    },
}

/// What user code told, as far as it is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When its worker read it, W.
    pub received: WTime,
    /// How long it was, in bytes.
    pub bytes: u64,
    /// What it means, or why it means nothing.
    pub told: Result<Told, String>,
}

impl From<Note> for Heard {
    fn from(Note { received, text }: Note) -> Self {
        let told = Told::from_bytes(&text).map_err(str::to_owned);
        Self { received, bytes: text.len() as u64, told }
    }
}

/// Why a connection is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The peer closed it, or the network broke.
    Lost(String),
    /// The peer broke the protocol.
    Protocol(String),
}

/// What the fleet decides. To be performed in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// To be recorded, with the instant of the input that caused it.
    Record(CTime, Event),
    /// The end of a command's output, to be kept beside the journal.
    KeepOutput {
        /// Whose.
        launch: LaunchId,
        /// Of which command.
        id: CommandId,
        /// Standard output.
        stdout: Tail,
        /// Standard error.
        stderr: Tail,
    },
    /// An attempt is to be launched.
    Launch(LaunchId),
    /// A worker that joined is to be welcomed.
    Welcome(LaunchId, Box<Welcome>),
    /// A command is to be sent.
    Send(LaunchId, Box<Command>),
    /// A connection is to be closed.
    Hangup(LaunchId),
    /// The launcher is to kill an attempt.
    Stop(LaunchId),
    /// A store is to be looked at for a wave's items; [`Input::Seen`] answers.
    Look {
        /// For which wave.
        wave: WaveId,
        /// At what.
        look: Box<Look>,
    },
    /// What was recorded is to be on the disk.
    Sync,
    /// The run is over.
    Finished(RunStatus),
}

/// Whether a worker may join, asked before its hello becomes an [`Input::Joined`].
pub type MayJoin = Result<(), Refusal>;
