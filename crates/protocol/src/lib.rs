//! What is said between the coordinator and its workers: ids, commands, replies, the handshake and
//! the framing. Nothing here reads a clock, opens a file or knows a runtime.
//!
//! In: bytes of a peer, never trusted. Out: values that hold what the types promise, or a
//! [`ProtocolError`] that names what was wrong. Invariants: decoding never panics, no message is
//! longer than [`limits::FRAME_BYTES_MAX`], and the bytes of the handshake are frozen by tests.

mod command;
mod convert;
mod error;
mod frame;
mod handshake;
mod ids;
pub mod limits;
mod message;
pub mod note;
mod reply;
mod ticket;
mod time;

pub use command::{Action, ByteRange, Command, Get, Place, Put, Run, Which};
pub use error::ProtocolError;
pub use frame::{FrameDecoder, begin_frame, end_frame};
pub use handshake::{ALPN, ANSWER_BYTES, Answer, PREAMBLE_BYTES, Preamble, Refusal, VERSION};
pub use ids::{AttemptNo, CommandId, LaunchId, RunId, WorkerId};
pub use message::{ClockKind, FromWorker, Hello, Note, Pong, Stall, ToWorker, Welcome};
pub use reply::{ErrorKind, Object, Outcome, Phase, PhaseKind, Reply, Tail, Usage};
pub use ticket::Ticket;
pub use time::WTime;

/// The generated types; private, so that only values that were checked leave this crate.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, reason = "generated")]
mod wire {
    include!(concat!(env!("OUT_DIR"), "/musec.wire.v1.rs"));
}
