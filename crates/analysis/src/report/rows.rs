//! The report's tables: states, commands, failures, prints, stalls, errors of a coordinator's view.

use std::collections::BTreeMap;

use musec_trace::{PhaseKind, StateId, WaveId};

use super::estimates::quantiles;
use super::model::{
    CommandReport, ErrorQuantiles, FailureReport, PrintReport, StallReport, StateReport,
    StorePhases,
};
use super::{share, text};
use crate::breakdown::{Account, Split};
use crate::fold::{Attempt, Command, ReplyFacts, Trace};
use crate::quantile::Quantiles;

/// Time by wave and state. A visit without any time counts as one of 0 ns.
pub(super) fn states(trace: &Trace, account: &Account, life_ns: u128) -> Vec<StateReport> {
    let mut visits: BTreeMap<(WaveId, Option<StateId>), (Split, Vec<u128>)> = BTreeMap::new();
    for (launch, attempt) in trace.attempts() {
        let Some(account) = account.attempts.get(launch) else {
            continue;
        };
        let mut seen: BTreeMap<StateId, u32> = BTreeMap::new();
        for (visit, split) in &account.visits {
            let state = visit.map(|(state, _)| state);
            let (sum, times) = visits.entry((attempt.wave, state)).or_default();
            sum.add_all(split);
            times.push(split.total());
            if let Some(state) = state {
                *seen.entry(state).or_default() += 1;
            }
        }
        for (state, entered) in &attempt.entered {
            let missing = entered.saturating_sub(seen.get(state).copied().unwrap_or(0));
            let (_, times) = visits.entry((attempt.wave, Some(*state))).or_default();
            times.extend((0..missing).map(|_| 0));
        }
    }
    let rows = visits.into_iter().filter_map(|((wave, state), (split, times))| {
        let times = Quantiles::of(times)?;
        Some(StateReport {
            wave: trace.wave_name(wave),
            state: trace.state_name(state),
            visits: u64::try_from(times.count).unwrap_or(u64::MAX),
            total_ns: split.total(),
            p50_ns: times.p50_ns,
            p90_ns: times.p90_ns,
            p99_ns: times.p99_ns,
            max_ns: times.max_ns,
            categories: split.categories,
            unaccounted_ns: split.unaccounted_ns,
            percent: share(split.total(), life_ns),
        })
    });
    rows.collect()
}

/// What is summed over commands of one wave, state and name.
#[derive(Default)]
struct Sums {
    count: u64,
    failed: u64,
    unanswered: u64,
    services: Vec<u128>,
    network_ns: u128,
    queue_ns: u128,
    overhead_ns: u128,
    phases: Option<StorePhases>,
    cpu_ns: Option<u128>,
    peak_rss_bytes: Option<u64>,
    bytes: u128,
}

/// Commands by wave, state and name; those never sent are not counted.
pub(super) fn commands(trace: &Trace) -> Vec<CommandReport> {
    let mut rows: BTreeMap<(WaveId, Option<StateId>, &str), Sums> = BTreeMap::new();
    for attempt in trace.attempts().values() {
        let queues = super::shows::queues(attempt);
        for (id, command) in &attempt.commands {
            if command.t0.is_none() {
                continue;
            }
            let key = (attempt.wave, command.state(), command.name());
            let queue_ns = queues.get(id).copied().unwrap_or(0);
            rows.entry(key).or_default().add(command, queue_ns);
        }
    }
    rows.into_iter()
        .map(|((wave, state, name), sums)| {
            let service_ns = sums.services.iter().sum();
            let services = Quantiles::of(sums.services);
            CommandReport {
                wave: trace.wave_name(wave),
                state: trace.state_name(state),
                command: name.to_owned(),
                count: sums.count,
                failed: sums.failed,
                unanswered: sums.unanswered,
                service_p50_ns: services.map(|services| services.p50_ns),
                service_p90_ns: services.map(|services| services.p90_ns),
                service_p99_ns: services.map(|services| services.p99_ns),
                service_max_ns: services.map(|services| services.max_ns),
                network_ns: sums.network_ns,
                queue_ns: sums.queue_ns,
                overhead_ns: sums.overhead_ns,
                service_ns,
                phases: sums.phases,
                cpu_ns: sums.cpu_ns,
                peak_rss_bytes: sums.peak_rss_bytes,
                bytes: sums.bytes,
            }
        })
        .collect()
}

