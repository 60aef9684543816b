//! Executions in words: what a lane does stands where the lane was begun.
//!
//! In: a word of letters. Out: its symbols, loops folded. Invariant: words of equal executions give
//! equal symbols, because each lane is read by itself. What is forgotten: how often loops went
//! round, and how far a cancelled lane came.

use std::collections::BTreeMap;

use musec_trace::{StateId, WaveId};

use super::canonical::Stamped;
use super::fold_loops::{Leaf, Meaning, Symbol, Symbols};
use super::letter::{Act, Class, Track};
use crate::fold::Trace;

/// Between states of a lane.
const THEN: &str = " → ";

/// Deepest lane that is shown; a program's are not as deep.
const DEPTH_MAX: usize = 32;

/// What one lane did from its beginning to its end.
#[derive(Default)]
struct Segment<'a> {
    lane: Vec<u32>,
    /// Its letters, each with the segments that it began.
    letters: Vec<(&'a Stamped, Vec<usize>)>,
}

/// Gives the symbols of executions of one wave.
pub(super) struct Render<'a> {
    pub(super) trace: &'a Trace,
    pub(super) wave: WaveId,
    pub(super) symbols: &'a mut Symbols,
}

/// What a lane was in: a state, with what it did there.
struct Visit {
    state: Option<StateId>,
    inner: Vec<Symbol>,
}

