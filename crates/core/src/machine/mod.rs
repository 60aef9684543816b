//! One worker's machine: a cursor on its wave's graph, loop frames and variables; a few hundred
//! bytes.
//!
//! In: the start, then the reply to each command, with the time C. Out: the next command, or how
//! the program ended, and every change of state. Invariants: only [`Machine::change`] changes the
//! state, and it always emits the record; between two commands a machine takes at most
//! [`STEPS_WITHOUT_COMMAND_MAX`] steps; the same inputs give the same outputs. No clock, no ids of
//! commands, no waiting: those are the fleet's.
//!
//! ```text
//!            advance(Start)             advance(Replied)
//!   Ready ───────┬──────────► Waiting ───┬──┐
//!     ▲          │               ▲       │  └─► (next command)
//!     │          ▼               └───────┘
//!     └───── Ended ◄──────── End, a failed step, stop
//!   take_item
//! ```

mod action;
mod bindings;
mod frame;
mod words;

use std::time::Duration;

use musec_protocol::{Action, AttemptNo, Outcome, Reply};
use musec_trace::{CTime, Cause, StateId, WaveId};
use serde_json::Value as Json;

use crate::limits::STEPS_WITHOUT_COMMAND_MAX;
use crate::machine::bindings::{Last, View};
use crate::machine::frame::{Limit, Loop, Sequence};
use crate::program::node::{CommandNode, Node, NodeId, NodeKind};
use crate::program::{Program, Wave};
use crate::template::{EvalError, Value, value};

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
    /// The answer to the command that the machine waits for.
    Replied(&'a Reply),
}

/// A change of state. `None` is outside of all states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The state left.
    pub from: Option<StateId>,
    /// The state entered. It may be the one that was left: a new visit of it.
    pub to: Option<StateId>,
    /// Why.
    pub cause: Cause,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this and come back with its reply.
    Command(NextCommand),
    /// The program ended well.
    Done,
    /// A step failed, and the program with it.
    Failed(StepFailure),
}

/// A command to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextCommand {
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
    /// Whether the program reads its output: then replay needs it in the journal.
    pub keeps_output: bool,
    /// Whether its output is part of the job's answer (`print`).
    pub prints: bool,
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
}

/// One attempt's machine. It belongs to the program that it was made with: all methods must be
/// given that one.
#[derive(Clone, Debug)]
pub struct Machine {
    wave: WaveId,
    phase: Phase,
    node: NodeId,
    state: Option<StateId>,
    /// How often each state was entered; few, so that a list is smallest.
    visits: Vec<(StateId, u32)>,
    loops: Vec<Loop>,
    limits: Vec<Limit>,
    /// Values of loop names, by slot.
    slots: Vec<Value>,
    /// Values of variables, by their index in the wave's `vars`; undefined if not set.
    vars: Vec<Value>,
    index: u32,
    workers: u32,
    attempt: AttemptNo,
    item: Value,
    last: Option<Last>,
}

/// Where in its life a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// At the program's beginning.
    Ready,
    /// A command is out. `scoped`: its time limit is that of a step around it.
    Waiting { scoped: bool },
    /// Done, failed or stopped.
    Ended,
}

/// What a step that is not a command makes of the machine.
enum Flow {
    Go(NodeId),
    Command(Box<NextCommand>),
    Done,
}

impl Machine {
    /// A machine at the beginning of a wave's program: one for each attempt. Further items go to the
    /// same machine by [`Self::take_item`], because visits are counted by the attempt.
    ///
    /// # Panics
    /// When the program has no such wave.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "the facts are the machine's from here on")]
    pub fn new(program: &Program, wave: WaveId, facts: Facts) -> Self {
        let mut machine = Self {
            wave,
            phase: Phase::Ready,
            node: NodeId(0),
            state: None,
            visits: Vec::new(),
            loops: Vec::new(),
            limits: Vec::new(),
            slots: Vec::new(),
            vars: Vec::new(),
            index: facts.index,
            workers: facts.workers,
            attempt: facts.attempt,
            item: Value::UNDEFINED,
            last: None,
        };
        machine.rewind(program, facts.item.as_ref());
        machine
    }

    /// Goes back to the program's beginning with another item. Variables and the last reply are
    /// forgotten; visits go on counting, because they are the attempt's.
    ///
    /// # Panics
    /// When the machine has not ended its last item.
    pub fn take_item(&mut self, program: &Program, item: &Json) {
        assert_eq!(self.phase, Phase::Ended, "an item is taken after the last one");
        self.rewind(program, Some(item));
    }

    fn rewind(&mut self, program: &Program, item: Option<&Json>) {
        let wave = wave_of(program, self.wave);
        self.phase = Phase::Ready;
        self.node = wave.entry;
        self.loops.clear();
        self.limits.clear();
        self.slots = vec![Value::UNDEFINED; wave.slots as usize];
        self.vars = vec![Value::UNDEFINED; wave.vars.len()];
        self.item = item.map_or(Value::UNDEFINED, value::from_json);
        self.last = None;
    }

