//! From node to node, until a command is due or the program ends. A failure goes to the innermost
//! handler, if there is one.

use std::time::Duration;

use musec_protocol::Action;
use musec_trace::{Cause, StateId};

use crate::limits::{FUEL_WITHOUT_COMMAND, STEPS_WITHOUT_COMMAND_MAX};
use crate::machine::bindings::View;
use crate::machine::frame::{Frame, Limit, Loop, Sequence};
use crate::machine::lane::{Fault, Lane, Phase};
use crate::machine::list::Room;
use crate::machine::{Effect, NextCommand, Token, Turn, action, node_of};
use crate::program::node::{CommandNode, LanesNode, Node, NodeId, NodeKind};
use crate::template::{EvalError, Expr, Literal, Value};

/// What a step makes of the lane.
enum Flow {
    Go(NodeId),
    /// It waits, and goes on here.
    Wait(NodeId, Phase),
    /// Lanes begin here.
    Fork,
    /// What it awaited has failed.
    Fail(Fault),
    Done,
}

/// Where a walk has led.
pub(super) enum Walked {
    /// To where something is waited for.
    Waits,
    /// To where lanes begin.
    Forks,
    /// To its end.
    Done,
}

impl Lane {
    /// Takes steps until something has to be waited for, or the program ends.
    pub(super) fn walk(&mut self, turn: &mut Turn<'_>) -> Result<Walked, Fault> {
        while let Some(budget) = turn.budget.checked_sub(1) {
            if turn.fuel.get() < FUEL_WITHOUT_COMMAND / 2 && self.has_list_in_flight() {
                break;
            }
            turn.budget = budget;
            let fault = |node, error| Fault { node, error, blamed: None };
            match self.step(turn).map_err(|error| fault(self.node, error))? {
                Flow::Go(next) => self.node = next,
                Flow::Wait(node, phase) => {
                    (self.node, self.phase) = (node, phase);
                    return Ok(Walked::Waits);
                }
                Flow::Fork => return Ok(Walked::Forks),
                Flow::Fail(fault) => return Err(fault),
                Flow::Done => return Ok(Walked::Done),
            }
        }
        if self.has_list_in_flight() {
            // Enough for one turn: the next reply gives another one.
            self.phase = Phase::Listing;
            return Ok(Walked::Waits);
        }
        let error = format!(
            "{STEPS_WITHOUT_COMMAND_MAX} steps without a command: this loop does not come to an end"
        );
        Err(Fault { node: self.node, error, blamed: None })
    }

    fn has_list_in_flight(&self) -> bool {
        self.list.as_ref().is_some_and(|list| !list.is_empty())
    }

    /// Leaves everything up to the innermost guard, and that: where its handler begins.
    pub(super) fn catch(&mut self) -> Option<NodeId> {
        if !self.frames.iter().any(|frame| matches!(frame, Frame::Guard { .. })) {
            return None;
        }
        loop {
            if let Frame::Guard { handler } = self.leave()? {
                return Some(handler);
            }
        }
    }

    /// Leaves the innermost frame; the name of a loop has no value any more.
    fn leave(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        if let Frame::Loop(left) = &frame
            && let Some(index) = left.slot()
        {
            *slot(&mut self.slots, index) = Value::UNDEFINED;
        }
        Some(frame)
    }

    /// Leaves the innermost loop, and all that is within it.
    fn leave_loop(&mut self) {
        while let Some(frame) = self.leave() {
            if matches!(frame, Frame::Loop(_)) {
                return;
            }
        }
    }

    /// The innermost loop, when nothing else is within it.
    fn innermost_loop(&mut self) -> &mut Loop {
        match self.frames.last_mut() {
            Some(Frame::Loop(frame)) => frame,
            other => panic!("a loop's frame is there until its end, not {other:?}"),
        }
    }

