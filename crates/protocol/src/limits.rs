//! Every limit of the conversation, with its reason.

use std::time::Duration;

/// Longest frame, in bytes: holds two output tails, or a command with a large environment, and
/// bounds what one peer can make the other allocate.
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// From accepted TCP connection to a decoded hello: a stranger may not hold a place for longer.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest hello, in bytes: some names and facts are a few kilobytes. Until it has come a peer may
/// make the coordinator hold no more, and may do so on many connections.
pub const HELLO_BYTES_MAX: usize = 64 << 10;

/// Connections that have not yet proved who they are; for each further one the oldest has to go, so
/// that strangers cannot use up descriptors or memory.
pub const UNAUTHENTICATED_MAX: usize = 1024;

/// Last bytes kept of each output stream of a command: enough for a stack trace, and two of them
/// fit in a frame.
pub const OUTPUT_TAIL_BYTES_MAX: usize = 64 << 10;

/// Bytes of a failed command's output that its failure repeats: what fits on a screen.
pub const LAST_OUTPUT_BYTES_MAX: usize = 2048;

/// Interval of heartbeats. Each is an exchange that narrows the clock's bounds (time.md §1 asks for
/// at least one a second while connected).
pub const HEARTBEAT: Duration = Duration::from_secs(1);

/// Missed heartbeats after which a connected worker is reported as frozen.
pub const FROZEN_AFTER: Duration = Duration::from_millis(3_500);

/// Gaps above this in which a worker did not run are stalls, which it reports: a loaded machine may
/// miss a tick or two of its watch without one.
pub const STALL_AFTER: Duration = Duration::from_millis(300);

/// Stalls that a worker may report beyond those for which there was time since its hello: it has
/// run for a while before, and clocks differ. More are no reports but a flood.
pub const STALLS_SPARE: u64 = 64;

/// Without a sign of the coordinator for this long, a worker kills its processes and ends; a
/// coordinator that finds a connection's data unacknowledged for this long declares it lost.
pub const SILENCE_MAX: Duration = Duration::from_secs(9);

/// Phases of one reply; more come only from a peer at fault.
pub const PHASES_MAX: usize = 4096;

/// Longest text of an object in a reply (key, etag or version), in bytes: the longest path of a
/// file, each of its bytes written as three characters, and room to spare.
pub const OBJECT_TEXT_BYTES_MAX: usize = 16 << 10;

/// Objects of one reply.
pub const OBJECTS_MAX: usize = 65_536;

/// Depth of lanes within lanes.
pub const LANE_DEPTH_MAX: usize = 16;

/// Facts of an instance in a hello, and the bytes of each.
pub const FACTS_MAX: usize = 64;

/// Longest text of an error that a worker sends, in bytes; the rest is cut.
pub const ERROR_TEXT_BYTES_MAX: usize = 4096;

/// Longest note of user code, in bytes: a datagram of it is taken whole or not at all.
pub const NOTE_BYTES_MAX: usize = 8 << 10;

/// Longest key of an info, in bytes.
pub const INFO_KEY_BYTES_MAX: usize = 256;

/// Longest glob, in bytes: as long as a path may be. The matcher of one that is much longer cannot
/// be made.
pub const GLOB_BYTES_MAX: usize = 4096;
