//! The worker's clock, as it is spoken of on the wire. Reading it is the worker's business.

use std::fmt;

/// An instant W of one attempt: nanoseconds since that worker process started, by its own
/// CLOCK_MONOTONIC_RAW (CLOCK_MONOTONIC where there is none).
///
/// Instants of two attempts cannot be compared in any meaningful way, and there is deliberately no
/// arithmetic with the coordinator's clock, which has a type of its own in `musec-trace`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WTime {
    /// Nanoseconds since the worker process started.
    pub ns: u64,
}

impl WTime {
    /// The instant `ns` nanoseconds after the worker process started.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self { ns }
    }

    /// Nanoseconds from `earlier` to here on the same attempt's clock; 0 if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.ns.saturating_sub(earlier.ns)
    }
}

impl fmt::Debug for WTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "W{}", self.ns)
    }
}
