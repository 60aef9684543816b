//! What goes into a machine and what comes out of it.

use musec_protocol::{Action, AttemptNo, CommandId, Reply};
use musec_trace::{Cause, StateId, StepCategory};
use serde_json::Value as Json;

#[cfg(doc)]
use crate::machine::Machine;
use crate::program::node::{LaneNo, NodeId};

/// What an attempt is told about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The worker's number within its wave, from 0: `index` in job files.
    pub index: u32,
    /// How many workers the wave has.
    pub workers: u32,
    /// The attempt's number within its worker.
    pub attempt: AttemptNo,
    /// Its (first) item, if the wave has items.
    pub item: Option<Json>,
}

/// What makes a machine go on.
#[derive(Clone, Copy, Debug)]
pub enum Advance<'a> {
    /// The program's beginning: once after [`Machine::new`] and after each [`Machine::take_item`].
    Start,
    /// The answer to a command that the machine sent; each command has one.
    Replied(Token, &'a Reply),
    /// All workers are at the barrier with this index.
    Released(u32),
    /// User code told this value for this key.
    Told(&'a str, &'a [u8]),
    /// The instant that [`Machine::deadline`] named has come.
    Time,
}

/// What a machine needs to know of a command when its reply comes. Whoever sends the command keeps
/// it, and hands it back with the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The lane that sent it.
    pub(super) lane: LaneNo,
    /// Its own sub-lane, if it is a background command.
    pub(super) background: Option<LaneNo>,
    /// The step that sent it.
    pub(super) node: NodeId,
    /// Whether its time limit is that of a step around it.
    pub(super) scoped: bool,
    /// Bytes of its arguments, for the bound of what is in flight.
    pub(super) bytes: u32,
}

impl Token {
    /// The number of the step that sent it, within its wave's program.
    pub(crate) const fn step(self) -> u32 {
        self.node.0
    }
}

/// What a machine wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "commands are the most; a box for each costs more")]
pub enum Effect {
    /// It changed its state: to be recorded.
    Moved(Moved),
    /// A command is to be sent.
    Send(NextCommand),
    /// The commands of this lane that have no reply yet are to be cancelled.
    Cancel(LaneNo),
    /// A lane is at a barrier, and waits for [`Advance::Released`].
    Arrived {
        /// Which lane.
        lane: LaneNo,
        /// The barrier's index.
        barrier: u32,
    },
    /// A lane no longer waits at a barrier.
    Left {
        /// The barrier's index.
        barrier: u32,
    },
    /// A lane began others, and waits for them: to be recorded.
    Forked {
        /// Which.
        lane: LaneNo,
        /// The others.
        lanes: Vec<LaneNo>,
        /// Whether the first that ends well ends the others.
        first: bool,
    },
    /// A lane began a background command: to be recorded.
    Begun {
        /// Which.
        lane: LaneNo,
        /// The command's own sub-lane.
        background: LaneNo,
    },
    /// A lane has awaited a background command: to be recorded.
    Awaited {
        /// Which.
        lane: LaneNo,
        /// The command's own sub-lane.
        background: LaneNo,
    },
    /// The lanes that a lane began have ended: to be recorded.
    Merged {
        /// The lane that goes on.
        lane: LaneNo,
        /// The lane that was the first to end well, where that ended the others.
        winner: Option<LaneNo>,
    },
}

/// A change of state. `None` is outside of all states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The lane that moved.
    pub lane: LaneNo,
    /// The state left.
    pub from: Option<StateId>,
    /// The state entered. It may be the one that was left: a new visit of it.
    pub to: Option<StateId>,
    /// Why.
    pub cause: Cause,
}

/// Where a machine is after an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It waits for replies.
    Waits,
    /// The program ended well.
    Done,
    /// A step failed, and the program with it.
    Failed(StepFailure),
}

/// A command to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextCommand {
    /// To be handed back with its reply.
    pub token: Token,
    /// The lane that it belongs to.
    pub lane: LaneNo,
    /// The state it belongs to; the machine is in it.
    pub state: StateId,
    /// Which visit of that state by this attempt, from 0.
    pub visit: u32,
    /// The command's name: its action's.
    pub name: &'static str,
    /// What the worker shall do.
    pub action: Action,
    /// Its time limit in milliseconds, from its start at the worker: its own, or what is left of
    /// that of the steps around it.
    pub timeout_ms: Option<u64>,
    /// Whether it belongs to a pipelined list: nobody waits for its reply before the next one is
    /// sent.
    pub pipelined: bool,
    /// Whether its lane goes on without it.
    pub background: bool,
    /// Whether the program reads its output: then replay needs it in the journal.
    pub keeps_output: bool,
    /// Whether its output is part of the job's answer (`print`).
    pub prints: bool,
    /// Where its own time is to be counted, if its step says so.
    pub category: Option<StepCategory>,
}

/// Why a program ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// The state of the step that failed.
    pub state: Option<StateId>,
    /// Its name, or its action.
    pub name: String,
    /// The error in words.
    pub error: String,
    /// The command whose reply is what failed; without one the step never came to send it.
    pub blamed: Option<Blame>,
}

/// A command that is to blame for a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// Which.
    pub command: CommandId,
    /// The last lines of what it printed, as bytes.
    pub output: Vec<u8>,
}
