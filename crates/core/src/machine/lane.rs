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
//!            ├─► Joining  (its lanes are at it) ─all have ended─► (walk, or handler)
//!            ├─► Awaiting (a background command) ─it is back─► (walk, or handler)
//!            ├─► Informed (an info of user code) ─it is told─► (walk)
//!            ├─► AtBarrier (the other workers) ─all are there─► (walk)
//!            └─► Closing  (at its end) ─background commands are back─► Ended
//!   all but Closing ─cancelled─► Stopping ─all are back─► Ended
//! ```

use musec_protocol::Reply;
use musec_trace::{CTime, Cause, StateId};

use crate::duration;
use crate::limits::SILENT_INFO_MAX;
use crate::machine::background::Background;
use crate::machine::bindings::Last;
use crate::machine::frame::Frame;
use crate::machine::lanes::Join;
use crate::machine::list::List;
use crate::machine::position::Position;
use crate::machine::walk::Walked;
use crate::machine::{Blame, Effect, StepFailure, Token, Turn, node_of};
use crate::program::Wave;
use crate::program::node::{LaneNo, LanesNode, NodeId, NodeKind};
use crate::template::Value;

/// A cursor.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) no: LaneNo,
    pub(super) phase: Phase,
    pub(super) node: NodeId,
    pub(super) position: Position,
    /// What it is in, innermost last.
    pub(super) frames: Vec<Frame>,
    /// Values of loop names, by slot.
    pub(super) slots: Box<[Value]>,
    pub(super) last: Option<Last>,
    /// The pipelined list that it is in.
    pub(super) list: Option<Box<List>>,
    /// The lanes that it has begun and waits for.
    pub(super) join: Option<Box<Join>>,
    /// What it has begun in the background so far.
    pub(super) backgrounds: Vec<Background>,
    /// Why it fails, once what it began in the background has ended.
    pub(super) ending: Option<Box<Fault>>,
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
    /// The lanes that it has begun.
    Joining,
    /// This background command.
    Awaiting(LaneNo),
    /// An info of user code, by its index.
    Informed(u32),
    /// All other workers, at the barrier with this index.
    AtBarrier(u32),
    /// The background commands that it began; then it ends.
    Closing,
    /// So many replies, and its lanes; then it ends, because it was cancelled.
    Stopping(u32),
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
    /// Lanes begin where it stands.
    Forks,
    Done,
    Failed(Fault),
    Cancelled,
}

impl Fault {
    pub(super) fn into_failure(self, wave: &Wave) -> StepFailure {
        let Self { node, error, blamed } = self;
        let node = node_of(wave, node);
        StepFailure { state: node.state, name: node.name.clone(), error, blamed }
    }
}

impl Lane {
    /// A lane at a node; its loops have no names yet.
    pub(super) fn at(no: LaneNo, node: NodeId) -> Self {
        Self {
            no,
            phase: Phase::Ready,
            node,
            position: Position::default(),
            frames: Vec::new(),
            slots: Box::default(),
            last: None,
            list: None,
            join: None,
            backgrounds: Vec::new(),
            ending: None,
        }
    }

    /// The same with what stays of one that has ended: counts of visits, and background commands.
    pub(super) fn begun_again(&mut self, begun: Self) -> Self {
        let position = std::mem::take(&mut self.position);
        let backgrounds = std::mem::take(&mut self.backgrounds);
        Self { position, backgrounds, ..begun }
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
        if let Some(background) = token.background {
            return self.background_replied(turn, background, token, reply);
        }
        if let Phase::Stopping(owed) = self.phase {
            return self.stop_if_over(turn, owed - 1);
        }
        let is_moot = self.list.as_ref().is_some_and(|list| list.is_cancelled);
        let verdict = if is_moot { Ok(token.node) } else { self.judge(turn, token, reply) };
        match self.phase {
            Phase::Waiting => self.go_on(turn, verdict),
            Phase::Listing | Phase::Draining => self.replied_in_list(turn, token, verdict.err()),
            Phase::Ready
            | Phase::Joining
            | Phase::Awaiting(_)
            | Phase::Informed(_)
            | Phase::AtBarrier(_)
            | Phase::Closing
            | Phase::Stopping(_)
            | Phase::Ended => panic!("a reply to a lane that is {:?}", self.phase),
        }
    }

