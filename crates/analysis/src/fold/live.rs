//! What is going on now, kept up to date record by record, so that a progress display over
//! thousands of workers costs nothing but what it shows.

use std::collections::{BTreeMap, BTreeSet};

use musec_trace::{AttemptOutcome, CTime, CommandId, LaunchId, StateId, WaveId, WorkerId};

use super::{Attempt, Trace, Worker};

/// What a worker counts as now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerStatus {
    /// Asked for; not connected yet.
    Launching,
    /// Connected; in the state of its first lane, if it is in one.
    Running(Option<StateId>),
    /// Done.
    Done,
    /// A step failed, or it was ended from outside.
    Failed,
    /// It vanished.
    Lost,
    /// It never connected.
    NeverConnected,
    /// It was not needed.
    NotNeeded,
}

/// A command that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// Whose.
    pub worker: WorkerId,
    /// By which attempt.
    pub launch: LaunchId,
    /// Its wave.
    pub wave: WaveId,
    /// The state's name.
    pub state: String,
    /// The command's name.
    pub command: String,
    /// When it was sent, C.
    pub since: CTime,
    /// From then to the `now` that was asked for, in nanoseconds.
    pub elapsed_ns: u64,
    /// Whether the worker is frozen.
    pub frozen: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    counts: BTreeMap<(WaveId, WorkerStatus), u64>,
    under_way: BTreeSet<(CTime, LaunchId, CommandId)>,
}

impl Live {
    pub(super) fn begin(&mut self, t0: CTime, launch: LaunchId, id: CommandId) {
        self.under_way.insert((t0, launch, id));
    }

    pub(super) fn finish(&mut self, t0: CTime, launch: LaunchId, id: CommandId) {
        self.under_way.remove(&(t0, launch, id));
    }

    fn count(&mut self, from: Option<(WaveId, WorkerStatus)>, to: (WaveId, WorkerStatus)) {
        if let Some(from) = from
            && let Some(count) = self.counts.get_mut(&from)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&from);
            }
        }
        *self.counts.entry(to).or_default() += 1;
    }
}

impl Trace {
    /// Workers by wave and status; those not asked for yet are in [`Trace::waiting`].
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<(WaveId, WorkerStatus), u64> {
        &self.live.counts
    }

    /// Workers with `status` in all waves.
    #[must_use]
    pub fn count(&self, status: WorkerStatus) -> u64 {
        let counts = self.live.counts.iter();
        counts.filter(|((_, other), _)| *other == status).map(|(_, count)| count).sum()
    }

    /// Workers of started waves, and any others that were asked for.
    #[must_use]
    pub fn total_workers(&self) -> u64 {
        self.waves.keys().map(|wave| self.wave_workers(*wave)).sum::<u64>() + self.unannounced()
    }

    /// Workers of one wave: as many as it announced, or more if more were asked for.
    #[must_use]
    pub fn wave_workers(&self, wave: WaveId) -> u64 {
        let announced = self.waves.get(&wave).map_or(0, |wave| u64::from(wave.workers));
        announced.max(self.asked_for(wave))
    }

    /// Workers of started waves that were not asked for yet.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let waves = self.waves.keys();
        waves.map(|wave| self.wave_workers(*wave) - self.asked_for(*wave)).sum()
    }

    /// The commands that have been under way the longest at `now` (C), the first of each attempt,
    /// at most `limit`. Costs O(limit + commands of those attempts under way).
    #[must_use]
    pub fn slowest(&self, now: CTime, limit: usize) -> Vec<Present> {
        let mut seen = BTreeSet::new();
        let mut slowest = Vec::new();
        for (since, launch, id) in &self.live.under_way {
            if slowest.len() >= limit {
                break;
            }
            if !seen.insert(*launch) {
                continue;
            }
            slowest.extend(self.present(now, *since, *launch, *id));
        }
        slowest
    }

    /// Forgets commands that were answered, heartbeats, moves, and what items were, so that a live
    /// view of a long run needs memory for its attempts and not for all that they ever did. What
    /// this file tells stays the same; an account, report or path of this trace would be wrong from
    /// then on.
    pub fn forget_past(&mut self) {
        for attempt in self.attempts.values_mut() {
            let Attempt { commands, outstanding, .. } = attempt;
            commands.retain(|id, _| outstanding.contains(id));
            attempt.pulses = Vec::new();
            attempt.stalls = Vec::new();
            attempt.moves = Vec::new();
            attempt.awaits = Vec::new();
            for item in &mut attempt.items {
                item.value_json = String::new();
            }
            attempt.waits.retain(|wait| wait.to.is_none());
        }
    }

    /// From the run's start to its end or `now`, in nanoseconds (C).
    #[must_use]
    pub fn elapsed_ns(&self, now: CTime) -> u64 {
        self.ended.map_or(now, |(at, _)| at).since(self.started())
    }

    fn present(
        &self,
        now: CTime,
        since: CTime,
        launch: LaunchId,
        id: CommandId,
    ) -> Option<Present> {
        let attempt = self.attempts.get(&launch)?;
        let command = attempt.commands.get(&id)?;
        Some(Present {
            worker: attempt.worker,
            launch,
            wave: attempt.wave,
            state: self.state_name(command.state()),
            command: command.name().to_owned(),
            since,
            elapsed_ns: now.since(since),
            frozen: attempt.frozen.is_some(),
        })
    }

    fn asked_for(&self, wave: WaveId) -> u64 {
        let counts = self.live.counts.iter();
        counts.filter(|((of, _), _)| *of == wave).map(|(_, count)| count).sum()
    }

    /// Workers of waves that no record announced.
    fn unannounced(&self) -> u64 {
        let counts = self.live.counts.iter();
        counts.filter(|((wave, _), _)| !self.waves.contains_key(wave)).map(|(_, count)| count).sum()
    }

    pub(super) fn refresh(&mut self, worker: WorkerId) {
        let Some(attempt) = self.deciding_attempt(worker) else {
            return;
        };
        let now = (attempt.wave, status(attempt));
        if let Some(known) = self.workers.get_mut(&worker) {
            known.count(&mut self.live, now);
        }
    }
}

impl Worker {
    /// Counts it as what it is now.
    pub(super) fn count(&mut self, live: &mut Live, now: (WaveId, WorkerStatus)) {
        let before = self.status.replace(now);
        if before != Some(now) {
            live.count(before, now);
        }
    }
}

/// What an attempt makes its worker count as.
pub(crate) fn status(attempt: &Attempt) -> WorkerStatus {
    let Some(outcome) = attempt.outcome() else {
        let state = attempt.present.values().next().copied();
        return match attempt.hello_at {
            Some(_) => WorkerStatus::Running(state),
            None => WorkerStatus::Launching,
        };
    };
    match outcome {
        AttemptOutcome::Done => WorkerStatus::Done,
        AttemptOutcome::Failed | AttemptOutcome::Killed => WorkerStatus::Failed,
        AttemptOutcome::Lost => WorkerStatus::Lost,
        AttemptOutcome::NeverConnected => WorkerStatus::NeverConnected,
        AttemptOutcome::Superseded | AttemptOutcome::Dismissed => WorkerStatus::NotNeeded,
    }
}
