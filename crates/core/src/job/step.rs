//! Steps: from tables of the job file to checked steps, in the order of the text.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use crate::job::context::{Context, Entry, Spot, entries, listed};
use crate::job::keys::{ACTIONS, LATER_ACTIONS, ONLY_WITH, STEP};
use crate::job::params::{bad_name, is_identifier};
use crate::limits::STEP_DEPTH_MAX;
use crate::program::node::ActionTemplate;
use crate::program::{StateDef, StateId, WaveId};
use crate::template::{Expr, Literal, Scope};

/// A checked step.
pub(super) struct Step {
    /// Its state's name: its own, else its parent's.
    pub state: String,
    /// Whether it names its state itself.
    pub names_state: bool,
    /// What it is called in errors: its name, or its action.
    pub name: String,
    /// Its action.
    pub action: &'static str,
    /// What it is given, on one line.
    pub text: String,
    pub condition: Option<Expr>,
    pub timeout: Option<Duration>,
    pub kind: Kind,
    pub otherwise: Vec<Self>,
}

/// What a step does.
pub(super) enum Kind {
    Command { state: StateId, action: ActionTemplate, expect: Option<Expr> },
    Set(Vec<(u32, Literal)>),
    Do(Vec<Step>),
    For { values: Literal, slot: u32, body: Vec<Step> },
}

/// All states so far, by wave and name.
#[derive(Default)]
pub(super) struct States {
    pub list: Vec<StateDef>,
    numbers: BTreeMap<(WaveId, String), StateId>,
}

impl States {
    /// The number of a state, which is a new one when it is asked for the first time.
    fn number(&mut self, wave: WaveId, name: &str) -> StateId {
        let key = (wave, name.to_owned());
        if let Some(known) = self.numbers.get(&key) {
            return *known;
        }
        let number = StateId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        self.numbers.insert(key, number);
        self.list.push(StateDef { wave, name: name.to_owned() });
        number
    }

    /// The number of a state that may have none, because nothing happens in it.
    pub(super) fn known(&self, wave: WaveId, name: &str) -> Option<StateId> {
        self.numbers.get(&(wave, name.to_owned())).copied()
    }
}

/// Reads the steps of one wave.
pub(super) struct StepReader<'c, 't> {
    pub cx: &'c mut Context<'t>,
    pub wave: WaveId,
    pub states: &'c mut States,
    /// Names of the wave's variables, sorted.
    pub vars: &'c [String],
    /// Whether an expression other than `expect` reads `last.output`.
    pub reads_output: bool,
    /// How many loop names are bound at a time at most.
    pub slots: u32,
}

/// Where a step stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    scope: &'a Scope<'a>,
    state: &'a str,
    depth: u32,
    /// How many loops are around it.
    loops: u32,
}

