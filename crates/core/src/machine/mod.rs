//! One worker's machine: a cursor on its wave's graph, loop frames and variables; a few hundred
//! bytes.
//!
//! In: the start, then the reply to each command, with the time C. Out: the next command, or how
//! the program ended, and every change of state. Invariants: a state is changed only where the
//! change is recorded ([`position`]); between two commands a machine takes at most
//! [`crate::limits::STEPS_WITHOUT_COMMAND_MAX`] steps; the same inputs give the same outputs. No
//! clock, no ids of commands, no waiting: those are the fleet's.
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
mod judge;
mod position;
mod step;
mod walk;
mod words;

use musec_protocol::AttemptNo;
use musec_trace::{CTime, Cause, StateId, WaveId};
use serde_json::Value as Json;

pub use step::{Advance, Facts, Moved, NextCommand, Step, StepFailure};

use crate::limits::STEPS_WITHOUT_COMMAND_MAX;
use crate::machine::bindings::Last;
use crate::machine::frame::Frame;
use crate::machine::position::Position;
use crate::program::node::{Node, NodeId};
use crate::program::{Items, Program, Wave};
use crate::template::{Value, value};

/// Characters of an item that an error repeats: more would hide the error.
const ITEM_CHARS_MAX: usize = 200;

/// One attempt's machine. It belongs to the program that it was made with: all methods must be
/// given that one.
#[derive(Clone, Debug)]
pub struct Machine {
    wave: WaveId,
    phase: Phase,
    node: NodeId,
    position: Position,
    /// What it is in, innermost last.
    frames: Vec<Frame>,
    /// Values of loop names, by slot.
    slots: Vec<Value>,
    /// Values of variables, by their index in the wave's `vars`; undefined if not set.
    vars: Vec<Value>,
    index: u32,
    workers: u32,
    attempt: AttemptNo,
    item: Value,
    /// The item's number in its queue.
    number: u64,
    last: Option<Last>,
    /// Whether it does the steps of `setup`.
    is_setup: bool,
    /// The variables as `setup` left them, for every item.
    first_vars: Option<Box<[Value]>>,
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

/// One call of [`Machine::advance`]: what it is given, and what it gives.
struct Turn<'a> {
    program: &'a Program,
    wave: &'a Wave,
    now: CTime,
    /// Why the next change of state happens.
    cause: Cause,
    /// Steps that may still be taken before a command is due.
    budget: u32,
    out: &'a mut Vec<Moved>,
}

