//! What a worker's clock says about the coordinator's, and when it can no longer be believed.
//!
//! In: an attempt's exchanges (hello, commands, heartbeats, quit) in the order in which they came
//! back, and the coordinator's own samples. Out: epochs, faults, and bounds on C for any W time.
//! Invariants: without a fault no bound excludes the truth; each fault is counted once; nothing is
//! corrected. Absent: any use of wall time.

mod epoch;
mod front;
mod rate;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use musec_trace::{CTime, CommandId, WTime};

pub use epoch::{Back, Epoch, Towards};
pub use rate::{EPSILON_NS, Rate, is_same_clock};

use crate::fold::{Attempt, Command, ReplyFacts, Trace};

/// BOOTTIME − MONOTONIC may differ by this much between two readings without a suspend, in
/// nanoseconds: the two clocks are read one after the other, and the reader may be preempted in
/// between. A suspend that is worth the name is far longer.
pub const GAP_TOLERANCE_NS: u64 = 1_000_000;

/// A clock's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// When it was noticed, C.
    pub at: CTime,
    /// What it is.
    pub kind: FaultKind,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The fault test failed: W jumped, or ran faster or slower than r allows.
    Clock,
    /// The machine was suspended.
    Suspended,
    /// A window's busy time does not fit into it.
    ImpossibleWindow,
}

impl FaultKind {
    /// Its name, as it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Suspended => "suspended",
            Self::ImpossibleWindow => "impossible window",
        }
    }
}

/// A stretch of C in which a clock broke: after `after`, no later than `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Break {
    /// The last that was sound, C.
    pub after: CTime,
    /// When it was noticed, C.
    pub until: CTime,
}

/// The coordinator's own breaks, from its samples: its machine was suspended.
#[must_use]
pub fn coordinator_breaks(trace: &Trace) -> Vec<Break> {
    let Some(run) = trace.run() else {
        return Vec::new();
    };
    let mut before = (trace.started(), run.clock_gap_ns);
    let mut breaks = Vec::new();
    for sample in trace.samples() {
        if before.1.abs_diff(sample.clock_gap_ns) > GAP_TOLERANCE_NS {
            breaks.push(Break { after: before.0, until: sample.at });
        }
        before = (sample.at, sample.clock_gap_ns);
    }
    breaks
}

/// One exchange of an attempt.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    towards: Option<Towards>,
    back: Back,
    clock_gap_ns: i64,
    command: Option<CommandId>,
}

/// One attempt's clock.
#[derive(Clone, Debug)]
pub struct AttemptClock {
    epochs: Vec<Epoch>,
    /// The epoch of each command whose exchange lies wholly within one.
    of_command: BTreeMap<CommandId, usize>,
    /// Its faults; not those of the coordinator.
    pub faults: Vec<Fault>,
    /// Where its clock or the coordinator's broke.
    pub breaks: Vec<Break>,
    rate: Rate,
}

impl AttemptClock {
    /// The clock of `attempt`, with the coordinator's breaks in order of time. O(n log n).
    #[must_use]
    pub fn of(trace: &Trace, attempt: &Attempt, coordinator: &[Break]) -> Self {
        let same = match (trace.run(), attempt.hello.as_deref()) {
            (Some(run), Some(hello)) => is_same_clock(run, hello),
            _ => false,
        };
        let rate = match (trace.run(), attempt.hello.as_deref()) {
            (Some(run), Some(hello)) => Rate::of_worker(run, hello),
            (Some(run), None) => Rate::from_ppm(run.rate_bound_ppm),
            (None, _) => Rate::from_ppm(0),
        };
        let mut clock = Self {
            epochs: vec![Epoch::new(rate, CTime::ZERO)],
            of_command: BTreeMap::new(),
            faults: Vec::new(),
            breaks: coordinator.to_vec(),
            rate,
        };
        clock.read(&exchanges(attempt), coordinator, same);
        clock.epochs.iter_mut().for_each(Epoch::close);
        clock
    }

