//! Which replies there may be: none without a command, none twice, none that overtakes another of
//! its lane, which does one command after another, and none with objects that its command cannot
//! have moved. Others break the protocol.

use musec_protocol::{Reply, limits};

use super::attempt::{Attempt, Outstanding, Purpose};

impl Outstanding {
    /// Whether the worker does this command before `later`, which was sent after it: a lane does
    /// one after another. In no lane's line is what is sent beside the program or goes on in the
    /// background, and what was cancelled may be answered at once.
    fn is_in_line_with(&self, later: &Self) -> bool {
        let is_in_line = |of: &Self| matches!(of.purpose, Purpose::Step { .. }) && !of.background;
        is_in_line(self) && is_in_line(later) && self.lane == later.lane && !self.is_cancelled
    }

    /// How many objects its reply may name. All of a reply is recorded by the loop that serves all
    /// workers, so that what cannot be is not taken either.
    fn objects_max(&self) -> usize {
        match self.name {
            "get" | "put" => limits::OBJECTS_MAX,
            // A whole output that is kept.
            _ => 1,
        }
    }
}

impl Attempt {
    /// The command that this answers, which is outstanding no more; or how the reply breaks the
    /// protocol.
    pub(super) fn take_answered(&mut self, reply: &Reply) -> Result<Outstanding, String> {
        let id = reply.id;
        if let Some(first) = self.outstanding.first_before(id, Outstanding::is_in_line_with) {
            return Err(format!("it answered command {id} before command {first} of its lane"));
        }
        let awaited = self.outstanding.remove(id);
        let command =
            awaited.ok_or_else(|| format!("it answered command {id}, which was not awaited"))?;
        let (objects, possible) = (reply.objects.len(), command.objects_max());
        if objects > possible {
            let name = command.name;
            return Err(format!("it answered {name} with {objects} objects, above {possible}"));
        }
        Ok(command)
    }
}
