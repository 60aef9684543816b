//! The account arranged for people and programs: `report`, `show`, and rows of `runs`.
//!
//! In: a [`Trace`] and its [`Account`]. Out: trees that serialise to the JSON of the command line
//! and hold all that the terminal prints, percentages included, so that nobody else computes with
//! times. Quantiles are by nearest rank. Keys of figures that are not known are absent. Absent
//! here: whether a coordinator is still at it, which only a lock can tell; the caller says it.

mod estimates;
mod model;
mod parts;
mod rows;
mod show_lanes;
mod show_model;
mod shows;
mod waves;

use std::collections::BTreeMap;

use musec_trace::{CTime, LaunchId, RunStatus, WaveId};
use serde::Serialize;

pub use model::*;
pub use parts::RollupPart;
pub use show_lanes::{ShowLane, ShowLetter};
pub use show_model::*;
pub use shows::show;

use crate::breakdown::{Account, Breakdown, Category, Group};
use crate::clocks::{CommandBounds, Fault};
use crate::fold::{Trace, WorkerStatus};
use crate::quantile::nearest_rank;

/// Whether a coordinator holds the lock of the run's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLiveness {
    /// It does.
    Running,
    /// Nobody does.
    NotRunning,
}

/// A row of `musec runs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// The run's id.
    pub run: String,
    /// The job's name.
    pub job: String,
    /// The launcher's name.
    pub launcher: String,
    /// How it is or was.
    pub status: Status,
    /// Wall time at its start, ns since 1970.
    pub started_wall_ns: u64,
    /// From its start to its end, or to its journal's end.
    pub makespan_ns: u64,
    /// Its workers.
    pub workers: WorkerCounts,
    /// Its attempts.
    pub attempts: usize,
}

/// One run in one row.
#[must_use]
pub fn run_row(trace: &Trace, liveness: RunLiveness) -> RunRow {
    let run = trace.run();
    RunRow {
        run: run.map(|run| run.run.to_string()).unwrap_or_default(),
        job: run.map(|run| run.job.clone()).unwrap_or_default(),
        launcher: run.map(|run| run.launcher.clone()).unwrap_or_default(),
        status: status(trace, liveness),
        started_wall_ns: run.map_or(0, |run| run.wall_ns),
        makespan_ns: makespan_ns(trace),
        workers: worker_counts(trace, None),
        attempts: trace.attempts().len(),
    }
}

/// Where the run's time went. `account` must be of the same trace. A run that goes on, of which
/// [`Account::of`] says what it would be if it ended here, is accounted anew, as
/// [`Account::of_running`].
#[must_use]
pub fn report(trace: &Trace, account: &Account, liveness: RunLiveness) -> Report {
    match liveness {
        RunLiveness::Running => arrange(trace, &Account::of_running(trace), liveness),
        RunLiveness::NotRunning => arrange(trace, account, liveness),
    }
}

fn arrange(trace: &Trace, account: &Account, liveness: RunLiveness) -> Report {
    let RunRow { run, job, launcher, status, started_wall_ns, makespan_ns, workers, attempts } =
        run_row(trace, liveness);
    let total = account.total();
    let widths = uncertainty(trace, account);
    Report {
        schema: 1,
        run,
        job,
        launcher,
        status,
        cancelled: trace.cancelled().map(|(_, cause)| cause.to_owned()),
        makespan_ns,
        started_wall_ns,
        workers,
        attempts,
        breakdown: BreakdownReport::from(&total),
        rollup_parts: parts::rollup_parts(trace, account, total.life_ns),
        rate_bound_ppm: rate_bound_ppm(trace, account),
        position_uncertainty_ns: widths,
        position_uncertainty_percent: uncertainty_percent(trace, widths.as_ref()),
        clock_faults: account.fault_count(),
        faults: faults(trace, account),
        coordinator_view_error: rows::view_errors(trace),
        estimate_error: estimates::estimate_errors(trace),
        coordinator: coordinator(trace),
        waves: waves::waves(trace, account),
        states: rows::states(trace, account, total.life_ns),
        commands: rows::commands(trace),
        slowest_workers: waves::slowest(trace, account),
        failures: rows::failures(trace),
        prints: rows::prints(trace),
        stalls: rows::stalls(trace),
        stray_records: trace.strays(),
    }
}

/// interrupted: cancelled, or without an end and nobody at it.
fn status(trace: &Trace, liveness: RunLiveness) -> Status {
    match (trace.ended(), trace.cancelled(), liveness) {
        (None, _, RunLiveness::Running) => Status::Running,
        (None, _, RunLiveness::NotRunning) | (Some(_), Some(_), _) => Status::Interrupted,
        (Some((_, status)), None, _) => match status {
            RunStatus::Done => Status::Done,
            RunStatus::Failed => Status::Failed,
            RunStatus::Interrupted => Status::Interrupted,
        },
    }
}

fn makespan_ns(trace: &Trace) -> u64 {
    let end = trace.ended().map_or_else(|| trace.last(), |(at, _)| at);
    end.since(trace.started())
}

/// Workers of one wave, or of all.
fn worker_counts(trace: &Trace, wave: Option<WaveId>) -> WorkerCounts {
    let mut counts = WorkerCounts {
        total: wave.map_or_else(|| trace.total_workers(), |wave| trace.wave_workers(wave)),
        ..WorkerCounts::default()
    };
    for ((of, status), count) in trace.counts() {
        if wave.is_some_and(|wave| wave != *of) {
            continue;
        }
        match status {
            WorkerStatus::Done => counts.done += count,
            WorkerStatus::Failed => counts.failed += count,
            WorkerStatus::Lost => counts.lost += count,
            WorkerStatus::NeverConnected => counts.never_connected += count,
            WorkerStatus::Launching | WorkerStatus::Running(_) | WorkerStatus::NotNeeded => {}
        }
    }
    counts
}

