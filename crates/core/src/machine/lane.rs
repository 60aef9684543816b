//! One lane of a machine: a cursor on the graph, with its loops, limits, guards and last reply.
//!
//! In: the start, a reply, a deadline. Out: whether it waits, has ended, or failed. Invariants: it
//! waits for a reply only while a command of it is out; a failure first lets its pipelined list run
//! dry, then goes to the innermost handler.
//!
//! ```text
//!           walk                      reply
//!   Ready ───┬─► Waiting ──────────────────────► (walk)
//!            ├─► Listing  (window full) ─half is back─► (walk)
//!            ├─► Draining (end of list, or failed) ─all are back─► (walk, or handler)
//!            └─► Ended
//! ```

use musec_protocol::Reply;
use musec_trace::{CTime, Cause, StateId};

use crate::machine::bindings::Last;
use crate::machine::frame::Frame;
use crate::machine::list::List;
use crate::machine::position::Position;
use crate::machine::walk::Walked;
use crate::machine::{Blame, Effect, StepFailure, Token, Turn, node_of};
use crate::program::node::NodeId;
use crate::template::Value;

/// A cursor.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) phase: Phase,
    pub(super) node: NodeId,
    pub(super) position: Position,
    /// What it is in, innermost last.
    pub(super) frames: Vec<Frame>,
    /// Values of loop names, by slot.
    pub(super) slots: Vec<Value>,
    pub(super) last: Option<Last>,
    /// The pipelined list that it is in.
    pub(super) list: Option<Box<List>>,
}

/// What a lane waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// To be started.
    Ready,
    /// The reply to its one command.
    Waiting,
    /// Replies of a pipelined list that has more commands.
    Listing,
    /// The last replies of a pipelined list.
    Draining,
    /// Nothing: it is done, failed or stopped.
    Ended,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The step.
    pub node: NodeId,
    pub error: String,
    pub blamed: Option<Blame>,
}

/// Where a lane is after an input.
pub(super) enum Rest {
    Waits,
    Done,
    Failed(StepFailure),
}

impl Lane {
    /// A lane at a node, with room for so many loop names.
    pub(super) fn at(node: NodeId, slots: u32) -> Self {
        Self {
            phase: Phase::Ready,
            node,
            position: Position::default(),
            frames: Vec::new(),
            slots: vec![Value::UNDEFINED; slots as usize],
            last: None,
            list: None,
        }
    }

    pub(super) const fn state(&self) -> Option<StateId> {
        self.position.state()
    }

    /// The start.
    pub(super) fn start(&mut self, turn: &mut Turn<'_>) -> Rest {
        assert_eq!(self.phase, Phase::Ready, "a lane is started once");
        turn.cause = Cause::Start;
        self.go_on(turn, Ok(self.node))
    }

    /// The reply to a command that it sent.
    pub(super) fn replied(&mut self, turn: &mut Turn<'_>, token: Token, reply: &Reply) -> Rest {
        let is_moot = self.list.as_ref().is_some_and(|list| list.is_cancelled);
        let verdict = if is_moot { Ok(token.node) } else { self.judge(turn, token, reply) };
        match self.phase {
            Phase::Waiting => self.go_on(turn, verdict),
            Phase::Listing | Phase::Draining => self.replied_in_list(turn, token, verdict.err()),
            Phase::Ready | Phase::Ended => panic!("a reply to a lane that is {:?}", self.phase),
        }
    }

    /// The first command that fails makes the list fail; the others are cancelled. A step that
    /// could not be taken fails it too, unless one that was sent before does so yet.
    fn replied_in_list(&mut self, turn: &mut Turn<'_>, token: Token, fault: Option<Fault>) -> Rest {
        let list = self.list.as_deref_mut().expect("a listing lane has its list");
        list.replied(token.bytes);
        if let Some(fault) = fault {
            self.fail_list(turn, fault);
        }
        self.go_on_in_list(turn)
    }

    /// Fails the list, if it has not failed by a reply: what is in flight is cancelled.
    fn fail_list(&mut self, turn: &mut Turn<'_>, fault: Fault) {
        let list = self.list.as_deref_mut().expect("a listing lane has its list");
        if std::mem::replace(&mut list.is_cancelled, true) {
            return;
        }
        list.fault = Some(fault);
        if !list.is_empty() {
            turn.out.push(Effect::CancelList);
        }
        self.phase = Phase::Draining;
    }

    fn go_on_in_list(&mut self, turn: &mut Turn<'_>) -> Rest {
        let list = self.list.as_deref_mut().expect("a listing lane has its list");
        let is_due = match self.phase {
            Phase::Draining => list.is_empty(),
            Phase::Ready | Phase::Waiting | Phase::Listing | Phase::Ended => list.wants_more(),
        };
        if !is_due {
            return Rest::Waits;
        }
        let next = list.fault.take().map_or(Ok(self.node), Err);
        self.go_on(turn, next)
    }

    /// Until when (C) its pipelined list may take: the steps around it have a time limit, which
    /// commands that stand in a queue cannot keep by themselves.
    pub(super) fn deadline(&self) -> Option<CTime> {
        let list = self.list.as_ref().filter(|list| !list.is_cancelled && !list.is_empty())?;
        self.tightest_limit().filter(|_| list.fault.is_none()).map(|limit| limit.until)
    }

    /// Its deadline may have come.
    pub(super) fn time(&mut self, turn: &mut Turn<'_>) -> Rest {
        let is_over = self.deadline().is_some_and(|deadline| deadline <= turn.now);
        let limit = self.tightest_limit().filter(|_| is_over).copied();
        if let Some(limit) = limit {
            let error = limit.in_words(turn.wave);
            self.fail_list(turn, Fault { node: limit.node, error, blamed: None });
        }
        Rest::Waits
    }

    /// Goes on at a node, or fails.
    fn go_on(&mut self, turn: &mut Turn<'_>, mut next: Result<NodeId, Fault>) -> Rest {
        loop {
            let walked = next.and_then(|node| {
                self.node = node;
                self.walk(turn)
            });
            let fault = match walked {
                Ok(Walked::Waits) => return Rest::Waits,
                Ok(Walked::Done) => {
                    self.end(Cause::Done, turn.out);
                    return Rest::Done;
                }
                Err(fault) => fault,
            };
            if let Some(list) = self.list.as_deref_mut().filter(|list| !list.is_empty()) {
                list.fault = Some(fault);
                self.phase = Phase::Draining;
                return Rest::Waits;
            }
            self.list = None;
            let Some(handler) = self.catch() else {
                return Rest::Failed(self.fail(turn, fault));
            };
            turn.cause = Cause::Failed;
            next = Ok(handler);
        }
    }

    fn fail(&mut self, turn: &mut Turn<'_>, fault: Fault) -> StepFailure {
        let Fault { node, error, blamed } = fault;
        let node = node_of(turn.wave, node);
        self.end(Cause::Failed, turn.out);
        StepFailure { state: node.state, name: node.name.clone(), error, blamed }
    }

    /// Ends it; leaves its state, if it is in one.
    pub(super) fn end(&mut self, cause: Cause, out: &mut Vec<Effect>) {
        self.phase = Phase::Ended;
        if self.state().is_some() {
            self.change(None, cause, out);
        }
    }

    /// Changes the state, which records it; loops have not come round since.
    pub(super) fn change(&mut self, to: Option<StateId>, cause: Cause, out: &mut Vec<Effect>) {
        self.position.change(to, cause, out);
        for frame in &mut self.frames {
            if let Frame::Loop(frame) = frame {
                frame.came_round = false;
            }
        }
    }
}
