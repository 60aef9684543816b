//! Waves with `each`: items that come one by one, as other waves put them.
//!
//! Such a wave opens when all waves before it have begun, and begins with its first item. A key is
//! an item once, in order of arrival. It is closed when all waves before it are over; it ends when
//! all its items are done. If one of those waves did not end well it does the items that it has,
//! and counts as spoilt itself, because some may be missing.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use musec_protocol::{LaunchId, Place};
use musec_trace::{CTime, Event, WaitReason, WaveId};
use serde_json::Value as Json;

use super::Fleet;
use super::attempt::AttemptState;
use super::wave::WaveState;
use crate::limits::ITEMS_MAX;
use crate::program::{Glob, ItemList, Items, PlanError, Wave};

/// Where the items of a wave with `each` come from.
#[derive(Debug)]
pub(super) struct Source {
    /// Whether further ones may come.
    pub(super) is_open: bool,
    which: Keys,
    /// All keys that came so far.
    known: BTreeSet<String>,
    /// Workers without an item, first come first served.
    idle: VecDeque<LaunchId>,
}

/// Which keys are items.
#[derive(Debug)]
enum Keys {
    Matching(Box<Glob>),
    /// Those of the waves that the expression names.
    Of(BTreeSet<WaveId>),
}

impl Fleet {
    /// Opens a wave with `each`; what was put already comes at once.
    pub(super) fn open(&mut self, now: CTime, wave: WaveId) {
        let program = Arc::clone(&self.program);
        let Some(def) = program.wave(wave) else { return };
        let which = match self.keys(wave, def) {
            Ok(which) => which,
            Err(error) => return self.skip(now, wave, error.to_string()),
        };
        let run = self.wave_mut(wave);
        run.state = WaveState::Open;
        run.source =
            Some(Source { is_open: true, which, known: BTreeSet::new(), idle: VecDeque::new() });
        for before in &def.after {
            let keys: Vec<String> = self.wave(*before).outputs.iter().flatten().cloned().collect();
            self.offer(now, wave, *before, &keys);
        }
        self.close_source(now, wave);
    }

    fn keys(&self, wave: WaveId, def: &Wave) -> Result<Keys, PlanError> {
        if let Some(glob) = self.program.glob(wave)? {
            if glob.place == Place::Inputs {
                let why = "no wave puts inputs, and `each` takes what waves put".to_owned();
                return Err(PlanError::Glob { pattern: glob.pattern, why });
            }
            return Ok(Keys::Matching(Box::new(glob)));
        }
        let named: Vec<&str> = match &def.items {
            Some(Items::Values(expr)) => expr.waves_read(),
            Some(
                Items::List(_)
                | Items::Bytes(_)
                | Items::Range(_)
                | Items::Glob { .. }
                | Items::Lines { .. }
                | Items::Csv { .. },
            )
            | None => Vec::new(),
        };
        let is_named = |id: &&WaveId| {
            self.program.wave(**id).is_some_and(|wave| named.contains(&wave.name.as_str()))
        };
        Ok(Keys::Of(def.after.iter().filter(is_named).copied().collect()))
    }

    /// Notes keys that a worker of `wave` put.
    pub(super) fn put(&mut self, now: CTime, wave: WaveId, keys: &[String]) {
        let Some(outputs) = &mut self.wave_mut(wave).outputs else { return };
        for key in keys {
            // One more than there may be items makes planning fail, in words.
            if outputs.len() as u64 <= ITEMS_MAX {
                outputs.insert(key.clone());
            }
        }
        let program = Arc::clone(&self.program);
        for (other, def) in program.waves().filter(|(_, def)| def.each) {
            if def.after.contains(&wave) {
                self.offer(now, other, wave, keys);
            }
        }
    }

