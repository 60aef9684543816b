//! One bar that shows how a whole is split.

use musec_analysis::breakdown::apportion;

/// Cells of a bar of `width` for `parts`, in whole numbers of any unit: they sum to `width`; what
/// is not 0 has at least one while there is room. A whole of 0 has no cells.
pub(crate) fn cells(width: usize, parts: &[u128]) -> Vec<usize> {
    let there = parts.iter().filter(|part| **part > 0).count();
    if there == 0 {
        return parts.iter().map(|_| 0).collect();
    }
    let sure = usize::from(there <= width);
    let rest = width - sure * there;
    let shares = apportion(u128::try_from(rest).unwrap_or(0), parts);
    let shares = shares.into_iter().map(|share| usize::try_from(share).unwrap_or(0));
    let cells = shares.zip(parts).map(|(share, part)| share + sure * usize::from(*part > 0));
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_sum_to_the_width_whatever_the_parts_are() {
        let wholes: [&[u128]; 6] = [
            &[1],
            &[1, 1, 1],
            &[1, 999_999_999_999, 3],
            &[u128::from(u64::MAX), 1, 0, 0, 7],
            &[5, 5, 5, 5, 5, 5, 5],
            &[0, 0, 1],
        ];
        for parts in wholes {
            for width in [1, 2, 7, 72, 78, 120] {
                let cells = cells(width, parts);
                assert_eq!(cells.len(), parts.len());
                assert_eq!(cells.iter().sum::<usize>(), width, "{parts:?} in {width}: {cells:?}");
            }
        }
    }

    #[test]
    fn a_little_is_seen_and_nothing_is_not() {
        assert_eq!(cells(78, &[1_000_000_000, 1, 0]), [77, 1, 0]);
        assert_eq!(cells(78, &[0, 0]), [0, 0]);
        assert_eq!(cells(10, &[3, 1]), [7, 3]);
    }
}
