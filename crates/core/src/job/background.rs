//! Background commands and `await`: their names, and who may await whom.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeTable;

use crate::job::context::{Spot, listed};
use crate::job::nearest;
use crate::job::step::{Kind, Place, StepReader};
use crate::program::node::LaneNo;

/// The background commands of a wave so far.
#[derive(Default)]
pub(super) struct Backgrounds {
    /// By name: its own sub-lane, and the lane that begins it.
    names: BTreeMap<String, (LaneNo, LaneNo)>,
    /// Who is awaited where; a name may be awaited above the place where it begins.
    awaits: Vec<Awaited>,
}

/// An `await`.
struct Awaited {
    name: String,
    lane: LaneNo,
    span: Range<usize>,
}

impl<'t> StepReader<'_, 't> {
    /// The sub-lane of a command, if it is a background command.
    pub(super) fn background(&mut self, table: &DeTable<'t>, place: Place<'_>) -> Option<LaneNo> {
        let value = table.get("background")?;
        if !self.cx.boolean("background", value)? {
            return None;
        }
        if let Some(handler) = table.get("on_error") {
            let message = "`on_error` of a background command, whose failure nobody awaits here";
            let cure = "give it to the step that awaits the command".to_owned();
            self.cx.error(handler.span(), message.to_owned(), Some(cure));
        }
        let Some(name) = table.get("name") else {
            let cure = "give it a `name`; `await` names it".to_owned();
            self.cx.error(
                value.span(),
                "a background command without a name".to_owned(),
                Some(cure),
            );
            return None;
        };
        let text = self.cx.name("name", name)?;
        if self.backgrounds.names.contains_key(text) {
            let message = format!("there are two background commands `{text}`");
            let cure = "give one of them another name".to_owned();
            self.cx.error(name.span(), message, Some(cure));
            return None;
        }
        let no = self.new_lane(value, place.lane, text);
        self.backgrounds.names.insert(text.to_owned(), (no, place.lane));
        Some(no)
    }

    /// An `await`; its name is looked up by [`Self::check_awaits`].
    pub(super) fn awaited(&mut self, value: &Spot<'t>, place: Place<'_>) -> Option<(Kind, String)> {
        let name = self.cx.name("await", value)?.to_owned();
        let (lane, span) = (place.lane, value.span());
        self.backgrounds.awaits.push(Awaited { name: name.clone(), lane, span });
        Some((Kind::Await(name.clone()), name))
    }

    /// Notes names that are awaited but begin nowhere, or in another lane: the sub-lanes by name.
    pub(super) fn check_awaits(&mut self) -> BTreeMap<String, LaneNo> {
        let Backgrounds { names, awaits } = std::mem::take(&mut self.backgrounds);
        for Awaited { name, lane, span } in awaits {
            let (message, cure) = match names.get(&name) {
                Some((_, beginner)) if *beginner == lane => continue,
                Some(_) => (
                    format!("`{name}` begins in another lane"),
                    "await it in the lane that begins it".to_owned(),
                ),
                None => {
                    let known: Vec<&str> = names.keys().map(String::as_str).collect();
                    let cure = match nearest(&name, known.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None if known.is_empty() => {
                            "give a command `background = true` and this `name`".to_owned()
                        }
                        None => format!("there are {}", listed(&known)),
                    };
                    (format!("no background command is called `{name}`"), cure)
                }
            };
            self.cx.error(span, message, Some(cure));
        }
        names.into_iter().map(|(name, (no, _))| (name, no)).collect()
    }
}
