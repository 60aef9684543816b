//! Why a run could not start, or could not be recorded to its end: what, where, and the cure.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use musec_trace::journal::WriteFailure;
use thiserror::Error;

use crate::cure::cure;
use crate::folder::FolderError;
use crate::identity::IdentityError;
use crate::recorder::RecordFailure;
use crate::store::StoreError;

/// A run could not start, or could not be recorded to its end.
#[derive(Debug, Error)]
pub enum RunError {
    /// Its folder could not be made.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Its keys and certificates could not be made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A wave wants more attempts alive at a time than this process may have open files for.
    #[error(
        "wave `{wave}` would have {at_once} workers alive at a time, the limit of open files \
         allows {possible}; raise it to {needed} (ulimit -Hn {needed}), or lower -j"
    )]
    TooMany {
        /// The wave.
        wave: String,
        /// How many it would have.
        at_once: u32,
        /// How many there can be.
        possible: u64,
        /// The limit of open files that it needs.
        needed: u64,
    },
    /// The address could not be listened on.
    #[error("cannot listen on {address}; choose another with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The launcher could not start.
    #[error("cannot start the local launcher in {scratch}{}; TMPDIR names another place", cure(.source))]
    Launcher {
        /// Its scratch folder.
        scratch: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The event loop could not start.
    #[error("cannot start the event loop{}", cure(.0))]
    Loop(#[source] io::Error),
    /// It was asked to stop while results came back.
    #[error(
        "interrupted while results came back; the run itself is over, its objects are in {objects}"
    )]
    ResultsInterrupted {
        /// Folder of the run's objects.
        objects: PathBuf,
    },
    /// The run is over, and its results did not come back.
    #[error(
        "the run is over, but its results did not come back; its objects are in {objects}, \
             `musec fetch` brings them"
    )]
    Results {
        /// Folder of the run's objects.
        objects: PathBuf,
        /// What went wrong.
        #[source]
        source: Box<StoreError>,
    },
    /// The journal, or the file of outputs, could not be written on; what was recorded before is
    /// kept.
    #[error("cannot write {path}; the run was ended, the {records} records ({bytes} bytes) before \
             that are safe{}", cure(.source))]
    Journal {
        /// The file.
        path: PathBuf,
        /// Records that are in it.
        records: u64,
        /// Its length, in bytes.
        bytes: u64,
        /// The system's words.
        #[source]
        source: io::Error,
    },
}

impl RunError {
    /// Whether nothing was launched when it happened.
    pub(crate) const fn is_before_launch(&self) -> bool {
        match self {
            Self::Folder(_)
            | Self::Identity(_)
            | Self::Store(_)
            | Self::TooMany { .. }
            | Self::Listen { .. }
            | Self::Launcher { .. } => true,
            // The loop's second start is after the run.
            Self::Loop(_)
            | Self::ResultsInterrupted { .. }
            | Self::Results { .. }
            | Self::Journal { .. } => false,
        }
    }
}

impl From<RecordFailure> for RunError {
    fn from(RecordFailure { path, failure }: RecordFailure) -> Self {
        let WriteFailure { source, records, bytes } = failure;
        Self::Journal { path, records, bytes, source }
    }
}
