//! Delivery: a file of the scratch folder becomes a file elsewhere on this machine.
//!
//! Invariants: at its new path the file is whole or not there; folders that lead there are made;
//! where it cannot be moved (another disk), it is copied beside its path and renamed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use musec_protocol::{ErrorKind, Object, Outcome, PhaseKind};
use rustix::io::Errno;

use crate::execute::{Context, blocking};
use crate::failure::{Failure, cure, kind_of};
use crate::progress::Progress;
use crate::scratch::show;
use crate::transfer::Partial;

/// Moves the file `name` of the scratch folder to `path`, which is absolute.
pub(crate) async fn deliver(
    name: &[u8],
    path: &[u8],
    context: &Context,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    let asked = progress.enter(PhaseKind::Disk);
    let shown = show(name.strip_prefix(b"./").unwrap_or(name));
    let from = context.scratch.file(name).map_err(|failure| match failure.kind {
        ErrorKind::Missing => Failure::new(
            ErrorKind::Missing,
            format!("the command left no file {{out}}: {shown} is not in its scratch folder"),
        ),
        ErrorKind::Spawn
        | ErrorKind::Denied
        | ErrorKind::Full
        | ErrorKind::Invalid
        | ErrorKind::Io
        | ErrorKind::Unsupported => failure,
    })?;
    let target = PathBuf::from(OsStr::from_bytes(path));
    let moving = target.clone();
    let bytes = blocking(move || move_file(&from, &moving)).await.map_err(|error| {
        let text = format!("cannot deliver {shown} to {}: {error}{}", show(path), cure(&error));
        Failure::new(kind_of(&error), text)
    })?;
    let done = progress.leave();
    progress.note(|all| {
        all.bytes += bytes;
        all.objects.push(Object {
            key: target.to_string_lossy().into_owned(),
            etag: String::new(),
            version: String::new(),
            bytes,
            asked,
            first_byte: asked,
            last_byte: done,
            done,
        });
    });
    Ok(Outcome::Ok)
}

/// Moves a file and tells its length.
fn move_file(from: &Path, to: &Path) -> io::Result<u64> {
    let folder = to.parent().unwrap_or_else(|| Path::new("/"));
    // A link is what it points to.
    let from = from.canonicalize()?;
    let bytes = from.metadata()?.len();
    let moved = match std::fs::rename(&from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            std::fs::rename(&from, to)
        }
        moved => moved,
    };
    match moved {
        Err(error) if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {
            let (partial, file) = Partial::create(folder)?;
            drop(file);
            let beside = partial.path().unwrap_or(to);
            std::fs::copy(&from, beside)?;
            partial.publish_now(to)?;
            std::fs::remove_file(&from)?;
            Ok(bytes)
        }
        moved => moved.map(|()| bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_moved_and_folders_are_made() {
        let place = tempfile::tempdir().expect("a folder");
        let from = place.path().join("from");
        let to = place.path().join("a/b/to");
        std::fs::write(&from, "text").expect("written");
        assert_eq!(move_file(&from, &to).expect("moved"), 4);
        assert!(!from.exists());
        assert_eq!(std::fs::read(&to).expect("there"), b"text");
        std::fs::write(&from, "newer").expect("written");
        assert_eq!(move_file(&from, &to).expect("moved"), 5);
        assert_eq!(std::fs::read(&to).expect("there"), b"newer");
    }
}