impl<'t> StepReader<'_, 't> {
    /// The steps of a wave. Steps that name no state belong to one named `state`.
    pub(super) fn read(&mut self, value: &Spot<'t>, scope: &Scope<'_>, state: &str) -> Vec<Step> {
        let place = Place { scope, state, depth: 0, loops: 0 };
        self.steps("step", value, place)
    }

    fn steps(&mut self, key: &str, value: &Spot<'t>, place: Place<'_>) -> Vec<Step> {
        if place.depth >= STEP_DEPTH_MAX {
            let message = format!("steps are nested more than {STEP_DEPTH_MAX} deep");
            self.cx.error(value.span(), message, None);
            return Vec::new();
        }
        let tables = self.cx.tables(key, value);
        if value.get_ref().as_array().is_some_and(|steps| steps.is_empty()) {
            self.cx.error(value.span(), format!("`{key}` has no steps"), None);
        }
        tables.into_iter().filter_map(|table| self.step(table, place)).collect()
    }

    fn step(&mut self, value: &Spot<'t>, place: Place<'_>) -> Option<Step> {
        let table = value.get_ref().as_table()?;
        let errors_before = self.cx.error_count();
        let all = self.cx.entries(table, &STEP);
        let action = self.action_of(value, &all, errors_before)?;
        self.check_modifiers(&all, action);
        let own_state = table.get("state").and_then(|value| self.cx.name("state", value));
        if let Some(state) = own_state {
            self.states.number(self.wave, state);
        }
        let state = own_state.unwrap_or(place.state);
        let inner = Place { state, ..place };
        let condition = table.get("if").and_then(|value| self.expression("if", value, place.scope));
        let timeout = table.get("timeout").and_then(|value| self.cx.duration("timeout", value));
        let name = table.get("name").and_then(|value| self.cx.name("name", value));
        let kind = self.kind(action, table, inner);
        let otherwise = self.otherwise(table, inner);
        let (kind, text) = kind?;
        Some(Step {
            state: state.to_owned(),
            names_state: own_state.is_some(),
            name: name.unwrap_or(action).to_owned(),
            action,
            text,
            condition,
            timeout,
            kind,
            otherwise,
        })
    }

    /// The one action of a step; `for` is that of its loop.
    fn action_of(
        &mut self,
        value: &Spot<'t>,
        all: &[Entry<'_, '_>],
        errors_before: usize,
    ) -> Option<&'static str> {
        let mut actions = all.iter().filter_map(|entry| {
            let action = ACTIONS.iter().find(|action| **action == entry.key)?;
            Some((*action, entry))
        });
        let Some((action, _)) = actions.next() else {
            let is_known_wrong = self.cx.error_count() > errors_before
                || all.iter().any(|entry| LATER_ACTIONS.contains(&entry.key));
            if !is_known_wrong {
                let cure = match all.iter().find(|entry| entry.key == "for") {
                    Some(_) => "a loop has its steps in `do = [{ … }]`".to_owned(),
                    None => format!("give it one of {}", listed(ACTIONS)),
                };
                let span = first_line(value, all);
                self.cx.error(span, "a step without an action".to_owned(), Some(cure));
            }
            return None;
        };
        for (other, entry) in actions {
            let message = format!("a step with two actions: `{action}` and `{other}`");
            let cure = "make two steps of it, or put them in `do = [{ … }, { … }]`".to_owned();
            self.cx.error(entry.key_span.clone(), message, Some(cure));
        }
        let is_loop = action == "do" && all.iter().any(|entry| entry.key == "for");
        Some(if is_loop { "for" } else { action })
    }

    /// Notes modifiers that do not go with the action.
    fn check_modifiers(&mut self, all: &[Entry<'_, '_>], action: &str) {
        let action = if action == "for" { "do" } else { action };
        let has_if = all.iter().any(|entry| entry.key == "if");
        for entry in all {
            if entry.key == "else" && !has_if {
                let message = "`else` without `if`".to_owned();
                self.cx.error(entry.key_span.clone(), message, None);
            }
            let allowed = ONLY_WITH.iter().find(|(key, _)| *key == entry.key);
            let Some((key, actions)) = allowed else { continue };
            if !actions.contains(&action) {
                let message = format!("`{key}` does not go with `{action}`");
                let cure = format!("it goes with {}", listed(actions));
                self.cx.error(entry.key_span.clone(), message, Some(cure));
            }
        }
    }

    /// What the step does, and that in words.
    fn kind(
        &mut self,
        action: &'static str,
        table: &DeTable<'t>,
        place: Place<'_>,
    ) -> Option<(Kind, String)> {
        match action {
            "for" => self.loop_of(table, place),
            "do" => {
                let steps = self.steps("do", table.get("do")?, deeper(place));
                Some((Kind::Do(steps), String::new()))
            }
            "set" => self.set(table.get("set")?, place.scope),
            _ => {
                let expect = table.get("expect").and_then(|value| {
                    // Not counted as a reader of output: the step keeps its own until then.
                    self.cx.expression("expect", value, place.scope)
                });
                let (template, text) = self.command(action, table, place.scope)?;
                let state = self.states.number(self.wave, place.state);
                let kind = Kind::Command { state, action: template, expect };
                Some((kind, text))
            }
        }
    }

    fn loop_of(&mut self, table: &DeTable<'t>, place: Place<'_>) -> Option<(Kind, String)> {
        let value = table.get("for")?;
        let names = self.cx.table("for", value)?;
        let names = entries(names);
        let [one] = names.as_slice() else {
            let message = format!("`for` binds one name, this has {}", names.len());
            let cure = "write for = { k = \"range(3)\" }; loops can be nested".to_owned();
            self.cx.error(value.span(), message, Some(cure));
            return None;
        };
        if let Some((message, cure)) = bad_name(one.key) {
            self.cx.error(one.key_span.clone(), message, Some(cure));
        }
        if !matches!(one.value.get_ref(), DeValue::String(_) | DeValue::Array(_)) {
            self.cx.wrong_type(one.key, one.value, "an expression, or a list");
            return None;
        }
        let values = self.literal(one.key, one.value, place.scope);
        let slot = place.loops;
        self.slots = self.slots.max(slot + 1);
        let scope = place.scope.with_loop(one.key, slot);
        let inside = Place { scope: &scope, loops: place.loops + 1, ..deeper(place) };
        let body = self.steps("do", table.get("do")?, inside);
        let values = values?;
        let text = format!("{} in {}", one.key, values.source().trim());
        Some((Kind::For { values, slot, body }, text))
    }

    fn set(&mut self, value: &Spot<'t>, scope: &Scope<'_>) -> Option<(Kind, String)> {
        let table = self.cx.table("set", value)?;
        let mut assignments = Vec::new();
        let mut texts = Vec::new();
        if table.is_empty() {
            self.cx.error(value.span(), "`set` sets nothing".to_owned(), None);
        }
        for entry in entries(table) {
            if !is_identifier(entry.key) {
                let message = format!("`{}` cannot be used in an expression", entry.key);
                let cure = "use letters, digits and `_`, not a digit first".to_owned();
                self.cx.error(entry.key_span.clone(), message, Some(cure));
                continue;
            }
            let literal = self.literal(entry.key, entry.value, scope);
            let number = self.vars.iter().position(|var| var == entry.key);
            let number = number.and_then(|number| u32::try_from(number).ok());
            if let (Some(literal), Some(number)) = (literal, number) {
                texts.push(format!("{} = {}", entry.key, literal.source().trim()));
                assignments.push((number, literal));
            }
        }
        Some((Kind::Set(assignments), texts.join(", ")))
    }

    fn otherwise(&mut self, table: &DeTable<'t>, place: Place<'_>) -> Vec<Step> {
        match table.get("else") {
            Some(value) => self.steps("else", value, deeper(place)),
            None => Vec::new(),
        }
    }

    pub(super) fn expression(
        &mut self,
        key: &str,
        value: &Spot<'t>,
        scope: &Scope<'_>,
    ) -> Option<Expr> {
        let expr = self.cx.expression(key, value, scope)?;
        self.reads_output |= expr.reads_output();
        Some(expr)
    }

    fn literal(&mut self, key: &str, value: &Spot<'t>, scope: &Scope<'_>) -> Option<Literal> {
        let literal = self.cx.literal(key, value, scope)?;
        self.reads_output |= literal.reads_output();
        Some(literal)
    }
}

