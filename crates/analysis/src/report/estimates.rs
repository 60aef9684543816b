//! What one would know of commands without the workers' stamps, and how wrong that is: time.md §4.
//!
//! In: a trace. Out: for each foreground command t3 − max(t0, t3 of the one before in its lane),
//! and its error against f − s. On C alone no more can be said of a command that waited at the
//! worker. Absent: background commands, which wait for nobody.

use std::collections::BTreeMap;

use musec_trace::{CTime, CommandId, StepCategory};

use super::ErrorQuantiles;
use crate::fold::{Attempt, Command, Trace};
use crate::quantile::nearest_rank;

/// The estimate of each foreground command that has a reply, in nanoseconds.
pub(super) fn estimates(attempt: &Attempt) -> BTreeMap<CommandId, u64> {
    let mut before: BTreeMap<&[u32], CTime> = BTreeMap::new();
    let mut estimates = BTreeMap::new();
    for (id, command) in &attempt.commands {
        let (Some(t0), Some(reply)) = (command.t0, &command.reply) else { continue };
        if command.is_background() {
            continue;
        }
        let free = before.get(command.lane());
        let begun = free.map_or(t0, |free| t0.max(*free));
        // What is no step of the program, as a `cancel`, holds nobody up.
        if command.state().is_some() {
            before.insert(command.lane(), reply.t3);
        }
        estimates.insert(*id, reply.t3.since(begun));
    }
    estimates
}

/// (estimate − d)/d with d = f − s; `None` where d is 0 or there is no reply.
#[allow(clippy::cast_precision_loss, reason = "a ratio for display")]
pub(super) fn error(estimate_ns: u64, command: &Command) -> Option<f64> {
    let service = command.reply.as_ref()?.stamps.service_ns();
    let beyond = i128::from(estimate_ns) - i128::from(service);
    (service > 0).then(|| beyond as f64 / service as f64)
}

/// Errors of all estimates, by category.
pub(super) fn estimate_errors(trace: &Trace) -> BTreeMap<&'static str, ErrorQuantiles> {
    let mut errors: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for attempt in trace.attempts().values() {
        for (id, estimate) in estimates(attempt) {
            let Some(command) = attempt.commands.get(&id) else { continue };
            let error = category(command).zip(error(estimate, command));
            if let Some((category, error)) = error {
                errors.entry(category).or_default().push(error);
            }
        }
    }
    quantiles(errors)
}

/// The quantiles of the errors of each category; one without any is left out.
pub(super) fn quantiles(
    errors: BTreeMap<&'static str, Vec<f64>>,
) -> BTreeMap<&'static str, ErrorQuantiles> {
    let quantiles = errors.into_iter().filter_map(|(category, mut errors)| {
        errors.sort_by(f64::total_cmp);
        let p50 = nearest_rank(&errors, 50)?;
        Some((category, ErrorQuantiles { p50, p99: nearest_rank(&errors, 99)? }))
    });
    quantiles.collect()
}

/// Where a command's own time counts; `None` of those that have none worth estimating.
fn category(command: &Command) -> Option<&'static str> {
    let told = command.queued.as_ref().and_then(|queued| queued.category);
    match (told, command.name()) {
        (Some(category), _) => Some(StepCategory::name(category)),
        (None, "run") => Some("user"),
        (None, "get" | "put") => Some("storage"),
        (None, "sleep") => Some("wait"),
        (None, _) => None,
    }
}
