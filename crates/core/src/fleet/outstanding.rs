//! The commands of one attempt that have no reply yet, in the order they were sent.

use std::collections::VecDeque;

use musec_protocol::CommandId;

use super::attempt::Outstanding;

/// Sorted by number. Replies come in about this order: the one that is looked for is near the
/// front, and nothing is allocated for each.
#[derive(Debug, Default)]
pub(super) struct OutstandingCommands(VecDeque<(CommandId, Outstanding)>);

impl OutstandingCommands {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Adds the command with the highest number so far.
    pub(super) fn push(&mut self, id: CommandId, command: Outstanding) {
        assert!(self.0.back().is_none_or(|(last, _)| *last < id), "commands are sent in order");
        self.0.push_back((id, command));
    }

    pub(super) fn remove(&mut self, id: CommandId) -> Option<Outstanding> {
        if self.0.front().is_some_and(|(first, _)| *first == id) {
            return self.0.pop_front().map(|(_, command)| command);
        }
        let index = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.0.remove(index).map(|(_, command)| command)
    }

    /// The one that was sent first among those that somebody awaits: the worker is at it.
    pub(super) fn first(&self) -> Option<&(CommandId, Outstanding)> {
        self.0.iter().find(|(_, command)| !command.background)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first of those sent before `id` for which this holds, given the earlier one and `id`'s.
    pub(super) fn first_before(
        &self,
        id: CommandId,
        holds: impl Fn(&Outstanding, &Outstanding) -> bool,
    ) -> Option<CommandId> {
        if self.0.front().is_some_and(|(first, _)| *first == id) {
            return None;
        }
        let index = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        let later = &self.0[index].1;
        let mut before = self.0.iter().take(index);
        before.find(|(_, earlier)| holds(earlier, later)).map(|(id, _)| *id)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut (CommandId, Outstanding)> {
        self.0.iter_mut()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
