//! Steps: from tables of the job file to checked steps, in the order of the text. Loops are read in
//! `loops`, commands in `command`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use musec_protocol::limits::INFO_KEY_BYTES_MAX;
use toml::de::DeTable;

use crate::job::background::Backgrounds;
use crate::job::barrier::Barriers;
use crate::job::context::{Context, Entry, Spot, entries, listed};
use crate::job::goto::Gotos;
use crate::job::keys::{self, Role};
use crate::job::lanes::NamedLane;
use crate::job::nearest;
use crate::job::params::is_identifier;
use crate::job::reach::Reach;
use crate::limits::STEP_DEPTH_MAX;
use crate::program::node::{ActionTemplate, LaneDef, LaneNo};
use crate::program::{StateDef, StateId, StepCategory, WaveId};
use crate::template::{Expr, Literal, Scope, Template, Value};

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
    /// Whether its commands are sent without awaiting replies.
    pub pipelined: bool,
    pub kind: Kind,
    pub otherwise: Vec<Self>,
    pub on_error: Vec<Self>,
    /// Where it can go on.
    pub reach: Reach,
}

/// What a step does.
pub(super) enum Kind {
    Command {
        state: StateId,
        action: ActionTemplate,
        expect: Option<Expr>,
        category: Option<StepCategory>,
        /// Its sub-lane, if it is a background command.
        background: Option<LaneNo>,
    },
    Set(Vec<(u32, Literal)>),
    Do(Vec<Step>),
    For {
        values: Literal,
        slot: u32,
        body: Vec<Step>,
    },
    While {
        condition: Expr,
        body: Vec<Step>,
    },
    Break(Expr),
    Fail(Template),
    Done,
    /// To the first step of the wave's own that names this state.
    Goto(String),
    /// Of the background command with this name.
    Await(String),
    /// For the info with this index.
    WaitInfo(u32),
    /// At the barrier with this index.
    Barrier(u32),
    Parallel {
        lanes: Vec<NamedLane>,
        /// Whether the first that ends well ends the others.
        first: bool,
    },
}

impl Kind {
    /// The lists of steps that it holds.
    pub(super) fn lists(&self) -> Vec<&[Step]> {
        match self {
            Self::Do(steps) | Self::For { body: steps, .. } | Self::While { body: steps, .. } => {
                vec![steps]
            }
            Self::Parallel { lanes, .. } => lanes.iter().map(|lane| &*lane.steps).collect(),
            Self::Command { .. }
            | Self::Set(_)
            | Self::Break(_)
            | Self::Fail(_)
            | Self::Done
            | Self::Goto(_)
            | Self::Await(_)
            | Self::WaitInfo(_)
            | Self::Barrier(_) => Vec::new(),
        }
    }
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
    /// Keys of the infos that the wave's steps wait for, sorted.
    pub infos: &'c [String],
    pub barriers: Barriers,
    /// Values of the job's parameters.
    pub params: &'c [Value],
    /// Whether an expression other than `expect` reads `last.output`.
    pub reads_output: bool,
    /// How many loop names are bound at a time at most.
    pub slots: u32,
    /// The lanes so far; the first is the program itself.
    pub lanes: Vec<LaneDef>,
    pub backgrounds: Backgrounds,
    pub gotos: Gotos,
}

/// Where a step stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub scope: &'a Scope<'a>,
    pub state: &'a str,
    pub depth: u32,
    /// How many loops with a name are around it.
    pub loops: u32,
    /// Whether any loop is around it, which it may leave.
    pub in_loop: bool,
    /// How many lanes are around it.
    pub lanes: u32,
    /// The lane that it is in.
    pub lane: LaneNo,
    /// The scope at the beginning of the pipelined list that it is in.
    pub list: Option<&'a Scope<'a>>,
}

