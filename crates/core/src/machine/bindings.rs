//! A machine as expressions see it.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

use musec_protocol::{ErrorKind, Outcome, Reply};

use crate::machine::lane::Lane;
use crate::machine::{Shared, Turn};
use crate::map::decode;
use crate::program::{Program, Wave};
use crate::template::{Binding, Bindings, Value, param_value, value};

/// The last reply, as far as it is kept.
#[derive(Clone, Debug)]
pub(super) struct Last {
    exit: i32,
    elapsed_ms: u64,
    /// Standard output, if the program reads it.
    pub output: Option<Box<[u8]>>,
}

impl Last {
    pub(super) fn of(reply: &Reply, keeps_output: bool) -> Self {
        Self {
            exit: exit_code(&reply.outcome),
            elapsed_ms: reply.finished.since(reply.started) / 1_000_000,
            output: keeps_output.then(|| reply.stdout.text.as_slice().into()),
        }
    }

    fn value(&self) -> Value {
        let mut entries = BTreeMap::from([
            ("exit", Value::from(self.exit)),
            ("elapsed_ms", Value::from(self.elapsed_ms)),
        ]);
        if let Some(output) = &self.output {
            entries.insert("output", Value::from(String::from_utf8_lossy(output)));
        }
        Value::from(entries)
    }
}

/// `last.exit`: as a shell would say it. 124 is that of timeout(1), 127 of a command that is not
/// there; what runs no process has 0 or 1.
const fn exit_code(outcome: &Outcome) -> i32 {
    match outcome {
        Outcome::Ok => 0,
        Outcome::Exited(code) => *code,
        Outcome::Signalled(signal) => signal.saturating_add(128),
        Outcome::TimedOut { .. } => 124,
        Outcome::Failed { kind, .. } => match kind {
            ErrorKind::Spawn => 127,
            ErrorKind::Missing
            | ErrorKind::Denied
            | ErrorKind::Full
            | ErrorKind::Invalid
            | ErrorKind::Io
            | ErrorKind::Unsupported => 1,
        },
        Outcome::Cancelled => 1,
    }
}

/// Looks names up in a machine, as one of its lanes sees it.
pub(super) struct View<'a> {
    program: &'a Program,
    wave: &'a Wave,
    machine: &'a Shared,
    lane: &'a Lane,
    /// What evaluations may still cost in this turn, in the engine's fuel.
    fuel: &'a Cell<u64>,
}

impl<'a> View<'a> {
    pub(super) const fn new(turn: &'a Turn<'_>, lane: &'a Lane) -> Self {
        let fuel = &turn.fuel;
        Self { program: turn.program, wave: turn.wave, machine: &*turn.shared, lane, fuel }
    }

    /// The item's last part, if it is a text.
    fn item_name(&self) -> Option<&str> {
        self.machine.item.as_str().map(value::name_of)
    }

    /// The item's number in its queue, and its bytes; none if it is no text.
    pub(super) fn item_bytes(&self) -> (u64, Cow<'_, [u8]>) {
        let bytes = self.machine.item.as_str().map_or_else(Cow::default, decode);
        (self.machine.number, bytes)
    }

    fn group(&self) -> (u32, u32) {
        self.wave.group_of(self.machine.index, self.machine.workers)
    }

    fn infos(&self) -> Value {
        let told: BTreeMap<&str, Value> = self
            .wave
            .infos
            .iter()
            .map(String::as_str)
            .zip(self.machine.infos.iter().map(|info| info.value.clone()))
            .filter(|(_, value)| !value.is_undefined())
            .collect();
        Value::from(told)
    }

    fn vars(&self) -> Value {
        let set: BTreeMap<&str, Value> = self
            .wave
            .vars
            .iter()
            .map(String::as_str)
            .zip(self.machine.vars.iter().cloned())
            .filter(|(_, value)| !value.is_undefined())
            .collect();
        Value::from(set)
    }
}

impl Bindings for View<'_> {
    fn spend(&self, fuel: u64) {
        self.fuel.set(self.fuel.get().saturating_sub(fuel));
    }

    fn may_go_on(&self) -> bool {
        self.fuel.get() > 0
    }

    fn value(&self, name: &str, binding: Binding) -> Value {
        let text = |text: Option<&str>| text.map_or(Value::UNDEFINED, Value::from);
        match binding {
            Binding::Param(param) => param_value(&self.program.param_values, param),
            Binding::Index => Value::from(self.machine.index),
            Binding::Workers => Value::from(self.machine.workers),
            Binding::Group => Value::from(self.group().0),
            Binding::Place => Value::from(self.group().1),
            Binding::Wave => Value::from(self.wave.name.as_str()),
            Binding::Attempt => Value::from(self.machine.attempt.0),
            Binding::Item => self.machine.item.clone(),
            Binding::Name => text(self.item_name()),
            Binding::Stem => text(self.item_name().map(|name| value::split_name(name).0)),
            Binding::Ext => text(self.item_name().map(|name| value::split_name(name).1)),
            Binding::Column => self.machine.item.get_attr(name).unwrap_or(Value::UNDEFINED),
            Binding::Vars => self.vars(),
            Binding::Info => self.infos(),
            Binding::Last => match &self.lane.last {
                Some(last) => last.value(),
                None => Value::UNDEFINED,
            },
            Binding::Loop(slot) => param_value(&self.lane.slots, slot),
            // Of the coordinator's machine, for plans only; no step's scope binds it.
            Binding::Cores | Binding::OutputsOf => Value::UNDEFINED,
        }
    }
}
