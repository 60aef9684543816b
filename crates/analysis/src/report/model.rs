//! The report as data: `musec report --format json`, and all that the terminal report prints. A
//! key whose figure is not known is absent, never 0. Keys in `…_ns` are integer nanoseconds.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::breakdown::{Categories, Category, Group, Rollup};
use crate::quantile::Quantiles;

/// Where a run's time went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of these keys.
    pub schema: u32,
    /// The run's id; empty before its first record.
    pub run: String,
    /// The job's name.
    pub job: String,
    /// The launcher's name.
    pub launcher: String,
    /// How it is or was.
    pub status: Status,
    /// By what it was told to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
    /// From the run's start to its end, or to its journal's end.
    pub makespan_ns: u64,
    /// Wall time at the run's start, ns since 1970.
    pub started_wall_ns: u64,
    /// Workers by what they count as.
    pub workers: WorkerCounts,
    /// How many attempts were requested.
    pub attempts: usize,
    /// Where the time of all attempts went.
    pub breakdown: BreakdownReport,
    /// What each row of the roll-up is made of; rows of 0 ns are absent.
    pub rollup_parts: BTreeMap<&'static str, Vec<super::RollupPart>>,
    /// The largest |dW/dC − 1| that was allowed to any worker of the run, in ppm.
    pub rate_bound_ppm: u32,
    /// Widths of the bounds of when commands started and finished; absent without commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_uncertainty_ns: Option<Uncertainty>,
    /// The median width in percent of the median f − s; absent without commands that took time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_uncertainty_percent: Option<f64>,
    /// Clocks that broke their bounds, suspended machines, windows that cannot have been.
    pub clock_faults: usize,
    /// Each of them.
    pub faults: Vec<FaultReport>,
    /// By how much coordinator-only stamps would have been wrong: (t3 − t0 − d)/d, by category.
    pub coordinator_view_error: BTreeMap<&'static str, ErrorQuantiles>,
    /// By how much the estimate from coordinator-only stamps would have been wrong that knows of
    /// lanes' order, t3 − max(t0, t3 of the command before): (estimate − d)/d, by category.
    pub estimate_error: BTreeMap<&'static str, ErrorQuantiles>,
    /// How the coordinator did; absent without a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<CoordinatorReport>,
    /// Waves in order.
    pub waves: Vec<WaveReport>,
    /// Time by wave and state; with `(none)` they sum to `breakdown.life_ns`.
    pub states: Vec<StateReport>,
    /// Commands by wave, state and name.
    pub commands: Vec<CommandReport>,
    /// Workers with the longest lives, longest first, at most [`SLOWEST_WORKERS_MAX`].
    pub slowest_workers: Vec<SlowWorker>,
    /// Why attempts have no result.
    pub failures: Vec<FailureReport>,
    /// The job's answer.
    pub prints: Vec<PrintReport>,
    /// Times when a worker's ticker did not run.
    pub stalls: Vec<StallReport>,
    /// Records that named an attempt that was never requested; 0 in a sound journal.
    pub stray_records: u64,
}

/// How many of the slowest workers a report names: what fits on a screen.
pub const SLOWEST_WORKERS_MAX: usize = 10;

/// How a run is or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A coordinator is at it.
    Running,
    /// All workers done, or failures within what is allowed.
    Done,
    /// Some worker failed.
    Failed,
    /// Cancelled, or its coordinator is gone.
    Interrupted,
}

impl Status {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Workers by what their last attempt makes them count as; those not launched or not ended are in
/// the total only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerCounts {
    /// All of them.
    pub total: u64,
    /// Done.
    pub done: u64,
    /// A step failed, or ended from outside.
    pub failed: u64,
    /// Vanished.
    pub lost: u64,
    /// Never connected.
    pub never_connected: u64,
}

