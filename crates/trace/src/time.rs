//! The coordinator's clock as a type of its own: it cannot be subtracted from a worker's.

use std::fmt;
use std::time::Duration;

/// An instant C: nanoseconds since the run started, by the coordinator's CLOCK_MONOTONIC_RAW
/// (CLOCK_MONOTONIC where there is none).
///
/// An instant of a worker is of another type, and there is no way from one to the other: what lies
/// between the two is known within bounds only, which `musec-analysis` computes.
///
/// ```
/// # use musec_trace::CTime;
/// assert_eq!(CTime::from_ns(5).since(CTime::from_ns(2)), 3);
/// ```
/// ```compile_fail,E0308
/// # use musec_trace::{CTime, WTime};
/// CTime::from_ns(5).since(WTime::from_ns(2));
/// ```
/// ```compile_fail,E0308
/// # use musec_trace::{CTime, WTime};
/// WTime::from_ns(5).since(CTime::from_ns(2));
/// ```
/// ```compile_fail,E0369
/// # use musec_trace::{CTime, WTime};
/// let _ = CTime::from_ns(5) - WTime::from_ns(2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CTime {
    /// Nanoseconds since the run started.
    pub ns: u64,
}

impl CTime {
    /// The run's start.
    pub const ZERO: Self = Self { ns: 0 };

    /// The instant `ns` nanoseconds after the run's start.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self { ns }
    }

    /// Nanoseconds from `earlier` to here; 0 if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.ns.saturating_sub(earlier.ns)
    }

    /// The instant `wait` later; the end of time if that overflows.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        Self { ns: self.ns.saturating_add(wait) }
    }
}

impl fmt::Debug for CTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C{}", self.ns)
    }
}
