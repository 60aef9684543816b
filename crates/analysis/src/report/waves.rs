//! Waves and workers: how even a wave was, who was last, who lived longest.

use std::collections::BTreeMap;

use musec_trace::{CTime, LaunchId, StateId, WaveId};

use super::model::{
    BreakdownReport, Evenness, LongItem, SLOWEST_WORKERS_MAX, SlowWorker, WaveReport,
};
use super::worker_counts;
use crate::breakdown::{Account, AttemptAccount, Category, Split};
use crate::fold::{Attempt, Trace};
use crate::quantile::{Quantiles, nearest_rank};

/// Waves in order: those that records announced, and those that attempts name.
pub(super) fn waves(trace: &Trace, account: &Account) -> Vec<WaveReport> {
    let mut breakdowns = account.waves();
    for wave in trace.waves().keys() {
        breakdowns.entry(*wave).or_default();
    }
    let mut members: BTreeMap<WaveId, Vec<&Attempt>> = BTreeMap::new();
    for attempt in trace.attempts().values() {
        members.entry(attempt.wave).or_default().push(attempt);
    }
    let rows = breakdowns.iter().map(|(id, breakdown)| {
        let wave = trace.waves().get(id).cloned().unwrap_or_default();
        let members = members.get(id).map_or(&[][..], Vec::as_slice);
        let end = wave.ended.unwrap_or_else(|| trace.last());
        WaveReport {
            wave: trace.wave_name(*id),
            skipped: wave.skipped,
            started_ns: wave.started.map(super::ns),
            ended_ns: wave.ended.map(super::ns),
            span_ns: wave.started.map(|started| end.since(started)),
            workers: worker_counts(trace, Some(*id)),
            attempts: members.len(),
            items: (wave.items > 0).then_some(wave.items),
            breakdown: BreakdownReport::from(breakdown),
            evenness: evenness(members, account),
        }
    });
    rows.collect()
}

/// Over attempts that ended.
fn evenness(members: &[&Attempt], account: &Account) -> Option<Evenness> {
    let mut ends: Vec<(CTime, u32)> =
        members.iter().filter_map(|attempt| Some((attempt.ended?.end, attempt.worker.0))).collect();
    ends.sort_unstable();
    let (last, last_worker) = *ends.last()?;
    let median = nearest_rank(&ends, 50)?.0;
    let before = ends.iter().rev().nth(1);
    let lives = members
        .iter()
        .filter(|attempt| attempt.ended.is_some())
        .filter_map(|attempt| account.attempts.get(&attempt.launch))
        .map(|account| account.breakdown.life_ns);
    let items: Vec<LongItem> = members.iter().flat_map(|attempt| items(attempt)).collect();
    let durations = items.iter().map(|item| u128::from(item.duration_ns)).collect();
    Some(Evenness {
        lives: Quantiles::of(lives.collect())?,
        items: Quantiles::of(durations),
        longest_item: items.into_iter().max_by_key(|item| item.duration_ns),
        last_worker,
        last_end_ns: last.ns,
        last_by_ns: before.map(|(end, _)| last.since(*end)),
        last_after_median_ns: last.since(median),
        idle_at_end_ns: ends.iter().map(|(end, _)| u128::from(last.since(*end))).sum(),
    })
}

/// The items of an attempt with how long each took; one that is still worked on is left out.
fn items(attempt: &Attempt) -> Vec<LongItem> {
    let end = attempt.ended.map(|ended| ended.end);
    let last = attempt.quit_sent.or(end);
    let nexts = attempt.items.iter().skip(1).map(|item| Some(item.at)).chain([last]);
    let timed = attempt.items.iter().zip(nexts).filter_map(|(item, next)| {
        Some(LongItem {
            item: item.item,
            value: item.value_json.clone(),
            worker: attempt.worker.0,
            duration_ns: next?.since(item.at),
        })
    });
    timed.collect()
}

/// The longest lives, longest first; of equal ones the earlier request.
pub(super) fn slowest(trace: &Trace, account: &Account) -> Vec<SlowWorker> {
    let mut all: Vec<(&LaunchId, &AttemptAccount)> = account.attempts.iter().collect();
    all.sort_by_key(|(launch, account)| (std::cmp::Reverse(account.breakdown.life_ns), **launch));
    let rows = all
        .into_iter()
        .take(SLOWEST_WORKERS_MAX)
        .filter_map(|(launch, account)| Some(slow(trace, trace.attempts().get(launch)?, account)));
    rows.collect()
}

/// The category with the most time, of equal ones the first; `unaccounted` if that is more.
fn main_category(split: &Split) -> &'static str {
    let first_largest = |best: (Category, u128), next: (Category, u128)| {
        if next.1 > best.1 { next } else { best }
    };
    let (category, most) = split.categories.iter().fold((Category::User, 0), first_largest);
    if split.unaccounted_ns > most { "unaccounted" } else { category.name() }
}

fn slow(trace: &Trace, attempt: &Attempt, account: &AttemptAccount) -> SlowWorker {
    let mut states: BTreeMap<StateId, u128> = BTreeMap::new();
    for (visit, split) in &account.visits {
        if let Some((state, _)) = visit {
            *states.entry(*state).or_default() += split.total();
        }
    }
    let main = states.into_iter().max_by_key(|(state, ns)| (*ns, std::cmp::Reverse(*state)));
    let end = account.milestones.end;
    let commands = attempt.commands.values().filter_map(|command| {
        let until = command.reply.as_ref().map_or(end, |reply| reply.t3);
        Some((until.since(command.t0?), command.name()))
    });
    let command = commands.max_by_key(|(length, _)| *length);
    let categories = account.breakdown.split.categories;
    SlowWorker {
        worker: attempt.worker.0,
        attempt: attempt.number.0,
        wave: trace.wave_name(attempt.wave),
        outcome: attempt.outcome().map(|outcome| outcome.name()),
        life_ns: account.breakdown.life_ns,
        main_state: main.map(|(state, _)| trace.state_name(Some(state))),
        main_state_ns: main.map(|(_, ns)| ns),
        main_command: command.map(|(_, name)| name.to_owned()),
        main_command_ns: command.map(|(length, _)| length),
        main_category: main_category(&account.breakdown.split),
        categories,
    }
}
