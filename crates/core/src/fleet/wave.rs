//! Waves: when they start, how many of their attempts are alive, and when they are over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use musec_protocol::{AttemptNo, LaunchId, WorkerId};
use musec_trace::{CTime, Event, Timer, WaveId};

use super::Fleet;
use super::attempt::{Attempt, AttemptState};
use super::barrier::Meeting;
use super::each::Source;
use super::io::Output;
use crate::limits::ITEMS_TEXT_BYTES_MAX;
use crate::program::{ItemList, Plan, PlanError, Program, Seen, Wave};

/// One wave of a run.
#[derive(Debug, Default)]
pub(super) struct WaveRun {
    pub(super) state: WaveState,
    pub(super) first_worker: WorkerId,
    /// How many workers it has; known once it runs, 0 where each item as it comes has its own.
    pub(super) workers: u32,
    /// How many of them are launched at most.
    pub(super) launchable: u32,
    /// Their numbers, if not all are launched.
    pub(super) only: Option<Vec<u32>>,
    /// How many of them were launched.
    pub(super) launched: u32,
    /// Who is at each barrier, in the order of arrival.
    pub(super) at_barriers: BTreeMap<Meeting, Vec<LaunchId>>,
    /// How many workers no barrier waits for any more.
    pub(super) beyond_barriers: u32,
    /// The same by group.
    pub(super) beyond_by_group: BTreeMap<u32, u32>,
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
    /// What its workers put, if another wave wants to know.
    pub(super) outputs: Option<BTreeSet<String>>,
    /// Of a wave with `each`: where its items come from.
    pub(super) source: Option<Source>,
}

/// See the diagram in the parent module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WaveState {
    #[default]
    Waiting,
    Looking,
    Open,
    Running,
    Ended,
    Skipped,
}

