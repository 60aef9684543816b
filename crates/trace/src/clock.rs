//! Reading the coordinator's clock.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::{CTime, ClockKind};

/// The coordinator's clock: zero where it was started.
#[derive(Clone, Copy, Debug)]
pub struct CClock {
    base_ns: u64,
}

/// A bracket that is not preempted takes less than this, in nanoseconds.
#[cfg(target_os = "linux")]
const GAP_BRACKET_NS: u64 = 20_000;

/// How often a bracket is tried again.
#[cfg(target_os = "linux")]
const GAP_TRIES: u32 = 8;

#[cfg(target_os = "linux")]
const RAW: (ClockId, ClockKind) = (ClockId::MonotonicRaw, ClockKind::MonotonicRaw);
#[cfg(not(target_os = "linux"))]
const RAW: (ClockId, ClockKind) = (ClockId::Monotonic, ClockKind::Monotonic);

impl CClock {
    /// Starts the clock: from now on it tells nanoseconds since this call.
    #[must_use]
    pub fn start() -> Self {
        Self { base_ns: ns(clock_gettime(RAW.0)) }
    }

    /// Which clock it is.
    #[must_use]
    pub const fn kind(self) -> ClockKind {
        RAW.1
    }

    /// Now, C.
    #[must_use]
    pub fn now(self) -> CTime {
        CTime::from_ns(ns(clock_gettime(RAW.0)).saturating_sub(self.base_ns))
    }

    /// BOOTTIME − MONOTONIC of this machine, in nanoseconds: its growth is the time suspended.
    #[must_use]
    pub fn gap_ns(self) -> i64 {
        #[cfg(target_os = "linux")]
        {
            // The clocks are read one after the other: a reader that is preempted in between would
            // see a suspend that never was. The tightest of a few brackets is taken.
            let bracket = || {
                let before = ns(clock_gettime(ClockId::Monotonic));
                let boot = ns(clock_gettime(ClockId::Boottime));
                let after = ns(clock_gettime(ClockId::Monotonic));
                (after.saturating_sub(before), boot.saturating_sub(before))
            };
            let mut best = bracket();
            for _ in 0..GAP_TRIES {
                if best.0 <= GAP_BRACKET_NS {
                    break;
                }
                best = best.min(bracket());
            }
            i64::try_from(best.1).unwrap_or(i64::MAX)
        }
        #[cfg(not(target_os = "linux"))]
        {
            0
        }
    }
}

fn ns(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_was_not_suspended_shows_no_growing_gap_however_often_it_is_asked() {
        let clock = CClock::start();
        let first = clock.gap_ns();
        for _ in 0..100_000 {
            assert!(clock.gap_ns().abs_diff(first) < 1_000_000, "a suspend that never was");
        }
    }
}
