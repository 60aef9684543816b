//! A run decided again from its journal.
//!
//! In: the records of a journal in their order, with their bytes. Out: how many decisions were made
//! again and are the same, byte for byte; or the first that is not. Invariants: nothing is known of
//! the run but what was recorded; what is held does not grow with the journal, but with what the
//! run itself held.
//!
//! ```text
//! record:  RunStarted, Given ─► the program ─► a fleet
//!          first of an input, or of a deadline ─► handle(at, input), tick(at) ─► decided
//!          any ─► must be the first of what was decided, and takes it away
//! ```
//!
//! What the coordinator records of itself (`Sent`, `Sample`) is passed over. Not here: files. Who
//! has one reads it and hands in what stands there.

mod input;
mod program;

pub use program::given;

use std::collections::VecDeque;
use std::sync::Arc;

use musec_trace::journal::payload;
use musec_trace::{CTime, Event, Record, RunStarted};
use thiserror::Error;

use self::input::{Found, find, is_input};
use crate::fleet::{Fleet, FleetOptions, Input, Output};
use crate::map::ByteItems;

/// A record of a journal.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it begins, in bytes from the journal's start.
    pub place: u64,
    /// What it says.
    pub record: Record,
    /// Its bytes, without the header of its entry.
    pub bytes: Vec<u8>,
}

/// Decides a run again while its journal is read.
#[derive(Debug)]
pub struct Replay {
    stage: Stage,
    /// Records of which some more are needed to know what they are the first of: three at most.
    held: VecDeque<Entry>,
    /// What core has decided and the journal has not told yet.
    decided: VecDeque<(CTime, Event)>,
    done: Replayed,
}

#[derive(Debug)]
enum Stage {
    Opening,
    /// Until the fleet begins.
    Given(Box<RunStarted>, ByteItems),
    Running(Box<Fleet>),
}

/// What core decides upon.
enum Cause {
    Input(Input),
    Deadlines,
    /// What was decided before.
    Before,
}

/// How far a run was decided again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Records that were read.
    pub records: u64,
    /// What core was told.
    pub inputs: u64,
    /// Decisions that were made again, and are the same.
    pub decisions: u64,
    /// Whether that was the whole run: its end is in the journal.
    pub is_whole: bool,
    /// Decisions that follow from the journal but do not stand in it, because it was cut off.
    pub beyond: u64,
}

/// The first place where a journal tells something else than core decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where the record begins, in bytes from the journal's start; `None` at its end.
    pub place: Option<u64>,
    /// The record's number in the journal, from 0.
    pub number: u64,
    /// What the journal tells there; `None` at its end.
    pub recorded: Option<Record>,
    /// What core decides there; `None` for nothing.
    pub decided: Option<Record>,
    /// How much agreed before.
    pub before: Replayed,
}

/// Why a run could not be decided again, or was decided otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The journal does not begin as one does.
    #[error("its journal does not begin with the run's start")]
    NoStart,
    /// The recorded job makes no program.
    #[error("its program cannot be made again from what is recorded: {0}")]
    NoProgram(String),
    /// Core decides otherwise.
    #[error("record {} of its journal is not what core decides", .0.number)]
    Differs(Box<Difference>),
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            stage: Stage::Opening,
            held: VecDeque::new(),
            decided: VecDeque::new(),
            done: Replayed::default(),
        }
    }
}

