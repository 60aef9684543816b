//! What a machine did, as it was recorded: the letters of [`crate::paths`] are made of it.
//!
//! In: records of an attempt's machine. Out: its moves in the order of the records. Absent: what
//! commands were and how they ended, which their own entry tells.

use musec_trace::{CTime, Cause, CommandId, Event, StateId};

/// What a machine did. Small, for there is one for each command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// It decided upon a command.
    Command(CommandId),
    /// Anything else.
    Step(Box<MachineStep>),
}

/// A move that is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineStep {
    /// When, C.
    pub at: CTime,
    /// Path of the lane; empty for the program itself, and for an info.
    pub lane: Vec<u32>,
    /// What.
    pub kind: StepKind,
}

/// What a move that is no command was. Numbers are the last ones of lanes' paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// From state to state.
    Moved {
        /// The state left.
        from: Option<StateId>,
        /// The state entered.
        to: Option<StateId>,
        /// Why.
        cause: Cause,
    },
    /// Lanes began.
    Forked {
        /// Which.
        lanes: Vec<u32>,
    },
    /// They have ended.
    Merged {
        /// Which of them won.
        winner: Option<u32>,
    },
    /// A background command has its sub-lane.
    Begun {
        /// Which.
        background: u32,
    },
    /// It was awaited.
    Awaited {
        /// Which.
        background: u32,
    },
    /// It is at a barrier.
    Arrived {
        /// The barrier's name.
        barrier: String,
    },
    /// User code told a value.
    Info {
        /// Its key.
        key: String,
    },
}

impl Move {
    /// The move that a record tells, if it tells one that is no command.
    pub(super) fn of(at: CTime, event: &Event) -> Option<Self> {
        let (lane, kind): (&[u32], StepKind) = match event {
            Event::Transition { lane, from, to, cause, .. } => {
                (lane, StepKind::Moved { from: *from, to: *to, cause: *cause })
            }
            Event::Forked { lane, lanes, .. } => (lane, StepKind::Forked { lanes: lanes.clone() }),
            Event::Merged { lane, winner, .. } => (lane, StepKind::Merged { winner: *winner }),
            Event::Begun { lane, background, .. } => {
                (lane, StepKind::Begun { background: *background })
            }
            Event::Awaited { lane, background, .. } => {
                (lane, StepKind::Awaited { background: *background })
            }
            Event::Arrived { lane, barrier, .. } => {
                (lane, StepKind::Arrived { barrier: barrier.clone() })
            }
            Event::Info { key, .. } => (&[], StepKind::Info { key: key.clone() }),
            // Every other record is of something else.
            _ => return None,
        };
        Some(Self::Step(Box::new(MachineStep { at, lane: lane.to_vec(), kind })))
    }
}