/// The largest bound that any connected worker was allowed; of a run without any, its own.
fn rate_bound_ppm(trace: &Trace, account: &Account) -> u32 {
    let connected = account.attempts.iter().filter(|(launch, _)| {
        trace.attempts().get(launch).is_some_and(|attempt| attempt.hello.is_some())
    });
    let largest = connected.map(|(_, account)| account.clock.rate().ppm()).max();
    largest.unwrap_or_else(|| trace.run().map_or(0, |run| run.rate_bound_ppm))
}

/// Widths of the bounds of s and f over all commands that replied.
fn uncertainty(trace: &Trace, account: &Account) -> Option<Uncertainty> {
    let mut all: Vec<u128> = Vec::new();
    for (launch, attempt) in trace.attempts() {
        let Some(account) = account.attempts.get(launch) else {
            continue;
        };
        for (id, command) in &attempt.commands {
            let bounds = account.clock.command_bounds(*id, command);
            all.extend(bounds.iter().flat_map(CommandBounds::widths_ns).map(u128::from));
        }
    }
    all.sort_unstable();
    Some(Uncertainty {
        p50: nearest_rank(&all, 50)?,
        p99: nearest_rank(&all, 99)?,
        max: *all.last()?,
    })
}

/// The median width in percent of the median f − s.
fn uncertainty_percent(trace: &Trace, widths: Option<&Uncertainty>) -> Option<f64> {
    let commands = trace.attempts().values().flat_map(|attempt| attempt.commands.values());
    let replies =
        commands.filter(|command| command.t0.is_some()).filter_map(|of| of.reply.as_ref());
    let mut services: Vec<u64> = replies.map(|reply| reply.stamps.service_ns()).collect();
    services.sort_unstable();
    let median = nearest_rank(&services, 50).filter(|median| *median > 0)?;
    Some(share(widths?.p50, median.into()))
}

fn faults(trace: &Trace, account: &Account) -> Vec<FaultReport> {
    let row = |fault: &Fault, launch: Option<&LaunchId>| {
        let attempt = launch.and_then(|launch| trace.attempts().get(launch));
        FaultReport {
            worker: attempt.map(|attempt| attempt.worker.0),
            attempt: attempt.map(|attempt| attempt.number.0),
            at_ns: fault.at.ns,
            kind: fault.kind.name(),
        }
    };
    let own = account.coordinator_faults.iter().map(|fault| row(fault, None));
    let others = account.attempts.iter().flat_map(|(launch, account)| {
        account.faults.iter().map(move |fault| row(fault, Some(launch)))
    });
    let mut all: Vec<FaultReport> = own.chain(others).collect();
    all.sort_by_key(|fault| (fault.at_ns, fault.worker, fault.attempt));
    all
}

fn coordinator(trace: &Trace) -> Option<CoordinatorReport> {
    let last = trace.last_sample()?;
    Some(CoordinatorReport {
        cpu_ns: last.cpu_ns,
        loop_lag_p99_ns: trace.samples().iter().map(|sample| sample.lag_p99_ns).max()?,
        loop_lag_max_ns: trace.samples().iter().map(|sample| sample.lag_max_ns).max()?,
        refused: last.refused.clone(),
        bytes_in: last.bytes_in,
        bytes_out: last.bytes_out,
        journal_waits: last.journal_waits,
        journal_wait_ns: last.journal_wait_ns,
    })
}

impl From<&Breakdown> for BreakdownReport {
    fn from(breakdown: &Breakdown) -> Self {
        let life = breakdown.life_ns;
        let split = &breakdown.split;
        let mut percent = BTreeMap::new();
        let mut rollup_percent = BTreeMap::new();
        if life > 0 {
            let of = |ns| share(ns, life);
            percent.extend(split.categories.iter().map(|(key, ns)| (Category::name(key), of(ns))));
            let rows = breakdown.rollup.iter();
            rollup_percent.extend(rows.map(|(key, ns)| (Group::name(key), of(ns))));
            percent.insert("unaccounted", of(split.unaccounted_ns));
            rollup_percent.insert("unaccounted", of(split.unaccounted_ns));
        }
        let network = split.categories.get(Category::Network);
        let (least, most) = breakdown.network_bounds_ns;
        let farther = network.abs_diff(least).max(network.abs_diff(most));
        Self {
            network_plus_minus_percent: (network > 0).then(|| share(farther, network)),
            life_ns: life,
            categories: split.categories,
            unaccounted_ns: split.unaccounted_ns,
            rollup: breakdown.rollup,
            network_bounds_ns: breakdown.network_bounds_ns,
            fitted_windows: breakdown.fitted_windows,
            storage_split: StorageSplit { get_ns: breakdown.get_ns, put_ns: breakdown.put_ns },
            percent,
            rollup_percent,
        }
    }
}

/// `part` of `whole` in percent; 0 of nothing. For display only: sums are kept in integers.
#[allow(clippy::cast_precision_loss, reason = "a share is shown with few digits")]
fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// C as a bare number.
fn ns(at: CTime) -> u64 {
    at.ns
}

/// Bytes as text, those that are no UTF-8 replaced.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
