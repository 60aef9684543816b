//! Nodes of a wave's graph. A machine is a cursor on them.
//!
//! Every edge is an index into the wave's nodes. Edges back to a loop's [`NodeKind::Again`] are the
//! only cycles but those that [`NodeKind::Goto`] makes.

use std::sync::Arc;
use std::time::Duration;

use musec_protocol::Place;
use musec_trace::{StateId, StepCategory};

use crate::map::{MapRun, Target};
use crate::template::{Expr, Literal, Template};

/// Index of a node within its wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub u32);

/// Index of a lane within its wave; 0 is the program itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneNo(pub(crate) u32);

impl LaneNo {
    /// The program itself.
    pub(crate) const MAIN: Self = Self(0);
}

/// A lane of a wave's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneDef {
    /// For each lane around it, and itself, its number within the one around; empty for the
    /// program itself.
    pub path: Vec<u32>,
    /// The lane that it begins in.
    pub parent: LaneNo,
    /// Its name in the job file.
    pub name: String,
}

impl LaneDef {
    /// The program itself.
    pub(crate) const fn main() -> Self {
        Self { path: Vec::new(), parent: LaneNo::MAIN, name: String::new() }
    }
}

/// One node.
#[derive(Debug)]
pub(crate) struct Node {
    /// The state it belongs to; always there at commands and [`NodeKind::Enter`].
    pub state: Option<StateId>,
    /// What the step is called in errors: its name, or its action.
    pub name: String,
    /// What it does.
    pub kind: NodeKind,
}

/// What a node does.
#[derive(Debug)]
pub(crate) enum NodeKind {
    /// A step that names its state begins: a new visit, unless the machine is in that state and has
    /// not come round a loop since.
    Enter { next: NodeId },
    /// Sends a command and judges its reply.
    Command(Box<CommandNode>),
    /// Gives variables values: (index into the wave's `vars`, value).
    Set { assignments: Vec<(u32, Literal)>, next: NodeId },
    /// A choice.
    Branch { condition: Expr, then: NodeId, otherwise: NodeId },
    /// A loop begins: its values are evaluated.
    For { values: Literal, slot: u32, again: NodeId },
    /// A loop's next value, or its end.
    Again { body: NodeId, next: NodeId },
    /// A loop of as many rounds as its condition wants begins.
    While { again: NodeId },
    /// Another round of it, or its end.
    AgainWhile { condition: Expr, body: NodeId, next: NodeId },
    /// Leaves the innermost loop, if the condition holds.
    Break { condition: Expr, out: NodeId, next: NodeId },
    /// What follows, until its [`NodeKind::EndGuard`], goes on at `handler` when it fails.
    Guard { handler: NodeId, next: NodeId },
    /// The innermost guard ends.
    EndGuard { next: NodeId },
    /// Leaves all that the program is in, and goes on there.
    Goto { to: NodeId },
    /// Fails, with this text.
    Fail(Template),
    /// A time limit begins for all that follows, until its [`NodeKind::EndLimit`].
    Limit { limit: Duration, next: NodeId },
    /// The innermost time limit ends.
    EndLimit { next: NodeId },
    /// What has to do with several commands at a time.
    Lanes(LanesNode),
    /// The end of the program, or of a lane.
    End,
}

/// What a node has to do with several commands at a time.
#[derive(Debug)]
pub(crate) enum LanesNode {
    /// A pipelined list begins: its commands are sent without awaiting replies.
    List { next: NodeId },
    /// It ends when all its replies are there.
    EndList { next: NodeId },
    /// Lanes begin; this one goes on when they have ended, or the first of them has.
    Fork { lanes: Vec<(LaneNo, NodeId)>, first: bool, next: NodeId },
    /// Waits until all workers are at this barrier (an index into the wave's `barriers`).
    Barrier { barrier: u32, next: NodeId },
    /// Waits until user code has told a value for this key (an index into the wave's `infos`).
    WaitInfo { info: u32, next: NodeId },
    /// Waits for the background command of this sub-lane, if it has begun.
    Await { background: LaneNo, next: NodeId },
}

/// A command to be sent.
#[derive(Debug)]
pub(crate) struct CommandNode {
    pub action: ActionTemplate,
    pub timeout: Option<Duration>,
    pub expect: Option<Expr>,
    pub category: Option<StepCategory>,
    /// Its sub-lane, if it is a background command.
    pub background: Option<LaneNo>,
    pub next: NodeId,
}

/// An action whose texts are still templates.
#[derive(Debug)]
pub(crate) enum ActionTemplate {
    Run(Box<RunTemplate>),
    Get(Box<GetTemplate>),
    Put(Box<PutTemplate>),
    Echo(Template),
    Sleep(Sleep),
    Print(Template),
    /// The command of `musec map`.
    Map(Box<MapRun>),
    /// The delivery of its file.
    Deliver(Arc<Target>),
}

/// Objects to bring, their texts still templates.
#[derive(Debug)]
pub(crate) struct GetTemplate {
    /// The key with its `in:`, if it has one; that may come out of a template.
    pub key: Template,
    pub file: Option<Template>,
    pub range: Option<Template>,
    pub concurrency: u32,
}

/// Files to put, their texts still templates.
#[derive(Debug)]
pub(crate) struct PutTemplate {
    pub file: Template,
    pub key: Option<Template>,
    pub concurrency: u32,
}

/// How long to sleep.
#[derive(Debug)]
pub(crate) enum Sleep {
    /// Given.
    For(Duration),
    /// A duration as text, to be rendered.
    Template(Template),
}

/// A process to run, its texts still templates.
#[derive(Debug)]
pub(crate) struct RunTemplate {
    pub argv: Vec<Template>,
    pub env: Vec<(String, Template)>,
    pub cwd: Option<Template>,
    pub stdin: Option<Template>,
    pub stdout: Option<Template>,
    pub grace: Duration,
}

/// Splits `in:` off a key.
pub(crate) fn place_of(key: &str) -> (Place, &str) {
    key.strip_prefix("in:").map_or((Place::Store, key), |rest| (Place::Inputs, rest))
}