impl Sums {
    fn add(&mut self, command: &Command, queue_ns: u64) {
        self.count += 1;
        let (Some(t0), Some(reply)) = (command.t0, command.reply.as_ref()) else {
            self.unanswered += 1;
            return;
        };
        self.failed += u64::from(!reply.outcome.is_success());
        let stamps = reply.stamps;
        let outside = reply.t3.since(t0).saturating_sub(stamps.at_worker_ns());
        let at_worker = u128::from(stamps.at_worker_ns());
        self.services.push(u128::from(stamps.service_ns()));
        self.network_ns += u128::from(outside);
        self.queue_ns += u128::from(queue_ns);
        self.overhead_ns += at_worker - u128::from(stamps.service_ns()) - u128::from(queue_ns);
        self.bytes += u128::from(reply.bytes);
        self.add_phases(reply);
        if let Some(usage) = reply.usage {
            let cpu = u128::from(usage.user_ns) + u128::from(usage.system_ns);
            *self.cpu_ns.get_or_insert(0) += cpu;
            self.peak_rss_bytes = self.peak_rss_bytes.max(Some(usage.peak_rss_bytes));
        }
    }

    fn add_phases(&mut self, reply: &ReplyFacts) {
        for phase in &reply.phases {
            let length = u128::from(phase.to.since(phase.from));
            let phases = self.phases.unwrap_or_default();
            self.phases = match phase.kind {
                PhaseKind::FirstByte => {
                    Some(StorePhases { first_byte_ns: phases.first_byte_ns + length, ..phases })
                }
                PhaseKind::Transfer => {
                    Some(StorePhases { transfer_ns: phases.transfer_ns + length, ..phases })
                }
                PhaseKind::Disk => Some(StorePhases { disk_ns: phases.disk_ns + length, ..phases }),
                PhaseKind::BackOff => {
                    Some(StorePhases { back_off_ns: phases.back_off_ns + length, ..phases })
                }
                PhaseKind::User | PhaseKind::Sleep => self.phases,
            };
        }
    }
}

/// (t3 − t0 − d)/d with d = f − s, by the category of the command's service; commands with d = 0
/// have none.
pub(super) fn view_errors(trace: &Trace) -> BTreeMap<&'static str, ErrorQuantiles> {
    let mut errors: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for command in trace.attempts().values().flat_map(|attempt| attempt.commands.values()) {
        let category = match command.name() {
            "run" => "user",
            "get" | "put" => "storage",
            _ => continue,
        };
        if let Some(error) = view_error(command) {
            errors.entry(category).or_default().push(error);
        }
    }
    quantiles(errors)
}

#[allow(clippy::cast_precision_loss, reason = "a ratio for display")]
fn view_error(command: &Command) -> Option<f64> {
    let (t0, reply) = (command.t0?, command.reply.as_ref()?);
    let service = i128::from(reply.stamps.service_ns());
    let outside = i128::from(reply.t3.since(t0)) - service;
    (service > 0).then(|| outside as f64 / service as f64)
}

/// Failures in the order of their records; those of attempts, and waves that could not start.
pub(super) fn failures(trace: &Trace) -> Vec<FailureReport> {
    let mut rows: Vec<_> = attempt_failures(trace).chain(wave_failures(trace)).collect();
    rows.sort_by_key(|failure| failure.at_ns);
    rows
}

