//! One worker: every attempt, every command, raw stamps and what follows from them.

use std::collections::BTreeMap;

use musec_trace::{CommandId, Outcome, PhaseKind, WorkerId};

use super::estimates::{error, estimates};
use super::show_lanes::lanes;
use super::show_model::{Show, ShowAttempt, ShowCommand, ShowItem, ShowPhase, ShowWait};
use super::{ns, text};
use crate::breakdown::{Account, AttemptAccount};
use crate::fold::{Attempt, Command, ReplyFacts, Trace};

/// All attempts of `worker`; `None` if it had none. `account` must be of the same trace.
#[must_use]
pub fn show(trace: &Trace, account: &Account, worker: WorkerId) -> Option<Show> {
    let launches = trace.workers().get(&worker).map_or(&[][..], |worker| &worker.attempts);
    if launches.is_empty() {
        return not_started(trace, worker);
    }
    let attempts: Vec<ShowAttempt> = launches
        .iter()
        .filter_map(|launch| {
            let account = account.attempts.get(launch)?;
            Some(of_attempt(trace, trace.attempts().get(launch)?, account))
        })
        .collect();
    let last = launches.last().and_then(|launch| trace.attempts().get(launch))?;
    Some(Show {
        schema: 1,
        run: trace.run().map(|run| run.run.to_string()).unwrap_or_default(),
        worker: worker.0,
        wave: trace.wave_name(last.wave),
        attempts,
    })
}

/// A worker that its wave has, and that was not launched yet.
fn not_started(trace: &Trace, worker: WorkerId) -> Option<Show> {
    let (id, _) = trace.waves().iter().find(|(_, wave)| {
        wave.started.is_some()
            && worker.0.checked_sub(wave.first_worker.0).is_some_and(|index| index < wave.workers)
    })?;
    Some(Show {
        schema: 1,
        run: trace.run().map(|run| run.run.to_string()).unwrap_or_default(),
        worker: worker.0,
        wave: trace.wave_name(*id),
        attempts: Vec::new(),
    })
}

fn of_attempt(trace: &Trace, attempt: &Attempt, account: &AttemptAccount) -> ShowAttempt {
    let queues = queues(attempt);
    let estimates = estimates(attempt);
    let commands = attempt.commands.iter().map(|(id, command)| {
        let queue_ns = queues.get(id).copied().unwrap_or(0);
        of_command(trace, account, (*id, command), queue_ns, estimates.get(id).copied())
    });
    let breakdown = &account.breakdown;
    ShowAttempt {
        attempt: attempt.number.0,
        launch: attempt.launch.0,
        outcome: attempt.outcome().map(|outcome| outcome.name()),
        cause: attempt.ended.map(|ended| ended.cause.name()),
        launch_error: attempt.launch_error.clone(),
        host: attempt.hello.as_ref().map(|hello| text(&hello.host)),
        pid: attempt.hello.as_ref().map(|hello| hello.pid),
        engine_id: attempt.engine_id.clone(),
        requested_ns: attempt.requested.ns,
        accepted_ns: attempt.accepted.map(ns),
        tcp_ns: attempt.tcp.map(ns),
        tls_ns: attempt.tls.map(ns),
        hello_ns: attempt.hello_at.map(ns),
        quit_ns: attempt.quit_sent.map(ns),
        end_ns: attempt.ended.map(|ended| ended.end.ns),
        rate_bound_ppm: account.clock.rate().ppm(),
        clock_faults: account.faults.len(),
        life_ns: breakdown.life_ns,
        categories: breakdown.split.categories,
        unaccounted_ns: breakdown.split.unaccounted_ns,
        network_bounds_ns: breakdown.network_bounds_ns,
        fitted_windows: breakdown.fitted_windows,
        path: crate::paths::path_of(trace, attempt),
        lanes: lanes(trace, attempt),
        items: attempt
            .items
            .iter()
            .map(|item| ShowItem {
                at_ns: item.at.ns,
                item: item.item,
                value: item.value_json.clone(),
            })
            .collect(),
        commands: commands.collect(),
        stalls_ns: attempt.stalls.iter().map(|(from, to)| (from.ns, to.ns)).collect(),
        waits: attempt
            .waits
            .iter()
            .map(|wait| ShowWait {
                from_ns: wait.from.ns,
                to_ns: wait.to.map(ns),
                reason: wait.reason.name(),
            })
            .collect(),
    }
}

