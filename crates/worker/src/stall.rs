//! Gaps in which this process did not run: stopped, starved or frozen.
//!
//! In: looks at the clock, at least every [`TICK`]. Out: a [`Stall`] for every gap between looks
//! above [`STALL_AFTER`]. Whoever sends looks first, so that a stall is told before what came
//! after.

use std::cell::Cell;
use std::time::Duration;

use musec_protocol::limits::STALL_AFTER;
use musec_protocol::{Stall, WTime};

/// How often the clock is looked at.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The last look.
#[derive(Debug, Default)]
pub(crate) struct StallWatch {
    last: Cell<WTime>,
}

impl StallWatch {
    /// Starts watching at `now`.
    pub(crate) fn new(now: WTime) -> Self {
        Self { last: Cell::new(now) }
    }

    /// A look at `now`: the gap since the last one, if it is a stall.
    pub(crate) fn look(&self, now: WTime) -> Option<Stall> {
        let from = self.last.replace(now);
        (Duration::from_nanos(now.since(from)) > STALL_AFTER).then_some(Stall { from, to: now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_above_the_limit_is_told_once() {
        let ms = |ms: u64| WTime::from_ns(ms * 1_000_000);
        let watch = StallWatch::new(ms(0));
        assert_eq!(watch.look(ms(100)), None);
        assert_eq!(watch.look(ms(400)), None, "the limit itself is no stall");
        assert_eq!(watch.look(ms(701)), Some(Stall { from: ms(400), to: ms(701) }));
        assert_eq!(watch.look(ms(702)), None);
    }
}