impl Replay {
    /// Takes the next record.
    ///
    /// # Errors
    /// If core decides otherwise, or cannot decide; nothing more is to be handed in then.
    pub fn take(&mut self, entry: Entry) -> Result<(), ReplayError> {
        self.done.records += 1;
        let now = entry.record.at;
        match (&mut self.stage, entry.record.event) {
            (Stage::Opening, Event::RunStarted(started)) => {
                self.stage = Stage::Given(started, ByteItems::default());
                return Ok(());
            }
            (Stage::Opening, _) => return Err(ReplayError::NoStart),
            (Stage::Given(_, known), Event::Given { items, .. }) => {
                items.iter().for_each(|item| known.push(item));
                return Ok(());
            }
            (_, Event::Sent { .. } | Event::Sample(_)) => return Ok(()),
            (stage, event) => {
                if let Stage::Given(started, items) = stage {
                    let fleet = begin(started, std::mem::take(items))?;
                    *stage = Stage::Running(Box::new(fleet));
                    self.decide(now, Cause::Input(Input::Start));
                }
                self.held.push_back(Entry { record: Record { at: now, event }, ..entry });
            }
        }
        self.settle(false)
    }

    /// Says how far it came, at the journal's end.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn finish(mut self) -> Result<Replayed, ReplayError> {
        self.settle(true)?;
        if self.done.is_whole
            && let Some(decided) = self.decided.pop_front()
        {
            return Err(self.differs(None, Some(decided)));
        }
        self.done.beyond = self.decided.len() as u64;
        Ok(self.done)
    }

    /// Compares what is held with what was decided, and decides on.
    fn settle(&mut self, is_end: bool) -> Result<(), ReplayError> {
        while !self.held.is_empty() {
            if self.decided.is_empty() && !self.decide_next(is_end) {
                return Ok(());
            }
            let Some(entry) = self.held.pop_front() else { return Ok(()) };
            let Some((at, event)) = self.decided.pop_front() else {
                return Err(self.differs(Some(entry), None));
            };
            if payload(Record { at, event: event.clone() }) != entry.bytes {
                return Err(self.differs(Some(entry), Some((at, event))));
            }
            if is_input(&event) {
                self.done.inputs += 1;
            } else {
                self.done.decisions += 1;
            }
            self.done.is_whole |= matches!(event, Event::RunEnded { .. });
        }
        Ok(())
    }

    /// Tells core what the held records are the first of; false if more of them are needed.
    fn decide_next(&mut self, is_end: bool) -> bool {
        let Stage::Running(fleet) = &self.stage else { return true };
        let held: Vec<&Record> = self.held.iter().map(|entry| &entry.record).collect();
        let Some(first) = held.first() else { return false };
        let at = first.at;
        match find(&held, fleet.waves_count(), is_end) {
            Found::Input(input) => self.decide(at, Cause::Input(*input)),
            Found::Tick => self.decide(at, Cause::Deadlines),
            Found::Settled => self.decide(at, Cause::Before),
            Found::NeedsMore => return false,
            Found::Nothing => {}
        }
        true
    }

    /// Has core decide.
    fn decide(&mut self, now: CTime, cause: Cause) {
        let Stage::Running(fleet) = &mut self.stage else { return };
        match cause {
            Cause::Input(input) => fleet.handle(now, input),
            Cause::Deadlines => fleet.tick(now),
            Cause::Before => fleet.settle(now),
        }
        while let Some(output) = fleet.poll_output() {
            if let Output::Record(at, event) = output {
                self.decided.push_back((at, event));
            }
        }
    }

    fn differs(&self, recorded: Option<Entry>, decided: Option<(CTime, Event)>) -> ReplayError {
        // Those that are held were read and not compared.
        let ahead = self.held.len() as u64 + u64::from(recorded.is_some());
        ReplayError::Differs(Box::new(Difference {
            place: recorded.as_ref().map(|entry| entry.place),
            number: self.done.records - ahead,
            recorded: recorded.map(|entry| entry.record),
            decided: decided.map(|(at, event)| Record { at, event }),
            before: self.done.clone(),
        }))
    }
}

fn begin(started: &RunStarted, items: ByteItems) -> Result<Fleet, ReplayError> {
    let program = program::program(started, items).map_err(ReplayError::NoProgram)?;
    let options = FleetOptions {
        cores: started.cores,
        starting_max: Some(started.starting_max).filter(|most| *most > 0),
        ..FleetOptions::default()
    };
    Ok(Fleet::new(Arc::new(program), options))
}
