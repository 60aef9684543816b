//! What a command has done so far: phases, objects, bytes, output. It outlives the action, so that
//! one that is stopped midway still tells how far it came.

use std::cell::RefCell;

use musec_protocol::limits::PHASES_MAX;
use musec_protocol::{Object, Phase, PhaseKind, Tail, Usage, WTime};

use crate::clock::WClock;

/// What a command has done so far.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) phases: Phases,
    pub(crate) usage: Option<Usage>,
    pub(crate) stdout: Tail,
    pub(crate) stderr: Tail,
    pub(crate) bytes: u64,
    pub(crate) objects: Vec<Object>,
}

/// Shared by the action that does and the wrapper that replies.
#[derive(Debug)]
pub(crate) struct Progress {
    clock: WClock,
    done: RefCell<Done>,
}

impl Progress {
    pub(crate) fn new(clock: WClock) -> Self {
        Self { clock, done: RefCell::default() }
    }

    /// Ends the present phase, if any, and begins the next; the instant of both.
    pub(crate) fn enter(&self, kind: PhaseKind) -> WTime {
        let now = self.clock.now();
        self.done.borrow_mut().phases.enter(kind, now);
        now
    }

    /// Ends the present phase; the instant.
    pub(crate) fn leave(&self) -> WTime {
        let now = self.clock.now();
        self.done.borrow_mut().phases.leave(now);
        now
    }

    /// Now, without a change of phase.
    pub(crate) fn now(&self) -> WTime {
        self.clock.now()
    }

    /// Notes something else.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Done)) {
        change(&mut self.done.borrow_mut());
    }

    /// All of it; a phase that is still open ends at `now`.
    pub(crate) fn finish(&self, now: WTime) -> Done {
        let mut done = self.done.take();
        done.phases.leave(now);
        done
    }
}

/// Phases in order, never more than [`PHASES_MAX`].
///
/// Above the limit neighbours are put together: within each four, times of one kind are added up,
/// so that the sum of every kind stays exact and only the order within the four is lost.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    closed: Vec<Phase>,
    open: Option<(PhaseKind, WTime)>,
}

impl Phases {
    fn enter(&mut self, kind: PhaseKind, now: WTime) {
        self.leave(now);
        self.open = Some((kind, now));
    }

    fn leave(&mut self, now: WTime) {
        let Some((kind, from)) = self.open.take() else { return };
        match self.closed.last_mut() {
            Some(last) if last.kind == kind && last.to == from => last.to = now,
            _ if from == now => {}
            _ => self.closed.push(Phase { kind, from, to: now }),
        }
        if self.closed.len() > PHASES_MAX {
            self.closed = self.closed.chunks(4).flat_map(merge).collect();
        }
    }

    /// The phases; all are closed.
    pub(crate) fn into_vec(self) -> Vec<Phase> {
        self.closed
    }
}

/// Phases one after another from the first's start, each kind once; gaps end up behind them.
fn merge(phases: &[Phase]) -> Vec<Phase> {
    let mut merged: Vec<Phase> = Vec::new();
    let mut at = phases[0].from;
    for kind in phases.iter().map(|phase| phase.kind) {
        if merged.iter().any(|phase| phase.kind == kind) {
            continue;
        }
        let same = phases.iter().filter(|phase| phase.kind == kind);
        let to = WTime::from_ns(at.ns + same.map(|phase| phase.to.since(phase.from)).sum::<u64>());
        merged.push(Phase { kind, from: at, to });
        at = to;
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(phases: &[Phase], kind: PhaseKind) -> u64 {
        phases.iter().filter(|p| p.kind == kind).map(|p| p.to.since(p.from)).sum()
    }

    #[test]
    fn phases_touch_and_equal_neighbours_are_one() {
        let mut phases = Phases::default();
        phases.enter(PhaseKind::FirstByte, WTime::from_ns(1));
        phases.enter(PhaseKind::Transfer, WTime::from_ns(5));
        phases.enter(PhaseKind::Transfer, WTime::from_ns(6));
        phases.leave(WTime::from_ns(9));
        let (five, nine) = (WTime::from_ns(5), WTime::from_ns(9));
        assert_eq!(
            phases.into_vec(),
            [
                Phase { kind: PhaseKind::FirstByte, from: WTime::from_ns(1), to: five },
                Phase { kind: PhaseKind::Transfer, from: five, to: nine },
            ]
        );
    }

    #[test]
    fn a_million_alternations_stay_within_the_limit_and_keep_their_sums() {
        let mut phases = Phases::default();
        for i in 0..1_000_000 {
            phases.enter(PhaseKind::Transfer, WTime::from_ns(10 * i));
            phases.enter(PhaseKind::Disk, WTime::from_ns(10 * i + 3));
        }
        phases.leave(WTime::from_ns(10_000_000));
        let phases = phases.into_vec();
        assert!(phases.len() <= PHASES_MAX, "{}", phases.len());
        assert_eq!(sum(&phases, PhaseKind::Transfer), 3_000_000);
        assert_eq!(sum(&phases, PhaseKind::Disk), 7_000_000);
        assert!(phases.windows(2).all(|pair| pair[0].to <= pair[1].from));
        assert_eq!(phases.last().map(|phase| phase.to.ns), Some(10_000_000));
    }
}
