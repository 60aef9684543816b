//! Every limit of what is decided, with its reason. Limits of the conversation are in
//! `musec_protocol::limits`.

use std::time::Duration;

/// Longest job file, in bytes: far above what people write, and it bounds what parsing costs.
pub const JOB_BYTES_MAX: usize = 1 << 20;

/// Errors reported of one job file; more would only hide the first ones.
pub const JOB_ERRORS_MAX: usize = 50;

/// Waves of a job: far above what people write. Each knows all that come before it, so that this
/// bounds a square.
pub const WAVES_MAX: usize = 1000;

/// Expressions of a job, those in braces within texts among them: far above what people write, and
/// each compiled one takes some ten kilobytes.
pub const EXPRESSIONS_MAX: usize = 10_000;

/// Depth of steps within steps; it bounds the recursion of everything that walks a job.
pub const STEP_DEPTH_MAX: u32 = 24;

/// Workers of one wave. Each costs the coordinator about a kilobyte before it is even launched.
pub const WORKERS_MAX: u32 = 1 << 20;

/// Items of one wave; they are held in memory.
pub const ITEMS_MAX: u64 = 1 << 22;

/// Bytes of the values of one wave's items, when an expression gives them; they are held in memory.
pub const ITEMS_BYTES_MAX: usize = 1 << 28;

/// Longest file of lines or rows that items are made of, in bytes: it is one record of the journal
/// (`musec_trace::journal::ENTRY_BYTES_MAX`, 32 MiB), with room to spare.
pub const ITEMS_TEXT_BYTES_MAX: usize = 1 << 24;

/// What one evaluation of an expression may cost, in minijinja's fuel: about one unit for an
/// instruction, and for 64 bytes. It bounds time and memory: no expression may stall the
/// coordinator, which serves all workers.
pub const EXPRESSION_FUEL: u64 = 100_000;

/// What all evaluations of a machine's steps may cost between two commands, in the same unit: fifty
/// of the costliest ones. Without it [`STEPS_WITHOUT_COMMAND_MAX`] of those would stall the loop
/// for a minute.
pub const FUEL_WITHOUT_COMMAND: u64 = 50 * EXPRESSION_FUEL;

/// Longest expression, in bytes: far above what people write, and it bounds the depth of
/// minijinja's recursion, which long chains of operators would drive to the end of the stack.
pub const EXPRESSION_BYTES_MAX: usize = 4096;

/// Steps that a machine may take without a command before it is declared endless. A worker's reply
/// is handled by the loop that serves all workers, so that this is a bound on its lag.
pub const STEPS_WITHOUT_COMMAND_MAX: u32 = 10_000;

/// Commands of a pipelined list in flight at a time: with a millisecond of work each they cover a
/// quarter of a second of round trip, and 1,000 workers hold less than 100 MB of them. A worker
/// refuses 65,536.
pub const PIPELINE_COMMANDS_MAX: u32 = 256;

/// Lanes of one wave, with the program itself: each that has begun costs every worker's machine a
/// few hundred bytes.
pub const LANES_MAX: u32 = 257;

/// Bytes of arguments in flight above which a pipelined list sends no further command: together
/// with one more command of [`VALUE_BYTES_MAX`], and its `env`, it stays below what a connection
/// holds for a peer that is slow to read (8 MiB).
pub const PIPELINE_BYTES_MAX: usize = 1 << 20;

/// Largest value of a variable, and all of a command's arguments together, in bytes: a command must
/// fit in a frame (`musec_protocol::limits::FRAME_BYTES_MAX`, 4 MiB) with room to spare.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// Longest time that a job file can name: a year. Longer ones are slips of the pen, and sums of
/// times cannot overflow.
pub const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Default of `connect_timeout`: from launch to hello. Cold starts of the slowest engines take
/// some ten seconds.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Default of `concurrency`: objects of one folder or glob under way at a time. More hide the
/// latency of a store, and few links carry more at once.
pub const CONCURRENCY: u32 = 8;

/// Default of a `run`'s `grace`: from TERM to KILL when its time is over.
pub const GRACE: Duration = Duration::from_secs(2);

/// Bytes that the code of one attempt may tell by `musec info`: the journal keeps them all.
pub const TOLD_BYTES_MAX: u64 = 16 << 20;

/// What a note counts as at least, in bytes: so much its record takes, whatever it tells.
pub const NOTE_BYTES_LEAST: u64 = 64;

/// How long an info is waited for when no command of the worker runs: only what a command has left
/// behind could tell it. Without this limit, a word that is never said would hold up the run.
pub const SILENT_INFO_MAX: Duration = Duration::from_secs(60);
