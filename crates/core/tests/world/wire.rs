//! What workers say, in the fewest words.

use std::collections::BTreeMap;

use musec_protocol::{ClockKind, CommandId, Hello, Outcome, Reply, Tail, WTime};

/// A reply whose command took a nanosecond.
pub(crate) fn reply(id: CommandId, outcome: Outcome) -> Reply {
    let [from, to] = [1, 2].map(WTime::from_ns);
    let stdout = match outcome {
        Outcome::Exited(_) => Tail { text: b"hello".to_vec(), total_bytes: 5 },
        _ => Tail::default(),
    };
    let bare = Reply::bare(id, outcome);
    Reply { received: from, started: from, finished: to, encoded: to, stdout, ..bare }
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
