//! `cargo xtask check-report`: the laws that every report of a run which went well must keep.
//!
//! In: the JSON of `musec report --format json`. Out: every law that it breaks. The sums are done
//! here again, on purpose by other code than the one that made the report.

use std::path::Path;

use serde_json::Value;

use crate::tree;

/// Checks the report in `file`.
pub(crate) fn run(file: &Path) -> Result<(), String> {
    let text = tree::read(file)?;
    let report: Value = serde_json::from_str(&text)
        .map_err(|error| format!("{} is not one JSON value: {error}", file.display()))?;
    let broken = check(&report)?;
    if broken.is_empty() {
        println!("check-report: every sum is exact, nothing is unaccounted, user code leads");
        return Ok(());
    }
    Err(format!("{} breaks {} laws: {}", file.display(), broken.len(), broken.join("; ")))
}

/// The laws that `report` breaks; an error where a key is missing or of the wrong type.
fn check(report: &Value) -> Result<Vec<String>, String> {
    let mut broken = Vec::new();
    let mut law = |holds: bool, words: String| {
        if !holds {
            broken.push(words);
        }
    };
    law(report["schema"] == 1, format!("schema is {}, not 1", report["schema"]));
    law(report["status"] == "done", format!("status is {}, not done", report["status"]));
    let faults = number(report, "/clock_faults")?;
    law(faults == 0, format!("{faults} clock faults"));
    let (total, done) = (number(report, "/workers/total")?, number(report, "/workers/done")?);
    law(total > 0 && total == done, format!("{done} of {total} workers done"));

    let life = number(report, "/breakdown/life_ns")?;
    let unaccounted = number(report, "/breakdown/unaccounted_ns")?;
    law(life > 0, "life_ns is 0".to_owned());
    law(unaccounted == 0, format!("unaccounted_ns is {unaccounted}"));
    for part in ["categories", "rollup"] {
        let parts = numbers(report, &format!("/breakdown/{part}"))?;
        let sum = unaccounted + parts.iter().map(|(_, ns)| ns).sum::<u128>();
        law(sum == life, format!("{part} and unaccounted sum to {sum} ns, life is {life} ns"));
    }
    let categories = numbers(report, "/breakdown/categories")?;
    let largest = categories.iter().max_by_key(|(_, ns)| *ns);
    let largest = largest.map_or("none", |(name, _)| name);
    law(largest == "user", format!("the largest category is {largest}, not user"));

    for (rows, name, breakdown, whole) in [
        ("states", "state", "", "/total_ns"),
        ("waves", "wave", "/breakdown", "/breakdown/life_ns"),
    ] {
        let mut of_rows = 0;
        for row in report[rows].as_array().ok_or_else(|| format!("no array at /{rows}"))? {
            let parts = numbers(row, &format!("{breakdown}/categories"))?;
            let sum = number(row, &format!("{breakdown}/unaccounted_ns"))?
                + parts.iter().map(|(_, ns)| ns).sum::<u128>();
            let (total, row) = (number(row, whole)?, &row[name]);
            law(sum == total, format!("{name} {row} has {total} ns, its parts sum to {sum} ns"));
            of_rows += total;
        }
        law(of_rows == life, format!("{rows} sum to {of_rows} ns, life is {life} ns"));
    }
    Ok(broken)
}

fn number(value: &Value, pointer: &str) -> Result<u128, String> {
    let found = value.pointer(pointer).and_then(Value::as_u64);
    found.map(u128::from).ok_or_else(|| format!("no whole number at {pointer}"))
}

fn numbers<'a>(value: &'a Value, pointer: &str) -> Result<Vec<(&'a str, u128)>, String> {
    let object = value.pointer(pointer).and_then(Value::as_object);
    let object = object.ok_or_else(|| format!("no object at {pointer}"))?;
    let entry = |(name, ns): (&'a String, &'a Value)| {
        let ns = ns.as_u64().ok_or_else(|| format!("no whole number at {pointer}/{name}"))?;
        Ok((name.as_str(), u128::from(ns)))
    };
    object.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Value {
        serde_json::json!({
            "schema": 1, "status": "done", "clock_faults": 0,
            "workers": { "total": 3, "done": 3 },
            "breakdown": {
                "life_ns": 100, "unaccounted_ns": 0,
                "categories": { "user": 60, "storage": 30, "network": 10 },
                "rollup": { "user": 60, "storage": 30, "overhead": 10 },
            },
            "states": [
                { "state": "render", "total_ns": 70, "unaccounted_ns": 0,
                  "categories": { "user": 60, "network": 10 } },
                { "state": "(none)", "total_ns": 30, "unaccounted_ns": 0,
                  "categories": { "storage": 30 } },
            ],
            "waves": [
                { "wave": "one", "breakdown":
                  { "life_ns": 99, "unaccounted_ns": 0, "categories": { "user": 99 } } },
                { "wave": "two", "breakdown":
                  { "life_ns": 1, "unaccounted_ns": 0, "categories": { "wait": 1 } } },
            ],
        })
    }

    #[test]
    fn a_sound_report_breaks_no_law() {
        assert_eq!(check(&sound()), Ok(Vec::new()));
    }

    #[test]
    fn each_broken_law_is_named() {
        let cases = [
            ("/schema", 2, "schema is 2"),
            ("/clock_faults", 1, "1 clock faults"),
            ("/workers/done", 2, "2 of 3 workers"),
            ("/breakdown/categories/storage", 31, "categories and unaccounted sum to 101 ns"),
            ("/breakdown/rollup/user", 59, "rollup and unaccounted sum to 99 ns"),
            ("/breakdown/unaccounted_ns", 1, "unaccounted_ns is 1"),
            ("/breakdown/life_ns", 99, "life is 99 ns"),
            ("/states/1/total_ns", 29, "state \"(none)\" has 29 ns, its parts sum to 30 ns"),
            ("/states/0/categories/user", 61, "state \"render\" has 70 ns"),
            ("/states/0/unaccounted_ns", 1, "its parts sum to 71 ns"),
            ("/waves/0/breakdown/categories/user", 98, "wave \"one\" has 99 ns"),
            ("/waves/1/breakdown/life_ns", 2, "waves sum to 101 ns, life is 100 ns"),
        ];
        for (pointer, value, words) in cases {
            let mut report = sound();
            *report.pointer_mut(pointer).unwrap() = value.into();
            let broken = check(&report).unwrap();
            assert!(broken.iter().any(|law| law.contains(words)), "{pointer}: {broken:?}");
        }
    }

    #[test]
    fn states_that_do_not_sum_to_the_life_are_found() {
        let mut report = sound();
        report["states"].as_array_mut().unwrap().pop();
        assert_eq!(check(&report).unwrap(), ["states sum to 70 ns, life is 100 ns"]);
    }

    #[test]
    fn a_run_that_did_not_end_well_is_found() {
        let mut report = sound();
        report["status"] = "failed".into();
        assert_eq!(check(&report).unwrap(), ["status is \"failed\", not done"]);
    }

    #[test]
    fn another_category_in_the_lead_is_found() {
        let mut report = sound();
        report["breakdown"]["categories"] = serde_json::json!({ "user": 40, "wait": 60 });
        assert_eq!(check(&report).unwrap(), ["the largest category is wait, not user"]);
    }

    #[test]
    fn a_missing_key_is_an_error() {
        let mut report = sound();
        report["breakdown"].as_object_mut().unwrap().remove("life_ns");
        assert_eq!(check(&report), Err("no whole number at /breakdown/life_ns".to_owned()));
    }
}
