//! Barriers: their names, and whether all workers can ever be there.

use std::ops::Range;

use crate::job::context::Spot;
use crate::job::step::{Kind, Place, StepReader};
use crate::job::wave::Workers;
use crate::program::Count;
use crate::program::node::LaneNo;

/// The barriers of a wave so far.
pub(super) struct Barriers {
    /// Their names, sorted.
    names: Vec<String>,
    /// In which lane each is.
    lanes: Vec<Option<LaneNo>>,
    /// Where the first stands.
    first: Option<Range<usize>>,
}

impl Barriers {
    pub(super) fn new(names: Vec<String>) -> Self {
        let lanes = vec![None; names.len()];
        Self { names, lanes, first: None }
    }
}

impl<'t> StepReader<'_, 't> {
    pub(super) fn barrier(&mut self, value: &Spot<'t>, place: Place<'_>) -> Option<(Kind, String)> {
        let name = self.cx.name("barrier", value)?;
        let number = self.barriers.names.iter().position(|known| known == name)?;
        let lane = self.barriers.lanes.get_mut(number)?;
        if lane.is_some_and(|lane| lane != place.lane) {
            let message = format!("the barrier `{name}` is in two lanes of one worker");
            let cure = "give one of them another name".to_owned();
            self.cx.error(value.span(), message, Some(cure));
        }
        *lane = Some(place.lane);
        self.barriers.first.get_or_insert_with(|| value.span());
        Some((Kind::Barrier(u32::try_from(number).ok()?), name.to_owned()))
    }

    /// Notes barriers that not all workers can reach together, as far as that is known. The names
    /// of all.
    pub(super) fn check_barriers(&mut self, workers: &Workers, each: bool) -> Vec<String> {
        let Barriers { names, first, .. } =
            std::mem::replace(&mut self.barriers, Barriers::new(Vec::new()));
        let Some(span) = first else { return names };
        if each && workers.workers.is_none() {
            let message = "a barrier in a wave of which nobody knows how many workers it has";
            let cure = "say how many with `workers`, or leave out `each`".to_owned();
            self.cx.error(span, message.to_owned(), Some(cure));
            return names;
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
        names
    }
}
