//! Loops: `for`, `while`, `break_if`, and whether they come to an end.

use std::time::Duration;

use toml::de::{DeTable, DeValue};

use crate::job::context::{Spot, entries};
use crate::job::params::bad_name;
use crate::job::reach::{self, Reach};
use crate::job::step::{Kind, Place, StepReader, deeper};
use crate::template::{Binding, Scope};

impl<'t> StepReader<'_, 't> {
    /// A `for`; its values are evaluated once, in `outer`.
    pub(super) fn for_loop(
        &mut self,
        table: &DeTable<'t>,
        place: Place<'_>,
        outer: &Scope<'_>,
    ) -> Option<(Kind, String)> {
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
        let values = self.literal(one.key, one.value, outer);
        let slot = place.loops;
        self.slots = self.slots.max(slot + 1);
        let scope = place.scope.with_loop(one.key, slot);
        let inside = Place { scope: &scope, loops: place.loops + 1, in_loop: true, ..place };
        let body = self.steps("do", table.get("do")?, deeper(inside));
        let values = values?;
        let text = format!("{} in {}", one.key, values.source().trim());
        Some((Kind::For { values, slot, body }, text))
    }

    pub(super) fn while_loop(
        &mut self,
        table: &DeTable<'t>,
        place: Place<'_>,
    ) -> Option<(Kind, String)> {
        let condition = self.expression("while", table.get("while")?, place.scope);
        let inside = Place { in_loop: true, ..place };
        let body = self.steps("do", table.get("do")?, deeper(inside));
        let condition = condition?;
        let text = condition.source().trim().to_owned();
        Some((Kind::While { condition, body }, text))
    }

    pub(super) fn break_if(
        &mut self,
        value: &Spot<'t>,
        place: Place<'_>,
    ) -> Option<(Kind, String)> {
        if !place.in_loop {
            let message = "`break_if` is in no loop".to_owned();
            let cure = "it stands in the `do` of a step with `for` or `while`".to_owned();
            self.cx.error(value.span(), message, Some(cure));
        }
        let condition = self.expression("break_if", value, place.scope)?;
        let text = condition.source().trim().to_owned();
        Some((Kind::Break(condition), text))
    }

    /// Notes a loop whose condition nothing in it can change, and that nothing leaves.
    pub(super) fn check_end(
        &mut self,
        table: &DeTable<'t>,
        kind: &Kind,
        timeout: Option<Duration>,
        place: Place<'_>,
    ) {
        let Kind::While { condition, body } = kind else { return };
        let inside = Reach::of_list(body);
        // Other lanes may set what it reads.
        let is_lane = place.lanes > 0 && condition.bindings().any(|b| b == Binding::Vars);
        let is_left = inside.breaks || inside.ends || inside.fails || timeout.is_some() || is_lane;
        let never_begins = reach::constant(condition, self.params) == Some(false);
        if is_left || never_begins || reach::can_change(condition, body, self.vars) {
            return;
        }
        let span = table.get("while").map_or(0..0, Spot::span);
        let message = "this loop cannot end: nothing in it changes its condition".to_owned();
        let cure = "change what it reads with `set`, or leave it with `break_if`".to_owned();
        self.cx.error(span, message, Some(cure));
    }
}
