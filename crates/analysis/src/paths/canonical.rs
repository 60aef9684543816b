//! The canonical form of an execution: the Foata normal form of its Mazurkiewicz trace.
//!
//! In: a word of letters in the order of the records. Out: steps of letters that are independent
//! of one another, each letter in the first step that comes after all that it depends on; within a
//! step, lanes in the order of the program. Invariant: the forms of two words are equal if and
//! only if one becomes the other by swaps of neighbours that are independent. Stamps go along, and
//! are no part of that.

use std::collections::BTreeMap;

use musec_trace::{CTime, CommandId};

use super::letter::{Letter, Track};

/// A letter with its stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The letter.
    pub letter: Letter,
    /// When it was recorded, C; of a command, when it was decided upon.
    pub at: CTime,
    /// Which command it was, whose entry has the other stamps.
    pub command: Option<CommandId>,
}

/// An execution, whatever the order was in which independent letters were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canonical {
    steps: Vec<Vec<Stamped>>,
}

/// The last steps in which a track was written and read; 0 is none.
#[derive(Clone, Copy, Default)]
struct Reached {
    written: usize,
    read: usize,
}

impl Canonical {
    /// The canonical form of `word`.
    #[must_use]
    pub fn of(word: Vec<Stamped>) -> Self {
        let mut reached: BTreeMap<Track, Reached> = BTreeMap::new();
        let mut steps: Vec<Vec<Stamped>> = Vec::new();
        for stamped in word {
            let Letter { track, reads, .. } = &stamped.letter;
            let own = reached.get(track).map_or(0, |own| own.written.max(own.read));
            let others = reads.iter().filter_map(|read| Some(reached.get(read)?.written));
            let step = others.fold(own, usize::max) + 1;
            reached.entry(track.clone()).or_default().written = step;
            for read in reads {
                let read = &mut reached.entry(read.clone()).or_default().read;
                *read = step.max(*read);
            }
            if steps.len() < step {
                steps.push(Vec::new());
            }
            if let Some(letters) = steps.get_mut(step - 1) {
                letters.push(stamped);
            }
        }
        for letters in &mut steps {
            letters.sort_by(|a, b| a.letter.cmp(&b.letter));
        }
        Self { steps }
    }

    /// The steps, each with letters that are independent of one another.
    #[must_use]
    pub fn steps(&self) -> &[Vec<Stamped>] {
        &self.steps
    }

    /// Whether the two are the same execution: letters count, stamps do not.
    #[must_use]
    pub fn is_same_execution(&self, other: &Self) -> bool {
        self.letters().eq(other.letters())
    }

    /// Each track's letters in their order, with the number of their step from 0; lanes in the
    /// order of the program.
    #[must_use]
    pub fn tracks(&self) -> BTreeMap<&Track, Vec<(usize, &Stamped)>> {
        let mut tracks: BTreeMap<&Track, Vec<(usize, &Stamped)>> = BTreeMap::new();
        for (number, step) in self.steps.iter().enumerate() {
            for stamped in step {
                tracks.entry(&stamped.letter.track).or_default().push((number, stamped));
            }
        }
        tracks
    }

    fn letters(&self) -> impl Iterator<Item = (usize, &Letter)> {
        let numbered = self.steps.iter().enumerate();
        numbered.flat_map(|(number, step)| step.iter().map(move |of| (number, &of.letter)))
    }
}