/// Waves that did not start, but for those of a run that was told to end before.
fn wave_failures(trace: &Trace) -> impl Iterator<Item = FailureReport> + '_ {
    let cancelled = trace.cancelled().map(|(at, _)| at);
    trace.waves().iter().filter_map(move |(id, wave)| {
        let (at, reason) = (wave.skipped_at?, wave.skipped.as_ref()?);
        cancelled.is_none_or(|cancelled| at < cancelled).then(|| FailureReport {
            worker: None,
            attempt: None,
            wave: Some(trace.wave_name(*id)),
            state: None,
            command: "wave".to_owned(),
            arguments: Vec::new(),
            error: reason.clone(),
            output: String::new(),
            output_bytes: None,
            at_ns: at.ns,
        })
    })
}

fn attempt_failures(trace: &Trace) -> impl Iterator<Item = FailureReport> + '_ {
    trace.failures().iter().map(|(at, failure)| {
        let attempt = trace.attempts().get(&failure.launch);
        let command = failure.command.and_then(|id| attempt?.commands.get(&id));
        let reply = command.and_then(|command| command.reply.as_ref());
        let command = command.and_then(|command| command.queued.as_ref());
        FailureReport {
            worker: attempt.map(|attempt| attempt.worker.0),
            attempt: attempt.map(|attempt| attempt.number.0),
            wave: attempt.map(|attempt| trace.wave_name(attempt.wave)),
            state: failure.state.map(|state| trace.state_name(Some(state))),
            command: failure.name.clone(),
            arguments: command.map(arguments).unwrap_or_default(),
            error: failure.error.clone(),
            output: text(&failure.output),
            output_bytes: reply.map(|reply| reply.stdout_bytes.saturating_add(reply.stderr_bytes)),
            at_ns: at.ns,
        }
    })
}

/// Arguments as text.
pub(super) fn arguments(queued: &crate::fold::QueuedFacts) -> Vec<String> {
    queued.arguments.iter().map(|argument| text(argument)).collect()
}

/// The job's answer, in order of workers, of each in order of time.
pub(super) fn prints(trace: &Trace) -> Vec<PrintReport> {
    let rows = trace.prints().into_iter().map(|print| PrintReport {
        worker: trace.attempts().get(&print.launch).map(|attempt| attempt.worker.0),
        at_ns: print.at.ns,
        text: text(&print.text),
        cut_bytes: print.cut_bytes,
    });
    rows.collect()
}

/// All stalls, in order of attempts.
pub(super) fn stalls(trace: &Trace) -> Vec<StallReport> {
    let of = |attempt: &Attempt| {
        let user = user_phases(attempt);
        let rows: Vec<StallReport> = attempt
            .stalls
            .iter()
            .map(|(from, to)| StallReport {
                worker: attempt.worker.0,
                attempt: attempt.number.0,
                from_ns: from.ns,
                to_ns: to.ns,
                beside_user_ns: overlap(&user, from.ns, to.ns),
            })
            .collect();
        rows
    };
    trace.attempts().values().flat_map(of).collect()
}

/// When users' processes ran, W, merged and in order.
fn user_phases(attempt: &Attempt) -> Vec<(u64, u64)> {
    if attempt.stalls.is_empty() {
        return Vec::new();
    }
    let replies = attempt.commands.values().filter(|command| command.name() == "run");
    let mut all: Vec<(u64, u64)> = replies
        .filter_map(|command| command.reply.as_ref())
        .flat_map(|reply| &reply.phases)
        .filter(|phase| phase.kind == PhaseKind::User && phase.from < phase.to)
        .map(|phase| (phase.from.ns, phase.to.ns))
        .collect();
    all.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some((_, until)) if from <= *until => *until = to.max(*until),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// How much of `from`..`to` the intervals cover.
fn overlap(intervals: &[(u64, u64)], from: u64, to: u64) -> u64 {
    let first = intervals.partition_point(|(_, until)| *until <= from);
    let inside = intervals.iter().skip(first).take_while(|(since, _)| *since < to);
    inside.map(|(since, until)| (*until).min(to).saturating_sub((*since).max(from))).sum()
}
