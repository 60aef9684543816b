//! Waves: when they start, how many of their attempts are alive, and when they are over.

use std::sync::Arc;

use musec_protocol::{AttemptNo, LaunchId, WorkerId};
use musec_trace::{CTime, Event, Timer, WaveId};

use super::Fleet;
use super::attempt::{Attempt, AttemptState};
use super::io::Output;
use crate::program::{ItemList, Plan};

/// One wave of a run.
#[derive(Debug, Default)]
pub(super) struct WaveRun {
    pub(super) state: WaveState,
    pub(super) first_worker: WorkerId,
    /// How many workers it has; known once it runs.
    pub(super) workers: u32,
    /// How many of them were launched; the next one has this index.
    pub(super) launched: u32,
    /// How many attempts have not ended.
    pub(super) alive: u32,
    pub(super) at_once: u32,
    pub(super) items: Option<ItemList>,
    /// Whether workers take items from one queue; otherwise worker i has item i.
    pub(super) is_queue: bool,
    /// The next item of the queue.
    pub(super) next_item: u64,
    /// Whether everything in it went well so far.
    pub(super) is_spoilt: bool,
}

/// See the diagram in the parent module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WaveState {
    #[default]
    Waiting,
    Listing,
    Running,
    Ended,
    Skipped,
}

impl WaveRun {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, WaveState::Ended | WaveState::Skipped)
    }

    /// Whether a further attempt has something to do.
    fn wants_launch(&self) -> bool {
        let has_item = self.items.as_ref().is_none_or(|items| self.next_item < items.len());
        self.state == WaveState::Running
            && self.launched < self.workers
            && (!self.is_queue || has_item)
    }

    /// The next item of the queue, taken out of it.
    pub(super) fn take_item(&mut self) -> Option<(u64, serde_json::Value)> {
        let number = self.next_item;
        let item = self.items.as_ref()?.item(number)?;
        self.next_item += 1;
        Some((number, item))
    }
}

impl Fleet {
    fn wave(&self, wave: WaveId) -> &WaveRun {
        let index = usize::try_from(wave.0).unwrap_or(usize::MAX);
        self.waves.get(index).expect("wave ids come from the program, which has one each")
    }

    pub(super) fn wave_mut(&mut self, wave: WaveId) -> &mut WaveRun {
        let index = usize::try_from(wave.0).unwrap_or(usize::MAX);
        self.waves.get_mut(index).expect("wave ids come from the program, which has one each")
    }

    /// Starts every wave whose predecessors have ended well, and skips those that cannot start.
    pub(super) fn start_waves(&mut self, now: CTime) {
        let program = Arc::clone(&self.program);
        loop {
            let waiting = program.waves().filter(|(wave, _)| self.is_waiting(*wave)).count();
            for (wave, def) in program.waves() {
                if self.is_waiting(wave) {
                    self.start_if_ready(now, wave, &def.after);
                }
            }
            // A wave that was skipped makes others skip, in whatever order they are written.
            if program.waves().filter(|(wave, _)| self.is_waiting(*wave)).count() == waiting {
                return;
            }
        }
    }

    fn is_waiting(&self, wave: WaveId) -> bool {
        self.wave(wave).state == WaveState::Waiting
    }

    fn start_if_ready(&mut self, now: CTime, wave: WaveId, before: &[WaveId]) {
        if self.cancelled {
            self.skip(now, wave, "the run was interrupted".into());
        } else if let Some(spoilt) = before.iter().find(|wave| self.is_unfit(**wave)) {
            let name = self.program.wave(*spoilt).map_or("", |wave| wave.name.as_str());
            self.skip(now, wave, format!("`{name}`, which it comes after, did not end well"));
        } else if before.iter().all(|wave| self.wave(*wave).is_over()) {
            self.plan(now, wave);
        }
    }

    fn is_unfit(&self, wave: WaveId) -> bool {
        let wave = self.wave(wave);
        wave.state == WaveState::Skipped || wave.state == WaveState::Ended && wave.is_spoilt
    }

    fn skip(&mut self, now: CTime, wave: WaveId, reason: String) {
        self.wave_mut(wave).state = WaveState::Skipped;
        self.failed = true;
        let name = self.program.wave(wave).map_or_else(String::new, |wave| wave.name.clone());
        self.record(now, Event::WaveSkipped { wave, name, reason });
    }

