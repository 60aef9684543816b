//! Splitting a whole number into whole parts: the method of the largest remainder.

/// Parts of `total` in proportion to `weights`, summing to it exactly. Each is its exact share
/// rounded down; what is left goes, one each, to the largest remainders, ties to earlier ones.
/// With no weight at all everything goes to the first.
///
/// `total` and the sum of `weights` must be below 2⁶⁴, so that products fit; larger weights are
/// scaled down together, which keeps the sum exact and the shares close.
#[must_use]
pub fn apportion(total: u128, weights: &[u128]) -> Vec<u128> {
    let shift = (0..=64)
        .find(|shift| sum(weights, *shift).is_some_and(|sum| sum <= u128::from(u64::MAX)))
        .unwrap_or(127);
    let whole = sum(weights, shift).unwrap_or(0);
    if whole == 0 {
        let first = weights.first().map(|_| total);
        return first.into_iter().chain(weights.iter().skip(1).map(|_| 0)).collect();
    }
    let exact = |weight: &u128| total.saturating_mul(*weight >> shift);
    let mut parts: Vec<u128> = weights.iter().map(|weight| exact(weight) / whole).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|place| {
        let remainder = weights.get(*place).map_or(0, |weight| exact(weight) % whole);
        std::cmp::Reverse(remainder)
    });
    let mut left = total.saturating_sub(parts.iter().sum());
    for place in order {
        if left == 0 {
            break;
        }
        if let Some(part) = parts.get_mut(place) {
            *part += 1;
            left -= 1;
        }
    }
    parts
}

fn sum(weights: &[u128], shift: u32) -> Option<u128> {
    weights.iter().try_fold(0_u128, |sum, weight| sum.checked_add(*weight >> shift))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_left_goes_to_the_largest_remainders_and_ties_to_earlier_ones() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(100, &[2, 3, 1]), [33, 50, 17]);
        assert_eq!(apportion(7, &[0, 0]), [7, 0]);
        assert_eq!(apportion(7, &[]), Vec::<u128>::new());
        assert_eq!(apportion(0, &[5, 6]), [0, 0]);
    }

    proptest! {
        #[test]
        fn parts_sum_exactly_and_are_within_one_of_their_share(
            total in 0..=u128::from(u64::MAX),
            weights in prop::collection::vec(0_u128..1 << 58, 1..30),
        ) {
            let parts = apportion(total, &weights);
            prop_assert_eq!(parts.iter().sum::<u128>(), total);
            let whole: u128 = weights.iter().sum();
            for (part, weight) in parts.iter().zip(&weights).filter(|_| whole > 0) {
                let floor = total * weight / whole;
                prop_assert!(*part == floor || *part == floor + 1);
            }
        }

        #[test]
        fn parts_sum_exactly_for_any_weights(
            total in 0..=u128::from(u64::MAX),
            weights in prop::collection::vec(0..=u128::MAX >> 3, 1..8),
        ) {
            prop_assert_eq!(apportion(total, &weights).iter().sum::<u128>(), total);
        }
    }
}
