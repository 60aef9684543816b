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
    pub(super) meeting: Meeting,
    /// Who was the last to come, or to go.
    pub(super) last: LaunchId,
}

/// Who meets: at which barrier, by its index, and in which group, if each meets by itself.
pub(super) type Meeting = (u32, Option<u32>);

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
        let meeting = (barrier, self.group_at(launch, barrier));
        self.wave_mut(wave).at_barriers.entry(meeting).or_default().push(launch);
        self.touched.push(Touched { wave, meeting, last: launch });
    }

    /// A worker waits at a barrier no longer.
    pub(super) fn left_barrier(&mut self, launch: LaunchId, barrier: u32) {
        let Some(wave) = self.attempt(launch).map(|attempt| attempt.wave) else {
            return;
        };
        let meeting = (barrier, self.group_at(launch, barrier));
        if let Some(there) = self.wave_mut(wave).at_barriers.get_mut(&meeting) {
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
        let (wave, index) = (attempt.wave, attempt.index);
        let workers = self.wave(wave).workers;
        let group = self.program.wave(wave).map_or(0, |def| def.group_of(index, workers).0);
        let run = self.wave_mut(wave);
        run.beyond_barriers += 1;
        *run.beyond_by_group.entry(group).or_default() += 1;
        for there in run.at_barriers.values_mut() {
            there.retain(|known| *known != launch);
        }
        self.touch_barriers(wave, launch);
    }

    /// Notes that the barriers of a wave wait for fewer workers, because of `last`.
    pub(super) fn touch_barriers(&mut self, wave: WaveId, last: LaunchId) {
        let meetings: Vec<Meeting> = self.wave(wave).at_barriers.keys().copied().collect();
        let touched = meetings.into_iter().map(|meeting| Touched { wave, meeting, last });
        self.touched.extend(touched);
    }

    /// Releases the barriers that are complete. What comes to barriers meanwhile waits for the next
    /// call, which [`Self::next_deadline`] asks for at once.
    pub(super) fn release_barriers(&mut self, now: CTime) {
        for touched in std::mem::take(&mut self.touched) {
            let Touched { wave, meeting, last } = touched;
            let barrier = meeting.0;
            let is_complete = self.is_complete(touched);
            let there = self.wave_mut(wave).at_barriers.get_mut(&meeting).filter(|_| is_complete);
            let Some(released) = there.map(std::mem::take) else {
                continue;
            };
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
        // Of a barrier that is not complete, who comes next is the last: whether there was a look
        // at it in between makes no difference.
        let mut touched = std::mem::take(&mut self.touched);
        touched.retain(|touched| self.is_complete(*touched));
        self.touched = touched;
    }

    /// Whether all are there who are awaited.
    fn is_complete(&self, Touched { wave, meeting, .. }: Touched) -> bool {
        let run = self.wave(wave);
        let groups = self.program.wave(wave).map_or(1, |def| def.groups(run.workers));
        let expected = run.may_reach_barriers(meeting.1.map(|group| (group, groups)));
        let there = run.at_barriers.get(&meeting).map_or(0, Vec::len);
        there > 0 && u32::try_from(there).is_ok_and(|there| there >= expected)
    }

    fn barrier_name(&self, wave: WaveId, barrier: u32) -> String {
        let def = self.program.wave(wave);
        let def = def.and_then(|def| def.barriers.get(usize::try_from(barrier).ok()?));
        def.map_or_else(String::new, |def| def.name.clone())
    }

    /// The group with which a worker meets at a barrier, if each group meets by itself.
    fn group_at(&self, launch: LaunchId, barrier: u32) -> Option<u32> {
        let attempt = self.attempt(launch)?;
        let def = self.program.wave(attempt.wave)?;
        let is_by_group = def.barriers.get(usize::try_from(barrier).ok()?)?.by_group;
        let workers = self.wave(attempt.wave).workers;
        is_by_group.then(|| def.group_of(attempt.index, workers).0)
    }
}

impl WaveRun {
    /// How many workers may still come to a barrier, of one group of so many or of all: those that
    /// were launched, or will be, and whose program is not over.
    fn may_reach_barriers(&self, group: Option<(u32, u32)>) -> u32 {
        let workers = if self.wants_launch() { self.launchable } else { self.launched };
        let Some((group, groups)) = group else {
            return workers.saturating_sub(self.beyond_barriers);
        };
        let members = match &self.only {
            None => workers / groups + u32::from(group < workers % groups),
            Some(only) => {
                let launched = only.iter().take(usize::try_from(workers).unwrap_or(usize::MAX));
                let members = launched.filter(|number| *number % groups == group).count();
                u32::try_from(members).unwrap_or(u32::MAX)
            }
        };
        members.saturating_sub(self.beyond_by_group.get(&group).copied().unwrap_or_default())
    }
}
