//! Why a worker's session, or a guard, ended other than asked.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use musec_protocol::{ProtocolError, Refusal};
use thiserror::Error;

/// A session that did not end by `quit`. In all cases what ran is dead and the scratch folder is
/// gone when this is returned.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The text of the ticket is none.
    #[error("cannot use the join ticket")]
    Ticket(#[source] ProtocolError),
    /// The event loop could not be set up.
    #[error("cannot set up the worker's event loop")]
    Runtime(#[source] io::Error),
    /// The keys of the ticket could not be used.
    #[error("cannot use the ticket's keys")]
    Keys(#[source] rustls::Error),
    /// No address of the ticket could be reached.
    #[error("cannot reach the coordinator at {address}")]
    Connect {
        /// The last address that was tried.
        address: String,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The other side did not prove to be this run's coordinator, or went away.
    #[error("no handshake with the coordinator at {address}")]
    Handshake {
        /// Its address.
        address: String,
        /// TLS' words.
        #[source]
        source: io::Error,
    },
    /// The coordinator took too long.
    #[error("no welcome from the coordinator at {address} within {limit:?}")]
    HandshakeTime {
        /// Its address.
        address: String,
        /// The limit.
        limit: Duration,
    },
    /// The coordinator does not want this attempt.
    #[error("refused by the coordinator: {}", .0.reason())]
    Refused(Refusal),
    /// The coordinator sent what the protocol does not allow.
    #[error("the coordinator sent what is not allowed")]
    Protocol(#[from] ProtocolError),
    /// The coordinator sent a message out of order.
    #[error("the coordinator sent {0}")]
    Unexpected(&'static str),
    /// More commands are outstanding than a worker keeps.
    #[error("more than {0} commands outstanding")]
    Flooded(usize),
    /// The scratch folder could not be made.
    #[error("cannot make the scratch folder {path} (TMPDIR names another place)")]
    Scratch {
        /// The folder.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The socket for what user code tells could not be made.
    #[error(
        "cannot make the socket for infos beside the scratch folder (its path may be too long)"
    )]
    Notes(#[source] io::Error),
    /// The connection ended.
    #[error("lost the coordinator")]
    Lost(#[source] io::Error),
    /// The coordinator was not heard of.
    #[error("no sign of the coordinator for {0:?}")]
    Silent(Duration),
    /// A signal asked this process to end.
    #[error("ended by {0}")]
    Signal(&'static str),
}

/// A guard that could not start.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The event loop could not be set up.
    #[error("cannot set up the guard's event loop")]
    Runtime(#[source] io::Error),
    /// The socket could not be made.
    #[error("cannot listen on {path}")]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The scratch root is not a folder of its own.
    #[error("{0} cannot be guarded: an absolute folder below the root is needed")]
    Root(PathBuf),
}