    /// One step at the present node.
    fn step(&mut self, turn: &mut Turn<'_>) -> Result<Flow, String> {
        let node = node_of(turn.wave, self.node);
        let next = match &node.kind {
            NodeKind::Enter { next } => {
                self.enter_anew(node.state, turn);
                *next
            }
            NodeKind::Command(command) => return self.command(turn, node, command),
            NodeKind::Set { assignments, next } => {
                self.assign(assignments, turn)?;
                *next
            }
            NodeKind::Branch { condition, then, otherwise } => {
                if self.holds(condition, turn)? {
                    *then
                } else {
                    *otherwise
                }
            }
            NodeKind::For { values, slot, again } => {
                let value = values.value(&View::new(turn, self)).map_err(in_words)?;
                self.frames.push(Frame::Loop(Loop::over(Sequence::of(&value)?, *slot)));
                *again
            }
            NodeKind::Again { body, next } => self.next_round(*body, *next),
            NodeKind::While { again } => {
                self.frames.push(Frame::Loop(Loop::while_it_holds()));
                *again
            }
            NodeKind::AgainWhile { condition, body, next } => {
                let holds = self.holds(condition, turn)?;
                self.another_round(holds, *body, *next)
            }
            NodeKind::Break { condition, out, next } => {
                let holds = self.holds(condition, turn)?;
                self.break_if(holds, *out, *next)
            }
            NodeKind::Guard { handler, next } => {
                self.frames.push(Frame::Guard { handler: *handler });
                *next
            }
            NodeKind::Goto { to } => {
                while self.leave().is_some() {}
                turn.goes_anew = true;
                *to
            }
            NodeKind::Fail(text) => {
                let text = text.text(&View::new(turn, self));
                return text.map_err(in_words).and_then(Err);
            }
            NodeKind::Limit { limit, next } => {
                let (until, node) = (turn.now.after(*limit), self.node);
                self.frames.push(Frame::Limit(Limit { until, limit: *limit, node }));
                *next
            }
            NodeKind::EndLimit { next } | NodeKind::EndGuard { next } => {
                self.leave();
                *next
            }
            NodeKind::Lanes(node) => return Ok(self.step_of_lanes(node, turn)),
            NodeKind::End => return Ok(Flow::Done),
        };
        Ok(Flow::Go(next))
    }

    /// The same at a node that has to do with several commands at a time.
    fn step_of_lanes(&mut self, node: &LanesNode, turn: &mut Turn<'_>) -> Flow {
        match node {
            LanesNode::List { next } => {
                self.list = Some(Box::default());
                Flow::Go(*next)
            }
            LanesNode::EndList { .. }
                if self.list.as_ref().is_some_and(|list| !list.is_empty()) =>
            {
                Flow::Wait(self.node, Phase::Draining)
            }
            LanesNode::EndList { next } => {
                self.list = None;
                Flow::Go(*next)
            }
            LanesNode::Fork { .. } => Flow::Fork,
            LanesNode::Barrier { barrier, next } => {
                if self.phase == Phase::AtBarrier(*barrier) {
                    self.phase = Phase::Ready;
                    return Flow::Go(*next);
                }
                turn.shared.barriers_in_a_row += 1;
                if turn.shared.barriers_in_a_row > STEPS_WITHOUT_COMMAND_MAX {
                    let error = format!("{STEPS_WITHOUT_COMMAND_MAX} barriers without a command");
                    return Flow::Fail(Fault { node: self.node, error, blamed: None });
                }
                turn.out.push(Effect::Arrived { lane: self.no, barrier: *barrier });
                Flow::Wait(self.node, Phase::AtBarrier(*barrier))
            }
            // Several lanes that wait for one info all go on.
            LanesNode::WaitInfo { info, next } => {
                let told = turn.shared.infos.get_mut(*info as usize).expect("infos are counted");
                if self.phase == Phase::Informed(*info) || told.is_news {
                    told.is_news = false;
                    self.phase = Phase::Ready;
                    return Flow::Go(*next);
                }
                turn.shared.last_stir = turn.now;
                Flow::Wait(self.node, Phase::Informed(*info))
            }
            LanesNode::Await { background, next } => match self.take_awaited(turn, *background) {
                None => Flow::Wait(self.node, Phase::Awaiting(*background)),
                Some(Ok(())) => Flow::Go(*next),
                Some(Err(fault)) => Flow::Fail(fault),
            },
        }
    }

    /// The node after the `await` where it stands.
    pub(super) fn after_await(&self, turn: &Turn<'_>) -> NodeId {
        match &node_of(turn.wave, self.node).kind {
            NodeKind::Lanes(LanesNode::Await { next, .. }) => *next,
            other => panic!("a lane that awaits stands at its `await`, not {other:?}"),
        }
    }

    /// Another round of a `while`, or its end.
    fn another_round(&mut self, holds: bool, body: NodeId, next: NodeId) -> NodeId {
        if holds {
            self.innermost_loop().round();
            return body;
        }
        self.leave_loop();
        next
    }