impl<'t> StepReader<'_, 't> {
    /// The steps of a wave. Steps that name no state belong to one named `state`.
    pub(super) fn read(&mut self, value: &Spot<'t>, scope: &Scope<'_>, state: &str) -> Vec<Step> {
        self.gotos = Gotos::of(value);
        let place = Place {
            scope,
            state,
            depth: 0,
            loops: 0,
            in_loop: false,
            lanes: 0,
            lane: LaneNo::MAIN,
            list: None,
        };
        self.steps("step", value, place)
    }

    pub(super) fn steps(&mut self, key: &str, value: &Spot<'t>, place: Place<'_>) -> Vec<Step> {
        if place.depth >= STEP_DEPTH_MAX {
            let message = format!("steps are nested more than {STEP_DEPTH_MAX} deep");
            self.cx.error(value.span(), message, None);
            return Vec::new();
        }
        let tables = self.cx.tables(key, value);
        if value.get_ref().as_array().is_some_and(|steps| steps.is_empty()) {
            self.cx.error(value.span(), format!("`{key}` has no steps"), None);
        }
        let mut steps = Vec::new();
        let mut can_go_on = true;
        for table in tables {
            let errors_before = self.cx.error_count();
            can_go_on |= place.depth == 0 && self.gotos.lead_to(table);
            let Some(step) = self.step(table, place) else { continue };
            let is_right = self.cx.error_count() == errors_before;
            if !can_go_on && is_right {
                self.cannot_be_reached(table);
            }
            can_go_on = step.reach.passes;
            steps.push(step);
        }
        steps
    }

    fn cannot_be_reached(&mut self, value: &Spot<'t>) {
        let span = value
            .get_ref()
            .as_table()
            .map_or_else(|| value.span(), |table| first_line(value, &entries(table)));
        let message = "this step can never be reached: the one before it does not go on".to_owned();
        let cure = "give the one before it an `if`, or take this one out".to_owned();
        self.cx.error(span, message, Some(cure));
    }

    fn step(&mut self, value: &Spot<'t>, place: Place<'_>) -> Option<Step> {
        let table = value.get_ref().as_table()?;
        let errors_before = self.cx.error_count();
        let all = self.cx.entries(table, keys::Place::Step);
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
        let pipelined = self.is_pipelined(table, place);
        let kind = if pipelined {
            let scope = place.scope.in_list();
            let list = Some(place.list.unwrap_or(place.scope));
            let inside = Place { scope: &scope, list, in_loop: false, ..inner };
            self.kind(action, table, inside, inner)
        } else {
            self.kind(action, table, inner, inner)
        };
        if place.list.is_some() {
            self.check_in_list(&all, action);
        }
        if place.lanes > 0 && action == "done" {
            let message = "`done` within a lane: the other lanes go on".to_owned();
            let cure =
                "let the lane come to its end, and end the program after the join".to_owned();
            let span = table.get("done").map_or_else(|| value.span(), Spot::span);
            self.cx.error(span, message, Some(cure));
        }
        let otherwise = self.more("else", table, inner);
        let on_error = self.more("on_error", table, inner);
        let (kind, text) = kind?;
        let mut reach = Reach::of(&kind, self.params);
        if condition.is_some() {
            reach = reach.or(&Reach::of_list(&otherwise));
        }
        if table.get("on_error").is_some() {
            reach = reach.guarded_by(&Reach::of_list(&on_error));
        }
        self.check_end(table, &kind, timeout, place);
        Some(Step {
            state: state.to_owned(),
            names_state: own_state.is_some(),
            name: name.unwrap_or(action).to_owned(),
            action,
            text,
            condition,
            timeout,
            pipelined,
            kind,
            otherwise,
            on_error,
            reach,
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
            Some((keys::actions().find(|action| *action == entry.key)?, entry))
        });
        let Some((action, _)) = actions.next() else {
            let is_known_wrong = self.cx.error_count() > errors_before
                || all.iter().any(|entry| keys::is_later_action(entry.key));
            if !is_known_wrong {
                let cure = match all.iter().find(|entry| ["for", "while"].contains(&entry.key)) {
                    Some(_) => "a loop has its steps in `do = [{ … }]`".to_owned(),
                    None => {
                        format!("give it one of {}", listed(&keys::actions().collect::<Vec<_>>()))
                    }
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
        let loops = all.iter().filter_map(|entry| {
            ["for", "while"].into_iter().find(|key| *key == entry.key).map(|key| (key, entry))
        });
        let loops: Vec<_> = loops.filter(|_| action == "do").collect();
        if let [_, (_, second)] = loops.as_slice() {
            let message = "a loop with both `for` and `while`".to_owned();
            let cure = "leave one with `break_if`, or nest two loops".to_owned();
            self.cx.error(second.key_span.clone(), message, Some(cure));
        }
        Some(loops.first().map_or(action, |(key, _)| key))
    }

    /// Notes modifiers that do not go with the action.
    fn check_modifiers(&mut self, all: &[Entry<'_, '_>], action: &str) {
        let action = if ["for", "while"].contains(&action) { "do" } else { action };
        let has_if = all.iter().any(|entry| entry.key == "if");
        for entry in all {
            if entry.key == "else" && !has_if {
                let message = "`else` without `if`".to_owned();
                self.cx.error(entry.key_span.clone(), message, None);
            }
            let role = keys::Place::Step.key(entry.key).map(|key| key.role);
            let Some(Role::Modifier(actions)) = role else { continue };
            if !actions.is_empty() && !actions.contains(&action) {
                let message = format!("`{}` does not go with `{action}`", entry.key);
                let cure = format!("it goes with {}", listed(actions));
                self.cx.error(entry.key_span.clone(), message, Some(cure));
            }
        }
    }

    /// What the step does, and that in words. `outer` is where it begins: outside of the pipelined
    /// list that it may be.
    fn kind(
        &mut self,
        action: &'static str,
        table: &DeTable<'t>,
        place: Place<'_>,
        outer: Place<'_>,
    ) -> Option<(Kind, String)> {
        match action {
            "for" => self.for_loop(table, place, outer.scope),
            "while" => self.while_loop(table, place),
            "break_if" => self.break_if(table.get("break_if")?, place),
            "fail" => {
                let text = self.some_template("fail", table.get("fail")?, place.scope)?;
                let words = text.source().to_owned();
                Some((Kind::Fail(text), words))
            }
            "done" => self.done(table.get("done")?),
            "goto" => self.goto(table.get("goto")?, place),
            "parallel" => self.parallel(table, place),
            "barrier" => self.barrier(table, place),
            "wait_info" => self.wait_info(table.get("wait_info")?),
            "await" => self.awaited(table.get("await")?, place),
            "do" => {
                let steps = self.steps("do", table.get("do")?, deeper(place));
                Some((Kind::Do(steps), String::new()))
            }
            "set" => self.set(table.get("set")?, place.scope),
            _ => {
                let background = self.background(table, place);
                let judging = match place.list {
                    _ if background.is_some() => Some(place.scope.judging_background()),
                    Some(start) => Some(place.scope.judging(start)),
                    None => None,
                };
                let expect = table.get("expect").and_then(|value| {
                    // Not counted as a reader of output: the step keeps its own until then.
                    self.cx.expression("expect", value, judging.as_ref().unwrap_or(place.scope))
                });
                let (action, text) = self.command(action, table, place.scope)?;
                let state = self.states.number(self.wave, place.state);
                let category = table.get("category").and_then(|value| self.category(value));
                let kind = Kind::Command { state, action, expect, category, background };
                Some((kind, text))
            }
        }
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

    /// Where the time of a command is counted.
    fn category(&mut self, value: &Spot<'t>) -> Option<StepCategory> {
        let name = self.cx.text("category", value)?;
        let category = StepCategory::ALL.iter().find(|category| category.name() == name);
        if category.is_none() {
            let names: Vec<&str> = StepCategory::ALL.iter().map(|known| known.name()).collect();
            let cure = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", listed(&names)),
            };
            let message = format!("there is no category `{name}` for a command");
            self.cx.error(value.span(), message, Some(cure));
        }
        category.copied()
    }

    fn wait_info(&mut self, value: &Spot<'t>) -> Option<(Kind, String)> {
        let key = self.cx.name("wait_info", value)?;
        if !is_identifier(key) || key.len() > INFO_KEY_BYTES_MAX {
            let message = format!("`info.{}` could not be written", key.escape_debug());
            let cure = "use letters, digits and `_` in the key, not a digit first".to_owned();
            self.cx.error(value.span(), message, Some(cure));
        }
        let info = self.infos.iter().position(|known| known == key);
        let info = info.and_then(|info| u32::try_from(info).ok())?;
        Some((Kind::WaitInfo(info), key.to_owned()))
    }

    fn done(&mut self, value: &Spot<'t>) -> Option<(Kind, String)> {
        if !self.cx.boolean("done", value)? {
            let message = "`done` is true, or it is left out".to_owned();
            self.cx.error(value.span(), message, None);
        }
        Some((Kind::Done, String::new()))
    }

    /// The steps in `else` or `on_error`.
    fn more(&mut self, key: &str, table: &DeTable<'t>, place: Place<'_>) -> Vec<Step> {
        match table.get(key) {
            Some(value) => self.steps(key, value, deeper(place)),
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

    pub(super) fn literal(
        &mut self,
        key: &str,
        value: &Spot<'t>,
        scope: &Scope<'_>,
    ) -> Option<Literal> {
        let literal = self.cx.literal(key, value, scope)?;
        self.reads_output |= literal.reads_output();
        Some(literal)
    }
}

pub(super) const fn deeper(place: Place<'_>) -> Place<'_> {
    Place { depth: place.depth + 1, ..place }
}

/// Where to point for a step as a whole: its first key, or its table.
fn first_line(value: &Spot<'_>, all: &[Entry<'_, '_>]) -> Range<usize> {
    match all.first() {
        Some(first) => first.key_span.start..first.value.span().end,
        None => value.span(),
    }
}