impl WaveRun {
    /// Those of a program, before anything has happened.
    pub(super) fn all(program: &Program) -> Vec<Self> {
        let mut wanted = BTreeSet::new();
        for (_, wave) in program.waves().filter(|(_, wave)| wave.each || wave.uses_outputs()) {
            wanted.extend(program.before(wave));
        }
        program
            .waves()
            .map(|(id, _)| Self {
                outputs: wanted.contains(&id).then(BTreeSet::new),
                ..Self::default()
            })
            .collect()
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, WaveState::Ended | WaveState::Skipped)
    }

    /// Whether further items may come.
    pub(super) fn is_open(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is_open)
    }

    /// Whether a further attempt has something to do.
    pub(super) fn wants_launch(&self) -> bool {
        let items = self.items.as_ref().map(ItemList::len);
        let has_item = items.is_none_or(|items| self.next_item < items);
        // Of items that come one by one, each worker needs one that has come.
        let needs = if self.is_queue { self.launched } else { self.next_index() };
        let has_come = self.source.is_none() || items.is_some_and(|items| u64::from(needs) < items);
        self.state == WaveState::Running
            && self.launched < self.launchable
            && (!self.is_queue || has_item)
            && has_come
    }

    /// The number of the next worker to be launched.
    fn next_index(&self) -> u32 {
        let place = usize::try_from(self.launched).unwrap_or(usize::MAX);
        let only = self.only.as_ref().and_then(|only| only.get(place).copied());
        only.unwrap_or(self.launched)
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
    pub(super) fn wave(&self, wave: WaveId) -> &WaveRun {
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
                    self.start_if_ready(now, wave, def);
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

    fn start_if_ready(&mut self, now: CTime, wave: WaveId, def: &Wave) {
        let before = def.after.as_slice();
        let has_begun = |run: &WaveRun| run.is_over() || run.state == WaveState::Running;
        if self.cancelled {
            self.skip(now, wave, "the run was interrupted".into());
        } else if let Some(spoilt) = before.iter().find(|wave| self.is_unfit(**wave)) {
            let name = self.program.wave(*spoilt).map_or("", |wave| wave.name.as_str());
            self.skip(now, wave, format!("`{name}`, which it comes after, did not end well"));
        } else if def.each && before.iter().all(|wave| has_begun(self.wave(*wave))) {
            self.open(now, wave);
        } else if before.iter().all(|wave| self.wave(*wave).is_over()) {
            self.plan(now, wave);
        }
    }

    pub(super) fn is_unfit(&self, wave: WaveId) -> bool {
        let wave = self.wave(wave);
        wave.state == WaveState::Skipped || wave.state == WaveState::Ended && wave.is_spoilt
    }

    pub(super) fn skip(&mut self, now: CTime, wave: WaveId, reason: String) {
        self.wave_mut(wave).state = WaveState::Skipped;
        self.failed = true;
        let name = self.program.wave(wave).map_or_else(String::new, |wave| wave.name.clone());
        self.record(now, Event::WaveSkipped { wave, name, reason });
    }

    fn plan(&mut self, now: CTime, wave: WaveId) {
        match self.program.look(wave) {
            Ok(Some(look)) => {
                self.wave_mut(wave).state = WaveState::Looking;
                self.outputs.push_back(Output::Look { wave, look: Box::new(look) });
            }
            Ok(None) => self.run_planned(now, wave, None),
            Err(error) => self.skip(now, wave, error.to_string()),
        }
    }

    pub(super) fn seen(&mut self, now: CTime, wave: WaveId, seen: Result<Seen, String>) {
        if self.wave_mut(wave).state != WaveState::Looking {
            return;
        }
        match seen {
            Ok(Seen::Text(text)) if text.len() > ITEMS_TEXT_BYTES_MAX => {
                let bytes = text.len();
                let reason = format!(
                    "its items stand in a file of {bytes} bytes, at most {ITEMS_TEXT_BYTES_MAX} \
                     are read"
                );
                self.skip(now, wave, reason);
            }
            Ok(seen) => {
                let event = match seen.clone() {
                    Seen::Keys(keys) => Event::Listed { wave, keys },
                    Seen::Text(text) => Event::Read { wave, text },
                };
                self.record(now, event);
                self.run_planned(now, wave, Some(&seen));
            }
            Err(error) => self.skip(now, wave, error),
        }
        self.start_waves(now);
    }

    fn run_planned(&mut self, now: CTime, wave: WaveId, seen: Option<&Seen>) {
        let fits = |plan: Plan| self.fits_barriers(wave, &plan).map(|()| plan);
        match self.planned(wave, seen).map_err(|error| error.to_string()).and_then(fits) {
            Ok(plan) => self.run_wave(now, wave, plan),
            Err(error) => self.skip(now, wave, error),
        }
    }

    /// A wave's plan, with what the waves before it put.
    pub(super) fn planned(&self, wave: WaveId, seen: Option<&Seen>) -> Result<Plan, PlanError> {
        let def = self.program.wave(wave).filter(|def| def.uses_outputs());
        let outputs = def.map(|def| {
            let before = self.program.before(def).into_iter();
            let outputs = before.filter_map(|id| {
                let keys = self.wave(id).outputs.iter().flatten().cloned().collect();
                Some((self.program.wave(id)?.name.clone(), keys))
            });
            outputs.collect::<BTreeMap<String, Vec<String>>>()
        });
        self.program.plan_after(wave, self.options.cores, seen, outputs)
    }

    /// Begins a wave.
    pub(super) fn run_wave(&mut self, now: CTime, wave: WaveId, plan: Plan) {
        let at_once = plan.alive_at_once(self.options.cores);
        let def = self.program.wave(wave);
        let name = def.map_or_else(String::new, |wave| wave.name.clone());
        let only = def.and_then(|def| def.only.clone());
        let run = self.wave_mut(wave);
        let (source, outputs) = (run.source.take(), run.outputs.take());
        let has_one_each = source.is_some() && !plan.queue;
        let all = if has_one_each { u32::MAX } else { plan.workers };
        let only = only.map(|only| only.into_iter().filter(|number| *number < all).collect());
        let chosen = only
            .as_ref()
            .map_or(all, |only: &Vec<u32>| u32::try_from(only.len()).unwrap_or(u32::MAX));
        // Of a queue, no more workers than can be alive together ever find an item.
        let launchable = if plan.queue { chosen.min(at_once) } else { chosen };
        let workers = match only {
            None if plan.queue => launchable,
            None | Some(_) => plan.workers,
        };
        let first_worker = self.next_worker();
        self.workers = self.workers.saturating_add(workers);
        let items = plan.items.as_ref().map_or(0, ItemList::len);
        *self.wave_mut(wave) = WaveRun {
            state: WaveState::Running,
            first_worker,
            workers,
            launchable,
            only,
            at_once,
            items: plan.items,
            is_queue: plan.queue,
            source,
            outputs,
            ..WaveRun::default()
        };
        let workers = if has_one_each { 0 } else { launchable };
        self.record(now, Event::WaveStarted { wave, name, first_worker, workers, items });
        self.launch_more(now, wave);
        self.close_wave(now, wave);
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
            let index = run.next_index();
            run.launched += 1;
            run.alive += 1;
            let worker = match run.workers {
                0 => self.one_more_worker(),
                _ => WorkerId(run.first_worker.0 + index),
            };
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

    pub(super) fn close_wave(&mut self, now: CTime, wave: WaveId) {
        let cancelled = self.cancelled;
        let run = self.wave_mut(wave);
        match run.state {
            WaveState::Running
                if run.alive == 0 && (cancelled || !run.wants_launch() && !run.is_open()) =>
            {
                run.state = WaveState::Ended;
                self.record(now, Event::WaveEnded { wave });
                self.outputs.push_back(Output::Sync);
                self.start_waves(now);
                self.close_sources(now);
            }
            WaveState::Looking | WaveState::Open if cancelled => {
                self.skip(now, wave, "the run was interrupted".into());
            }
            WaveState::Waiting
            | WaveState::Looking
            | WaveState::Open
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