/// A breakdown, with shares ready to be printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BreakdownReport {
    /// Sum of all lives; equals categories + unaccounted, and roll-up + unaccounted.
    pub life_ns: u128,
    /// By category.
    pub categories: Categories,
    /// In none of them.
    pub unaccounted_ns: u128,
    /// By row of the roll-up.
    pub rollup: Rollup,
    /// Bounds of `network`.
    pub network_bounds_ns: (u128, u128),
    /// The farther of the two bounds from `network`, in percent of it; absent where it is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_plus_minus_percent: Option<f64>,
    /// Windows whose busy time was fitted into them.
    pub fitted_windows: u64,
    /// `storage` by command.
    pub storage_split: StorageSplit,
    /// Each category's share of `life_ns`, in percent; absent where there is no life.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub percent: BTreeMap<&'static str, f64>,
    /// The roll-up's shares and `unaccounted`, in percent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rollup_percent: BTreeMap<&'static str, f64>,
}

/// The parts of `storage`; they sum to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StorageSplit {
    /// By `get`.
    pub get_ns: u128,
    /// By `put`.
    pub put_ns: u128,
}

/// Widths of bounds on C, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Uncertainty {
    /// Median.
    pub p50: u128,
    /// 99th percentile.
    pub p99: u128,
    /// Largest.
    pub max: u128,
}

/// Relative errors, by nearest rank; 0.01 is 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ErrorQuantiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// A clock's fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultReport {
    /// The worker; absent for the coordinator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// Its attempt; absent for the coordinator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// When it was noticed, C.
    pub at_ns: u64,
    /// `clock`, `suspended` or `impossible window`.
    pub kind: &'static str,
}

/// How the coordinator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoordinatorReport {
    /// CPU time until the last sample.
    pub cpu_ns: u64,
    /// The largest 99th percentile of any second of the loop's lag (ready → handled).
    pub loop_lag_p99_ns: u64,
    /// The largest lag.
    pub loop_lag_max_ns: u64,
    /// Refused strangers by reason.
    pub refused: BTreeMap<String, u64>,
    /// Bytes from workers.
    pub bytes_in: u64,
    /// Bytes to workers.
    pub bytes_out: u64,
    /// How often the loop waited for the journal.
    pub journal_waits: u64,
    /// How long in all.
    pub journal_wait_ns: u64,
}

/// One wave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaveReport {
    /// Its name.
    pub wave: String,
    /// Why it was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Start, C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ns: Option<u64>,
    /// End, C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// From its start to its end, or to the journal's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// Its workers.
    pub workers: WorkerCounts,
    /// Its attempts.
    pub attempts: usize,
    /// Items that its workers take; absent without a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// Where its time went.
    pub breakdown: BreakdownReport,
    /// How even it was; absent without an ended attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evenness: Option<Evenness>,
}

/// How even a wave was, over attempts that ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evenness {
    /// Lives of attempts.
    pub lives: Quantiles,
    /// From an item's being given to the next one's, quit or end; absent without items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Quantiles>,
    /// The longest item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_item: Option<LongItem>,
    /// Who ended last.
    pub last_worker: u32,
    /// When, C.
    pub last_end_ns: u64,
    /// How long after the last but one; absent if it was alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_by_ns: Option<u64>,
    /// How long after the median end.
    pub last_after_median_ns: u64,
    /// Sum over attempts of the time from their end to the last end.
    pub idle_at_end_ns: u128,
}

/// An item that took long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LongItem {
    /// Its number in the queue.
    pub item: u64,
    /// Its value, as JSON text.
    pub value: String,
    /// Who worked on it.
    pub worker: u32,
    /// How long.
    pub duration_ns: u64,
}

/// Time in one state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateReport {
    /// The wave.
    pub wave: String,
    /// The state; `(none)` for what is in no state, with one visit an attempt.
    pub state: String,
    /// How often it was visited.
    pub visits: u64,
    /// Time of all visits.
    pub total_ns: u128,
    /// Median of a visit.
    pub p50_ns: u128,
    /// 90th percentile.
    pub p90_ns: u128,
    /// 99th percentile.
    pub p99_ns: u128,
    /// The longest visit.
    pub max_ns: u128,
    /// `total_ns` by category, less `unaccounted_ns`.
    pub categories: Categories,
    /// In no category.
    pub unaccounted_ns: u128,
    /// Share of the run's `life_ns`, in percent.
    pub percent: f64,
}

