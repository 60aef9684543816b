//! What a worker says of itself in its hello. Read at once, from a few small files; no scanning.

use std::collections::BTreeMap;
use std::fs;

use musec_protocol::{Hello, WTime};

use crate::clock::{WClock, clock_gap_ns, wall_ns};

/// The hello of this process, all but its stamps.
pub(crate) fn hello() -> Hello {
    let name = rustix::system::uname();
    Hello {
        host: name.nodename().to_bytes().to_vec(),
        boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|text| text.trim().to_owned())
            .unwrap_or_default(),
        time_namespace: fs::read_link("/proc/self/ns/time")
            .map(|link| link.to_string_lossy().into_owned())
            .unwrap_or_default(),
        pid: std::process::id(),
        clock: WClock::KIND,
        encoded: WTime::default(),
        clock_gap_ns: 0,
        wall_ns: 0,
        cpus: std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory_bytes(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        facts: BTreeMap::new(),
    }
}

/// Stamps a hello, just before it is encoded.
pub(crate) fn stamp(hello: &mut Hello, clock: WClock) {
    hello.clock_gap_ns = clock_gap_ns();
    hello.wall_ns = wall_ns();
    hello.encoded = clock.now();
}

#[cfg(target_os = "linux")]
fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // The field's width differs between platforms.
    u64::from(info.mem_unit).saturating_mul(info.totalram)
}

#[cfg(not(target_os = "linux"))]
fn memory_bytes() -> u64 {
    0
}
