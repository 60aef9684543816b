//! Barriers: who is there, who is awaited, and the release of all.
//!
//! In: arrivals, departures, ends of programs. Out: records, and machines that go on. Invariants: a
//! barrier is released when every worker of its wave is there whose program may still reach it;
//! what is released goes on after the input that caused it, so that nothing recurses; each input
//! releases what has arrived once, so that workers that meet without end cannot hold the loop.

use musec_protocol::LaunchId;
use musec_trace::{CTime, Event, WaveId};

use super::Fleet;
use super::wave::WaveRun;
use crate::machine::Advance;
use crate::program::Plan;

/// A barrier that may have become complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Touched {
    pub(super) wave: WaveId,
    pub(super) barrier: u32,
    /// Who was the last to come, or to go.
    pub(super) last: LaunchId,
}

impl Fleet {
    /// Whether all workers of a wave with barriers are alive together.
    pub(super) fn fits_barriers(&self, wave: WaveId, plan: &Plan) -> Result<(), String> {
        let has_barriers = self.program.wave(wave).is_some_and(|def| !def.barriers.is_empty());
        let at_once = plan.alive_at_once(self.options.cores);
        if has_barriers && !plan.queue && at_once < plan.workers {
            let workers = plan.workers;
            return Err(format!(
                "its barriers need all {workers} workers alive together, and `at_once` is {at_once}"
            ));
        }
        Ok(())
    }

    /// A worker has come to a barrier.
    pub(super) fn arrived(&mut self, now: CTime, launch: LaunchId, lane: Vec<u32>, barrier: u32) {
        let Some(wave) = self.attempt(launch).map(|attempt| attempt.wave) else {
            return;
        };
        let name = self.barrier_name(wave, barrier);
        self.record(now, Event::Arrived { launch, lane, barrier: name });
        self.wave_mut(wave).at_barriers.entry(barrier).or_default().push(launch);
        self.touched.push(Touched { wave, barrier, last: launch });
    }

    /// A worker waits at a barrier no longer.
    pub(super) fn left_barrier(&mut self, launch: LaunchId, barrier: u32) {
        let Some(wave) = self.attempt(launch).map(|attempt| attempt.wave) else {
            return;
        };
        if let Some(there) = self.wave_mut(wave).at_barriers.get_mut(&barrier) {
            there.retain(|known| *known != launch);
        }
    }

    /// The program of an attempt is over: no barrier waits for it any more.
    pub(super) fn goes_beyond_barriers(&mut self, launch: LaunchId) {
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        if std::mem::replace(&mut attempt.is_beyond_barriers, true) {
            return;
        }
        let wave = attempt.wave;
        let run = self.wave_mut(wave);
        run.beyond_barriers += 1;
        for there in run.at_barriers.values_mut() {
            there.retain(|known| *known != launch);
        }
        self.touch_barriers(wave, launch);
    }

    /// Notes that the barriers of a wave wait for fewer workers, because of `last`.
    pub(super) fn touch_barriers(&mut self, wave: WaveId, last: LaunchId) {
        let barriers: Vec<u32> = self.wave(wave).at_barriers.keys().copied().collect();
        let touched = barriers.into_iter().map(|barrier| Touched { wave, barrier, last });
        self.touched.extend(touched);
    }

    /// Releases the barriers that are complete. What comes to barriers meanwhile waits for the next
    /// call, which [`Self::next_deadline`] asks for at once.
    pub(super) fn release_barriers(&mut self, now: CTime) {
        for Touched { wave, barrier, last } in std::mem::take(&mut self.touched) {
            let run = self.wave_mut(wave);
            let expected = run.may_reach_barriers();
            let is_complete = |there: &Vec<LaunchId>| {
                !there.is_empty() && u32::try_from(there.len()).is_ok_and(|there| there >= expected)
            };
            let Some(there) = run.at_barriers.get_mut(&barrier).filter(|there| is_complete(there))
            else {
                continue;
            };
            let released = std::mem::take(there);
            let workers = u32::try_from(released.len()).unwrap_or(u32::MAX);
            let name = self.barrier_name(wave, barrier);
            self.record(now, Event::Released { wave, barrier: name, workers, last });
            for launch in released {
                let attempt = self.attempt_mut(launch);
                if let Some(machine) = attempt.and_then(|attempt| attempt.machine.take()) {
                    self.move_machine(now, launch, machine, Advance::Released(barrier));
                }
            }
        }
    }

    fn barrier_name(&self, wave: WaveId, barrier: u32) -> String {
        let def = self.program.wave(wave);
        let name = def.and_then(|def| def.barriers.get(usize::try_from(barrier).ok()?));
        name.cloned().unwrap_or_default()
    }
}

impl WaveRun {
    /// How many workers may still come to a barrier: those that were launched, or will be, and
    /// whose program is not over.
    fn may_reach_barriers(&self) -> u32 {
        let workers = if self.wants_launch() { self.launchable } else { self.launched };
        workers.saturating_sub(self.beyond_barriers)
    }
}
