//! Reading the coordinator's clock.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::{CTime, ClockKind};

/// The coordinator's clock: zero where it was started.
#[derive(Clone, Copy, Debug)]
pub struct CClock {
    base_ns: u64,
}

#[cfg(target_os = "linux")]
const RAW: (ClockId, ClockKind) = (ClockId::MonotonicRaw, ClockKind::MonotonicRaw);
#[cfg(not(target_os = "linux"))]
const RAW: (ClockId, ClockKind) = (ClockId::Monotonic, ClockKind::Monotonic);

impl CClock {
    /// Starts the clock: from now on it tells nanoseconds since this call.
    #[must_use]
    pub fn start() -> Self {
        Self {
            base_ns: ns(clock_gettime(RAW.0)),
        }
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
            let monotonic = ns(clock_gettime(ClockId::Monotonic));
            let boot = ns(clock_gettime(ClockId::Boottime));
            i64::try_from(boot.saturating_sub(monotonic)).unwrap_or(i64::MAX)
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
