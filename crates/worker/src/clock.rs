//! The clock W of this process, and the difference that shows a suspend.
//!
//! In: the system's clocks. Out: [`WTime`] stamps and the gap BOOTTIME − MONOTONIC, both in
//! nanoseconds. Invariant: stamps of one process never run backwards.

use musec_protocol::{ClockKind, WTime};
use rustix::time::{ClockId, clock_gettime};

/// Reads of the gap until one is narrow enough: between its two clocks the thread may be
/// preempted, and that must not look like a suspend.
const GAP_READS_MAX: usize = 8;

/// A reading of the gap within this many nanoseconds is good enough.
const GAP_WIDTH_NS: i64 = 5_000;

#[cfg(any(target_os = "linux", target_os = "android"))]
const W: (ClockId, ClockKind) = (ClockId::MonotonicRaw, ClockKind::MonotonicRaw);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const W: (ClockId, ClockKind) = (ClockId::Monotonic, ClockKind::Monotonic);

/// W: nanoseconds since [`WClock::start`] was called, first thing in the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WClock {
    base_ns: i64,
}

impl WClock {
    /// Which clock of the system W is.
    pub(crate) const KIND: ClockKind = W.1;

    /// Starts W at 0.
    pub(crate) fn start() -> Self {
        Self { base_ns: read(W.0) }
    }

    /// The present instant.
    pub(crate) fn now(self) -> WTime {
        WTime::from_ns(u64::try_from(read(W.0) - self.base_ns).unwrap_or(0))
    }
}

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// BOOTTIME − MONOTONIC, in nanoseconds, within a few microseconds; it grows by what the machine
/// slept.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn clock_gap_ns() -> i64 {
    let mut narrowest = (i64::MAX, 0);
    for _ in 0..GAP_READS_MAX {
        let before = read(ClockId::Monotonic);
        let boot = read(ClockId::Boottime);
        let after = read(ClockId::Monotonic);
        let width = after - before;
        if width < narrowest.0 {
            narrowest = (width, boot - before - width / 2);
        }
        if width <= GAP_WIDTH_NS {
            break;
        }
    }
    narrowest.1
}

/// Where there is no BOOTTIME a suspend does not show.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn clock_gap_ns() -> i64 {
    0
}

/// Wall time, in nanoseconds since 1970; for people, never computed with.
pub(crate) fn wall_ns() -> u64 {
    u64::try_from(read(ClockId::Realtime)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_start_near_zero_and_do_not_run_backwards() {
        let clock = WClock::start();
        let stamps: Vec<_> = (0..1000).map(|_| clock.now()).collect();
        assert!(stamps.is_sorted());
        assert!(stamps[0].ns < 1_000_000_000, "{:?}", stamps[0]);
    }

    #[test]
    fn the_gap_of_a_machine_that_does_not_sleep_is_steady() {
        let first = clock_gap_ns();
        let moved = (0..100).map(|_| (clock_gap_ns() - first).abs()).max();
        assert!(moved < Some(1_000_000), "{moved:?}");
    }
}