fn of_command(
    trace: &Trace,
    account: &AttemptAccount,
    (id, command): (CommandId, &Command),
    queue_ns: u64,
    estimate_ns: Option<u64>,
) -> ShowCommand {
    let queued = command.queued.as_ref();
    let reply = command.reply.as_ref();
    let stamps = reply.map(|reply| reply.stamps);
    let bounds = account.clock.command_bounds(id, command);
    let ended = reply.map(Ending::of).unwrap_or_default();
    let usage = reply.and_then(|reply| reply.usage);
    ShowCommand {
        id: id.0,
        lane: command.lane().to_vec(),
        state: command.state().map(|state| trace.state_name(Some(state))),
        visit: queued.map_or(0, |queued| queued.visit),
        command: command.name().to_owned(),
        arguments: queued.map(super::rows::arguments).unwrap_or_default(),
        pipelined: queued.is_some_and(|queued| queued.pipelined),
        background: command.is_background(),
        queued_ns: queued.map(|queued| queued.at.ns),
        sent_ns: command.t0.map(ns),
        replied_ns: reply.map(|reply| reply.t3.ns),
        received_ns: stamps.map(|stamps| stamps.received.ns),
        started_ns: stamps.map(|stamps| stamps.started.ns),
        finished_ns: stamps.map(|stamps| stamps.finished.ns),
        reply_queued_ns: stamps.map(|stamps| stamps.encoded.ns),
        start_bounds_ns: bounds.map(|bounds| (bounds.start.0.ns, bounds.start.1.ns)),
        end_bounds_ns: bounds.map(|bounds| (bounds.end.0.ns, bounds.end.1.ns)),
        network_ns: command.t0.zip(reply).map(|(t0, reply)| {
            i128::from(reply.t3.ns) - i128::from(t0.ns) - i128::from(reply.stamps.at_worker_ns())
        }),
        queue_ns: reply.map(|_| queue_ns),
        overhead_ns: stamps.map(|stamps| stamps.at_worker_ns() - stamps.service_ns() - queue_ns),
        service_ns: stamps.map(|stamps| stamps.service_ns()),
        estimated_service_ns: estimate_ns,
        estimate_error: estimate_ns.and_then(|estimate| error(estimate, command)),
        phases: reply.map(phases).unwrap_or_default(),
        remaining_ms: reply
            .and_then(|reply| reply.remaining_started_ms.zip(reply.remaining_finished_ms)),
        exit: ended.exit,
        signal: ended.signal,
        error: ended.error,
        success: reply.map(|reply| reply.outcome.is_success()),
        bytes: reply.map_or(0, |reply| reply.bytes),
        cpu_user_ns: usage.map(|usage| usage.user_ns),
        cpu_system_ns: usage.map(|usage| usage.system_ns),
        peak_rss_bytes: usage.map(|usage| usage.peak_rss_bytes),
        stdout_bytes: reply.map_or(0, |reply| reply.stdout_bytes),
        stderr_bytes: reply.map_or(0, |reply| reply.stderr_bytes),
    }
}

/// How a command ended, in three columns.
#[derive(Default)]
struct Ending {
    exit: Option<i32>,
    signal: Option<i32>,
    error: Option<String>,
}

impl Ending {
    fn of(reply: &ReplyFacts) -> Self {
        let none = Self::default();
        match &reply.outcome {
            Outcome::Ok => none,
            Outcome::Exited(code) => Self { exit: Some(*code), ..none },
            Outcome::Signalled(signal) => Self { signal: Some(*signal), ..none },
            Outcome::TimedOut { limit_ms } => {
                Self { error: Some(format!("time limit of {limit_ms} ms is over")), ..none }
            }
            Outcome::Failed { text, .. } => Self { error: Some(text.clone()), ..none },
            Outcome::Cancelled => Self { error: Some("cancelled".to_owned()), ..none },
        }
    }
}

fn phases(reply: &ReplyFacts) -> Vec<ShowPhase> {
    let rows = reply.phases.iter().map(|phase| ShowPhase {
        kind: match phase.kind {
            PhaseKind::User => "user",
            PhaseKind::Sleep => "sleep",
            PhaseKind::FirstByte => "first_byte",
            PhaseKind::Transfer => "transfer",
            PhaseKind::Disk => "disk",
            PhaseKind::BackOff => "back_off",
        },
        from_ns: phase.from.ns,
        to_ns: phase.to.ns,
    });
    rows.collect()
}

/// Of each command's `[a,s]`, how long earlier commands of its lane held the server: the measure of
/// `[a,s]` within the union of their `[s,f]`, W. A background command waits for nobody.
pub(super) fn queues(attempt: &Attempt) -> BTreeMap<CommandId, u64> {
    let mut held: BTreeMap<&[u32], BTreeMap<u64, u64>> = BTreeMap::new();
    let mut queues = BTreeMap::new();
    for (id, command) in &attempt.commands {
        let Some(reply) = command.reply.as_ref().filter(|_| !command.is_background()) else {
            continue;
        };
        let stamps = reply.stamps;
        let lane = held.entry(command.lane()).or_default();
        queues.insert(*id, covered(lane, stamps.received.ns, stamps.started.ns));
        unite(lane, stamps.started.ns, stamps.finished.ns);
    }
    queues
}

/// How much of `from`..`to` the disjoint intervals cover.
fn covered(intervals: &BTreeMap<u64, u64>, from: u64, to: u64) -> u64 {
    let touching = intervals.range(..to).rev().take_while(|(_, until)| **until > from);
    touching.map(|(since, until)| (*until).min(to) - (*since).max(from)).sum()
}

/// Adds an interval to disjoint ones.
fn unite(intervals: &mut BTreeMap<u64, u64>, from: u64, to: u64) {
    if from >= to {
        return;
    }
    let (mut start, mut end) = (from, to);
    while let Some((&since, &until)) = intervals.range(..=end).next_back()
        && until >= start
    {
        intervals.remove(&since);
        start = start.min(since);
        end = end.max(until);
    }
    intervals.insert(start, end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_earlier_commands_covered_is_counted_once_each_instant(
            services in prop::collection::vec((0..60_u64, 0..60_u64), 0..12),
            (from, to) in (0..60_u64, 0..60_u64),
        ) {
            let mut intervals = BTreeMap::new();
            for (since, until) in &services {
                unite(&mut intervals, *since, *until);
            }
            let held = |at: &u64| services.iter().any(|(from, to)| from <= at && at < to);
            let instants = u64::try_from((from..to).filter(held).count()).expect("few");
            prop_assert_eq!(covered(&intervals, from, to.max(from)), instants);
        }
    }
}
