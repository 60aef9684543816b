//! Signals that ask the run to stop; and the one that would kill it for a file that is too long.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

/// Makes a write beyond the limit of a file's size (ulimit -f) an error of that write. Left alone,
/// the signal for it kills the process, and nobody is told why. Children are as before: a handler
/// does not outlive `exec`.
pub(crate) fn survive_file_limits() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _within = runtime.enter();
    // The handler stays for as long as the process lives, whoever waits for it.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Interrupt, terminate, hang-up: each is a request to stop; the second one to stop at once.
pub(crate) struct Signals {
    interrupt: Listener,
    terminate: Listener,
    hangup: Listener,
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