    fn break_if(&mut self, holds: bool, out: NodeId, next: NodeId) -> NodeId {
        if holds {
            self.leave_loop();
            return out;
        }
        next
    }

    fn holds(&self, condition: &Expr, turn: &Turn<'_>) -> Result<bool, String> {
        condition.holds(&View::new(turn, self)).map_err(in_words)
    }

    fn assign(&self, assignments: &[(u32, Literal)], turn: &mut Turn<'_>) -> Result<(), String> {
        for (var, literal) in assignments {
            let view = View::new(turn, self);
            let value = literal.value(&view).map_err(in_words)?;
            *slot(&mut turn.shared.vars, *var) = value;
        }
        Ok(())
    }

    /// Enters the state of a step that names it: anew, if a loop has come round, or it was gone to.
    fn enter_anew(&mut self, state: Option<StateId>, turn: &mut Turn<'_>) {
        let has_come_round =
            |frame: &Frame| matches!(frame, Frame::Loop(frame) if frame.came_round);
        if turn.goes_anew || self.state() != state || self.frames.iter().any(has_come_round) {
            self.enter(state, turn);
        }
    }

    /// The innermost loop's next value, or its end.
    fn next_round(&mut self, body: NodeId, next: NodeId) -> NodeId {
        let frame = self.innermost_loop();
        match (frame.next_value(), frame.slot()) {
            (Some(value), Some(index)) => {
                *slot(&mut self.slots, index) = value;
                body
            }
            (Some(_), None) | (None, _) => {
                self.leave_loop();
                next
            }
        }
    }

    /// Sends a command: enters its state, evaluates its texts, bounds its time.
    fn command(
        &mut self,
        turn: &mut Turn<'_>,
        node: &Node,
        command: &CommandNode,
    ) -> Result<Flow, String> {
        let state = node.state.expect("every command has its state");
        if self.state() != Some(state) && command.background.is_none() {
            self.enter(Some(state), turn);
        }
        let (action, bytes) = action::build(&command.action, &View::new(turn, self))?;
        let own = command.timeout.map(milliseconds);
        let around = match self.tightest_limit() {
            Some(limit) if limit.until <= turn.now => return Err(limit.in_words(turn.wave)),
            Some(limit) => Some(limit.until.since(turn.now).div_ceil(1_000_000)),
            None => None,
        };
        let scoped = around.is_some_and(|around| own.is_none_or(|own| around < own));
        let background = command.background;
        let visit = match background {
            Some(no) => self.begin_background(turn, no, state)?,
            None => self.position.visit(),
        };
        turn.out.push(Effect::Send(NextCommand {
            token: Token { lane: self.no, background, node: self.node, scoped, bytes },
            lane: background.unwrap_or(self.no),
            state,
            visit,
            name: action.name(),
            prints: matches!(action, Action::Print { .. }),
            action,
            timeout_ms: if scoped { around } else { own },
            pipelined: self.list.is_some() && background.is_none(),
            background: background.is_some(),
            // Of a command that succeeded, `expect` may make a failure, which shows its output.
            keeps_output: turn.wave.reads_output || command.expect.is_some(),
            category: command.category,
        }));
        turn.shared.commands_out += 1;
        turn.shared.barriers_in_a_row = 0;
        if background.is_some() {
            return Ok(Flow::Go(command.next));
        }
        Ok(match self.list.as_deref_mut().map(|list| list.sent(bytes)) {
            None => Flow::Wait(self.node, Phase::Waiting),
            Some(Room::Left) => Flow::Go(command.next),
            Some(Room::Full) => Flow::Wait(command.next, Phase::Listing),
        })
    }

    /// The limit, of the steps around the present one, that is over first.
    pub(super) fn tightest_limit(&self) -> Option<&Limit> {
        let limits = self.frames.iter().filter_map(|frame| match frame {
            Frame::Limit(limit) => Some(limit),
            Frame::Loop(_) | Frame::Guard { .. } => None,
        });
        limits.min_by_key(|limit| limit.until)
    }

    fn enter(&mut self, state: Option<StateId>, turn: &mut Turn<'_>) {
        self.change(state, turn.cause, turn.out);
        turn.cause = Cause::Done;
        turn.goes_anew = false;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn in_words(error: EvalError) -> String {
    error.to_string()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn slot(values: &mut [Value], index: u32) -> &mut Value {
    values.get_mut(index as usize).expect("slots are counted when the program is made")
}
