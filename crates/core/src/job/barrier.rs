//! Barriers: their names, who meets, and whether all can ever be there.

use std::ops::Range;

use toml::de::DeTable;

use crate::job::context::Spot;
use crate::job::step::{Kind, Place, StepReader};
use crate::job::wave::Workers;
use crate::program::node::LaneNo;
use crate::program::{BarrierDef, Count};

/// The barriers of a wave so far.
pub(super) struct Barriers {
    /// By name, sorted.
    known: Vec<Known>,
    /// Where the first stands, and the first of a group.
    first: Option<Range<usize>>,
    first_of_group: Option<Range<usize>>,
}

/// A barrier, and where it was seen.
struct Known {
    name: String,
    seen: Option<(LaneNo, bool)>,
}

impl Barriers {
    pub(super) fn new(names: Vec<String>) -> Self {
        let known = names.into_iter().map(|name| Known { name, seen: None }).collect();
        Self { known, first: None, first_of_group: None }
    }
}

impl<'t> StepReader<'_, 't> {
    pub(super) fn barrier(
        &mut self,
        table: &DeTable<'t>,
        place: Place<'_>,
    ) -> Option<(Kind, String)> {
        let value = table.get("barrier")?;
        let name = self.cx.name("barrier", value)?;
        let by_group = table.get("scope").is_some_and(|scope| self.is_group(scope));
        let barriers = &mut self.barriers;
        let number = barriers.known.iter().position(|known| known.name == name)?;
        barriers.first.get_or_insert_with(|| value.span());
        if by_group {
            barriers.first_of_group.get_or_insert_with(|| value.span());
        }
        let before = barriers.known.get_mut(number)?.seen.replace((place.lane, by_group));
        let wrong = before.and_then(|(lane, was_by_group)| {
            if lane != place.lane {
                Some(format!("the barrier `{name}` is in two lanes of one worker"))
            } else if was_by_group != by_group {
                Some(format!(
                    "the barrier `{name}` is of the wave in one place, of a group in another"
                ))
            } else {
                None
            }
        });
        if let Some(message) = wrong {
            let cure = "give one of them another name".to_owned();
            self.cx.error(value.span(), message, Some(cure));
        }
        Some((Kind::Barrier(u32::try_from(number).ok()?), name.to_owned()))
    }

    fn is_group(&mut self, scope: &Spot<'t>) -> bool {
        let text = self.cx.text("scope", scope);
        if !text.is_none_or(|text| ["wave", "group"].contains(&text)) {
            let message = "`scope` is \"wave\" or \"group\"".to_owned();
            self.cx.error(scope.span(), message, None);
        }
        text == Some("group")
    }

    /// Notes barriers that not all workers can reach together, as far as that is known. All of
    /// them.
    pub(super) fn check_barriers(&mut self, workers: &Workers, each: bool) -> Vec<BarrierDef> {
        let Barriers { known, first, first_of_group } =
            std::mem::replace(&mut self.barriers, Barriers::new(Vec::new()));
        if let Some(span) = first_of_group.filter(|_| workers.group_size.is_none()) {
            let cure = "say how many workers a group has: group_size = 16".to_owned();
            let message = "a barrier of a group in a wave without groups".to_owned();
            self.cx.error(span, message, Some(cure));
        }
        if let Some(span) = first {
            self.check_together(span, workers, each);
        }
        let def = |known: Known| {
            let by_group = known.seen.is_some_and(|(_, by_group)| by_group);
            BarrierDef { name: known.name, by_group }
        };
        known.into_iter().map(def).collect()
    }

    fn check_together(&mut self, span: Range<usize>, workers: &Workers, each: bool) {
        if each && workers.workers.is_none() {
            let message = "a barrier in a wave of which nobody knows how many workers it has";
            let cure = "say how many with `workers`, or leave out `each`".to_owned();
            self.cx.error(span, message.to_owned(), Some(cure));
            return;
        }
        if let (Some(Count::Number(workers)), Some(Count::Number(at_once))) =
            (&workers.workers, &workers.at_once)
            && at_once < workers
        {
            let message = format!(
                "this barrier needs all {workers} workers alive together, and `at_once` is {at_once}"
            );
            let cure = format!("raise `at_once` to {workers}, or leave it out");
            self.cx.error(span, message, Some(cure));
        }
    }
}
