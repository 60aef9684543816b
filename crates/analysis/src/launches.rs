//! How the workers of a run came, and how long their commands took there and back.
//!
//! In: a fold. Out: durations on the coordinator's clock, and one on the workers'; no clock is
//! subtracted from another. Absent: where the time between went, which is the account's.

use musec_trace::CTime;
use serde::Serialize;

use crate::{Quantiles, Trace, nearest_rank};

/// Shares of the workers at which [`Launches::curve`] tells how far the run was, in percent.
const SHARES: [usize; 12] = [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99, 100];

/// How the workers came. Attempts that never said hello are not in it.
#[derive(Clone, Debug, Serialize)]
pub struct Launches {
    /// Attempts that said hello.
    pub connected: usize,
    /// From the request to the launcher, before a process is made, to the coordinator's having read
    /// the hello, C. It bounds from above what lies between the worker's exec and its hello.
    pub request_to_hello: Quantiles,
    /// From the worker's first own instruction to its hello's being encoded, W. It bounds the same
    /// from below.
    pub start_to_hello: Quantiles,
    /// How it went on, for growing shares of the workers.
    pub curve: Vec<Share>,
}

/// When so many of the workers had come so far, in nanoseconds since the first request, C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// How many, in percent of all.
    pub percent: usize,
    /// They were requested.
    pub requested_ns: u64,
    /// They had said hello.
    pub hello_ns: u64,
    /// They had ended.
    pub ended_ns: u64,
}

impl Launches {
    /// Of all attempts of a run; `None` if none said hello.
    #[must_use]
    pub fn of(trace: &Trace) -> Option<Self> {
        let first = trace.attempts().values().map(|attempt| attempt.requested).min()?;
        let since = |at: CTime| at.since(first);
        let (mut requested, mut hellos, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        let (mut taken, mut own) = (Vec::new(), Vec::new());
        for attempt in trace.attempts().values() {
            let (Some(at), Some(hello)) = (attempt.hello_at, &attempt.hello) else { continue };
            requested.push(since(attempt.requested));
            hellos.push(since(at));
            ended.push(since(attempt.end_or(trace.last())));
            taken.push(u128::from(at.since(attempt.requested)));
            own.push(u128::from(hello.encoded.ns));
        }
        for times in [&mut requested, &mut hellos, &mut ended] {
            times.sort_unstable();
        }
        let at = |times: &[u64], percent| nearest_rank(times, percent).unwrap_or_default();
        let curve = SHARES.map(|percent| Share {
            percent,
            requested_ns: at(&requested, percent),
            hello_ns: at(&hellos, percent),
            ended_ns: at(&ended, percent),
        });
        Some(Self {
            connected: taken.len(),
            request_to_hello: Quantiles::of(taken)?,
            start_to_hello: Quantiles::of(own)?,
            curve: curve.to_vec(),
        })
    }
}

/// From sending a command to having read its reply (t3 − t0, C), for all commands of this name that
/// went well, of all these runs: either those that a lane waits for, or background ones. `None` if
/// there are none.
#[must_use]
pub fn round_trips<'a>(
    traces: impl IntoIterator<Item = &'a Trace>,
    name: &str,
    is_background: bool,
) -> Option<Quantiles> {
    let attempts = traces.into_iter().flat_map(|trace| trace.attempts().values());
    let commands = attempts.flat_map(|attempt| attempt.commands.values());
    let named = commands
        .filter(|command| command.name() == name && command.is_background() == is_background);
    let trips = named.filter_map(|command| {
        let reply = command.reply.as_ref().filter(|reply| reply.outcome.is_success())?;
        Some(u128::from(reply.t3.since(command.t0?)))
    });
    Quantiles::of(trips.collect())
}
