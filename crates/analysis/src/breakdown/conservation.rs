//! The proof that nothing was lost or counted twice, over all levels.

use std::fmt;

use musec_trace::LaunchId;
use thiserror::Error;

use super::{Account, Breakdown, Split};

/// Parts that do not sum to their whole: a defect of this program, not of the run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{whose}: parts sum to {parts_ns} ns, the whole is {whole_ns} ns")]
pub struct ConservationError {
    /// What was summed.
    pub whose: String,
    /// The sum of the parts, in nanoseconds.
    pub parts_ns: u128,
    /// The whole, in nanoseconds.
    pub whole_ns: u128,
}

fn equal(
    whose: impl fmt::Display,
    parts_ns: u128,
    whole_ns: u128,
) -> Result<(), ConservationError> {
    if parts_ns == whole_ns {
        return Ok(());
    }
    Err(ConservationError { whose: whose.to_string(), parts_ns, whole_ns })
}

impl Account {
    /// Checks that for every attempt, worker and wave, for the run, and for all states, what is
    /// attributed and what is unaccounted sum to the lives exactly; that roll-ups do too; and that
    /// states agree with the run in every category.
    ///
    /// # Errors
    /// The first sum that is wrong.
    pub fn check_conservation(&self) -> Result<(), ConservationError> {
        for (launch, account) in &self.attempts {
            self.check_attempt(*launch, account.milestones.life_ns().into())?;
        }
        let mut lives = 0;
        for (worker, breakdown) in self.workers() {
            check(&format!("worker {worker}"), &breakdown)?;
            lives += breakdown.life_ns;
        }
        let total = self.total();
        check("run", &total)?;
        equal("all workers", lives, total.life_ns)?;
        let mut lives = 0;
        for (wave, breakdown) in self.waves() {
            check(&format!("wave {wave}"), &breakdown)?;
            lives += breakdown.life_ns;
        }
        equal("all waves", lives, total.life_ns)?;
        let mut states = Split::default();
        self.states().values().for_each(|split| states.add_all(split));
        agree("all states", &states, &total.split)
    }

    fn check_attempt(&self, launch: LaunchId, life_ns: u128) -> Result<(), ConservationError> {
        let Some(account) = self.attempts.get(&launch) else {
            return Ok(());
        };
        let name = format!("attempt with launch id {launch}");
        equal(&name, account.breakdown.life_ns, life_ns)?;
        check(&name, &account.breakdown)?;
        let mut visits = Split::default();
        account.visits.values().for_each(|split| visits.add_all(split));
        agree(&format!("{name}, all states"), &visits, &account.breakdown.split)
    }
}

/// One breakdown within itself.
fn check(whose: &str, breakdown: &Breakdown) -> Result<(), ConservationError> {
    let split = &breakdown.split;
    equal(whose, split.total(), breakdown.life_ns)?;
    let rolled = breakdown.rollup.total() + split.unaccounted_ns;
    equal(format!("{whose}, roll-up"), rolled, breakdown.life_ns)?;
    let storage = split.categories.get(super::Category::Storage);
    equal(format!("{whose}, storage"), breakdown.get_ns + breakdown.put_ns, storage)
}

/// Two splits in every part.
fn agree(whose: &str, parts: &Split, whole: &Split) -> Result<(), ConservationError> {
    for ((category, part), (_, all)) in parts.categories.iter().zip(whole.categories.iter()) {
        equal(format!("{whose}, {category}"), part, all)?;
    }
    equal(format!("{whose}, unaccounted"), parts.unaccounted_ns, whole.unaccounted_ns)
}
