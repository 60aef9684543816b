//! The messages of the two directions, and their bytes.

use std::collections::BTreeMap;

use prost::Message;

use crate::{AttemptNo, Command, ProtocolError, Reply, WTime, WorkerId, wire};

/// From the coordinator to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToWorker {
    /// The hello was accepted.
    Welcome(Welcome),
    /// Do this.
    Command(Command),
    /// A heartbeat with its number; the worker answers with a [`Pong`].
    Ping(u64),
}

/// From a worker to the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromWorker {
    /// The first message, once.
    Hello(Hello),
    /// A command's answer.
    Reply(Reply),
    /// A heartbeat's answer.
    Pong(Pong),
    /// The worker did not run for a while.
    Stall(Stall),
    /// User code told something.
    Note(Note),
}

/// Which clock W is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClockKind {
    /// CLOCK_MONOTONIC_RAW: steady, within 200 ppm.
    MonotonicRaw,
    /// CLOCK_MONOTONIC: slewed, within 600 ppm.
    Monotonic,
}

/// Who a worker is and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Host name, as bytes.
    pub host: Vec<u8>,
    /// The kernel's boot id; empty where there is none.
    pub boot_id: String,
    /// The time namespace; with the boot id it tells whether two clocks are one.
    pub time_namespace: String,
    /// Process id.
    pub pid: u32,
    /// Which clock W is.
    pub clock: ClockKind,
    /// b: just before this hello was encoded, W.
    pub encoded: WTime,
    /// BOOTTIME − MONOTONIC, in nanoseconds.
    pub clock_gap_ns: i64,
    /// Wall time at b, in nanoseconds since 1970; for people, never computed with.
    pub wall_ns: u64,
    /// Processors that the worker may use.
    pub cpus: u32,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// Version of the program.
    pub version: String,
    /// Other facts of the instance (request id, region, cold or warm).
    pub facts: BTreeMap<String, String>,
}

/// What an accepted worker is told at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// The worker's number, bound now.
    pub worker: WorkerId,
    /// The attempt's number within the worker.
    pub attempt: AttemptNo,
    /// Interval of heartbeats that the worker may expect, in milliseconds.
    pub heartbeat_ms: u32,
    /// The attempt's time limit from now on, in milliseconds; `None` for none.
    pub timeout_ms: Option<u64>,
    /// URL of the store.
    pub store_url: String,
    /// URL of the inputs.
    pub inputs_url: String,
    /// Folders put on the PATH of every `run`, first one first.
    pub path_dirs: Vec<Vec<u8>>,
    /// Whether the scratch folder stays at the end.
    pub keep_scratch: bool,
    /// Whether what user code tells is wanted: then the worker offers it a socket.
    pub hears_notes: bool,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong {
    /// The heartbeat's number.
    pub seq: u64,
    /// a: the heartbeat was decoded, W.
    pub received: WTime,
    /// b: just before this answer was encoded, W.
    pub encoded: WTime,
    /// BOOTTIME − MONOTONIC, in nanoseconds.
    pub clock_gap_ns: i64,
}

/// A gap between two ticks of the worker's ticker: it was stopped, starved or frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The last tick before, W.
    pub from: WTime,
    /// The first tick after, W.
    pub to: WTime,
}

/// What user code told its worker, as it came: [`crate::note`] says what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When the worker read it, W.
    pub received: WTime,
    /// What was told; at most [`crate::limits::NOTE_BYTES_MAX`].
    pub text: Vec<u8>,
}

impl ToWorker {
    /// Appends the message's bytes, without a frame header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        wire::ToWorker { body: Some(self.into()) }.encode_raw(out);
    }

    /// The message in `bytes`.
    ///
    /// # Errors
    /// If the bytes are no such message.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let what = "message to a worker";
        let message = wire::ToWorker::decode(bytes)
            .map_err(|error| ProtocolError::Undecodable { what, why: error.to_string() })?;
        message.body.ok_or(ProtocolError::Malformed { what, why: "no body" })?.try_into()
    }
}

impl FromWorker {
    /// Appends the message's bytes, without a frame header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        wire::FromWorker { body: Some(self.into()) }.encode_raw(out);
    }

    /// The message in `bytes`.
    ///
    /// # Errors
    /// If the bytes are no such message.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let what = "message of a worker";
        let message = wire::FromWorker::decode(bytes)
            .map_err(|error| ProtocolError::Undecodable { what, why: error.to_string() })?;
        message.body.ok_or(ProtocolError::Malformed { what, why: "no body" })?.try_into()
    }
}
