//! The launcher that launches nothing: it writes each ticket as a line for somebody else, who
//! starts the workers. Scripted workers of `musec bench` get theirs so.
//!
//! Absent: stopping an attempt. Its connection is closed, and the worker is to end by that.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use musec_protocol::{LaunchId, Ticket};
use musec_trace::CClock;
use tokio::sync::mpsc;

use super::LauncherEvent;

pub(crate) struct Tickets {
    /// Written to in the loop: whoever reads it must not wait for this coordinator meanwhile.
    lines: Arc<File>,
}

impl Tickets {
    pub(crate) const fn new(lines: Arc<File>) -> Self {
        Self { lines }
    }

    pub(crate) fn launch(
        &self,
        launch: LaunchId,
        ticket: &Ticket,
        clock: CClock,
        events: &mpsc::UnboundedSender<LauncherEvent>,
    ) -> Result<(), String> {
        let mut line = ticket.to_text();
        line.push('\n');
        let written = (&*self.lines).write_all(line.as_bytes());
        written.map_err(|error| format!("cannot hand over the ticket: {error}"))?;
        let accepted =
            LauncherEvent::Accepted { launch, at: clock.now(), engine_id: String::new() };
        events.send(accepted).map_err(|_| "the run is over".into())
    }
}
