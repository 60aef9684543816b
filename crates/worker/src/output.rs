//! The end of an output stream, collected while it is written, in bounded memory; all of it in a
//! file, where that is asked for and it is longer than its end.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use musec_protocol::Tail;
use musec_protocol::limits::OUTPUT_TAIL_BYTES_MAX;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

use crate::transfer::Partial;

/// Bytes read at a time.
const READ_BYTES: usize = 16 << 10;

/// What has been collected so far; it can be asked for while the stream is still open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected(Rc<RefCell<Stream>>);

#[derive(Debug, Default)]
struct Stream {
    tail: Tail,
    whole: Whole,
}

/// What becomes of a stream that is longer than its tail.
#[derive(Debug, Default)]
enum Whole {
    /// Its beginning is forgotten.
    #[default]
    Forgotten,
    /// All of it goes to a file of this folder once it is longer.
    Wanted(PathBuf),
    Kept(Partial, File),
    Failed(io::Error),
}

impl Collected {
    /// The last bytes so far.
    pub(crate) fn tail(&self) -> Tail {
        let mut tail = std::mem::take(&mut self.0.borrow_mut().tail);
        let surplus = tail.text.len().saturating_sub(OUTPUT_TAIL_BYTES_MAX);
        tail.text.drain(..surplus);
        tail
    }

    fn add(&self, bytes: &[u8]) {
        let mut stream = self.0.borrow_mut();
        stream.keep(bytes);
        let tail = &mut stream.tail;
        tail.total_bytes += bytes.len() as u64;
        tail.text.extend_from_slice(bytes);
        if tail.text.len() > 2 * OUTPUT_TAIL_BYTES_MAX {
            let surplus = tail.text.len() - OUTPUT_TAIL_BYTES_MAX;
            tail.text.drain(..surplus);
        }
    }

    /// The file with all of it, if it is longer than its tail.
    ///
    /// # Errors
    /// If it could not be written.
    pub(crate) fn whole(&self) -> io::Result<Option<Partial>> {
        match std::mem::take(&mut self.0.borrow_mut().whole) {
            Whole::Forgotten | Whole::Wanted(_) => Ok(None),
            Whole::Kept(partial, _) => Ok(Some(partial)),
            Whole::Failed(error) => Err(error),
        }
    }
}

impl Stream {
    /// Keeps all of it in a file once it is longer than its tail. The writes go to the system's
    /// cache, and hold up only the command whose output it is.
    fn keep(&mut self, bytes: &[u8]) {
        if let Whole::Wanted(folder) = &self.whole
            && self.tail.text.len() + bytes.len() > OUTPUT_TAIL_BYTES_MAX
        {
            let kept = Partial::create(folder).and_then(|(partial, mut file)| {
                file.write_all(&self.tail.text)?;
                Ok(Whole::Kept(partial, file))
            });
            self.whole = kept.unwrap_or_else(Whole::Failed);
        }
        if let Whole::Kept(_, file) = &mut self.whole
            && let Err(error) = file.write_all(bytes)
        {
            self.whole = Whole::Failed(error);
        }
    }
}

/// Reads a pipe to its end in a task of its own. `whole` is the folder for a file with all of it,
/// if that is wanted.
pub(crate) fn collect(pipe: OwnedFd, whole: Option<&Path>) -> (Collected, JoinHandle<()>) {
    let collected = Collected::default();
    if let Some(folder) = whole {
        collected.0.borrow_mut().whole = Whole::Wanted(folder.to_owned());
    }
    let into = collected.clone();
    let task = tokio::task::spawn_local(async move {
        let Ok(mut pipe) = Receiver::from_owned_fd(pipe) else { return };
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(bytes) = pipe.read(&mut buffer).await {
            if bytes == 0 {
                return;
            }
            into.add(&buffer[..bytes]);
        }
    });
    (collected, task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_long_stream_is_in_a_file_and_a_short_one_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let wanted = || {
            let collected = Collected::default();
            collected.0.borrow_mut().whole = Whole::Wanted(folder.path().to_owned());
            collected
        };
        let short = wanted();
        short.add(&[b'x'; OUTPUT_TAIL_BYTES_MAX]);
        assert!(short.whole().expect("no error").is_none());
        let long = wanted();
        let text: Vec<u8> = (0..200_000u32).map(|at| at.to_le_bytes()[0]).collect();
        text.chunks(7_001).for_each(|chunk| long.add(chunk));
        let file = long.whole().expect("written").expect("a file");
        assert_eq!(std::fs::read(file.path().expect("there")).expect("read"), text);
    }

    #[test]
    fn only_the_end_is_kept_and_all_is_counted() {
        let collected = Collected::default();
        for _ in 0..1000 {
            collected.add(&[b'x'; 1000]);
        }
        collected.add(b"the end");
        let tail = collected.tail();
        assert_eq!(tail.total_bytes, 1_000_007);
        assert_eq!(tail.text.len(), OUTPUT_TAIL_BYTES_MAX);
        assert!(tail.text.ends_with(b"xthe end"));
    }
}
