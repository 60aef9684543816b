//! The state that a machine is in. It cannot be changed without a record of the change: the fields
//! are private to this file, and [`Position::change`] is the one function that writes them.

use musec_trace::{Cause, StateId};

use crate::machine::{Effect, Moved};
use crate::program::LaneNo;

/// A state, and how often each was entered.
#[derive(Clone, Debug, Default)]
pub(super) struct Position {
    state: Option<StateId>,
    /// Few, so that a list is smallest.
    visits: Vec<(StateId, u32)>,
}

impl Position {
    /// The state; `None` outside of all.
    pub(super) const fn state(&self) -> Option<StateId> {
        self.state
    }

    /// Which visit of the present state this is, from 0.
    pub(super) fn visit(&self) -> u32 {
        self.visits
            .iter()
            .find(|(state, _)| Some(*state) == self.state)
            .map_or(0, |(_, count)| count.saturating_sub(1))
    }

    /// Leaves the state and enters `to`, which may be the same one: a new visit of it.
    pub(super) fn change(
        &mut self,
        lane: LaneNo,
        to: Option<StateId>,
        cause: Cause,
        out: &mut Vec<Effect>,
    ) {
        out.push(Effect::Moved(Moved { lane, from: self.state, to, cause }));
        self.state = to;
        let Some(state) = to else { return };
        match self.visits.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.visits.push((state, 1)),
        }
    }
}
