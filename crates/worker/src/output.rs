//! The end of an output stream, collected while it is written, in bounded memory.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use musec_protocol::Tail;
use musec_protocol::limits::OUTPUT_TAIL_BYTES_MAX;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

/// Bytes read at a time.
const READ_BYTES: usize = 16 << 10;

/// What has been collected so far; it can be asked for while the stream is still open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected(Rc<RefCell<Tail>>);

impl Collected {
    /// The last bytes so far.
    pub(crate) fn tail(&self) -> Tail {
        let mut tail = self.0.take();
        let surplus = tail.text.len().saturating_sub(OUTPUT_TAIL_BYTES_MAX);
        tail.text.drain(..surplus);
        tail
    }

    fn add(&self, bytes: &[u8]) {
        let mut tail = self.0.borrow_mut();
        tail.total_bytes += bytes.len() as u64;
        tail.text.extend_from_slice(bytes);
        if tail.text.len() > 2 * OUTPUT_TAIL_BYTES_MAX {
            let surplus = tail.text.len() - OUTPUT_TAIL_BYTES_MAX;
            tail.text.drain(..surplus);
        }
    }
}

/// Reads a pipe to its end in a task of its own.
pub(crate) fn collect(pipe: OwnedFd) -> (Collected, JoinHandle<()>) {
    let collected = Collected::default();
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
