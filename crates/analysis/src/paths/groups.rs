//! Workers by their paths: a thousand of them show as a few, and the odd one stands out.
//!
//! In: a trace. Out: groups, those with most workers first, each but its wave's first with what
//! differs from that. A worker counts by the attempt that decides. Invariant: every worker that was
//! launched is in one group.

use std::collections::BTreeMap;

use musec_trace::{AttemptOutcome, WaveId};
use serde::Serialize;

use super::fold_loops::{Leaf, Meaning, Symbol, Symbols};
use super::render::Render;
use super::word::word;
use crate::fold::{Attempt, Trace};

/// How often paths are read again because loops were found: one that goes round once here may go
/// round twice there, and within a loop that is found only then.
const READINGS_MAX: usize = 4;

/// Most things that are named on either side of a difference.
const NAMED_MAX: usize = 6;

/// Paths of a run's workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Paths {
    /// Version of these keys.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// The paths, those with most workers first.
    pub paths: Vec<PathGroup>,
}

/// Workers of one wave with one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathGroup {
    /// The wave.
    pub wave: String,
    /// The path.
    pub path: String,
    /// The workers, ascending.
    pub workers: Vec<u32>,
    /// What differs from the wave's most common path; absent from that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<Difference>,
}

/// How a path differs from the most common one of its wave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The last thing that both did; absent if they differ from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What this path has there.
    pub has: Vec<String>,
    /// What the most common path has there.
    pub instead_of: Vec<String>,
}

/// A path under way: its symbols, and how it ended if not well.
type Key = (Vec<Symbol>, &'static str);

/// All workers by their paths.
#[must_use]
pub fn paths(trace: &Trace) -> Paths {
    let mut by_wave: BTreeMap<WaveId, Vec<&Attempt>> = BTreeMap::new();
    for worker in trace.workers().keys() {
        if let Some(attempt) = trace.deciding_attempt(*worker) {
            by_wave.entry(attempt.wave).or_default().push(attempt);
        }
    }
    let waves = by_wave.into_iter();
    let mut all: Vec<PathGroup> =
        waves.flat_map(|(wave, attempts)| of_wave(trace, wave, &attempts)).collect();
    // Stable: waves, and paths of a wave by their first worker, stay in order.
    all.sort_by_key(|group| std::cmp::Reverse(group.workers.len()));
    Paths {
        schema: 1,
        run: trace.run().map(|run| run.run.to_string()).unwrap_or_default(),
        paths: all,
    }
}

/// One attempt's path, by itself.
#[must_use]
pub fn path_of(trace: &Trace, attempt: &Attempt) -> String {
    let mut symbols = Symbols::default();
    let key = key(trace, attempt, &mut symbols);
    whole(&symbols, &key).text
}

fn of_wave(trace: &Trace, wave: WaveId, attempts: &[&Attempt]) -> Vec<PathGroup> {
    let mut symbols = Symbols::default();
    let mut keys: Vec<Key> = Vec::new();
    for _ in 0..READINGS_MAX {
        let before = symbols.loops();
        keys = attempts.iter().map(|attempt| key(trace, attempt, &mut symbols)).collect();
        if symbols.loops() == before {
            break;
        }
    }
    let mut groups: BTreeMap<&Key, Vec<u32>> = BTreeMap::new();
    for (key, attempt) in keys.iter().zip(attempts) {
        groups.entry(key).or_default().push(attempt.worker.0);
    }
    let mut groups: Vec<(Meaning, Vec<u32>)> =
        groups.into_iter().map(|(key, workers)| (whole(&symbols, key), workers)).collect();
    groups.sort_by_key(|(_, workers)| (std::cmp::Reverse(workers.len()), workers.first().copied()));
    let wave = trace.wave_name(wave);
    let named = groups.iter().enumerate().map(|(number, (meaning, workers))| {
        let alike = groups.iter().filter(|(other, _)| other.text == meaning.text).count();
        let common = groups.first().filter(|_| number > 0).map(|(common, _)| common);
        PathGroup {
            wave: wave.clone(),
            path: if alike > 1 { meaning.exact.clone() } else { meaning.text.clone() },
            workers: workers.clone(),
            differs: common.map(|common| difference(&meaning.leaves, &common.leaves)),
        }
    });
    named.collect()
}

fn key(trace: &Trace, attempt: &Attempt, symbols: &mut Symbols) -> Key {
    let mut render = Render { trace, wave: attempt.wave, symbols };
    let sequence = render.sequence(&word(attempt));
    let end = match attempt.outcome() {
        Some(AttemptOutcome::Done) => "",
        Some(outcome) => outcome.name(),
        None => "running",
    };
    (sequence, end)
}

/// A path with its end.
fn whole(symbols: &Symbols, (sequence, end): &Key) -> Meaning {
    let mut meaning = symbols.joined(sequence, " → ");
    if end.is_empty() {
        return meaning;
    }
    for text in [&mut meaning.text, &mut meaning.exact] {
        let between = if text.is_empty() { "" } else { " · " };
        *text = format!("{text}{between}{end}");
    }
    meaning.leaves.push(Leaf { text: (*end).to_owned(), exact: (*end).to_owned() });
    meaning
}

/// What is between the common beginning and the common end of two paths.
fn difference(leaves: &[Leaf], common: &[Leaf]) -> Difference {
    let alike = |(a, b): &(&Leaf, &Leaf)| a.exact == b.exact;
    let first = leaves.iter().zip(common).take_while(alike).count();
    let (rest, other) = (&leaves[first..], &common[first..]);
    let last = rest.iter().rev().zip(other.iter().rev()).take_while(alike).count();
    let (has, instead) = (&rest[..rest.len() - last], &other[..other.len() - last]);
    let texts = |leaves: &[Leaf]| leaves.iter().map(|of| of.text.clone()).collect::<Vec<_>>();
    let is_exact = texts(has) == texts(instead);
    let named = |leaves: &[Leaf]| {
        let shown = leaves.iter().take(NAMED_MAX);
        let mut all: Vec<String> =
            shown.map(|of| if is_exact { of.exact.clone() } else { of.text.clone() }).collect();
        if leaves.len() > NAMED_MAX {
            all.push(format!("{} more", leaves.len() - NAMED_MAX));
        }
        all
    };
    Difference {
        after: first.checked_sub(1).and_then(|last| leaves.get(last)).map(|of| of.text.clone()),
        has: named(has),
        instead_of: named(instead),
    }
}
