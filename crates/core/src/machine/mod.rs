//! One worker's machine: a cursor on its wave's graph, loop frames and variables; a few hundred
//! bytes.
//!
//! In: the start, then the reply to each command, with the time C. Out: commands, changes of state,
//! or how the program ended. Invariants: a state is changed only where the change is recorded
//! ([`position`]); for one input a machine takes at most
//! [`crate::limits::STEPS_WITHOUT_COMMAND_MAX`] steps; the same inputs give the same outputs. No
//! clock, no numbering of commands, no waiting: those are the fleet's.
//!
//! ```text
//!           advance(Start)            advance(Replied, Time)
//!   Ready ───────┬──────────► Going ───┬──┐
//!     ▲          │              ▲      │  └─► (commands)
//!     │          ▼              └──────┘
//!     └───── Ended ◄──────── End, a failed step, stop
//!   take_item
//! ```

mod action;
mod background;
mod bindings;
mod frame;
mod judge;
mod lane;
mod lanes;
mod list;
mod position;
mod step;
mod walk;
mod words;

use std::cell::Cell;

use musec_protocol::AttemptNo;
use musec_trace::{CTime, Cause, StateId, WaitReason, WaveId};
use serde_json::Value as Json;

pub use step::{Advance, Blame, Effect, Facts, Moved, NextCommand, Progress, StepFailure, Token};

use crate::limits::{FUEL_WITHOUT_COMMAND, STEPS_WITHOUT_COMMAND_MAX};
use crate::machine::lane::{Lane, Phase};
use crate::machine::lanes::Lanes;
use crate::program::node::{LaneDef, LaneNo, Node, NodeId};
use crate::program::{Items, Program, Wave};
use crate::template::{Value, value};

/// Characters of an item that an error repeats: more would hide the error.
const ITEM_CHARS_MAX: usize = 200;

/// One attempt's machine. It belongs to the program that it was made with: all methods must be
/// given that one.
#[derive(Clone, Debug)]
pub struct Machine {
    wave: WaveId,
    shared: Shared,
    lanes: Lanes,
    /// Whether it does the steps of `setup`.
    is_setup: bool,
    /// The variables and infos as `setup` left them, for every item.
    first: Option<Box<First>>,
}

/// What stays of `setup` for every item.
#[derive(Clone, Debug)]
struct First {
    vars: Vec<Value>,
    infos: Box<[Info]>,
}

/// What user code told for a key.
#[derive(Clone, Debug, Default)]
struct Info {
    /// Undefined until it is told.
    value: Value,
    /// Whether it was told and no step has waited for it since.
    is_news: bool,
}

/// What all lanes of a machine see.
#[derive(Clone, Debug)]
struct Shared {
    /// Values of variables, by their index in the wave's `vars`; undefined if not set.
    vars: Vec<Value>,
    /// What user code told, by the key's index in the wave's `infos`.
    infos: Box<[Info]>,
    /// Commands that have no reply yet.
    commands_out: u32,
    /// Barriers reached since the last command.
    barriers_in_a_row: u32,
    /// When the last reply came, or a lane began to wait for an info, C.
    last_stir: CTime,
    index: u32,
    workers: u32,
    attempt: AttemptNo,
    item: Value,
    /// The item's number in its queue.
    number: u64,
}

impl Shared {
    /// Since when (C) no command is out; `None` if one is.
    fn quiet_since(&self) -> Option<CTime> {
        (self.commands_out == 0).then_some(self.last_stir)
    }
}