    /// Its bound of rates.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The epoch that a command's exchange lies wholly within; `None` if it was not answered or a
    /// clock broke meanwhile.
    #[must_use]
    pub fn epoch_of(&self, id: CommandId) -> Option<usize> {
        self.of_command.get(&id).copied()
    }

    /// Bounds on C of when `id` started and finished: causality's own, narrowed by all exchanges
    /// of its epoch. `None` if it was not answered, or has no epoch and thus only
    /// [t0, t3]. O(log n).
    #[must_use]
    pub fn command_bounds(&self, id: CommandId, command: &Command) -> Option<CommandBounds> {
        let (t0, reply) = (command.t0?, command.reply.as_ref()?);
        let t3 = reply.t3.max(t0);
        let Some(epoch) = self.epoch_of(id).and_then(|epoch| self.epochs.get(epoch)) else {
            return Some(CommandBounds { start: (t0, t3), end: (t0, t3) });
        };
        let least = self.rate.least_on_c(u128::from(reply.stamps.service_ns()));
        let least = u64::try_from(least).unwrap_or(u64::MAX).min(t3.since(t0));
        let latest_start = CTime::from_ns(t3.ns - least);
        let earliest_end = CTime::from_ns(t0.ns + least);
        Some(CommandBounds {
            start: narrowed((t0, latest_start), epoch.position(reply.stamps.started)),
            end: narrowed((earliest_end, t3), epoch.position(reply.stamps.finished)),
        })
    }

    /// The least and the most, in nanoseconds of C, between a and b of command `id` and before
    /// `until` (C), by where all exchanges of its epoch let them lie. `None` if it has no epoch.
    /// O(log n).
    #[must_use]
    pub fn busy_bounds(
        &self,
        id: CommandId,
        command: &Command,
        until: CTime,
    ) -> Option<(u64, u64)> {
        let (t0, reply) = (command.t0?, command.reply.as_ref()?);
        let epoch = self.epochs.get(self.epoch_of(id)?)?;
        let causal = (t0, reply.t3.max(t0));
        let a = narrowed(causal, epoch.position(reply.stamps.received));
        let b = narrowed(causal, epoch.position(reply.stamps.encoded));
        let least = b.0.min(until).since(a.1.min(until));
        Some((least, b.1.min(until).since(a.0.min(until))))
    }

    /// Where `w` of the given epoch lies on C; see [`Epoch::position`]. `None` if there is no such
    /// epoch.
    #[must_use]
    pub fn position(&self, epoch: usize, w: WTime) -> Option<(Option<i128>, Option<i128>)> {
        self.epochs.get(epoch).map(|epoch| epoch.position(w))
    }

    /// Between which two W times the worker's clock stood at `c` (C), by all exchanges of the
    /// given epoch; see [`Epoch::stood`]. `None` if there is no such epoch.
    #[must_use]
    pub fn stood(&self, epoch: usize, c: CTime) -> Option<(WTime, WTime)> {
        self.epochs.get(epoch).map(|epoch| epoch.stood(c))
    }

    /// Reads exchanges in the order of t3 and opens an epoch at each break.
    fn read(&mut self, exchanges: &[Exchange], coordinator: &[Break], same: bool) {
        let mut sound = CTime::ZERO;
        let mut gap: Option<i64> = None;
        let mut breaks = coordinator.iter().peekable();
        for exchange in exchanges {
            while let Some(ended) = breaks.next_if(|other| other.until < exchange.back.t3) {
                self.open(ended.until);
                gap = None;
            }
            if breaks.peek().is_some_and(|other| other.after < exchange.back.t3) {
                // C itself broke about here: this exchange bounds nothing.
                continue;
            }
            // One machine has one suspend: where W is C, the coordinator's samples tell it.
            let suspended = !same
                && gap.is_some_and(|gap| gap.abs_diff(exchange.clock_gap_ns) > GAP_TOLERANCE_NS);
            gap = Some(exchange.clock_gap_ns);
            if suspended || !self.take(exchange) {
                let kind = if suspended { FaultKind::Suspended } else { FaultKind::Clock };
                self.break_at(sound, exchange, kind);
            }
            sound = exchange.back.t3;
        }
    }