impl Machine {
    /// A machine at the beginning of a wave's program: one for each attempt. Without an item it
    /// begins with `setup`, if the wave has one. (Further) items go to the same machine by
    /// [`Self::take_item`], because visits are counted by the attempt.
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
            position: Position::default(),
            frames: Vec::new(),
            slots: Vec::new(),
            vars: Vec::new(),
            index: facts.index,
            workers: facts.workers,
            attempt: facts.attempt,
            item: Value::UNDEFINED,
            number: 0,
            last: None,
            is_setup: false,
            first_vars: None,
        };
        machine.rewind(program, facts.item.as_ref());
        let setup = wave_of(program, wave).setup.filter(|_| facts.item.is_none());
        if let Some(setup) = setup {
            machine.is_setup = true;
            machine.node = setup;
        }
        machine
    }

    /// Goes back to the program's beginning with another item. Variables are again as `setup` left
    /// them, the last reply is forgotten; visits go on counting, because they are the attempt's.
    ///
    /// # Panics
    /// When the machine has not ended its last item.
    pub fn take_item(&mut self, program: &Program, item: &Json) {
        assert_eq!(self.phase, Phase::Ended, "an item is taken after the last one");
        if std::mem::replace(&mut self.is_setup, false) {
            self.first_vars = Some(self.vars.as_slice().into());
        }
        self.rewind(program, Some(item));
    }

    /// Tells it the number in the queue of the item that it has.
    pub const fn number_item(&mut self, number: u64) {
        self.number = number;
    }

    /// What its item is called in errors, where each item is a word of the command line: `item 3
    /// (a.png)`.
    #[must_use]
    pub fn item_in_words(&self, program: &Program) -> Option<String> {
        let wave = wave_of(program, self.wave);
        let item = self.item.as_str().filter(|_| matches!(wave.items, Some(Items::Bytes(_))))?;
        let mut words = format!("item {} ({}", self.number, item.escape_debug());
        if words.chars().count() > ITEM_CHARS_MAX {
            words = words.chars().take(ITEM_CHARS_MAX).chain(['…']).collect();
        }
        words.push(')');
        Some(words)
    }

    fn rewind(&mut self, program: &Program, item: Option<&Json>) {
        let wave = wave_of(program, self.wave);
        self.phase = Phase::Ready;
        self.node = wave.entry;
        self.frames.clear();
        self.slots = vec![Value::UNDEFINED; wave.slots as usize];
        self.vars = match &self.first_vars {
            Some(vars) => vars.to_vec(),
            None => vec![Value::UNDEFINED; wave.vars.len()],
        };
        self.item = item.map_or(Value::UNDEFINED, value::from_json);
        self.last = None;
    }

    /// The state it is in; `None` before its start and after its end.
    #[must_use]
    pub const fn state(&self) -> Option<StateId> {
        self.position.state()
    }

    /// Whether it does, or did last, the steps of `setup`.
    #[must_use]
    pub const fn is_setup(&self) -> bool {
        self.is_setup
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
        let budget = STEPS_WITHOUT_COMMAND_MAX;
        let mut turn = Turn { program, wave, now, cause: Cause::Done, budget, out };
        let first = match (input, self.phase) {
            (Advance::Start, Phase::Ready) => {
                turn.cause = Cause::Start;
                Ok(self.node)
            }
            (Advance::Replied(reply), Phase::Waiting { scoped }) => {
                self.judge(&turn, reply, scoped)
            }
            (Advance::Start | Advance::Replied(_), phase) => {
                panic!("{input:?} to a machine that is {phase:?}")
            }
        };
        let mut is_reply = first.is_err();
        let mut next = first;
        let end = loop {
            let end = next.and_then(|node| {
                self.node = node;
                self.walk(&mut turn)
            });
            let Some(handler) = end.as_ref().err().and_then(|_| self.catch()) else { break end };
            turn.cause = Cause::Failed;
            is_reply = false;
            next = Ok(handler);
        };
        match end {
            Ok(Some(command)) => Step::Command(command),
            Ok(None) => {
                self.end(Cause::Done, out);
                Step::Done
            }
            Err(error) => {
                let node = node_of(wave, self.node);
                let (state, name) = (node.state, node.name.clone());
                self.end(Cause::Failed, out);
                Step::Failed(StepFailure { state, name, error, is_reply })
            }
        }
    }

    /// Ends it from outside. Does nothing to a machine that has ended.
    pub fn stop(&mut self, out: &mut Vec<Moved>) {
        self.end(Cause::Stopped, out);
    }

    fn end(&mut self, cause: Cause, out: &mut Vec<Moved>) {
        self.phase = Phase::Ended;
        if self.state().is_some() {
            self.change(None, cause, out);
        }
    }

    /// Changes the state, which records it; loops have not come round since.
    fn change(&mut self, to: Option<StateId>, cause: Cause, out: &mut Vec<Moved>) {
        self.position.change(to, cause, out);
        for frame in &mut self.frames {
            if let Frame::Loop(frame) = frame {
                frame.came_round = false;
            }
        }
    }
}

fn wave_of(program: &Program, wave: WaveId) -> &Wave {
    program.wave(wave).expect("a machine's wave is in its program")
}

fn node_of(wave: &Wave, node: NodeId) -> &Node {
    wave.nodes.get(node.0 as usize).expect("edges stay within the wave's nodes")
}