/// One call of [`Machine::advance`]: what it is given, and what it gives.
struct Turn<'a> {
    program: &'a Program,
    wave: &'a Wave,
    shared: &'a mut Shared,
    /// Whether it does the steps of `setup`.
    is_setup: bool,
    now: CTime,
    /// Why the next change of state happens.
    cause: Cause,
    /// Whether a `goto` led here: the state that comes is entered anew.
    goes_anew: bool,
    /// Steps that may still be taken.
    budget: u32,
    /// What evaluations may still cost, in the engine's fuel.
    fuel: Cell<u64>,
    out: &'a mut Vec<Effect>,
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
            shared: Shared {
                vars: Vec::new(),
                infos: Box::default(),
                commands_out: 0,
                barriers_in_a_row: 0,
                last_stir: CTime::ZERO,
                index: facts.index,
                workers: facts.workers,
                attempt: facts.attempt,
                item: Value::UNDEFINED,
                number: 0,
            },
            lanes: Lanes::new(Lane::at(LaneNo::MAIN, NodeId(0))),
            is_setup: false,
            first: None,
        };
        machine.rewind(program, facts.item.as_ref());
        let setup = wave_of(program, wave).setup.filter(|_| facts.item.is_none());
        if let Some(setup) = setup {
            machine.is_setup = true;
            machine.lanes.main.node = setup;
        }
        machine
    }

    /// Goes back to the program's beginning with another item. Variables are again as `setup` left
    /// them, the last reply is forgotten; visits go on counting, because they are the attempt's.
    ///
    /// # Panics
    /// When the machine has not ended its last item.
    pub fn take_item(&mut self, program: &Program, item: &Json) {
        assert_eq!(self.lanes.main.phase, Phase::Ended, "an item is taken after the last one");
        if std::mem::replace(&mut self.is_setup, false) {
            let (vars, infos) = (self.shared.vars.clone(), self.shared.infos.clone());
            self.first = Some(Box::new(First { vars, infos }));
        }
        self.rewind(program, Some(item));
    }

    /// Tells it the number in the queue of the item that it has.
    pub const fn number_item(&mut self, number: u64) {
        self.shared.number = number;
    }

    /// What its item is called in errors, where each item is a word of the command line: `item 3
    /// (a.png)`.
    #[must_use]
    pub fn item_in_words(&self, program: &Program) -> Option<String> {
        let wave = wave_of(program, self.wave);
        let is_bytes = matches!(wave.items, Some(Items::Bytes(_)));
        let item = self.shared.item.as_str().filter(|_| is_bytes)?;
        let mut words = format!("item {} ({}", self.shared.number, item.escape_debug());
        if words.chars().count() > ITEM_CHARS_MAX {
            words = words.chars().take(ITEM_CHARS_MAX).chain(['…']).collect();
        }
        words.push(')');
        Some(words)
    }

    fn rewind(&mut self, program: &Program, item: Option<&Json>) {
        let wave = wave_of(program, self.wave);
        let slots = vec![Value::UNDEFINED; wave.slots as usize].into();
        let begun = Lane { slots, ..Lane::at(LaneNo::MAIN, wave.entry) };
        self.lanes.main = self.lanes.main.begun_again(begun);
        (self.shared.vars, self.shared.infos) = match self.first.as_deref() {
            Some(First { vars, infos }) => (vars.clone(), infos.clone()),
            None => {
                let vars = vec![Value::UNDEFINED; wave.vars.len()];
                (vars, vec![Info::default(); wave.infos.len()].into())
            }
        };
        self.shared.item = item.map_or(Value::UNDEFINED, value::from_json);
    }

    /// The state that it is in, whatever its lanes are in; `None` before its start and after its
    /// end.
    #[must_use]
    pub const fn state(&self) -> Option<StateId> {
        self.lanes.main.state()
    }

    /// Whether it does, or did last, the steps of `setup`.
    #[must_use]
    pub const fn is_setup(&self) -> bool {
        self.is_setup
    }

    /// When it is to be given [`Advance::Time`], C. Ask again after every input.
    #[must_use]
    pub fn deadline(&self) -> Option<CTime> {
        self.lanes.deadline(&self.shared)
    }

    /// What it waits for, when no command of it is out; `None` if it waits for nothing.
    #[must_use]
    pub fn wait_reason(&self) -> Option<WaitReason> {
        self.lanes.wait_reason()
    }

    /// Goes on from here at `now` (C) until something has to be waited for, or the program ends.
    /// What is to be done is appended to `out`, in order.
    ///
    /// # Panics
    /// When `input` is not what the machine waits for: the caller's fault, never a peer's.
    pub fn advance(
        &mut self,
        program: &Program,
        now: CTime,
        input: Advance<'_>,
        out: &mut Vec<Effect>,
    ) -> Progress {
        let wave = wave_of(program, self.wave);
        let budget = STEPS_WITHOUT_COMMAND_MAX;
        let (shared, is_setup, cause) = (&mut self.shared, self.is_setup, Cause::Done);
        let fuel = Cell::new(FUEL_WITHOUT_COMMAND);
        let goes_anew = false;
        let mut turn =
            Turn { program, wave, shared, is_setup, now, cause, goes_anew, budget, fuel, out };
        let (lane, rest) = match input {
            Advance::Start => (LaneNo::MAIN, self.lanes.main.start(&mut turn)),
            Advance::Replied(token, reply) => {
                turn.shared.commands_out -= 1;
                turn.shared.last_stir = now;
                (token.lane, self.lanes.lane(token.lane).replied(&mut turn, token, reply))
            }
            Advance::Told(key, value) => return self.lanes.told(&mut turn, key, value),
            Advance::Released(barrier) => return self.lanes.released(&mut turn, barrier),
            Advance::Time => return self.lanes.time(&mut turn),
        };
        self.lanes.settle(&mut turn, lane, rest)
    }

    /// Ends it from outside. Does nothing to a machine that has ended.
    pub fn stop(&mut self, out: &mut Vec<Effect>) {
        self.lanes.end(Cause::Stopped, out);
    }
}

fn wave_of(program: &Program, wave: WaveId) -> &Wave {
    program.wave(wave).expect("a machine's wave is in its program")
}

fn lane_of(wave: &Wave, lane: LaneNo) -> &LaneDef {
    wave.lane(lane).expect("a machine's lanes are in its wave")
}

fn node_of(wave: &Wave, node: NodeId) -> &Node {
    wave.nodes.get(node.0 as usize).expect("edges stay within the wave's nodes")
}
