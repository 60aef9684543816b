//! The order of replies: none without a command, none twice, and none that overtakes another of its
//! lane, which does one command after another. Another order breaks the protocol.

use musec_protocol::{CommandId, LaunchId};
use musec_trace::{AttemptOutcome, CTime, EndCause};

use super::Fleet;
use super::attempt::{Attempt, Outstanding, Purpose};

impl Outstanding {
    /// Whether the worker does this command before `later`, which was sent after it: a lane does
    /// one after another. What is sent beside the program is in no lane's line, and what was
    /// cancelled may be answered at once.
    fn is_in_line_with(&self, later: &Self) -> bool {
        let are_steps = [self, later].iter().all(|of| matches!(of.purpose, Purpose::Step { .. }));
        are_steps && self.lane == later.lane && !self.is_cancelled
    }
}

impl Attempt {
    /// The command that a reply to `id` would overtake, if there is one.
    pub(super) fn overtaken_by(&self, id: CommandId) -> Option<CommandId> {
        self.outstanding.first_before(id, Outstanding::is_in_line_with)
    }
}

impl Fleet {
    /// Fails an attempt that answered what it was not to answer now.
    pub(super) fn answered_wrongly(
        &mut self,
        now: CTime,
        launch: LaunchId,
        id: CommandId,
        overtaken: Option<CommandId>,
    ) {
        let error = match overtaken {
            None => format!("it answered command {id}, which was not awaited"),
            Some(first) => format!("it answered command {id} before command {first} of its lane"),
        };
        self.give_up(now, launch, EndCause::Protocol, AttemptOutcome::Failed, error);
    }
}
