//! Which variables the steps of a wave set, which infos they wait for, and which
//! barriers they have.

use toml::de::{DeTable, DeValue};

use crate::job::context::Spot;
use crate::limits::STEP_DEPTH_MAX;

/// Names of all variables that the steps of a wave set, sorted.
pub(super) fn variables(steps: &[&Spot<'_>]) -> Vec<String> {
    collected(steps, &|table, names| {
        if let Some(set) = table.get("set").and_then(|set| set.get_ref().as_table()) {
            names.extend(set.keys().map(|name| name.get_ref().to_string()));
        }
    })
}

/// Keys of all infos that the steps of a wave wait for, sorted.
pub(super) fn infos(steps: &[&Spot<'_>]) -> Vec<String> {
    collected(steps, &|table, keys| {
        if let Some(key) = table.get("wait_info").and_then(|key| key.get_ref().as_str()) {
            keys.push(key.to_owned());
        }
    })
}

/// Names of all barriers of the steps of a wave, sorted.
pub(super) fn barriers(steps: &[&Spot<'_>]) -> Vec<String> {
    collected(steps, &|table, names| {
        if let Some(name) = table.get("barrier").and_then(|name| name.get_ref().as_str()) {
            names.push(name.to_owned());
        }
    })
}

/// States that steps go to, sorted.
pub(super) fn gotos(steps: &Spot<'_>) -> Vec<String> {
    collected(&[steps], &|table, states| {
        if let Some(state) = table.get("goto").and_then(|state| state.get_ref().as_str()) {
            states.push(state.to_owned());
        }
    })
}

/// Adds the names in the table of a step.
type Collect<'c> = &'c dyn Fn(&DeTable<'_>, &mut Vec<String>);

fn collected(steps: &[&Spot<'_>], of: Collect<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for steps in steps {
        collect(steps, STEP_DEPTH_MAX, of, &mut names);
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn collect(steps: &Spot<'_>, depth: u32, of: Collect<'_>, names: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let tables: Vec<&DeTable<'_>> = match steps.get_ref() {
        DeValue::Array(values) => {
            values.iter().filter_map(|value| value.get_ref().as_table()).collect()
        }
        DeValue::Table(table) => vec![table],
        _ => Vec::new(),
    };
    for table in tables {
        of(table, names);
        for key in ["do", "else", "on_error"] {
            if let Some(inner) = table.get(key) {
                collect(inner, depth, of, names);
            }
        }
        let lanes = table.get("parallel").and_then(|lanes| lanes.get_ref().as_table());
        for (_, lane) in lanes.into_iter().flatten() {
            collect(lane, depth, of, names);
        }
    }
}