    /// Gives a wave the keys among these that are new items of it.
    fn offer(&mut self, now: CTime, wave: WaveId, from: WaveId, keys: &[String]) {
        let run = self.wave_mut(wave);
        let Some(source) = &mut run.source else { return };
        let mut fresh = Vec::new();
        let mut is_full = false;
        for key in keys {
            let is_item = match &source.which {
                Keys::Matching(glob) => glob.matches(key),
                Keys::Of(waves) => waves.contains(&from),
            };
            let is_new = is_item && !source.known.contains(key);
            if is_new && source.known.len() as u64 >= ITEMS_MAX {
                // A wave that cannot take all its items did not end well.
                run.is_spoilt = true;
                is_full = true;
                break;
            }
            if is_new {
                source.known.insert(key.clone());
                fresh.push(Json::from(key.as_str()));
            }
        }
        self.failed |= is_full;
        let run = self.wave_mut(wave);
        if fresh.is_empty() {
            return;
        }
        if run.state == WaveState::Open {
            match self.planned(wave, None) {
                Ok(mut plan) => {
                    plan.items = Some(ItemList::Values(fresh));
                    self.run_wave(now, wave, plan);
                }
                Err(error) => self.skip(now, wave, error.to_string()),
            }
            self.start_waves(now);
            return;
        }
        match &mut run.items {
            Some(ItemList::Values(items)) => items.extend(fresh),
            Some(ItemList::Range(_) | ItemList::Bytes(_)) | None => {
                run.items = Some(ItemList::Values(fresh));
            }
        }
        self.wake(now, wave);
        self.launch_more(now, wave);
    }

    /// Gives idle workers their items, or tells them that none will come.
    fn wake(&mut self, now: CTime, wave: WaveId) {
        loop {
            let run = self.wave_mut(wave);
            let has_item = run.items.as_ref().is_some_and(|items| run.next_item < items.len());
            let Some(source) = &mut run.source else { return };
            if !has_item && source.is_open {
                return;
            }
            let Some(launch) = source.idle.pop_front() else { return };
            if self.state_of(launch) == Some(AttemptState::Working) {
                self.give_work(now, launch);
            }
        }
    }

    /// Lets a worker wait for an item, if one may come; says whether it does.
    pub(super) fn waits_for_item(&mut self, now: CTime, wave: WaveId, launch: LaunchId) -> bool {
        let cancelled = self.cancelled;
        let run = self.wave_mut(wave);
        let Some(source) = run.source.as_mut().filter(|source| source.is_open && !cancelled) else {
            return false;
        };
        source.idle.push_back(launch);
        self.record(now, Event::Waiting { launch, reason: WaitReason::Item });
        true
    }

    /// Forgets a worker that has left.
    pub(super) fn waits_no_more(&mut self, wave: WaveId, launch: LaunchId) {
        if let Some(source) = &mut self.wave_mut(wave).source {
            source.idle.retain(|idle| *idle != launch);
        }
    }

    /// Closes the waves with `each` for which no further item will come.
    pub(super) fn close_sources(&mut self, now: CTime) {
        let program = Arc::clone(&self.program);
        for (wave, _) in program.waves().filter(|(_, def)| def.each) {
            self.close_source(now, wave);
        }
    }

    fn close_source(&mut self, now: CTime, wave: WaveId) {
        let program = Arc::clone(&self.program);
        let Some(def) = program.wave(wave) else { return };
        let is_over = def.after.iter().all(|before| self.wave(*before).is_over());
        if !is_over || !self.wave(wave).is_open() {
            return;
        }
        let is_spoilt = def.after.iter().any(|before| self.is_unfit(*before));
        let run = self.wave_mut(wave);
        run.is_spoilt |= is_spoilt;
        if let Some(source) = &mut run.source {
            source.is_open = false;
        }
        if run.state == WaveState::Open {
            let reason = "the waves before it put no item for it".to_owned();
            self.skip(now, wave, reason);
            self.start_waves(now);
            return;
        }
        self.wake(now, wave);
        self.close_wave(now, wave);
    }
}