    /// Adds an exchange to the present epoch; false if it contradicts it.
    fn take(&mut self, exchange: &Exchange) -> bool {
        let place = self.epochs.len() - 1;
        let Some(epoch) = self.epochs.last_mut() else {
            return true;
        };
        // Sent before the epoch was heard of: `a` may still be of the epoch before.
        let whole = exchange.towards.is_none_or(|towards| towards.t0 >= epoch.from());
        let towards = exchange.towards.filter(|_| whole);
        if !epoch.admits(towards, Some(exchange.back)) {
            return false;
        }
        epoch.insert(towards, Some(exchange.back));
        if whole && let Some(id) = exchange.command {
            self.of_command.insert(id, place);
        }
        true
    }

    /// The clock broke between `sound` and this exchange's t3. Of the exchange only `b` is surely
    /// behind the break.
    fn break_at(&mut self, sound: CTime, exchange: &Exchange, kind: FaultKind) {
        let at = exchange.back.t3;
        self.faults.push(Fault { at, kind });
        self.breaks.push(Break { after: sound, until: at });
        self.open(at);
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.insert(None, Some(exchange.back));
        }
    }

    fn open(&mut self, from: CTime) {
        self.epochs.push(Epoch::new(self.rate, from));
    }
}

/// Where a command's start and end lie on C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandBounds {
    /// Of s.
    pub start: (CTime, CTime),
    /// Of f.
    pub end: (CTime, CTime),
}

impl CommandBounds {
    /// Widths of the two bounds, in nanoseconds.
    #[must_use]
    pub fn widths_ns(&self) -> [u64; 2] {
        [self.start, self.end].map(|(low, high)| high.since(low))
    }
}

/// The part of `causal` that `position` allows; `causal` itself if that is nothing, which only
/// exchanges can bring about that contradict one another within ε.
fn narrowed(causal: (CTime, CTime), position: (Option<i128>, Option<i128>)) -> (CTime, CTime) {
    let clamp = |ns: i128| CTime::from_ns(u64::try_from(ns.max(0)).unwrap_or(u64::MAX));
    let low = position.0.map_or(causal.0, |low| causal.0.max(clamp(low)));
    let high = position.1.map_or(causal.1, |high| causal.1.min(clamp(high)));
    if low <= high { (low, high) } else { causal }
}

/// All exchanges of an attempt in the order in which they came back.
fn exchanges(attempt: &Attempt) -> Vec<Exchange> {
    let hello = attempt.hello.as_ref().zip(attempt.hello_at).map(|(hello, t3)| Exchange {
        towards: None,
        back: Back { b: hello.encoded, t3 },
        clock_gap_ns: hello.clock_gap_ns,
        command: None,
    });
    let pulses = attempt.pulses.iter().map(|pulse| Exchange {
        towards: Some(Towards { t0: pulse.t0, a: pulse.received }),
        back: Back { b: pulse.encoded, t3: pulse.t3 },
        clock_gap_ns: pulse.clock_gap_ns,
        command: None,
    });
    let commands = attempt
        .commands
        .iter()
        .filter_map(|(id, command)| Some(of_command(*id, command.t0?, command.reply.as_ref()?)));
    let mut all: Vec<Exchange> = hello.into_iter().chain(pulses).chain(commands).collect();
    all.sort_by_key(|exchange| (exchange.back.t3, exchange.back.b));
    all
}

fn of_command(id: CommandId, t0: CTime, reply: &ReplyFacts) -> Exchange {
    Exchange {
        towards: Some(Towards { t0, a: reply.stamps.received }),
        back: Back { b: reply.stamps.encoded, t3: reply.t3 },
        clock_gap_ns: reply.clock_gap_ns,
        command: Some(id),
    }
}
