//! All that a worker says, in order. Each message gets its last stamp just before it is encoded.
//!
//! In: messages, through [`Speaker`]. Out: frames on the connection. Memory: the queue holds at
//! most one reply for each outstanding command and one answer for each heartbeat; both come only
//! as fast as the coordinator asks, and the session limits the first.

use std::io;
use std::rc::Rc;

use musec_protocol::{FromWorker, Note, Pong, Reply, WTime, begin_frame, end_frame};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::clock::{WClock, clock_gap_ns};
use crate::stall::StallWatch;

/// Bytes gathered before they are written: answers that are ready together share a write.
const GATHER_BYTES: usize = 64 << 10;

/// What is to be said; its stamps of encoding are still to come.
#[derive(Debug)]
pub(crate) enum Say {
    Reply(Box<Reply>),
    Pong {
        seq: u64,
        received: WTime,
    },
    Stall(musec_protocol::Stall),
    Note {
        note: Note,
        /// Its place among those that wait; given back when it is encoded.
        permit: Option<OwnedSemaphorePermit>,
    },
}

/// Where to say it. When all of them are gone the writer closes the connection.
#[derive(Clone, Debug)]
pub(crate) struct Speaker(mpsc::UnboundedSender<Say>);

impl Speaker {
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<Say>) {
        // What may wait is bounded where it arises: a reply for each command outstanding, of which
        // the session takes no more than a limit; an answer to each heartbeat, one at a time; a
        // stall for each tick; notes by their permits, and what a kernel's queue holds for each
        // reply.
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Says it, if the connection still stands; the session notices otherwise.
    pub(crate) fn say(&self, what: Say) {
        drop(self.0.send(what));
    }
}

/// Writes until nothing more can come, then closes TLS in order.
///
/// # Errors
/// If the connection fails.
pub(crate) async fn write_all(
    mut stream: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<Say>,
    clock: WClock,
    stalls: Rc<StallWatch>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while let Some(say) = queue.recv().await {
        encode(say, clock, &stalls, &mut bytes)?;
        while bytes.len() < GATHER_BYTES {
            let Ok(say) = queue.try_recv() else { break };
            encode(say, clock, &stalls, &mut bytes)?;
        }
        stream.write_all(&bytes).await?;
        stream.flush().await?;
        bytes.clear();
        bytes.shrink_to(GATHER_BYTES);
    }
    stream.shutdown().await
}

fn encode(say: Say, clock: WClock, stalls: &StallWatch, bytes: &mut Vec<u8>) -> io::Result<()> {
    if let Some(stall) = stalls.look(clock.now()) {
        frame(&FromWorker::Stall(stall), bytes)?;
    }
    let gap = clock_gap_ns();
    let message = match say {
        Say::Reply(mut reply) => {
            reply.clock_gap_ns = gap;
            reply.encoded = clock.now();
            FromWorker::Reply(*reply)
        }
        Say::Pong { seq, received } => {
            FromWorker::Pong(Pong { seq, received, encoded: clock.now(), clock_gap_ns: gap })
        }
        Say::Stall(stall) => FromWorker::Stall(stall),
        Say::Note { note, permit } => {
            drop(permit);
            FromWorker::Note(note)
        }
    };
    frame(&message, bytes)
}

/// Appends a framed message. That one is too long cannot be: its parts are bounded.
fn frame(message: &FromWorker, bytes: &mut Vec<u8>) -> io::Result<()> {
    let start = begin_frame(bytes);
    message.encode(bytes);
    end_frame(bytes, start).map_err(io::Error::other)
}