    /// The state it is in; `None` before its start and after its end.
    #[must_use]
    pub const fn state(&self) -> Option<StateId> {
        self.state
    }

    /// Goes on from here at `now` (C) until a command is due or the program ends. Every change of
    /// state is appended to `out`, in order.
    ///
    /// # Panics
    /// When `input` is not what the machine waits for: the caller's fault, never a peer's.
    pub fn advance(
        &mut self,
        program: &Program,
        now: CTime,
        input: Advance<'_>,
        out: &mut Vec<Moved>,
    ) -> Step {
        let wave = wave_of(program, self.wave);
        let (first, cause) = match (input, self.phase) {
            (Advance::Start, Phase::Ready) => (Ok(wave.entry), Cause::Start),
            (Advance::Replied(reply), Phase::Waiting { scoped }) => {
                (self.judge(program, wave, reply, scoped), Cause::Done)
            }
            (Advance::Start | Advance::Replied(_), phase) => {
                panic!("{input:?} to a machine that is {phase:?}")
            }
        };
        let end = match first {
            Ok(node) => {
                self.node = node;
                self.walk(program, wave, now, cause, out)
            }
            Err(error) => Err(error),
        };
        match end {
            Ok(Some(command)) => Step::Command(command),
            Ok(None) => {
                self.end(Cause::Done, out);
                Step::Done
            }
            Err(error) => {
                let node = node_of(wave, self.node);
                let failure = StepFailure { state: node.state, name: node.name.clone(), error };
                self.end(Cause::Failed, out);
                Step::Failed(failure)
            }
        }
    }

    /// Ends it from outside. Does nothing to a machine that has ended.
    pub fn stop(&mut self, out: &mut Vec<Moved>) {
        self.end(Cause::Stopped, out);
    }

    fn end(&mut self, cause: Cause, out: &mut Vec<Moved>) {
        self.phase = Phase::Ended;
        if self.state.is_some() {
            self.change(None, cause, out);
        }
    }

