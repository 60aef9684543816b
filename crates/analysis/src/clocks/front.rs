//! The least value among all keys up to a given one, in O(log n), with insertions in any order.

use std::collections::BTreeMap;

/// Pairs of key and value of which only those are kept that some query can see: with growing keys
/// their values strictly fall.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    steps: BTreeMap<i128, i128>,
}

impl Front {
    /// Adds a pair. O(log n), amortised: each pair is removed at most once.
    pub(crate) fn insert(&mut self, key: i128, value: i128) {
        if self.least_up_to(key).is_some_and(|least| least <= value) {
            return;
        }
        while let Some((&later, &worse)) = self.steps.range(key..).next()
            && worse >= value
        {
            self.steps.remove(&later);
        }
        self.steps.insert(key, value);
    }

    /// The least value of all keys ≤ `key`; `None` if there are none.
    pub(crate) fn least_up_to(&self, key: i128) -> Option<i128> {
        self.steps.range(..=key).next_back().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_answers_as_a_full_scan_does(
            pairs in prop::collection::vec((-20_i128..20, -20_i128..20), 0..40),
            query in -25_i128..25,
        ) {
            let mut front = Front::default();
            for (key, value) in &pairs {
                front.insert(*key, *value);
            }
            let scan = pairs.iter().filter(|(key, _)| *key <= query).map(|(_, value)| *value).min();
            prop_assert_eq!(front.least_up_to(query), scan);
        }
    }
}
