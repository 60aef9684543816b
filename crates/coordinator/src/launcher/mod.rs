//! Launchers start attempts. Each says, per attempt, what it could not do and why.
//!
//! In: a ticket to hand to a worker that does not exist yet. Out: [`LauncherEvent`]s. A launcher
//! knows nothing of jobs, waves or items.

mod guard;
mod local;
mod tickets;

pub(crate) use local::{Local, LocalSetup, Spawned};
pub(crate) use tickets::Tickets;

use std::path::{Path, PathBuf};

use musec_protocol::{LaunchId, Ticket};
use musec_trace::{CClock, CTime};
use tokio::sync::mpsc;

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

/// The launcher of a run.
pub(crate) enum Launcher {
    /// Processes of this machine.
    Local(Local),
    /// Tickets for somebody else who starts the workers.
    Tickets(Tickets),
}

impl Launcher {
    /// Asks for an attempt. Whether it was accepted comes as an event.
    pub(crate) fn launch(
        &mut self,
        launch: LaunchId,
        ticket: &Ticket,
        clock: CClock,
        events: &mpsc::UnboundedSender<LauncherEvent>,
    ) -> Result<(), String> {
        match self {
            Self::Local(local) => local.launch(launch, ticket),
            Self::Tickets(tickets) => tickets.launch(launch, ticket, clock, events),
        }
    }

    /// Takes what the local launcher's thread has started.
    pub(crate) fn spawned(
        &mut self,
        spawned: Spawned,
        clock: CClock,
        events: &mpsc::UnboundedSender<LauncherEvent>,
    ) -> Option<LauncherEvent> {
        match self {
            Self::Local(local) => Some(local.spawned(spawned, clock, events)),
            Self::Tickets(_) => None,
        }
    }

    /// Kills an attempt, where this launcher can.
    pub(crate) fn stop(&self, launch: LaunchId) {
        match self {
            Self::Local(local) => local.stop(launch),
            Self::Tickets(_) => {}
        }
    }

    /// Says in words how an attempt ended whose process is gone.
    pub(crate) fn reap(&mut self, launch: LaunchId) -> String {
        match self {
            Self::Local(local) => local.reap(launch),
            Self::Tickets(_) => "gone".into(),
        }
    }

    /// Starts the guard again, which is gone.
    pub(crate) fn restart_guard(&mut self) {
        match self {
            Self::Local(local) => local.restart_guard(),
            Self::Tickets(_) => {}
        }
    }

    /// Folder for the workers' scratch folders; empty to leave the choice to them.
    pub(crate) fn scratch_root(&self) -> &Path {
        match self {
            Self::Local(local) => local.scratch_root(),
            Self::Tickets(_) => Path::new(""),
        }
    }

    /// Where the workers find their guard; empty where there is none.
    pub(crate) fn guard_socket(&self) -> PathBuf {
        match self {
            Self::Local(local) => local.guard_socket(),
            Self::Tickets(_) => PathBuf::new(),
        }
    }

    /// Waits for processes that are about to end, and kills what is left.
    pub(crate) async fn finish(self) {
        match self {
            Self::Local(local) => local.finish().await,
            Self::Tickets(_) => {}
        }
    }
}
