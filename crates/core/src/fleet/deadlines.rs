//! Deadlines of attempts: set, replaced, cleared. Each stands in the fleet's list and in its
//! attempt's, so that none outlives what it was for.

use musec_protocol::LaunchId;
use musec_trace::{CTime, Timer};

use super::Fleet;

impl Fleet {
    pub(super) fn set_deadline(&mut self, due: CTime, launch: LaunchId, timer: Timer) {
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        attempt.deadlines.push((due, timer));
        self.deadlines.insert((due, launch, timer));
    }

    pub(super) fn clear_deadlines(&mut self, launch: LaunchId) {
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        attempt.machine_due = None;
        for (due, timer) in std::mem::take(&mut attempt.deadlines) {
            self.deadlines.remove(&(due, launch, timer));
        }
    }

    /// Notes when the machine of an attempt wants to be asked.
    pub(super) fn set_machine_deadline(&mut self, launch: LaunchId, due: Option<CTime>) {
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        let old = std::mem::replace(&mut attempt.machine_due, due);
        if old == due {
            return;
        }
        attempt.deadlines.retain(|(_, timer)| *timer != Timer::Step);
        attempt.deadlines.extend(due.map(|due| (due, Timer::Step)));
        let key = |due| (due, launch, Timer::Step);
        old.map(|due| self.deadlines.remove(&key(due)));
        self.deadlines.extend(due.map(key));
    }
}
