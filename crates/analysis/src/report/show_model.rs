//! One worker as data: `musec show --format json`.

use serde::Serialize;

use crate::breakdown::Categories;

/// All attempts of one worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Show {
    /// Version of these keys.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// The worker.
    pub worker: u32,
    /// Its wave.
    pub wave: String,
    /// Its attempts, in order.
    pub attempts: Vec<ShowAttempt>,
}

/// One attempt. Times are C unless said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShowAttempt {
    /// Its number within the worker.
    pub attempt: u32,
    /// Its number in the run.
    pub launch: u64,
    /// What came of it; absent while it is alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// What ended it; absent while it is alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// Why it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_error: Option<String>,
    /// Host; absent if it never connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Process id there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The engine's name for it.
    pub engine_id: String,
    /// When the launcher was asked.
    pub requested_ns: u64,
    /// When the engine took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_ns: Option<u64>,
    /// When it connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_ns: Option<u64>,
    /// When TLS was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ns: Option<u64>,
    /// When its hello was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hello_ns: Option<u64>,
    /// When quit was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quit_ns: Option<u64>,
    /// Its end; absent while it is alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Bound of |dW/dC − 1|, in ppm.
    pub rate_bound_ppm: u32,
    /// Faults of its clock.
    pub clock_faults: usize,
    /// Its life.
    pub life_ns: u128,
    /// Where it went.
    pub categories: Categories,
    /// In no category.
    pub unaccounted_ns: u128,
    /// Bounds of `network`.
    pub network_bounds_ns: (u128, u128),
    /// Windows whose busy time was fitted.
    pub fitted_windows: u64,
    /// What it did, as `musec paths` shows it.
    pub path: String,
    /// Its execution in canonical form: lanes in the order of the program.
    pub lanes: Vec<super::ShowLane>,
    /// The items it was given.
    pub items: Vec<ShowItem>,
    /// Its commands, in order of their ids.
    pub commands: Vec<ShowCommand>,
    /// Gaps of its ticker, W.
    pub stalls_ns: Vec<(u64, u64)>,
    /// When the program itself waited.
    pub waits: Vec<ShowWait>,
}

/// An item that was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShowItem {
    /// When, C.
    pub at_ns: u64,
    /// Its number in the queue.
    pub item: u64,
    /// Its value, as JSON text.
    pub value: String,
}

/// A wait of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShowWait {
    /// Since, C.
    pub from_ns: u64,
    /// Until, C; absent if no command came any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
    /// For what.
    pub reason: &'static str,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShowCommand {
    /// Its number within the attempt.
    pub id: u64,
    /// Path of its lane.
    pub lane: Vec<u32>,
    /// Its state; absent outside of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Which visit of it.
    pub visit: u32,
    /// Its name.
    pub command: String,
    /// What it was given; bytes that are no UTF-8 are replaced.
    pub arguments: Vec<String>,
    /// Whether it was sent before its predecessor's reply.
    pub pipelined: bool,
    /// Whether its lane went on without it.
    pub background: bool,
    /// Decided, C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_ns: Option<u64>,
    /// t0, C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<u64>,
    /// t3, C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replied_ns: Option<u64>,
    /// a, W.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_ns: Option<u64>,
    /// s, W.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ns: Option<u64>,
    /// f, W.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_ns: Option<u64>,
    /// b, W.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_queued_ns: Option<u64>,
    /// Where s lies on C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_bounds_ns: Option<(u64, u64)>,
    /// Where f lies on C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_bounds_ns: Option<(u64, u64)>,
    /// t3 − t0 − (b − a); negative only where clocks contradict one another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_ns: Option<i128>,
    /// Of `[a,s]`, what was behind earlier commands of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ns: Option<u64>,
    /// The rest of `[a,s]`, and `[f,b]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead_ns: Option<u64>,
    /// f − s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_ns: Option<u64>,
    /// Estimated from the coordinator's stamps alone: t3 − max(t0, t3 of the command before in its
    /// lane). Absent of background commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_service_ns: Option<u64>,
    /// (estimate − service) / service; absent where the service is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_error: Option<f64>,
    /// What it was doing, W.
    pub phases: Vec<ShowPhase>,
    /// Milliseconds until the deadline at s and f; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<(i64, i64)>,
    /// The process's exit code; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it failed otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it did what it was told; absent without a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// Bytes moved.
    pub bytes: u64,
    /// CPU time in user mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_user_ns: Option<u64>,
    /// CPU time in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_system_ns: Option<u64>,
    /// The process's largest resident set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
    /// Length of its standard output.
    pub stdout_bytes: u64,
    /// Length of its standard error.
    pub stderr_bytes: u64,
}

/// A phase of a command, W.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShowPhase {
    /// What.
    pub kind: &'static str,
    /// Its start.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}
