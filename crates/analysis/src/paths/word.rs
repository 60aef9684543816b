//! From what was recorded of an attempt's machine to a word of letters.
//!
//! In: an attempt of the fold. Out: its letters in the order of the records. A letter depends on
//! the execution alone, not on the order in which independent letters were recorded: what cancelled
//! a lane is looked up when its fork has ended. Absent: commands outside of the program.

use std::collections::BTreeMap;

use musec_trace::{CommandId, StateId};

use super::canonical::Stamped;
use super::letter::{Act, Class, Letter, Track};
use crate::fold::{Attempt, MachineStep, Move, StepKind};

/// The letters of an attempt, in the order of the records.
#[must_use]
pub fn word(attempt: &Attempt) -> Vec<Stamped> {
    let mut spelling = Spelling::default();
    for step in &attempt.moves {
        match step {
            Move::Command(id) => spelling.command(attempt, *id),
            Move::Step(step) => spelling.step(step),
        }
    }
    let open: Vec<Vec<u32>> = spelling.rounds.keys().cloned().collect();
    for lane in open {
        spelling.close(&lane, None);
    }
    spelling.letters
}

/// A word in the making.
#[derive(Default)]
struct Spelling {
    letters: Vec<Stamped>,
    /// What goes on beside each lane that began others.
    rounds: BTreeMap<Vec<u32>, Round>,
}

/// What a lane began, until it has ended.
#[derive(Default)]
struct Round {
    lanes: Vec<u32>,
    failed: Vec<u32>,
    /// Places of the last letters of cancelled lanes.
    cancelled: Vec<usize>,
}

impl Spelling {
    fn command(&mut self, attempt: &Attempt, id: CommandId) {
        let Some(command) = attempt.commands.get(&id) else { return };
        let Some(queued) = &command.queued else { return };
        let reply = command.reply.as_ref();
        let class = reply.map_or(Class::Unanswered, |reply| Class::from(&reply.outcome));
        let (state, step, name) = (queued.state, queued.step, queued.name.clone());
        let letter = Letter {
            track: Track::Lane(queued.lane.clone()),
            act: Act::Command { state, step, name },
            class,
            reads: Vec::new(),
        };
        self.letters.push(Stamped { letter, at: queued.at, command: Some(id) });
    }

    fn step(&mut self, step: &MachineStep) {
        let lane = &step.lane;
        let own = |of: &[u32]| of.iter().map(|last| child(lane, *last)).collect();
        let mut track = Track::Lane(lane.clone());
        let (act, class, reads): (Act, Class, Vec<Track>) = match &step.kind {
            StepKind::Moved { from, to, cause } => {
                let class = Class::from(*cause);
                (Act::Move(*from, *to), class, self.moved(lane, *to, class))
            }
            StepKind::Forked { lanes } => {
                self.rounds.entry(lane.clone()).or_default().lanes.clone_from(lanes);
                (Act::Fork(lanes.clone()), Class::Done, own(lanes))
            }
            StepKind::Merged { winner } => {
                let lanes = self.close(lane, *winner);
                let reads = own(&lanes);
                (Act::Join(lanes, *winner), Class::Done, reads)
            }
            StepKind::Begun { background } => {
                (Act::Begin(*background), Class::Done, own(&[*background]))
            }
            StepKind::Awaited { background } => {
                (Act::Await(*background), Class::Done, own(&[*background]))
            }
            StepKind::Arrived { barrier } => {
                (Act::Arrive(barrier.clone()), Class::Done, Vec::new())
            }
            StepKind::Info { key } => {
                track = Track::Info(key.clone());
                (Act::Tell, Class::Done, Vec::new())
            }
        };
        let mut letter = Letter { track, act, class, reads };
        letter.reads.sort();
        self.letters.push(Stamped { letter, at: step.at, command: None });
    }

    /// Notes how a lane ended, for the round that it is of. Gives what its last letter reads; of a
    /// lane that its own round cancelled, that is not known before the round's end.
    fn moved(&mut self, lane: &[u32], to: Option<StateId>, class: Class) -> Vec<Track> {
        let (Some((last, around)), None) = (lane.split_last(), to) else { return Vec::new() };
        let place = self.letters.len();
        let round = self.rounds.get_mut(around).filter(|round| round.lanes.contains(last));
        match (round, class) {
            (Some(round), Class::Cancelled) => round.cancelled.push(place),
            (Some(round), Class::Failed) => round.failed.push(*last),
            (None, Class::Cancelled) => return vec![Track::Lane(around.to_vec())],
            (_, Class::Start | Class::Done | Class::Stopped | Class::Unanswered)
            | (None, Class::Failed) => {}
        }
        Vec::new()
    }

    /// Ends what `lane` began: cancelled lanes read what cancelled them, that is the winner, else
    /// the lanes that failed, else the lane around. Gives the lanes that it began.
    fn close(&mut self, lane: &[u32], winner: Option<u32>) -> Vec<u32> {
        let Round { lanes, failed, cancelled } = self.rounds.remove(lane).unwrap_or_default();
        let mut deciders: Vec<Track> = match winner {
            Some(winner) => vec![child(lane, winner)],
            None => failed.iter().map(|last| child(lane, *last)).collect(),
        };
        if deciders.is_empty() {
            deciders.push(Track::Lane(lane.to_vec()));
        }
        deciders.sort();
        deciders.dedup();
        for place in cancelled {
            if let Some(stamped) = self.letters.get_mut(place) {
                stamped.letter.reads.clone_from(&deciders);
            }
        }
        lanes
    }
}

fn child(lane: &[u32], last: u32) -> Track {
    Track::Lane([lane, &[last]].concat())
}