const fn deeper(place: Place<'_>) -> Place<'_> {
    Place { depth: place.depth + 1, ..place }
}

/// Where to point for a step as a whole: its first key, or its table.
fn first_line(value: &Spot<'_>, all: &[Entry<'_, '_>]) -> Range<usize> {
    match all.first() {
        Some(first) => first.key_span.start..first.value.span().end,
        None => value.span(),
    }
}

/// Names of all variables that the steps of a wave set, sorted.
pub(super) fn variables(steps: &Spot<'_>) -> Vec<String> {
    let mut names = Vec::new();
    collect_variables(steps, STEP_DEPTH_MAX, &mut names);
    names.sort_unstable();
    names.dedup();
    names
}

fn collect_variables(steps: &Spot<'_>, depth: u32, names: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let tables: Vec<&DeTable<'_>> = match steps.get_ref() {
        DeValue::Array(values) => {
            values.iter().filter_map(|value| value.get_ref().as_table()).collect()
        }
        DeValue::Table(table) => vec![table],
        _ => Vec::new(),
    };
    for table in tables {
        if let Some(set) = table.get("set").and_then(|set| set.get_ref().as_table()) {
            names.extend(set.keys().map(|name| name.get_ref().to_string()));
        }
        for key in ["do", "else"] {
            if let Some(inner) = table.get(key) {
                collect_variables(inner, depth, names);
            }
        }
    }
}
