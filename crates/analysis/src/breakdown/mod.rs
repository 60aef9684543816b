//! Where every nanosecond of every attempt went: time.md §6.
//!
//! In: a [`Trace`]. Out: an [`Account`] of every attempt, by category and by visit of a state, and
//! sums over workers, waves and the run. Invariants: per attempt the categories and what is
//! unaccounted sum to its life exactly, and so do the visits; no amount is negative; the same for
//! every sum ([`Account::check_conservation`]). Absent: any rounding but the method of the largest
//! remainder.

mod apportion;
mod background;
mod category;
mod conservation;
mod milestones;
mod session;
mod sweep;
mod window;

use std::collections::BTreeMap;

use musec_trace::{AttemptOutcome, CTime, CommandId, LaunchId, StateId, WaveId, WorkerId};

pub use apportion::apportion;
pub use category::{Categories, Category, Group, Rollup, Split, roll_up};
pub use conservation::ConservationError;
pub use milestones::Milestones;
use session::{Kind, stretches};

use crate::clocks::{AttemptClock, Break, Fault, FaultKind, coordinator_breaks};
use crate::fold::{Attempt, Trace};

/// A visit of a state by one attempt, with its number from 0.
pub type Visit = (StateId, u32);

/// Accounts of all attempts of a run.
#[derive(Clone, Debug)]
pub struct Account {
    /// By attempt.
    pub attempts: BTreeMap<LaunchId, AttemptAccount>,
    /// The coordinator's own faults.
    pub coordinator_faults: Vec<Fault>,
}

/// One attempt's account.
#[derive(Clone, Debug)]
pub struct AttemptAccount {
    /// Its worker.
    pub worker: WorkerId,
    /// Its wave.
    pub wave: WaveId,
    /// Its milestones.
    pub milestones: Milestones,
    /// Its clock.
    pub clock: AttemptClock,
    /// Its part in every sum.
    pub breakdown: Breakdown,
    /// The same time by visit; `None` for what is in no state.
    pub visits: BTreeMap<Option<Visit>, Split>,
    /// Its faults: of its clock, and windows that cannot have been.
    pub faults: Vec<Fault>,
}

/// A breakdown of one attempt, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Requested → end, in nanoseconds; of several, their sum.
    pub life_ns: u128,
    /// Its parts.
    pub split: Split,
    /// Its roll-up.
    pub rollup: Rollup,
    /// Bounds of `network`, in nanoseconds.
    pub network_bounds_ns: (u128, u128),
    /// Windows whose busy time was fitted.
    pub fitted_windows: u64,
    /// `storage` by `get`, in nanoseconds.
    pub get_ns: u128,
    /// `storage` by `put`, in nanoseconds.
    pub put_ns: u128,
}

impl Breakdown {
    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        self.life_ns += other.life_ns;
        self.split.add_all(&other.split);
        self.rollup.add_all(&other.rollup);
        self.network_bounds_ns.0 += other.network_bounds_ns.0;
        self.network_bounds_ns.1 += other.network_bounds_ns.1;
        self.fitted_windows = self.fitted_windows.saturating_add(other.fitted_windows);
        self.get_ns += other.get_ns;
        self.put_ns += other.put_ns;
    }

    /// The sum of `parts`.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        parts.into_iter().for_each(|part| sum.add_all(part));
        sum
    }
}

impl Account {
    /// Accounts of all attempts of `trace`; one that is alive ends at the journal's last record,
    /// and is lost from its last sign of life on.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        Self::with(trace, false)
    }

    /// The same while the run goes on. An attempt that is alive is not lost: from when nothing but
    /// the reply of its present command is missing, up to the journal's last record, its time is
    /// unaccounted, in that command's state, until the reply tells where it went.
    #[must_use]
    pub fn of_running(trace: &Trace) -> Self {
        Self::with(trace, true)
    }

    fn with(trace: &Trace, is_live: bool) -> Self {
        let breaks = coordinator_breaks(trace);
        let attempts = trace.attempts().iter();
        Self {
            attempts: attempts
                .map(|(launch, attempt)| {
                    (*launch, AttemptAccount::of(trace, attempt, &breaks, is_live))
                })
                .collect(),
            coordinator_faults: breaks
                .iter()
                .map(|broken| Fault { at: broken.until, kind: FaultKind::Suspended })
                .collect(),
        }
    }

    /// The whole run.
    #[must_use]
    pub fn total(&self) -> Breakdown {
        Breakdown::sum(self.attempts.values().map(|account| &account.breakdown))
    }

    /// By wave.
    #[must_use]
    pub fn waves(&self) -> BTreeMap<WaveId, Breakdown> {
        self.by(|account| account.wave)
    }

    /// By worker.
    #[must_use]
    pub fn workers(&self) -> BTreeMap<WorkerId, Breakdown> {
        self.by(|account| account.worker)
    }

    /// By wave and state; `None` for what is in no state.
    #[must_use]
    pub fn states(&self) -> BTreeMap<(WaveId, Option<StateId>), Split> {
        let mut states: BTreeMap<(WaveId, Option<StateId>), Split> = BTreeMap::new();
        for account in self.attempts.values() {
            for (visit, split) in &account.visits {
                let state = visit.map(|(state, _)| state);
                states.entry((account.wave, state)).or_default().add_all(split);
            }
        }
        states
    }

    /// All faults: the coordinator's and those of all attempts.
    #[must_use]
    pub fn fault_count(&self) -> usize {
        let own = self.attempts.values().map(|account| account.faults.len());
        self.coordinator_faults.len() + own.sum::<usize>()
    }

    fn by<K: Ord>(&self, key: impl Fn(&AttemptAccount) -> K) -> BTreeMap<K, Breakdown> {
        let mut groups: BTreeMap<K, Breakdown> = BTreeMap::new();
        for account in self.attempts.values() {
            groups.entry(key(account)).or_default().add_all(&account.breakdown);
        }
        groups
    }
}

