//! What an attack does to those who have nothing to do with it, and to the coordinator's memory.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use musec_trace::Event;
use musec_trace::journal::{JournalReader, Next};
use serde_json::Value;

use crate::support::number;

/// How far percentiles under attack may lie above those of the quiet half of the same run: by a
/// factor, and so many nanoseconds more. The machine may have two cores, with the attacker, the
/// coordinator, the workers and others on them: scheduling alone moves medians by 10 ms or two and,
/// rarely, a single command by a good part of a second. Attacks that get through move all of them,
/// by seconds or for ever.
const BOUNDS: [(usize, u64, u64); 3] =
    [(50, 3, 25_000_000), (90, 3, 100_000_000), (99, 3, 2_000_000_000)];

/// Bounds of the loop's lag, 99th percentile of the median second and of the worst, in nanoseconds:
/// a second in which the machine itself stood still says nothing of the attack.
const LAG_P99_NS_MAX: [u64; 2] = [250_000_000, 2_000_000_000];

/// Sorted, in nanoseconds.
struct Figures(Vec<u64>);

impl Figures {
    fn of(mut values: Vec<u64>) -> Self {
        assert!(values.len() >= 50, "{} values say nothing", values.len());
        values.sort_unstable();
        Self(values)
    }

    fn at(&self, percent: usize) -> u64 {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
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
        for (what, [quiet, attacked]) in [("trips", &self.trips), ("services", &self.services)] {
            for (percent, factor, more) in BOUNDS {
                let most = quiet.at(percent).saturating_mul(factor).saturating_add(more);
                assert!(attacked.at(percent) <= most, "{percent} % of {what}: {self}");
            }
        }
    }
}

impl fmt::Display for Halves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, [quiet, attacked]) in [("trips", &self.trips), ("services", &self.services)] {
            let us = |of: &Figures| {
                format!("{} / {} / {} µs", of.at(50) / 1000, of.at(90) / 1000, of.at(99) / 1000)
            };
            write!(f, "{what} p50 / p90 / p99: {}, under attack {}; ", us(quiet), us(attacked))?;
        }
        Ok(())
    }
}

/// Asserts that the loop was never late for long, from the samples in the journal.
pub(crate) fn assert_lag_is_small(journal: &Path) {
    let mut lags = Vec::new();
    let mut reader = JournalReader::new(fs::File::open(journal).expect("a journal"));
    while let Next::Record(record) = reader.read_next().expect("a whole journal") {
        if let Event::Sample(sample) = record.event {
            lags.push(sample.lag_p99_ns);
        }
    }
    lags.sort_unstable();
    let figures = [lags[(lags.len() - 1) / 2], *lags.last().expect("samples")];
    println!("lag p99 of the median second and of the worst: {:?} µs", figures.map(|ns| ns / 1000));
    let small = figures.iter().zip(LAG_P99_NS_MAX).all(|(lag, most)| *lag <= most);
    assert!(small, "p99 of the loop's lag by second, ns: {lags:?}");
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
