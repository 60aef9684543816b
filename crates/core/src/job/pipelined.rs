//! Pipelined lists: what cannot stand in one.

use toml::de::DeTable;

use crate::job::context::Entry;
use crate::job::step::{Place, StepReader};

impl<'t> StepReader<'_, 't> {
    /// Whether the step is a pipelined list.
    pub(super) fn is_pipelined(&mut self, table: &DeTable<'t>, place: Place<'_>) -> bool {
        let Some(value) = table.get("pipelined") else { return false };
        let pipelined = self.cx.boolean("pipelined", value) == Some(true);
        if pipelined && place.list.is_some() {
            let message = "a pipelined list within another one".to_owned();
            let cure =
                "leave out this `pipelined`: the list around it sends all at once".to_owned();
            self.cx.error(value.span(), message, Some(cure));
        }
        pipelined
    }

    /// Notes what cannot stand in a pipelined list, because it would have to wait for replies.
    pub(super) fn check_in_list(&mut self, all: &[Entry<'_, '_>], action: &str) {
        for entry in all {
            let (message, cure) = match entry.key {
                "on_error" | "fail" | "done" | "goto" | "parallel" | "await" | "wait_info"
                | "barrier" => (
                    format!(
                        "`{}` within a pipelined list, which does not await replies",
                        entry.key
                    ),
                    match entry.key {
                        "on_error" => "give it to the list, or leave out `pipelined`",
                        _ => "put it after the list, or leave out `pipelined`",
                    },
                ),
                "timeout" if ["do", "for", "while"].contains(&action) => (
                    "a `timeout` over steps within a pipelined list".to_owned(),
                    "give it to the whole list, or to its commands",
                ),
                _ => continue,
            };
            self.cx.error(entry.key_span.clone(), message, Some(cure.to_owned()));
        }
    }
}
