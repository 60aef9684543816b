//! A pipelined list: how much of it is in flight.
//!
//! In: commands sent, replies. Out: whether more may be sent. Invariant: at most
//! [`PIPELINE_COMMANDS_MAX`] commands are in flight, and no other is sent once their arguments
//! have [`PIPELINE_BYTES_MAX`].

use crate::limits::{PIPELINE_BYTES_MAX, PIPELINE_COMMANDS_MAX};
use crate::machine::lane::Fault;

/// A list that is being sent, or whose replies are awaited.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    commands: u32,
    bytes: usize,
    /// Why it fails, once its replies are there.
    pub fault: Option<Fault>,
    /// Whether what is in flight was cancelled.
    pub is_cancelled: bool,
}

/// Whether more may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Left,
    Full,
}

impl List {
    /// Notes a command that was sent.
    pub(super) fn sent(&mut self, bytes: u32) -> Room {
        self.commands += 1;
        self.bytes += bytes as usize;
        let is_full = self.commands >= PIPELINE_COMMANDS_MAX || self.bytes >= PIPELINE_BYTES_MAX;
        if is_full { Room::Full } else { Room::Left }
    }

    /// Notes a reply.
    pub(super) fn replied(&mut self, bytes: u32) {
        self.commands = self.commands.checked_sub(1).expect("a reply has its command");
        self.bytes -= bytes as usize;
    }

    /// How many commands are in flight.
    pub(super) const fn len(&self) -> u32 {
        self.commands
    }

    /// Whether it is still at it, and nothing has failed.
    pub(super) const fn is_open(&self) -> bool {
        self.commands > 0 && !self.is_cancelled && self.fault.is_none()
    }

    /// Whether nothing is in flight.
    pub(super) const fn is_empty(&self) -> bool {
        self.commands == 0
    }

    /// Whether it is worth while to send more: half of it has come back, so that each turn sends
    /// many.
    pub(super) const fn wants_more(&self) -> bool {
        self.commands <= PIPELINE_COMMANDS_MAX / 2 && self.bytes <= PIPELINE_BYTES_MAX / 2
    }
}