impl AttemptAccount {
    fn of(trace: &Trace, attempt: &Attempt, breaks: &[Break], is_live: bool) -> Self {
        let milestones = Milestones::of(attempt, trace.last());
        let clock = AttemptClock::of(trace, attempt, breaks);
        let mut ledger = Ledger::new(attempt, &clock);
        ledger.outside(&milestones);
        for stretch in stretches(attempt, &milestones, &clock, is_live) {
            ledger.stretch((stretch.from, stretch.to), &stretch.kind);
        }
        let Ledger { mut breakdown, visits, impossible, .. } = ledger;
        breakdown.life_ns = u128::from(milestones.life_ns());
        breakdown.rollup = roll_up(&breakdown.split, is_without_result(attempt));
        let mut faults = clock.faults.clone();
        faults.extend(impossible);
        faults.sort_unstable();
        Self {
            worker: attempt.worker,
            wave: attempt.wave,
            milestones,
            clock,
            breakdown,
            visits,
            faults,
        }
    }
}

/// Whether an attempt has no result; one that is alive may yet have one.
pub(crate) fn is_without_result(attempt: &Attempt) -> bool {
    attempt.outcome().is_some_and(|outcome| outcome != AttemptOutcome::Done)
}

/// One attempt's sums while they are made.
struct Ledger<'a> {
    attempt: &'a Attempt,
    clock: &'a AttemptClock,
    breakdown: Breakdown,
    visits: BTreeMap<Option<Visit>, Split>,
    impossible: Vec<Fault>,
}

impl<'a> Ledger<'a> {
    fn new(attempt: &'a Attempt, clock: &'a AttemptClock) -> Self {
        Self {
            attempt,
            clock,
            breakdown: Breakdown::default(),
            visits: BTreeMap::new(),
            impossible: Vec::new(),
        }
    }

    /// What is outside of the session.
    fn outside(&mut self, at: &Milestones) {
        let parts = [
            (Category::Launch, at.requested, at.accepted),
            (Category::Start, at.accepted, at.tcp),
            (Category::Handshake, at.tcp, at.hello),
            (Category::Teardown, at.quit, at.end),
        ];
        for (category, from, to) in parts {
            self.put(category, None, u128::from(to.since(from)));
        }
    }

    /// One stretch of the session, C.
    fn stretch(&mut self, (from, to): (CTime, CTime), kind: &Kind) {
        let length = u128::from(to.since(from));
        match kind {
            Kind::Wait => self.put(Category::Wait, None, length),
            Kind::Coordinator => self.put(Category::Coordinator, None, length),
            Kind::Lost(command) => self.put(Category::Lost, *command, length),
            Kind::Open(command) => self.leave(*command, length),
            Kind::Window(window) => {
                let account = window::account(self.attempt, window, (from, to), self.clock);
                for ((category, command), ns) in &account.cells {
                    self.put(*category, *command, *ns);
                }
                self.leave(account.only, account.unaccounted_ns);
                self.breakdown.network_bounds_ns.0 += account.network_bounds_ns.0;
                self.breakdown.network_bounds_ns.1 += account.network_bounds_ns.1;
                self.breakdown.fitted_windows += u64::from(account.is_fitted);
                if account.is_impossible {
                    self.impossible.push(Fault { at: to, kind: FaultKind::ImpossibleWindow });
                }
            }
        }
    }

    fn put(&mut self, category: Category, command: Option<CommandId>, ns: u128) {
        self.breakdown.split.categories.add(category, ns);
        let visit = self.visit(command);
        self.visits.entry(visit).or_default().categories.add(category, ns);
        if category == Category::Storage {
            let name = command.and_then(|id| self.attempt.commands.get(&id)).map(|of| of.name());
            if name == Some("put") {
                self.breakdown.put_ns += ns;
            } else {
                self.breakdown.get_ns += ns;
            }
        }
    }

    /// Leaves `ns` unaccounted.
    fn leave(&mut self, command: Option<CommandId>, ns: u128) {
        self.breakdown.split.unaccounted_ns += ns;
        let visit = self.visit(command);
        self.visits.entry(visit).or_default().unaccounted_ns += ns;
    }

    fn visit(&self, command: Option<CommandId>) -> Option<Visit> {
        self.attempt.commands.get(&command?)?.visit()
    }
}