    fn plan(&mut self, now: CTime, wave: WaveId) {
        match self.program.glob(wave) {
            Ok(Some(glob)) => {
                self.wave_mut(wave).state = WaveState::Listing;
                self.outputs.push_back(Output::List { wave, glob: Box::new(glob) });
            }
            Ok(None) => self.run_planned(now, wave, None),
            Err(error) => self.skip(now, wave, error.to_string()),
        }
    }

    pub(super) fn listed(&mut self, now: CTime, wave: WaveId, keys: Result<Vec<String>, String>) {
        if self.wave_mut(wave).state != WaveState::Listing {
            return;
        }
        match keys {
            Ok(keys) => {
                self.record(now, Event::Listed { wave, keys: keys.clone() });
                self.run_planned(now, wave, Some(&keys));
            }
            Err(error) => self.skip(now, wave, error),
        }
        self.start_waves(now);
    }

    fn run_planned(&mut self, now: CTime, wave: WaveId, keys: Option<&[String]>) {
        match self.program.plan(wave, self.options.cores, keys) {
            Ok(plan) => self.run_wave(now, wave, plan),
            Err(error) => self.skip(now, wave, error.to_string()),
        }
    }

    fn run_wave(&mut self, now: CTime, wave: WaveId, plan: Plan) {
        let at_once = plan.alive_at_once(self.options.cores);
        // Of a queue, no more workers than can be alive together ever find an item.
        let workers = if plan.queue { plan.workers.min(at_once) } else { plan.workers };
        let first_worker = self.next_worker();
        self.workers = self.workers.saturating_add(workers);
        let items = plan.items.as_ref().map_or(0, ItemList::len);
        let run = self.wave_mut(wave);
        *run = WaveRun {
            state: WaveState::Running,
            first_worker,
            workers,
            at_once,
            items: plan.items,
            is_queue: plan.queue,
            ..WaveRun::default()
        };
        let name = self.program.wave(wave).map_or_else(String::new, |wave| wave.name.clone());
        self.record(now, Event::WaveStarted { wave, name, first_worker, workers, items });
        self.launch_more(now, wave);
    }

    /// Launches as many attempts as may be alive together.
    pub(super) fn launch_more(&mut self, now: CTime, wave: WaveId) {
        let connect_timeout = match self.program.wave(wave) {
            Some(def) => def.connect_timeout,
            None => return,
        };
        while !self.cancelled && self.may_start() {
            let run = self.wave_mut(wave);
            if run.alive >= run.at_once || !run.wants_launch() {
                return;
            }
            let index = run.launched;
            run.launched += 1;
            run.alive += 1;
            let worker = WorkerId(run.first_worker.0 + index);
            let launch = LaunchId(self.attempts.len() as u64);
            let attempt = AttemptNo(0);
            self.attempts.push(Attempt::new(wave, worker, index, attempt, now));
            self.record(now, Event::Requested { launch, worker, attempt, wave });
            self.set_deadline(now.after(connect_timeout), launch, Timer::Connect);
            self.starts(now, launch);
            self.outputs.push_back(Output::Launch(launch));
        }
    }

    /// Notes that an attempt of the wave has ended, and goes on with what can follow.
    pub(super) fn attempt_is_over(&mut self, now: CTime, wave: WaveId, is_well: bool) {
        let run = self.wave_mut(wave);
        run.alive -= 1;
        run.is_spoilt |= !is_well;
        self.failed |= !is_well;
        self.launch_more(now, wave);
        self.close_wave(now, wave);
    }

    pub(super) fn close_waves(&mut self, now: CTime) {
        for index in 0..self.waves.len() {
            self.close_wave(now, WaveId(u32::try_from(index).unwrap_or(u32::MAX)));
        }
        self.start_waves(now);
    }

    fn close_wave(&mut self, now: CTime, wave: WaveId) {
        let cancelled = self.cancelled;
        let run = self.wave_mut(wave);
        match run.state {
            WaveState::Running if run.alive == 0 && (cancelled || !run.wants_launch()) => {
                run.state = WaveState::Ended;
                self.record(now, Event::WaveEnded { wave });
                self.outputs.push_back(Output::Sync);
                self.start_waves(now);
            }
            WaveState::Listing if cancelled => {
                self.skip(now, wave, "the run was interrupted".into());
            }
            WaveState::Waiting
            | WaveState::Listing
            | WaveState::Running
            | WaveState::Ended
            | WaveState::Skipped => {}
        }
    }

    /// How many attempts of all waves have not ended; for invariants in tests.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.state != AttemptState::Ended).count()
    }
}
