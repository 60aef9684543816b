//! What the rows of the roll-up are made of. Categories alone would not tell: the whole life of an
//! attempt without result is in `lost`, whatever its categories are.

use std::collections::BTreeMap;

use serde::Serialize;

use super::share;
use crate::breakdown::{Account, Categories, Group};
use crate::fold::Trace;

/// One category's part of a row of the roll-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RollupPart {
    /// The category.
    pub category: &'static str,
    /// How much of it.
    pub total_ns: u128,
    /// Its share of the run's `life_ns`, in percent.
    pub percent: f64,
}

/// Parts by row, the largest first, those of 0 ns left out; the parts of a row sum to it exactly.
pub(super) fn rollup_parts(
    trace: &Trace,
    account: &Account,
    life_ns: u128,
) -> BTreeMap<&'static str, Vec<RollupPart>> {
    let mut with_result = Categories::default();
    let mut without = Categories::default();
    for (launch, of) in &account.attempts {
        let attempt = trace.attempts().get(launch);
        let is_without = attempt.is_some_and(crate::breakdown::is_without_result);
        let sum = if is_without { &mut without } else { &mut with_result };
        sum.add_all(&of.breakdown.split.categories);
    }
    let mut rows: BTreeMap<&'static str, Vec<RollupPart>> = BTreeMap::new();
    let kept = with_result.iter().map(|(category, ns)| (category.group(), category, ns));
    let lost = without.iter().map(|(category, ns)| (Group::Lost, category, ns));
    for (group, category, total_ns) in kept.chain(lost).filter(|(_, _, ns)| *ns > 0) {
        let row = rows.entry(group.name()).or_default();
        match row.iter_mut().find(|part| part.category == category.name()) {
            Some(part) => part.total_ns += total_ns,
            None => row.push(RollupPart { category: category.name(), total_ns, percent: 0.0 }),
        }
    }
    for row in rows.values_mut() {
        row.iter_mut().for_each(|part| part.percent = share(part.total_ns, life_ns));
        row.sort_by_key(|part| std::cmp::Reverse(part.total_ns));
    }
    rows
}
