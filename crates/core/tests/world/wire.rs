//! What workers say, in the fewest words.

use std::collections::BTreeMap;

use musec_protocol::{ClockKind, CommandId, Hello, Outcome, Reply, Tail, WTime};

/// A reply whose command took a nanosecond.
pub(crate) fn reply(id: CommandId, outcome: Outcome) -> Reply {
    Reply {
        id,
        received: WTime::from_ns(1),
        started: WTime::from_ns(1),
        finished: WTime::from_ns(2),
        encoded: WTime::from_ns(2),
        clock_gap_ns: 0,
        remaining_started_ms: None,
        remaining_finished_ms: None,
        phases: Vec::new(),
        usage: None,
        stdout: match outcome {
            Outcome::Exited(_) => Tail { text: b"hello".to_vec(), total_bytes: 5 },
            _ => Tail::default(),
        },
        stderr: Tail::default(),
        outcome,
        bytes: 0,
        objects: Vec::new(),
    }
}

pub(crate) fn hello() -> Hello {
    Hello {
        host: b"host".to_vec(),
        boot_id: String::new(),
        time_namespace: String::new(),
        pid: 1,
        clock: ClockKind::MonotonicRaw,
        encoded: WTime::from_ns(1),
        clock_gap_ns: 0,
        wall_ns: 0,
        cpus: 1,
        memory_bytes: 1,
        version: String::new(),
        facts: BTreeMap::new(),
    }
}
