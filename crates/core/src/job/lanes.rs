//! Lanes: `parallel`.

use toml::de::DeTable;

use crate::job::context::{Spot, entries};
use crate::job::keys;
use crate::job::step::{Kind, Place, StepReader, deeper};
use crate::limits::LANES_MAX;
use crate::program::node::{LaneDef, LaneNo};

/// A lane of a step: its number, its name and its steps.
pub(super) struct NamedLane {
    pub no: LaneNo,
    pub name: String,
    pub steps: Vec<super::step::Step>,
}

impl<'t> StepReader<'_, 't> {
    /// A `parallel`: lanes by their names.
    pub(super) fn parallel(
        &mut self,
        table: &DeTable<'t>,
        place: Place<'_>,
    ) -> Option<(Kind, String)> {
        let value = table.get("parallel")?;
        let first = table.get("first").and_then(|value| self.cx.boolean("first", value));
        let found = entries(self.cx.table("parallel", value)?);
        if found.is_empty() {
            self.cx.error(value.span(), "`parallel` has no lanes".to_owned(), None);
        }
        if place.lanes as usize >= musec_protocol::limits::LANE_DEPTH_MAX - 1 {
            let message = format!("lanes are nested more than {} deep", place.lanes);
            self.cx.error(value.span(), message, None);
            return None;
        }
        // All of one step have their numbers one after another, whatever they hold.
        let numbers: Vec<LaneNo> =
            found.iter().map(|entry| self.new_lane(value, place.lane, entry.key)).collect();
        let mut lanes = Vec::new();
        for (entry, no) in found.iter().zip(numbers) {
            if keys::actions().any(|action| action == entry.key)
                && !entry.value.get_ref().is_array()
            {
                let message =
                    format!("`parallel` has lanes with names, not the step `{}`", entry.key);
                let cure = "write parallel = { a = [{ … }], b = [{ … }] }".to_owned();
                self.cx.error(entry.key_span.clone(), message, Some(cure));
                continue;
            }
            let inside = Place { lanes: place.lanes + 1, lane: no, in_loop: false, ..place };
            let steps = self.steps(entry.key, entry.value, deeper(inside));
            lanes.push(NamedLane { no, name: entry.key.to_owned(), steps });
        }
        let names: Vec<&str> = lanes.iter().map(|lane| lane.name.as_str()).collect();
        let text = names.join(if first == Some(true) { " or " } else { ", " });
        Some((Kind::Parallel { lanes, first: first.unwrap_or(false) }, text))
    }

    /// A lane that begins in another one.
    pub(super) fn new_lane(&mut self, value: &Spot<'t>, parent: LaneNo, name: &str) -> LaneNo {
        let siblings = self.lanes.iter().skip(1).filter(|lane| lane.parent == parent).count();
        let around = self.lanes.get(parent.0 as usize).map(|lane| lane.path.clone());
        let mut path = around.unwrap_or_default();
        path.push(u32::try_from(siblings).unwrap_or(u32::MAX));
        let no = LaneNo(u32::try_from(self.lanes.len()).unwrap_or(u32::MAX));
        self.lanes.push(LaneDef { path, parent, name: name.to_owned() });
        if no.0 == LANES_MAX {
            let message = format!("a wave with more than {} lanes", LANES_MAX - 1);
            self.cx.error(value.span(), message, None);
        }
        no
    }
}
