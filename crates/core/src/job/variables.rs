//! Which variables the steps of a wave set.

use toml::de::{DeTable, DeValue};

use crate::job::context::Spot;
use crate::limits::STEP_DEPTH_MAX;

/// Names of all variables that the steps of a wave set, sorted.
pub(super) fn variables(steps: &[&Spot<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    for steps in steps {
        collect_variables(steps, STEP_DEPTH_MAX, &mut names);
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn collect_variables(steps: &Spot<'_>, depth: u32, names: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let tables: Vec<&DeTable<'_>> = match steps.get_ref() {
        DeValue::Array(values) => {
            values.iter().filter_map(|value| value.get_ref().as_table()).collect()
        }
        DeValue::Table(table) => vec![table],
        _ => Vec::new(),
    };
    for table in tables {
        if let Some(set) = table.get("set").and_then(|set| set.get_ref().as_table()) {
            names.extend(set.keys().map(|name| name.get_ref().to_string()));
        }
        for key in ["do", "else", "on_error"] {
            if let Some(inner) = table.get(key) {
                collect_variables(inner, depth, names);
            }
        }
        let lanes = table.get("parallel").and_then(|lanes| lanes.get_ref().as_table());
        for (_, lane) in lanes.into_iter().flatten() {
            collect_variables(lane, depth, names);
        }
    }
}
