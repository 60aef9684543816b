//! A session cut into stretches of C: windows, what is between them, and what is lost.
//!
//! In: an attempt, its milestones, its clock. Out: stretches that follow one another without gap
//! from hello to quit. A window is a maximal union of half-open [t0, t3) of commands (heartbeats
//! make none, quit ends the session); windows that merely touch stay apart where an epoch ends.

use musec_trace::{CTime, CommandId};

use super::milestones::Milestones;
use crate::clocks::AttemptClock;
use crate::fold::{Attempt, Command};

/// What a stretch of a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Commands were outstanding.
    Window(Window),
    /// The program itself waited.
    Wait,
    /// The coordinator was at it.
    Coordinator,
    /// After the last that was heard; with the command that never replied.
    Lost(Option<CommandId>),
    /// The same while the run goes on: where it went will be told by the command's reply.
    Open(Option<CommandId>),
}

/// Where a window's commands reach beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cut {
    /// Nowhere.
    #[default]
    None,
    /// They were answered after the session's end: `quit` was sent meanwhile.
    AtEnd,
    /// They were sent before the session's begin, which only a damaged journal tells.
    AtStart,
}

/// Commands that were outstanding together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Commands that replied, in order of t0.
    pub(crate) answered: Vec<CommandId>,
    /// Commands that did not reply before the session's end or the loss.
    pub(crate) unanswered: Vec<CommandId>,
    /// Where a command reaches beyond it.
    pub(crate) cut: Cut,
    /// Whether a clock broke within it.
    pub(crate) is_broken: bool,
}

/// A stretch of a session, half-open, C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) from: CTime,
    pub(crate) to: CTime,
    pub(crate) kind: Kind,
}

/// One command as the session sees it.
struct Span {
    id: CommandId,
    t0: CTime,
    /// t3, or the end of what is accounted if it did not reply.
    to: CTime,
    answered: bool,
    epoch: Option<usize>,
}

/// The stretches of the session of `attempt`, from hello to quit without gap. `is_live`: the run
/// goes on, so that an attempt without an end is not lost, only not yet known.
pub(crate) fn stretches(
    attempt: &Attempt,
    milestones: &Milestones,
    clock: &AttemptClock,
    is_live: bool,
) -> Vec<Stretch> {
    let (hello, quit) = (milestones.hello, milestones.quit);
    let is_open = is_live && attempt.ended.is_none();
    // Who awaits no reply may be silent.
    let loss = loss(attempt, hello, quit).filter(|(_, command)| !is_open || command.is_some());
    let sound = loss.as_ref().map_or(quit, |(from, _)| *from);
    let waits = waits(attempt, quit);
    let mut out = Vec::new();
    let mut at = hello;
    for (from, to, window) in windows(attempt, clock, hello, sound) {
        between(&waits, at, from, &mut out);
        out.push(Stretch { from, to, kind: Kind::Window(window) });
        at = to;
    }
    between(&waits, at, sound, &mut out);
    if let Some((from, command)) = loss
        && from < quit
    {
        let kind = if is_open { Kind::Open(command) } else { Kind::Lost(command) };
        out.push(Stretch { from, to: quit, kind });
    }
    out
}

fn commands(attempt: &Attempt) -> impl Iterator<Item = (CommandId, &Command, CTime)> {
    attempt
        .commands
        .iter()
        .filter(|(_, command)| !command.is_quit())
        .filter_map(|(id, command)| Some((*id, command, command.t0?)))
}

