//! Launchers start attempts. Each says, per attempt, what it could not do and why.
//!
//! In: a ticket to hand to a worker that does not exist yet. Out: [`LauncherEvent`]s. A launcher
//! knows nothing of jobs, waves or items; there is one so far, and the trait comes with the second.

mod guard;
mod local;

pub(crate) use local::{Local, LocalSetup, Spawned};

use musec_protocol::LaunchId;
use musec_trace::CTime;

/// What a launcher tells.
#[derive(Debug)]
pub(crate) enum LauncherEvent {
    /// The engine took the attempt.
    Accepted { launch: LaunchId, at: CTime, engine_id: String },
    /// The attempt could not be started.
    NotLaunched { launch: LaunchId, error: String },
    /// The attempt's process is gone; it can be reaped.
    Exited { launch: LaunchId, at: CTime },
    /// The guard's process is gone, which nobody has asked it to.
    GuardGone,
}
