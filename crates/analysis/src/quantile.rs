//! Quantiles, by one method everywhere: nearest rank. The p-quantile of n values is the value at
//! rank ⌈p·n⌉ (from 1) of the sorted list, so it is always one that was measured, never a mean of
//! two. An empty list has none.

use serde::Serialize;

/// The value at rank ⌈`percent`·n/100⌉ of `sorted` (ascending); `None` if it is empty.
#[must_use]
pub fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = sorted.len().saturating_mul(percent).div_ceil(100).max(1);
    sorted.get(rank.min(sorted.len()).saturating_sub(1)).copied()
}

/// A distribution of durations, in nanoseconds, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// How many values.
    pub count: usize,
    /// The smallest.
    pub min_ns: u128,
    /// The median.
    pub p50_ns: u128,
    /// 90 % are not above it.
    pub p90_ns: u128,
    /// 99 % are not above it.
    pub p99_ns: u128,
    /// The largest.
    pub max_ns: u128,
}

impl Quantiles {
    /// Of `values` in any order; `None` if there are none.
    #[must_use]
    pub fn of(mut values: Vec<u128>) -> Option<Self> {
        values.sort_unstable();
        Some(Self {
            count: values.len(),
            min_ns: *values.first()?,
            p50_ns: nearest_rank(&values, 50)?,
            p90_ns: nearest_rank(&values, 90)?,
            p99_ns: nearest_rank(&values, 99)?,
            max_ns: *values.last()?,
        })
    }

    /// How many times the median the largest is; `None` if the median is 0.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a ratio for display")]
    pub fn max_to_median(&self) -> Option<f64> {
        (self.p50_ns > 0).then(|| self.max_ns as f64 / self.p50_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_told_as_a_multiple_of_the_median() {
        let of = |values: &[u128]| Quantiles::of(values.to_vec()).expect("values").max_to_median();
        assert_eq!(of(&[2, 4, 10]), Some(2.5));
        assert_eq!(of(&[0, 0, 10]), None);
    }

    #[test]
    fn a_quantile_is_the_value_at_the_nearest_rank() {
        assert_eq!(nearest_rank::<u64>(&[], 50), None);
        assert_eq!(nearest_rank(&[7], 0), Some(7));
        assert_eq!(nearest_rank(&[7], 99), Some(7));
        assert_eq!(nearest_rank(&[1, 2, 3, 4], 50), Some(2));
        assert_eq!(nearest_rank(&[1, 2, 3, 4, 5], 50), Some(3));
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(nearest_rank(&hundred, 99), Some(99));
        assert_eq!(nearest_rank(&hundred, 100), Some(100));
    }
}
