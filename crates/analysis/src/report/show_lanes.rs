//! One attempt's execution in canonical form, lane by lane, with its stamps.

use musec_trace::StateId;
use serde::Serialize;

use crate::fold::{Attempt, Trace};
use crate::paths::{Act, Canonical, Letter, Stamped, Track, word};

/// What one lane did, or what was told for one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShowLane {
    /// Its path; empty for the program itself. Absent of an info.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<Vec<u32>>,
    /// Its name; of an info its key. Empty for the program itself.
    pub name: String,
    /// Its letters in their order.
    pub letters: Vec<ShowLetter>,
}

/// One letter of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShowLetter {
    /// Its step of the canonical form, from 0: letters of one step do not depend on one another.
    pub step: usize,
    /// When it was recorded, C; of a command, when it was queued.
    pub at_ns: u64,
    /// What it was: `move`, `command`, `fork`, `join`, `begin`, `await`, `arrive` (at a
    /// barrier), `tell`.
    pub act: &'static str,
    /// The state left by a move; absent outside of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state entered by a move, or that a command is of; absent outside of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The command's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<u64>,
    /// The command's name, or the names of the lanes or the barrier that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// How it ended: `start`, `done`, `failed`, `stopped`, `cancelled`, `unanswered`.
    pub class: &'static str,
}

/// The execution's lanes in the order of the program, then its infos.
pub(super) fn lanes(trace: &Trace, attempt: &Attempt) -> Vec<ShowLane> {
    let canonical = Canonical::of(word(attempt));
    let tracks = canonical.tracks().into_iter().map(|(track, letters)| {
        let (lane, name) = match track {
            Track::Lane(path) => (Some(path.clone()), trace.lane_name(attempt.wave, path)),
            Track::Info(key) => (None, key.clone()),
        };
        let letters = letters.into_iter();
        let letters = letters.map(|(step, of)| letter(trace, attempt, step, of)).collect();
        ShowLane { lane, name, letters }
    });
    tracks.collect()
}

fn letter(trace: &Trace, attempt: &Attempt, step: usize, stamped: &Stamped) -> ShowLetter {
    let Letter { track, act, class, .. } = &stamped.letter;
    let state = |state: Option<StateId>| state.map(|state| trace.state_name(Some(state)));
    let lanes = |numbers: &[u32]| {
        let around = match track {
            Track::Lane(path) => path.as_slice(),
            Track::Info(_) => &[],
        };
        let path = |last: &u32| [around, &[*last]].concat();
        numbers.iter().map(|last| trace.lane_name(attempt.wave, &path(last))).collect()
    };
    let (act, from, to, names) = match act {
        Act::Move(from, to) => ("move", state(*from), state(*to), Vec::new()),
        Act::Command { state: of, name, .. } => {
            ("command", None, state(*of), vec![name.clone().into_owned()])
        }
        Act::Fork(numbers) => ("fork", None, None, lanes(numbers)),
        Act::Join(numbers, _) => ("join", None, None, lanes(numbers)),
        Act::Begin(number) => ("begin", None, None, lanes(&[*number])),
        Act::Await(number) => ("await", None, None, lanes(&[*number])),
        Act::Arrive(name) => ("arrive", None, None, vec![name.clone()]),
        Act::Tell => ("tell", None, None, Vec::new()),
    };
    let command = stamped.command.map(|id| id.0);
    ShowLetter { step, at_ns: stamped.at.ns, act, from, to, command, names, class: class.name() }
}
