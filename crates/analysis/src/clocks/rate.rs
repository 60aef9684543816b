//! How far apart two clocks may run, and durations of W seen from C.
//!
//! |dW/dC − 1| ≤ r, r in ppm; ε = 1 µs is the resolution that stamps are trusted to. All results
//! are exact integers, rounded outwards.

use musec_trace::{ClockKind, Hello, RunStarted};

/// ε: the resolution of stamps, in nanoseconds.
pub const EPSILON_NS: i128 = 1_000;

/// Clocks that NTP slews may be this far off at least, in ppm (500 of slewing and 100 of crystal).
const SLEWED_PPM: u32 = 600;

/// Bound of steady clocks if a run gives none, in ppm.
const STEADY_PPM: u32 = 200;

/// Parts in a whole.
const MILLION: i128 = 1_000_000;

/// r: the bound of |dW/dC − 1|, in ppm, below one million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u32);

impl Rate {
    /// `ppm` parts in a million; a whole million or more, which would bound nothing, counts as
    /// 999,999.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Self {
        Self(if ppm < 1_000_000 { ppm } else { 999_999 })
    }

    /// In ppm.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// The bound for a worker: 0 if its clock is the coordinator's own; else what the run gives
    /// (200 ppm if it gives 0), but never below 600 ppm where either clock is slewed: a run's bound
    /// is chosen with steady clocks in mind, before it is known which clocks its workers have.
    #[must_use]
    pub fn of_worker(run: &RunStarted, hello: &Hello) -> Self {
        if is_same_clock(run, hello) {
            return Self(0);
        }
        let given = if run.rate_bound_ppm == 0 { STEADY_PPM } else { run.rate_bound_ppm };
        let slewed = [run.clock, hello.clock].contains(&ClockKind::Monotonic);
        Self::from_ppm(if slewed { given.max(SLEWED_PPM) } else { given })
    }

    /// 10⁶·(1 + r).
    pub(crate) const fn fast(self) -> i128 {
        MILLION + self.0 as i128
    }

    /// 10⁶·(1 − r).
    pub(crate) const fn slow(self) -> i128 {
        MILLION - self.0 as i128
    }

    /// D⁻: the least that `d` nanoseconds of W can be on C: max(0, ⌊(d − ε)/(1 + r)⌋).
    #[must_use]
    pub fn least_on_c(self, d: u128) -> u128 {
        let d = i128::try_from(d).unwrap_or(i128::MAX / MILLION).min(i128::MAX / MILLION);
        let least = ((d - EPSILON_NS) * MILLION).div_euclid(self.fast());
        u128::try_from(least).unwrap_or(0)
    }

    /// D⁺: the most that `d` nanoseconds of W can be on C: ⌈(d + ε)/(1 − r)⌉.
    #[must_use]
    pub fn most_on_c(self, d: u128) -> u128 {
        let d =
            i128::try_from(d).unwrap_or(i128::MAX / MILLION).min(i128::MAX / MILLION - EPSILON_NS);
        u128::try_from(div_ceil((d + EPSILON_NS) * MILLION, self.slow())).unwrap_or(0)
    }
}

/// Whether a worker's W ticks as C does: same boot, same time namespace, both known, same clock.
#[must_use]
pub fn is_same_clock(run: &RunStarted, hello: &Hello) -> bool {
    !run.boot_id.is_empty()
        && !run.time_namespace.is_empty()
        && run.boot_id == hello.boot_id
        && run.time_namespace == hello.time_namespace
        && run.clock == hello.clock
}

/// Times 10⁶: from nanoseconds to the unit in which slopes are exact.
pub(crate) const fn scaled(ns: i128) -> i128 {
    ns * MILLION
}

/// ⌈`dividend` / `divisor`⌉ for a positive divisor.
pub(crate) const fn div_ceil(dividend: i128, divisor: i128) -> i128 {
    -((-dividend).div_euclid(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_outwards() {
        let same = Rate::from_ppm(0);
        assert_eq!((same.least_on_c(999), same.most_on_c(999)), (0, 1_999));
        assert_eq!((same.least_on_c(5_000), same.most_on_c(5_000)), (4_000, 6_000));
        let steady = Rate::from_ppm(200);
        // (10^9 − 1000)/1.0002 = 999_799_040.19…; (10^9 + 1000)/0.9998 = 1_000_201_040.2…
        assert_eq!(steady.least_on_c(1_000_000_000), 999_799_040);
        assert_eq!(steady.most_on_c(1_000_000_000), 1_000_201_041);
    }

    #[test]
    fn no_duration_overflows() {
        let widest = Rate::from_ppm(u32::MAX);
        assert_eq!(widest.ppm(), 999_999);
        assert!(widest.least_on_c(u128::MAX) <= widest.most_on_c(u128::MAX));
    }
}
