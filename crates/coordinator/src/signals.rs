//! Signals that ask the run to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Interrupt, terminate, hang-up: each is a request to stop; the second one to stop at once.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one's name. Cancel-safe.
    pub(crate) async fn next(&mut self) -> String {
        let name = tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.hangup.recv() => "SIGHUP",
        };
        name.to_owned()
    }
}