    /// Whether it is still to be started.
    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Whether it may still go on by itself.
    pub(super) const fn is_going(&self) -> bool {
        match self.phase {
            Phase::Ready
            | Phase::Waiting
            | Phase::Listing
            | Phase::Draining
            | Phase::Joining
            | Phase::Awaiting(_)
            | Phase::Informed(_)
            | Phase::AtBarrier(_)
            | Phase::Closing => true,
            Phase::Stopping(_) | Phase::Ended => false,
        }
    }

    /// Cancels it; so many of its lanes have not ended yet. Whether it has ended with that.
    pub(super) fn cancel(&mut self, turn: &mut Turn<'_>, lanes: u32) -> bool {
        let commands = match self.phase {
            Phase::Waiting => 1,
            Phase::Listing | Phase::Draining => self.list.as_ref().map_or(0, |list| list.len()),
            Phase::Ready
            | Phase::Joining
            | Phase::Awaiting(_)
            | Phase::Informed(_)
            | Phase::AtBarrier(_)
            | Phase::Closing
            | Phase::Stopping(_)
            | Phase::Ended => 0,
        };
        if commands > 0 {
            turn.out.push(Effect::Cancel(self.no));
        }
        self.leave_barrier(turn);
        let backgrounds = self.cancel_backgrounds(turn);
        (self.list, self.ending) = (None, None);
        if lanes == 0 {
            self.join = None;
        }
        matches!(self.stop_if_over(turn, commands + backgrounds), Rest::Cancelled)
    }

    /// It waits at a barrier no longer, though that was not released.
    fn leave_barrier(&self, turn: &mut Turn<'_>) {
        if let Phase::AtBarrier(barrier) = self.phase {
            turn.out.push(Effect::Left { barrier });
        }
    }

    /// Goes on with being cancelled; so many replies are still owed to it.
    pub(super) fn stop_if_over(&mut self, turn: &mut Turn<'_>, owed: u32) -> Rest {
        self.phase = Phase::Stopping(owed);
        if owed > 0 || self.join.is_some() {
            return Rest::Waits;
        }
        self.end(Cause::Cancelled, turn.out);
        Rest::Cancelled
    }

