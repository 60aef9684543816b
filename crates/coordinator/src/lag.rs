//! How long inputs waited from ready to handled: a histogram of fixed size.

/// Buckets for each doubling: a quantile is at most an eighth above the truth.
const PER_DOUBLING: u32 = 8;
const BUCKETS: usize = 64 * PER_DOUBLING as usize;

/// Lags since the last [`Lag::take`], in nanoseconds of C.
pub(crate) struct Lag {
    buckets: Box<[u32; BUCKETS]>,
    count: u64,
    max_ns: u64,
}

impl Default for Lag {
    fn default() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), count: 0, max_ns: 0 }
    }
}

impl Lag {
    pub(crate) fn add(&mut self, lag_ns: u64) {
        let bucket = &mut self.buckets[bucket_of(lag_ns)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.max_ns = self.max_ns.max(lag_ns);
    }

    /// Median, 99th percentile (upper ends of their buckets, never above the maximum) and the
    /// exact maximum, in nanoseconds; all 0 if there was none. The histogram is empty afterwards.
    pub(crate) fn take(&mut self) -> [u64; 3] {
        let figures = [self.quantile(50), self.quantile(99), self.max_ns];
        if self.count > 0 {
            *self = Self::default();
        }
        figures
    }

    fn quantile(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += u64::from(*bucket);
            if seen >= rank && rank > 0 {
                return upper_end(index).min(self.max_ns);
            }
        }
        0
    }
}

/// Below `PER_DOUBLING` each value has a bucket of its own; above, eight share each doubling.
fn bucket_of(lag_ns: u64) -> usize {
    let bits = PER_DOUBLING.trailing_zeros();
    let Some(doubling) = lag_ns.checked_ilog2().filter(|doubling| *doubling > bits) else {
        return usize::try_from(lag_ns).unwrap_or(0);
    };
    let shift = doubling - bits;
    let within = (lag_ns >> shift) & u64::from(PER_DOUBLING - 1);
    let first = (u64::from(shift) + 1) * u64::from(PER_DOUBLING);
    usize::try_from(first + within).unwrap_or(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let per = u64::from(PER_DOUBLING);
    if bucket < 2 * per {
        return bucket;
    }
    let shift = bucket / per - 1;
    let within = bucket % per + per;
    ((within + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_the_bucket_is_narrow() {
        for exponent in 0..63 {
            for offset in [0u64, 1, 3] {
                let lag = (1u64 << exponent) + offset;
                let upper = upper_end(bucket_of(lag));
                assert!(upper >= lag && upper - lag <= lag / 8, "{lag} in a bucket up to {upper}");
            }
        }
    }

    #[test]
    fn quantiles_of_known_lags_are_near_and_the_maximum_is_exact() {
        let mut lag = Lag::default();
        for ns in 1..=1000 {
            lag.add(ns * 1000);
        }
        let [p50, p99, max] = lag.take();
        assert!((500_000..=562_500).contains(&p50), "{p50}");
        assert!((990_000..=1_000_000).contains(&p99), "{p99}");
        assert_eq!(max, 1_000_000);
        assert_eq!(lag.take(), [0, 0, 0]);
    }
}
