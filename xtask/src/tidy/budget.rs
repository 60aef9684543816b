//! The dependency budget: the number of packages in `Cargo.lock`.

use super::Finding;

/// Most packages in `Cargo.lock`. Every one is compiled by each newcomer and read by nobody: raise
/// it on purpose, in a commit that says what for.
const PACKAGES_MAX: usize = 310;

/// Checks the lock file.
pub(super) fn check(lock: &toml::Table) -> Option<Finding> {
    let packages = lock.get("package").and_then(toml::Value::as_array).map_or(0, Vec::len);
    if packages == 0 {
        return Some(Finding::new("Cargo.lock", "no packages found"));
    }
    (packages > PACKAGES_MAX).then(|| {
        Finding::new("Cargo.lock", format!("{packages} packages, the budget is {PACKAGES_MAX}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_kept_to_the_last_package() {
        let lock = |n: usize| "[[package]]\nname = \"a\"\n".repeat(n).parse().unwrap();
        assert_eq!(check(&lock(PACKAGES_MAX)), None);
        let finding = check(&lock(PACKAGES_MAX + 1)).unwrap();
        assert_eq!(finding.to_string(), "Cargo.lock: 311 packages, the budget is 310");
    }

    #[test]
    fn a_lock_file_without_packages_is_no_lock_file() {
        assert!(check(&toml::Table::new()).is_some());
    }
}