/// From when (C) the session is lost, and by which command that never replied: the later of the
/// last reply and the earliest such command's t0. Without such a command and without a quit: from
/// the last sign of life.
fn loss(attempt: &Attempt, hello: CTime, quit: CTime) -> Option<(CTime, Option<CommandId>)> {
    attempt.hello_at?;
    let silent = commands(attempt)
        .filter(|(_, command, t0)| command.reply.is_none() && *t0 < quit)
        .min_by_key(|(id, _, t0)| (*t0, *id));
    if let Some((id, _, t0)) = silent {
        let replies =
            commands(attempt).filter_map(|(_, command, _)| Some(command.reply.as_ref()?.t3));
        let last = replies.max().unwrap_or(t0).max(t0);
        return Some((last.clamp(hello, quit), Some(id)));
    }
    if attempt.quit_sent.is_some() {
        return None;
    }
    let told = attempt.ended.map_or(CTime::ZERO, |ended| ended.last_sign);
    Some((attempt.last_sign.max(told).clamp(hello, quit), None))
}

/// Windows between `from` and `to` (C), in order.
fn windows(
    attempt: &Attempt,
    clock: &AttemptClock,
    from: CTime,
    to: CTime,
) -> Vec<(CTime, CTime, Window)> {
    let mut spans: Vec<Span> = commands(attempt)
        .map(|(id, command, t0)| Span {
            id,
            t0,
            to: command.reply.as_ref().map_or(to, |reply| reply.t3.max(t0)),
            answered: command.reply.is_some(),
            epoch: clock.epoch_of(id),
        })
        .filter(|span| span.t0.max(from) < span.to.min(to) || within(span, from, to))
        .collect();
    spans.sort_by_key(|span| (span.t0, span.id));
    let mut windows: Vec<(CTime, CTime, Window)> = Vec::new();
    let mut epoch = None;
    for span in &spans {
        let (start, end) = (span.t0.max(from), span.to.min(to));
        match windows.last_mut() {
            Some((_, until, window))
                if start < *until || (start == *until && epoch == span.epoch) =>
            {
                *until = end.max(*until);
                window.add(span, from, to);
            }
            _ => {
                let mut window = Window::default();
                window.add(span, from, to);
                windows.push((start, end, window));
            }
        }
        epoch = span.epoch;
    }
    for (start, end, window) in &mut windows {
        let mut breaks = clock.breaks.iter();
        window.is_broken |= breaks.any(|broken| *start < broken.until && broken.after < *end);
    }
    windows
}

/// Whether a command of no length lies within.
fn within(span: &Span, from: CTime, to: CTime) -> bool {
    span.answered && span.t0 == span.to && from <= span.t0 && span.to < to
}

impl Window {
    fn add(&mut self, span: &Span, from: CTime, to: CTime) {
        if !span.answered {
            self.unanswered.push(span.id);
            return;
        }
        self.answered.push(span.id);
        let cut = match (span.t0 < from, span.to > to) {
            (true, _) => Cut::AtStart,
            (false, true) => Cut::AtEnd,
            (false, false) => Cut::None,
        };
        self.cut = self.cut.max(cut);
        self.is_broken |= span.epoch.is_none();
    }
}

/// The program's waits, merged and in order, half-open, C.
fn waits(attempt: &Attempt, quit: CTime) -> Vec<(CTime, CTime)> {
    let mut all: Vec<(CTime, CTime)> = attempt
        .waits
        .iter()
        .map(|wait| (wait.from, wait.to.unwrap_or(quit)))
        .filter(|(from, to)| from < to)
        .collect();
    all.sort_unstable();
    let mut merged: Vec<(CTime, CTime)> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some((_, until)) if from <= *until => *until = to.max(*until),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// What is between two windows: waits of the program, else the coordinator.
fn between(waits: &[(CTime, CTime)], from: CTime, to: CTime, out: &mut Vec<Stretch>) {
    let mut at = from;
    let first = waits.partition_point(|(_, until)| *until <= from);
    for (since, until) in waits.iter().skip(first).take_while(|(since, _)| *since < to) {
        let (start, end) = ((*since).max(at), (*until).min(to));
        if at < start {
            out.push(Stretch { from: at, to: start, kind: Kind::Coordinator });
        }
        out.push(Stretch { from: start, to: end, kind: Kind::Wait });
        at = end;
    }
    if at < to {
        out.push(Stretch { from: at, to, kind: Kind::Coordinator });
    }
}