impl Render<'_> {
    /// The symbols of a word.
    pub(super) fn sequence(&mut self, word: &[Stamped]) -> Vec<Symbol> {
        let segments = segments(word);
        let mut all = match segments.first() {
            Some(_) => self.segment(&segments, 0, None).0,
            None => Vec::new(),
        };
        let mut infos: BTreeMap<&str, Vec<Symbol>> = BTreeMap::new();
        for stamped in word {
            if let Track::Info(key) = &stamped.letter.track {
                let info = self.simple(format!("info {key}"), format!("info {key}"));
                infos.entry(key).or_default().push(info);
            }
        }
        for (_, told) in infos {
            all.extend(self.symbols.fold(told, " "));
        }
        all
    }

    /// One segment's symbols, and whether it was cancelled.
    fn segment(
        &mut self,
        segments: &[Segment<'_>],
        number: usize,
        around: Option<StateId>,
    ) -> (Vec<Symbol>, bool) {
        let Some(segment) = segments.get(number) else { return (Vec::new(), false) };
        let mut sequence = Vec::new();
        let mut visit: Option<Visit> = None;
        let mut is_cancelled = false;
        for (stamped, begun) in &segment.letters {
            let letter = &stamped.letter;
            if let Act::Move(_, to) = letter.act {
                if let Some(left) = visit.take() {
                    sequence.push(self.visit(left, letter.class, around));
                }
                is_cancelled = to.is_none() && letter.class == Class::Cancelled;
                visit = to.map(|state| Visit { state: Some(state), inner: Vec::new() });
                continue;
            }
            let state = visit.as_ref().and_then(|visit| visit.state);
            let inner = self.inner(segments, segment, (stamped, begun), state);
            let open = visit.get_or_insert(Visit { state, inner: Vec::new() });
            open.inner.extend(inner);
        }
        if let Some(left) = visit.take() {
            // The records end within a state.
            sequence.push(self.visit(left, Class::Unanswered, around));
        }
        (self.symbols.fold(sequence, THEN), is_cancelled)
    }

    /// What a letter within a state is shown as.
    fn inner(
        &mut self,
        segments: &[Segment<'_>],
        segment: &Segment<'_>,
        (stamped, begun): (&Stamped, &[usize]),
        state: Option<StateId>,
    ) -> Option<Symbol> {
        match &stamped.letter.act {
            Act::Command { step, name, state } => {
                let class = match stamped.letter.class {
                    Class::Done | Class::Start => String::new(),
                    other => format!(" {}", other.name()),
                };
                Some(self.command(&segment.lane, *state, (name, *step), &class))
            }
            Act::Fork(_) => {
                let lanes = begun.iter().map(|number| self.lane(segments, *number, state));
                let lanes: Vec<Symbol> = lanes.collect();
                let Meaning { text, exact, leaves } = self.symbols.joined(&lanes, " | ");
                let (text, exact) = (format!("[{text}]"), format!("[{exact}]"));
                Some(self.symbols.symbol(Meaning { text, exact, leaves }))
            }
            Act::Begin(_) => {
                let lane = self.lane(segments, *begun.first()?, state);
                let Meaning { text, exact, leaves } = self.symbols.joined(&[lane], "");
                let (text, exact) = (format!("&[{text}]"), format!("&[{exact}]"));
                Some(self.symbols.symbol(Meaning { text, exact, leaves }))
            }
            Act::Await(last) => {
                let path = [segment.lane.as_slice(), &[*last]].concat();
                let text = format!("await {}", self.trace.lane_name(self.wave, &path));
                Some(self.simple(text.clone(), text))
            }
            Act::Arrive(name) => {
                let text = format!("barrier {name}");
                Some(self.simple(text.clone(), text))
            }
            Act::Join(..) | Act::Tell | Act::Move(..) => None,
        }
    }

    /// A lane with its name.
    fn lane(&mut self, segments: &[Segment<'_>], number: usize, around: Option<StateId>) -> Symbol {
        let path = segments.get(number).map_or(&[][..], |segment| segment.lane.as_slice());
        let name = self.trace.lane_name(self.wave, path);
        if path.len() > DEPTH_MAX {
            return self.simple(format!("{name}…"), format!("{name}…"));
        }
        let (sequence, is_cancelled) = self.segment(segments, number, around);
        if is_cancelled {
            let text = format!("{name}…cancelled");
            return self.simple(text.clone(), text);
        }
        let Meaning { text, exact, leaves } = self.symbols.joined(&sequence, THEN);
        let (text, exact) = (format!("{name}: {text}"), format!("{name}: {exact}"));
        self.symbols.symbol(Meaning { text, exact, leaves })
    }

    /// A state with what was done in it, and how it was left.
    fn visit(&mut self, visit: Visit, class: Class, around: Option<StateId>) -> Symbol {
        let state = self.trace.state_name(visit.state);
        let inner = self.symbols.fold(visit.inner, " ");
        let mut meaning = self.symbols.joined(&inner, " ");
        if meaning.text.is_empty() {
            meaning.text.clone_from(&state);
            meaning.exact.clone_from(&state);
            meaning.leaves.push(Leaf { text: state.clone(), exact: state.clone() });
        } else if visit.state != around || around.is_none() {
            for text in [&mut meaning.text, &mut meaning.exact] {
                let is_lanes = inner.len() == 1 && text.starts_with('[');
                *text =
                    if is_lanes { format!("{state}{text}") } else { format!("{state}({text})") };
            }
        }
        let left = match class {
            Class::Start | Class::Done | Class::Cancelled => "",
            Class::Failed => " ✗",
            Class::Stopped => "…stopped",
            Class::Unanswered => "…",
        };
        if !left.is_empty() {
            meaning.text.push_str(left);
            meaning.exact.push_str(left);
            let text = format!("{state} {}", class.name());
            meaning.leaves.push(Leaf { text: text.clone(), exact: text });
        }
        self.symbols.symbol(meaning)
    }

    fn command(
        &mut self,
        lane: &[u32],
        state: Option<StateId>,
        (name, step): (&str, u32),
        class: &str,
    ) -> Symbol {
        let state = self.trace.state_name(state);
        let within = match self.trace.lane_name(self.wave, lane) {
            lane if lane.is_empty() => format!(" in {state}"),
            lane => format!(" in {state}, lane {lane}"),
        };
        let leaf = Leaf {
            text: format!("{name}{class}{within}"),
            exact: format!("{name}#{step}{class}{within}"),
        };
        self.symbols.symbol(Meaning {
            text: format!("{name}{class}"),
            exact: format!("{name}#{step}{class}"),
            leaves: vec![leaf],
        })
    }

    fn simple(&mut self, text: String, exact: String) -> Symbol {
        let leaves = vec![Leaf { text: text.clone(), exact: exact.clone() }];
        self.symbols.symbol(Meaning { text, exact, leaves })
    }
}

/// Cuts a word into what each lane did from its beginning to its end. The first is the program's;
/// those that nobody began are left out.
fn segments(word: &[Stamped]) -> Vec<Segment<'_>> {
    let mut all: Vec<Segment<'_>> = vec![Segment::default()];
    let mut present: BTreeMap<Vec<u32>, usize> = BTreeMap::from([(Vec::new(), 0)]);
    for stamped in word {
        let Track::Lane(lane) = &stamped.letter.track else { continue };
        let Some(number) = present.get(lane).copied() else { continue };
        let begun = match &stamped.letter.act {
            Act::Fork(lanes) => lanes.as_slice(),
            Act::Begin(last) => std::slice::from_ref(last),
            Act::Move(..)
            | Act::Command { .. }
            | Act::Join(..)
            | Act::Await(_)
            | Act::Arrive(_)
            | Act::Tell => &[],
        };
        let first = all.len();
        for last in begun {
            let path = [lane.as_slice(), &[*last]].concat();
            present.insert(path.clone(), all.len());
            all.push(Segment { lane: path, letters: Vec::new() });
        }
        let begun = (first..all.len()).collect();
        if let Some(segment) = all.get_mut(number) {
            segment.letters.push((stamped, begun));
        }
    }
    all
}
