//! Letters of executions, and which of them depend on one another: time.md §5.
//!
//! Two letters depend on one another if one writes what the other reads or writes. A letter writes
//! its own track, so all letters of a lane depend on one another. A fork and a join read their
//! lanes; what cancelled a lane is read by the cancelled lane's last letter; an info is a track of
//! its own. Absent: variables and channels, of which nothing is recorded.

use std::borrow::Cow;

use musec_trace::{Cause, Outcome, StateId};

/// What letters write and read. Lanes come in the order of the program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// A lane, by its path; a background command's sub-lane is one too.
    Lane(Vec<u32>),
    /// What user code says for a key.
    Info(String),
}

/// One letter. Equal letters are the same step of the same program with the same end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Letter {
    /// Where it happened; it writes that.
    pub track: Track,
    /// What it was.
    pub act: Act,
    /// How it ended.
    pub class: Class,
    /// What else it reads, sorted.
    pub reads: Vec<Track>,
}

/// What a letter was. Numbers are the last ones of lanes' paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// From state to state; `None` is outside of all.
    Move(Option<StateId>, Option<StateId>),
    /// A command within a state: where it was decided upon.
    Command {
        /// The state.
        state: Option<StateId>,
        /// The step of the program.
        step: u32,
        /// Its name.
        name: Cow<'static, str>,
    },
    /// Lanes began.
    Fork(Vec<u32>),
    /// They have ended; the one that won, if that ended the others.
    Join(Vec<u32>, Option<u32>),
    /// A background command began.
    Begin(u32),
    /// A background command was awaited.
    Await(u32),
    /// It came to a barrier.
    Arrive(String),
    /// User code told a value.
    Tell,
}

/// How a letter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It was the beginning.
    Start,
    /// Well.
    Done,
    /// Not well.
    Failed,
    /// From outside.
    Stopped,
    /// Another lane decided so.
    Cancelled,
    /// It never replied.
    Unanswered,
}

impl Letter {
    /// Whether the order of the two matters. Symmetric, and true of a letter with itself.
    #[must_use]
    pub fn depends_on(&self, other: &Self) -> bool {
        self.track == other.track
            || self.reads.contains(&other.track)
            || other.reads.contains(&self.track)
    }
}

impl From<Cause> for Class {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Start => Self::Start,
            Cause::Done => Self::Done,
            Cause::Failed => Self::Failed,
            Cause::Stopped => Self::Stopped,
            Cause::Cancelled => Self::Cancelled,
        }
    }
}

impl From<&Outcome> for Class {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Cancelled => Self::Cancelled,
            other if other.is_success() => Self::Done,
            _ => Self::Failed,
        }
    }
}

impl Class {
    /// Its name, as it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
            Self::Unanswered => "unanswered",
        }
    }
}
