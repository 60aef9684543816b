//! Why a command could not be done, in the words of its reply.

use std::io;

use musec_protocol::{ErrorKind, Outcome};
use rustix::io::Errno;

/// A command that could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// What, where, and the cure.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// An error of the system while doing `what` in the scratch folder.
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        let place =
            if is_full(error) { ", where the scratch folders are: TMPDIR names it" } else { "" };
        Self::new(kind_of(error), format!("{what}: {error}{}{place}", cure(error)))
    }
}

/// Whether a disk is full.
fn is_full(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOSPC | Errno::DQUOT))
}

/// What to do about a limit of the worker's machine, to follow a sentence.
pub(crate) fn cure(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => "; free space there",
        Some(Errno::FBIG) => "; raise the limit of a file's size (ulimit -f)",
        Some(Errno::MFILE | Errno::NFILE) => "; raise the limit of open files (ulimit -n)",
        Some(Errno::NOMEM) => "; there is no memory for it: lower -j",
        Some(Errno::AGAIN) => "; raise the limit of processes (ulimit -u), or lower -j",
        _ => "",
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failed { kind: failure.kind, text: failure.text }
    }
}

/// The kind of an error of the system.
pub(crate) fn kind_of(error: &io::Error) -> ErrorKind {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => ErrorKind::Missing,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => ErrorKind::Denied,
        Some(
            Errno::NOSPC
            | Errno::DQUOT
            | Errno::NOMEM
            | Errno::AGAIN
            | Errno::MFILE
            | Errno::NFILE
            | Errno::FBIG,
        ) => ErrorKind::Full,
        Some(Errno::NAMETOOLONG | Errno::ISDIR | Errno::LOOP | Errno::INVAL) => ErrorKind::Invalid,
        _ => match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::Missing,
            io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            _ => ErrorKind::Io,
        },
    }
}
