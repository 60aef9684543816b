//! What a worker answers: the outcome, and when it was, by its own clock.

use crate::limits::LAST_OUTPUT_BYTES_MAX;
use crate::{CommandId, WTime};

/// The answer to one command, whatever it was. All stamps are W.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The command that is answered.
    pub id: CommandId,
    /// a: the command was decoded.
    pub received: WTime,
    /// s: its lane was free, its execution began.
    pub started: WTime,
    /// f: its execution ended.
    pub finished: WTime,
    /// b: just before this reply was encoded.
    pub encoded: WTime,
    /// BOOTTIME − MONOTONIC of the worker's machine, in nanoseconds; its growth is a suspend.
    pub clock_gap_ns: i64,
    /// Milliseconds until the attempt's deadline at s; `None` without a deadline.
    pub remaining_started_ms: Option<i64>,
    /// Milliseconds until the attempt's deadline at f; `None` without a deadline.
    pub remaining_finished_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it was doing between s and f, in order, not overlapping.
    pub phases: Vec<Phase>,
    /// What its process used; `None` if it had none.
    pub usage: Option<Usage>,
    /// The end of its standard output.
    pub stdout: Tail,
    /// The end of its standard error.
    pub stderr: Tail,
    /// Bytes moved by `get` and `put`.
    pub bytes: u64,
    /// The objects moved.
    pub objects: Vec<Object>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done; of commands that run no process.
    Ok,
    /// The process exited with this code.
    Exited(i32),
    /// The process died of this signal.
    Signalled(i32),
    /// The time limit was over, in milliseconds; the process and its group are dead.
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// It could not be done.
    Failed {
        /// What kind of error.
        kind: ErrorKind,
        /// What, where, and the cure.
        text: String,
    },
    /// It was cancelled.
    Cancelled,
}

impl Reply {
    /// A reply that says how its command ended, and no more: all stamps are 0, nothing was printed,
    /// used or moved. What there is to say is filled in.
    #[must_use]
    pub const fn bare(id: CommandId, outcome: Outcome) -> Self {
        let never = WTime::from_ns(0);
        Self {
            id,
            received: never,
            started: never,
            finished: never,
            encoded: never,
            clock_gap_ns: 0,
            remaining_started_ms: None,
            remaining_finished_ms: None,
            outcome,
            phases: Vec::new(),
            usage: None,
            stdout: Tail { text: Vec::new(), total_bytes: 0 },
            stderr: Tail { text: Vec::new(), total_bytes: 0 },
            bytes: 0,
            objects: Vec::new(),
        }
    }

    /// The last lines of what the command printed, as far as its tails hold it: standard error if
    /// there is any, else standard output; at most [`LAST_OUTPUT_BYTES_MAX`] bytes.
    #[must_use]
    pub fn last_output(&self) -> Vec<u8> {
        let tail = if self.stderr.text.is_empty() { &self.stdout } else { &self.stderr };
        let text = tail.text.trim_ascii_end();
        let start = text.len().saturating_sub(LAST_OUTPUT_BYTES_MAX);
        let cut = &text[start..];
        let from_line = cut.iter().position(|byte| *byte == b'\n').filter(|_| start > 0);
        cut[from_line.map_or(0, |at| at + 1)..].to_vec()
    }
}

impl Outcome {
    /// Whether the command did what it was told: exit 0, or done.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Ok | Self::Exited(0))
    }
}

/// What kind of error kept a command from being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The process could not be started.
    Spawn,
    /// An object or file does not exist.
    Missing,
    /// Not allowed.
    Denied,
    /// No space, or another limit of the machine.
    Full,
    /// The command's own arguments cannot be obeyed.
    Invalid,
    /// Another error of input or output.
    Io,
    /// This worker does not know the command.
    Unsupported,
}

/// What a command was doing in an interval between its s and f.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What.
    pub kind: PhaseKind,
    /// Its start, W.
    pub from: WTime,
    /// Its end, W; never before its start.
    pub to: WTime,
}

/// Kinds of phases. What is in no phase is the worker's own overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseKind {
    /// From spawn to exit of a `run`'s process.
    User,
    /// The wait of a `sleep`.
    Sleep,
    /// From asking a store to its first byte.
    FirstByte,
    /// Bytes between store and worker.
    Transfer,
    /// Bytes between worker and its disk.
    Disk,
    /// Waiting before a transfer is tried again.
    BackOff,
}

/// What a process and its waited-for children used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Largest resident set, in bytes.
    pub peak_rss_bytes: u64,
}

/// The end of an output stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Its last bytes, at most [`crate::limits::OUTPUT_TAIL_BYTES_MAX`].
    pub text: Vec<u8>,
    /// How many bytes the stream had in all.
    pub total_bytes: u64,
}

/// One object that was moved. Stamps are W.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its key.
    pub key: String,
    /// The store's entity tag; empty if it gave none.
    pub etag: String,
    /// The store's version; empty if it gave none.
    pub version: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// The store was asked.
    pub asked: WTime,
    /// The first byte was there.
    pub first_byte: WTime,
    /// The last byte was there.
    pub last_byte: WTime,
    /// All was done, disk included.
    pub done: WTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(stdout: &[u8], stderr: &[u8]) -> Reply {
        let tail = |text: &[u8]| Tail { text: text.to_vec(), total_bytes: text.len() as u64 };
        Reply {
            stdout: tail(stdout),
            stderr: tail(stderr),
            ..Reply::bare(CommandId(0), Outcome::Exited(1))
        }
    }

    #[test]
    fn the_last_output_is_whole_lines_of_standard_error_else_of_standard_output() {
        assert_eq!(reply(b"out\n", b"one\ntwo\n").last_output(), b"one\ntwo");
        assert_eq!(reply(b"out\n", b"").last_output(), b"out");
        let long = [vec![b'x'; LAST_OUTPUT_BYTES_MAX], b"\nlast\n".to_vec()].concat();
        assert_eq!(reply(&long, b"").last_output(), b"last");
        assert_eq!(reply(b"", b"").last_output(), b"");
    }
}