    /// The one place that changes the state.
    fn change(&mut self, to: Option<StateId>, cause: Cause, out: &mut Vec<Moved>) {
        out.push(Moved { from: self.state, to, cause });
        self.state = to;
        for frame in &mut self.loops {
            frame.came_round = false;
        }
        let Some(state) = to else { return };
        match self.visits.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.visits.push((state, 1)),
        }
    }

    /// Which visit of the present state this is, from 0.
    fn visit(&self) -> u32 {
        self.visits
            .iter()
            .find(|(state, _)| Some(*state) == self.state)
            .map_or(0, |(_, count)| count.saturating_sub(1))
    }

    /// Judges a reply: the node that comes next, or why the step failed.
    fn judge(
        &mut self,
        program: &Program,
        wave: &Wave,
        reply: &Reply,
        scoped: bool,
    ) -> Result<NodeId, String> {
        let node = node_of(wave, self.node);
        let NodeKind::Command(command) = &node.kind else {
            panic!("a machine waits at {node:?}, which sends nothing");
        };
        let keeps_output = wave.reads_output || command.reads_output();
        self.last = Some(Last::of(reply, keeps_output));
        let verdict = self.verdict(program, wave, command, reply, scoped);
        if !wave.reads_output
            && let Some(last) = &mut self.last
        {
            last.output = None;
        }
        verdict.map(|()| command.next)
    }

    fn verdict(
        &self,
        program: &Program,
        wave: &Wave,
        command: &CommandNode,
        reply: &Reply,
        scoped: bool,
    ) -> Result<(), String> {
        let in_words = || match (&reply.outcome, self.limits.last()) {
            (Outcome::TimedOut { .. }, Some(limit)) if scoped => limit.in_words(wave),
            (outcome, _) => words::outcome(outcome),
        };
        let expected = match &command.expect {
            Some(_) if reply.outcome == Outcome::Cancelled => false,
            Some(expect) => expect
                .holds(&View::new(program, wave, self))
                .map_err(|error| format!("`expect`: {error}"))?,
            None => reply.outcome.is_success(),
        };
        match &command.expect {
            _ if expected => Ok(()),
            Some(expect) => {
                Err(format!("expected `{}`, but: {}", expect.source().trim(), in_words()))
            }
            None => Err(in_words()),
        }
    }

    /// Takes steps until a command is due or the program ends (`None`).
    fn walk(
        &mut self,
        program: &Program,
        wave: &Wave,
        now: CTime,
        cause: Cause,
        out: &mut Vec<Moved>,
    ) -> Result<Option<NextCommand>, String> {
        let mut cause = cause;
        for _ in 0..STEPS_WITHOUT_COMMAND_MAX {
            let moves = out.len();
            match self.step(program, wave, now, cause, out)? {
                Flow::Go(next) => self.node = next,
                Flow::Command(command) => return Ok(Some(*command)),
                Flow::Done => return Ok(None),
            }
            if out.len() > moves {
                cause = Cause::Done;
            }
        }
        Err(format!(
            "{STEPS_WITHOUT_COMMAND_MAX} steps without a command: this loop does not come to an end"
        ))
    }

    /// One step at the present node.
    fn step(
        &mut self,
        program: &Program,
        wave: &Wave,
        now: CTime,
        cause: Cause,
        out: &mut Vec<Moved>,
    ) -> Result<Flow, String> {
        let node = node_of(wave, self.node);
        let next = match &node.kind {
            NodeKind::Enter { next } => {
                let came_round = self.loops.iter().any(|frame| frame.came_round);
                if self.state != node.state || came_round {
                    self.change(node.state, cause, out);
                }
                *next
            }
            NodeKind::Command(command) => {
                let command = self.command(program, wave, node, command, now, cause, out)?;
                return Ok(Flow::Command(Box::new(command)));
            }
            NodeKind::Set { assignments, next } => {
                for (var, literal) in assignments {
                    let value = literal.value(&View::new(program, wave, self)).map_err(in_words)?;
                    *slot(&mut self.vars, *var) = value;
                }
                *next
            }
            NodeKind::Branch { condition, then, otherwise } => {
                let view = View::new(program, wave, self);
                let holds = condition.holds(&view).map_err(in_words)?;
                if holds { *then } else { *otherwise }
            }
            NodeKind::For { values, slot, again } => {
                let value = values.value(&View::new(program, wave, self)).map_err(in_words)?;
                self.loops.push(Loop::new(Sequence::of(&value)?, *slot));
                *again
            }
            NodeKind::Again { body, next } => self.next_round(*body, *next),
            NodeKind::Limit { limit, next } => {
                self.limits.push(Limit {
                    until: now.after(*limit),
                    limit: *limit,
                    node: self.node,
                });
                *next
            }
            NodeKind::EndLimit { next } => {
                self.limits.pop();
                *next
            }
            NodeKind::End => return Ok(Flow::Done),
        };
        Ok(Flow::Go(next))
    }

    /// The innermost loop's next value, or its end.
    fn next_round(&mut self, body: NodeId, next: NodeId) -> NodeId {
        let frame = self.loops.last_mut().expect("a loop's frame is there until its end");
        let index = frame.slot;
        match frame.next_value() {
            Some(value) => {
                *slot(&mut self.slots, index) = value;
                body
            }
            None => {
                self.loops.pop();
                *slot(&mut self.slots, index) = Value::UNDEFINED;
                next
            }
        }
    }

    /// Makes a command ready: enters its state, evaluates its texts, bounds its time.
    #[expect(clippy::too_many_arguments, reason = "the step's own, handed through")]
    fn command(
        &mut self,
        program: &Program,
        wave: &Wave,
        node: &Node,
        command: &CommandNode,
        now: CTime,
        cause: Cause,
        out: &mut Vec<Moved>,
    ) -> Result<NextCommand, String> {
        let state = node.state.expect("every command has its state");
        if self.state != Some(state) {
            self.change(Some(state), cause, out);
        }
        let action = action::build(&command.action, &View::new(program, wave, self))?;
        let own = command.timeout.map(milliseconds);
        let tightest = self.limits.iter().min_by_key(|limit| limit.until);
        let around = match tightest {
            Some(limit) if limit.until <= now => return Err(limit.in_words(wave)),
            Some(limit) => Some(limit.until.since(now).div_ceil(1_000_000)),
            None => None,
        };
        let scoped = around.is_some_and(|around| own.is_none_or(|own| around < own));
        self.phase = Phase::Waiting { scoped };
        Ok(NextCommand {
            state,
            visit: self.visit(),
            name: action.name(),
            prints: matches!(action, Action::Print { .. }),
            action,
            timeout_ms: if scoped { around } else { own },
            keeps_output: wave.reads_output || command.reads_output(),
        })
    }
}

impl CommandNode {
    fn reads_output(&self) -> bool {
        self.expect.as_ref().is_some_and(|expect| expect.reads_output())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn in_words(error: EvalError) -> String {
    error.to_string()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn wave_of(program: &Program, wave: WaveId) -> &Wave {
    program.wave(wave).expect("a machine's wave is in its program")
}

fn node_of(wave: &Wave, node: NodeId) -> &Node {
    wave.nodes.get(node.0 as usize).expect("edges stay within the wave's nodes")
}

fn slot(values: &mut [Value], index: u32) -> &mut Value {
    values.get_mut(index as usize).expect("slots are counted when the program is made")
}
