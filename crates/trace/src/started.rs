//! What the first record of a journal tells: with it, and the inputs that follow, a run can be
//! decided again.

use crate::{ClockKind, RunId};

/// What is known when a run starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStarted {
    /// The run's id.
    pub run: RunId,
    /// The job's name.
    pub job: String,
    /// The launcher's name.
    pub launcher: String,
    /// Wall time at C = 0, in nanoseconds since 1970; the only one that a run stores.
    pub wall_ns: u64,
    /// The coordinator's boot id; a worker with the same one, and the same time namespace, has the
    /// very same clock.
    pub boot_id: String,
    /// The coordinator's time namespace.
    pub time_namespace: String,
    /// Which clock C is.
    pub clock: ClockKind,
    /// Bound of |dW/dC − 1| for workers whose clock is another, in ppm.
    pub rate_bound_ppm: u32,
    /// Seed of all that is random in decisions.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// The job file as given.
    pub job_text: Vec<u8>,
    /// Options given beside the job file, as JSON.
    pub options_json: String,
    /// BOOTTIME − MONOTONIC of the coordinator at C = 0, in nanoseconds.
    pub clock_gap_ns: i64,
    /// Processors that counted for `cores` in the job's expressions.
    pub cores: u32,
    /// Attempts that could be on their way to their hello at a time; 0 for any number.
    pub starting_max: u32,
}