    /// All lanes that it began have ended; `last` is the reply that counts as its own last one.
    pub(super) fn joined(
        &mut self,
        turn: &mut Turn<'_>,
        verdict: Result<NodeId, Fault>,
        last: Option<Last>,
    ) -> Rest {
        if let Phase::Stopping(owed) = self.phase {
            return self.stop_if_over(turn, owed);
        }
        self.last = last.or_else(|| self.last.take());
        turn.cause = Cause::Done;
        self.go_on(turn, verdict)
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
            turn.out.push(Effect::Cancel(self.no));
        }
        self.phase = Phase::Draining;
    }

    fn go_on_in_list(&mut self, turn: &mut Turn<'_>) -> Rest {
        let list = self.list.as_deref_mut().expect("a listing lane has its list");
        let is_due = match self.phase {
            Phase::Draining => list.is_empty(),
            Phase::Ready
            | Phase::Waiting
            | Phase::Listing
            | Phase::Joining
            | Phase::Awaiting(_)
            | Phase::Informed(_)
            | Phase::AtBarrier(_)
            | Phase::Closing
            | Phase::Stopping(_)
            | Phase::Ended => list.wants_more(),
        };
        if !is_due {
            return Rest::Waits;
        }
        let next = list.fault.take().map_or(Ok(self.node), Err);
        self.go_on(turn, next)
    }

    /// Until when (C) its pipelined list, its lanes or its `await` may take: the steps around them
    /// have a time limit, which no single command can keep.
    pub(super) fn deadline(&self) -> Option<CTime> {
        let is_open = match self.phase {
            Phase::Listing | Phase::Draining => {
                self.list.as_ref().is_some_and(|list| list.is_open())
            }
            Phase::Joining => self.join.as_ref().is_some_and(|join| join.is_open()),
            Phase::Awaiting(_) | Phase::Informed(_) | Phase::AtBarrier(_) => true,
            Phase::Ready | Phase::Waiting | Phase::Closing | Phase::Stopping(_) | Phase::Ended => {
                false
            }
        };
        if is_open { self.tightest_limit().map(|limit| limit.until) } else { None }
    }

    /// Why it fails now: the time of the steps around it is over.
    pub(super) fn fault_of_limit(&self, turn: &Turn<'_>) -> Option<Fault> {
        self.deadline().filter(|deadline| *deadline <= turn.now)?;
        let limit = self.tightest_limit()?;
        Some(Fault { node: limit.node, error: limit.in_words(turn.wave), blamed: None })
    }

    /// Fails its pipelined list, or what it waits for.
    pub(super) fn fail_by_limit(&mut self, turn: &mut Turn<'_>, fault: Fault) -> Rest {
        if self.list.is_none() {
            self.leave_barrier(turn);
            return self.go_on(turn, Err(fault));
        }
        self.fail_list(turn, fault);
        Rest::Waits
    }

    /// What it waited for has come.
    pub(super) fn go_on_from_wait(&mut self, turn: &mut Turn<'_>) -> Rest {
        turn.cause = Cause::Done;
        self.go_on(turn, Ok(self.node))
    }

    /// Why it fails: nobody can tell what it waits for.
    pub(super) fn fault_of_silence(&self, turn: &Turn<'_>) -> Fault {
        let node = node_of(turn.wave, self.node);
        let info = match &node.kind {
            NodeKind::Lanes(LanesNode::WaitInfo { info, .. }) => {
                turn.wave.infos.get(*info as usize)
            }
            _ => None,
        };
        let error = format!(
            "nothing told `{}` within {}, and no command is running that could",
            info.map_or("it", String::as_str),
            duration::in_words(SILENT_INFO_MAX)
        );
        Fault { node: self.node, error, blamed: None }
    }

    /// Goes on at a node, or fails.
    pub(super) fn go_on(&mut self, turn: &mut Turn<'_>, mut next: Result<NodeId, Fault>) -> Rest {
        loop {
            let walked = next.and_then(|node| {
                self.node = node;
                self.walk(turn)
            });
            let fault = match walked {
                Ok(Walked::Waits) => return Rest::Waits,
                Ok(Walked::Forks) => {
                    self.phase = Phase::Joining;
                    return Rest::Forks;
                }
                Ok(Walked::Done) => return self.close(turn, None),
                Err(fault) => fault,
            };
            if let Some(list) = self.list.as_deref_mut().filter(|list| !list.is_empty()) {
                list.fault = Some(fault);
                self.phase = Phase::Draining;
                return Rest::Waits;
            }
            self.list = None;
            let Some(handler) = self.catch() else {
                return self.close(turn, Some(fault));
            };
            turn.cause = Cause::Failed;
            next = Ok(handler);
        }
    }

    /// Ends it; leaves its state, if it is in one.
    pub(super) fn end(&mut self, cause: Cause, out: &mut Vec<Effect>) {
        self.phase = Phase::Ended;
        (self.list, self.join) = (None, None);
        if self.state().is_some() {
            self.change(None, cause, out);
        }
    }

    /// Changes the state, which records it; loops have not come round since.
    pub(super) fn change(&mut self, to: Option<StateId>, cause: Cause, out: &mut Vec<Effect>) {
        self.position.change(self.no, to, cause, out);
        for frame in &mut self.frames {
            if let Frame::Loop(frame) = frame {
                frame.came_round = false;
            }
        }
    }
}