/// Commands of one name in one state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandReport {
    /// The wave.
    pub wave: String,
    /// The state.
    pub state: String,
    /// The command.
    pub command: String,
    /// How many were sent.
    pub count: u64,
    /// How many replied that they failed; a program may have expected it.
    pub failed: u64,
    /// How many never replied.
    pub unanswered: u64,
    /// Median of f − s (W); absent without a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_p50_ns: Option<u128>,
    /// 90th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_p90_ns: Option<u128>,
    /// 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_p99_ns: Option<u128>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_max_ns: Option<u128>,
    /// Sum of t3 − t0 − (b − a), where it is not negative.
    pub network_ns: u128,
    /// Sum of the time behind earlier commands of the lane.
    pub queue_ns: u128,
    /// Sum of the rest of `[a,s]` and of `[f,b]`.
    pub overhead_ns: u128,
    /// Sum of f − s.
    pub service_ns: u128,
    /// Sums of phases with a store; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<StorePhases>,
    /// CPU time of processes, user and system; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u128>,
    /// The largest resident set of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
    /// Bytes moved.
    pub bytes: u128,
}

/// Phases with a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StorePhases {
    /// From asking to the first byte.
    pub first_byte_ns: u128,
    /// Bytes between store and worker.
    pub transfer_ns: u128,
    /// Bytes between worker and disk.
    pub disk_ns: u128,
    /// Waiting before another try.
    pub back_off_ns: u128,
}

/// A worker with a long life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowWorker {
    /// Which.
    pub worker: u32,
    /// By which attempt.
    pub attempt: u32,
    /// Its wave.
    pub wave: String,
    /// What came of it; absent while it is alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// Its life.
    pub life_ns: u128,
    /// The state that took most of it; absent if none took any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_state: Option<String>,
    /// How much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_state_ns: Option<u128>,
    /// The command that took longest, t3 − t0 or until its end if it never replied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_command: Option<String>,
    /// How long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_command_ns: Option<u64>,
    /// The category that took most; `unaccounted` if that is more than any.
    pub main_category: &'static str,
    /// Where its time went.
    pub categories: Categories,
}

/// Why an attempt has no result, or a wave did not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureReport {
    /// The worker; absent of a wave, and if the attempt was never requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// Its attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Its wave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<String>,
    /// In which state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The command, or what else failed; `wave` of one that did not start.
    pub command: String,
    /// What the command was given.
    pub arguments: Vec<String>,
    /// The error.
    pub error: String,
    /// The last lines of output; bytes that are no UTF-8 are replaced.
    pub output: String,
    /// How much the command wrote in all; absent if there was none, or it never replied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// When it was recorded, C.
    pub at_ns: u64,
}

/// Part of the job's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrintReport {
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// When, C.
    pub at_ns: u64,
    /// The text; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// Bytes before it that were not kept.
    pub cut_bytes: u64,
}

/// A time when a worker's ticker did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StallReport {
    /// The worker.
    pub worker: u32,
    /// Its attempt.
    pub attempt: u32,
    /// Last tick before, W.
    pub from_ns: u64,
    /// First tick after, W.
    pub to_ns: u64,
    /// How much of it was within a user's process, which may have gone on: counted as `user`.
    pub beside_user_ns: u64,
}

impl BreakdownReport {
    /// `category`'s share of the life, in percent.
    #[must_use]
    pub fn percent_of(&self, category: Category) -> f64 {
        self.percent.get(category.name()).copied().unwrap_or(0.0)
    }

    /// The share of a row of the roll-up, in percent.
    #[must_use]
    pub fn rollup_percent_of(&self, group: Group) -> f64 {
        self.rollup_percent.get(group.name()).copied().unwrap_or(0.0)
    }
}
