//! `goto`: edges that make any graph of the states of a wave.

use toml::de::DeTable;

use crate::job::context::{Spot, listed};
use crate::job::nearest;
use crate::job::step::{Kind, Place, StepReader};
use crate::job::variables;

/// Where the steps of a program can go to, and where they do.
#[derive(Default)]
pub(super) struct Gotos {
    /// States that steps of the program's own name, in the order of the text.
    states: Vec<String>,
    /// States that a `goto` leads to, sorted.
    used: Vec<String>,
}

impl Gotos {
    /// Those of the steps of a program.
    pub(super) fn of(steps: &Spot<'_>) -> Self {
        let tables = steps.get_ref().as_array().into_iter().flatten();
        let states = tables.filter_map(|step| state_of(step.get_ref().as_table()?));
        Self { states: states.map(str::to_owned).collect(), used: variables::gotos(steps) }
    }

    /// Whether a `goto` leads to this step of the program's own.
    pub(super) fn lead_to(&self, step: &Spot<'_>) -> bool {
        let state = step.get_ref().as_table().and_then(state_of);
        state.is_some_and(|state| self.used.iter().any(|used| used == state))
    }
}

fn state_of<'s>(step: &'s DeTable<'_>) -> Option<&'s str> {
    step.get("state")?.get_ref().as_str()
}

impl<'t> StepReader<'_, 't> {
    /// A `goto`.
    pub(super) fn goto(&mut self, value: &Spot<'t>, place: Place<'_>) -> Option<(Kind, String)> {
        let state = self.cx.name("goto", value)?;
        if place.lanes > 0 {
            let message = "`goto` within a lane: the other lanes go on".to_owned();
            let cure = "let the lane come to its end, and go on after the join".to_owned();
            self.cx.error(value.span(), message, Some(cure));
        }
        let states = &self.gotos.states;
        if !states.iter().any(|known| known == state) {
            let cure = match nearest(state, states.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None if states.is_empty() => {
                    format!("give the step that it leads to `state = \"{state}\"`")
                }
                None => format!("there are {}", listed(states)),
            };
            let message = format!("no step of the wave's own names the state `{state}`");
            self.cx.error(value.span(), message, Some(cure));
        }
        Some((Kind::Goto(state.to_owned()), state.to_owned()))
    }
}
