//! What a background command may count of a window: where no other command is outstanding, or where
//! a lane waits for it. Elsewhere the other commands' time is theirs, their network included, so
//! that a daemon does not make a session opaque.
//!
//! In: a window's commands and stamps of C. Out: cells that are cut to the room there is. Where in
//! the window a background command was at work is known on W alone; its time is scaled down.

use musec_trace::{CTime, CommandId};

use super::apportion::apportion;
use super::session::Window;
use super::sweep::Cells;
use crate::fold::{Attempt, Command};

/// How many nanoseconds (C) of a window, which lasted from `from` to `to`, its background commands
/// may count; `None` without any.
pub(crate) fn room(attempt: &Attempt, window: &Window, (from, to): (CTime, CTime)) -> Option<u128> {
    let all = window.answered.iter().chain(&window.unanswered);
    let commands: Vec<&Command> = all.filter_map(|id| attempt.commands.get(id)).collect();
    commands.iter().find(|command| command.is_background())?;
    let spans = commands.iter().filter(|command| !command.is_background()).filter_map(|command| {
        let until = command.reply.as_ref().map_or(to, |reply| reply.t3);
        Some((command.t0?.max(from), until.min(to)))
    });
    let (others, awaited) = (union(spans.collect()), union(awaited(attempt, from, to)));
    let taken = length(&others) - overlap(&others, &awaited);
    Some(u128::from(to.since(from)).saturating_sub(taken))
}

/// Cells whose background commands count at most `room` nanoseconds.
pub(crate) fn cut(cells: Cells, attempt: &Attempt, room: u128) -> Cells {
    let is_background = |id: &Option<CommandId>| {
        let command = id.and_then(|id| attempt.commands.get(&id));
        command.is_some_and(Command::is_background)
    };
    let own = || cells.iter().filter(|((_, id), _)| is_background(id));
    let weights: Vec<u128> = own().map(|(_, ns)| *ns).collect();
    if weights.iter().sum::<u128>() <= room {
        return cells;
    }
    let parts: Vec<_> = own().map(|(key, _)| *key).zip(apportion(room, &weights)).collect();
    let mut cells = cells;
    cells.extend(parts);
    cells
}

/// When lanes waited for background commands, within `from` and `to` (C).
fn awaited(attempt: &Attempt, from: CTime, to: CTime) -> Vec<(CTime, CTime)> {
    let first = attempt.awaits.partition_point(|awaited| awaited.to <= from);
    let all = attempt.awaits.iter().skip(first);
    all.map(|awaited| (awaited.from.max(from), awaited.to.min(to))).collect()
}

/// The same instants in intervals that do not touch, in order.
fn union(mut spans: Vec<(CTime, CTime)>) -> Vec<(CTime, CTime)> {
    spans.retain(|(from, to)| from < to);
    spans.sort_unstable();
    let mut merged: Vec<(CTime, CTime)> = Vec::new();
    for (from, to) in spans {
        match merged.last_mut() {
            Some((_, until)) if from <= *until => *until = to.max(*until),
            _ => merged.push((from, to)),
        }
    }
    merged
}

fn length(spans: &[(CTime, CTime)]) -> u128 {
    spans.iter().map(|(from, to)| u128::from(to.since(*from))).sum()
}

/// How long both go on, of intervals in order.
fn overlap(one: &[(CTime, CTime)], other: &[(CTime, CTime)]) -> u128 {
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    let mut both = 0;
    while let (Some((a, b)), Some((c, d))) = (left.peek(), right.peek()) {
        let (from, to) = ((*a).max(*c), (*b).min(*d));
        if from < to {
            both += u128::from(to.since(from));
        }
        if b <= d {
            left.next();
        } else {
            right.next();
        }
    }
    both
}
