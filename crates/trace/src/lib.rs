//! What is recorded of a run: one event type for live, recorded and replayed runs; the
//! coordinator's clock; the journal's writer and reader.
//!
//! In: records from the coordinator, or bytes of a journal that may be torn or damaged. Out: bytes,
//! or records. Invariants: decode ∘ encode is the identity; a torn tail costs only what was not
//! written; damage is named with its place and never makes the reader panic. No runtime, no
//! analysis.

mod clock;
mod codes;
mod convert;
mod encode;
mod event;
pub mod journal;
mod parts;
mod reply;
mod started;
mod time;

pub use clock::CClock;
pub use codes::{
    AttemptOutcome, Cause, EndCause, RunStatus, StepCategory, Stream, Timer, WaitReason,
};
pub use event::{Event, Failure, Joined, Queued, Record, Sample, StateId, WaveId};
pub use musec_protocol::{
    AttemptNo, ClockKind, CommandId, ErrorKind, Hello, LaunchId, Object, Outcome, Phase, PhaseKind,
    Reply, RunId, Tail, Usage, WTime, WorkerId,
};
pub use started::RunStarted;
pub use time::CTime;

/// The generated types of the journal's schema; private, so that only checked values are seen.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, reason = "generated")]
mod wire {
    include!(concat!(env!("OUT_DIR"), "/musec.journal.v1.rs"));
}
