//! What an attack does to those who have nothing to do with it, and to the coordinator's memory.

use std::fmt;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::support::number;

/// How far the median and the 99th percentile under attack may lie above those of the quiet half of
/// the same run: a factor, and so many nanoseconds. A machine of two cores has the attacker, the
/// coordinator and the workers on it, and perhaps others: scheduling alone moves percentiles by
/// tens of milliseconds. Attacks that get through move them by seconds, or for ever.
const P50: (u64, u64) = (3, 10_000_000);
const P99: (u64, u64) = (3, 150_000_000);

/// Bound of the loop's lag, 99th percentile of the worst second, in nanoseconds.
const LAG_P99_NS_MAX: u64 = 150_000_000;

/// Median and 99th percentile, in nanoseconds.
#[derive(Clone, Copy)]
struct Figures {
    p50: u64,
    p99: u64,
}

impl Figures {
    fn of(mut values: Vec<u64>) -> Self {
        assert!(values.len() >= 50, "{} values say nothing", values.len());
        values.sort_unstable();
        let at = |percent: usize| values[(values.len() * percent / 100).min(values.len() - 1)];
        Self { p50: at(50), p99: at(99) }
    }
}

/// Round trips of echoes and services of processes, each before and under the attack.
pub(crate) struct Halves {
    trips: [Figures; 2],
    services: [Figures; 2],
}

impl Halves {
    /// From `musec show` of each honest worker.
    pub(crate) fn of(shows: &[Value]) -> Self {
        let of = |command: &str, from: &str, to: &str| {
            ["quiet", "attacked"].map(|state| {
                let commands = shows.iter().flat_map(|show| {
                    let attempts = show["attempts"].as_array().expect("attempts").iter();
                    attempts.flat_map(|attempt| attempt["commands"].as_array().expect("commands"))
                });
                let those = commands.filter(|of| of["state"] == state && of["command"] == command);
                Figures::of(those.map(|of| number(&of[to]) - number(&of[from])).collect())
            })
        };
        Self {
            trips: of("echo", "sent_ns", "replied_ns"),
            services: of("run", "started_ns", "finished_ns"),
        }
    }

    pub(crate) fn assert_unmoved(&self) {
        for (what, [quiet, attacked]) in [("trips", self.trips), ("services", self.services)] {
            let within = |before: u64, after: u64, (factor, more): (u64, u64)| {
                after <= before.saturating_mul(factor).saturating_add(more)
            };
            assert!(within(quiet.p50, attacked.p50, P50), "median of {what}: {self}");
            assert!(within(quiet.p99, attacked.p99, P99), "99th percentile of {what}: {self}");
        }
    }
}

impl fmt::Display for Halves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, halves) in [("trips", self.trips), ("services", self.services)] {
            let [quiet, attacked] =
                halves.map(|of| format!("{} / {} µs", of.p50 / 1000, of.p99 / 1000));
            write!(f, "{what} p50 / p99: {quiet}, under attack {attacked}; ")?;
        }
        Ok(())
    }
}

pub(crate) fn assert_lag_is_small(report: &Value) {
    let lag = number(&report["coordinator"]["loop_lag_p99_ns"]);
    println!("lag p99 of the worst second: {} µs", lag / 1000);
    assert!(lag <= LAG_P99_NS_MAX, "loop lag p99 {lag} ns: {}", report["coordinator"]);
}

/// Watches a process's resident memory.
pub(crate) struct Rss {
    from: u64,
    stop: Arc<AtomicBool>,
    highest: JoinHandle<u64>,
}

impl Rss {
    pub(crate) fn watch(pid: u32) -> Self {
        let from = rss_bytes(pid).expect("the coordinator is alive");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let highest = std::thread::spawn(move || {
            let mut highest = from;
            while !stopped.load(Ordering::Relaxed) {
                highest = highest.max(rss_bytes(pid).unwrap_or(0));
                std::thread::sleep(Duration::from_millis(5));
            }
            highest
        });
        Self { from, stop, highest }
    }

    /// How far it was above where it began, at most.
    pub(crate) fn grown_bytes(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.highest.join().expect("watched").saturating_sub(self.from)
    }
}

fn rss_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}
