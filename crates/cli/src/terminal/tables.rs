//! States, commands and the slowest workers, row by row.

use musec_analysis::report::{CommandReport, SlowWorker, StateReport};
use musec_analysis::{Report, format_ns, format_seconds};

use super::figures::{bytes, maybe_ns, percent};
use super::look::Ink;
use super::page::{Page, clean, counted};

/// Time by state.
pub(super) fn states(page: &mut Page<'_>, report: &Report) {
    if report.states.is_empty() {
        return;
    }
    page.heading("States", "time of a visit, its overhead and waiting included");
    let several = has_several_waves(report.states.iter().map(|state| state.wave.as_str()));
    let rows: Vec<Vec<String>> =
        report.states.iter().map(|state| state_row(state, several)).collect();
    page.rows(&["state", "visits", "share", "total", "p50", "p90", "p99", "max"], 1, &rows);
}

fn state_row(state: &StateReport, several_waves: bool) -> Vec<String> {
    vec![
        named(&state.wave, &state.state, several_waves),
        state.visits.to_string(),
        percent(state.percent),
        format_seconds(state.total_ns),
        format_ns(state.p50_ns),
        format_ns(state.p90_ns),
        format_ns(state.p99_ns),
        format_ns(state.max_ns),
    ]
}

/// Times of commands at the worker, and what else is known of them.
pub(super) fn commands(page: &mut Page<'_>, report: &Report) {
    let shown: Vec<&CommandReport> = report.commands.iter().collect();
    if shown.is_empty() {
        return;
    }
    page.heading("Commands", "service: start to finish at the worker, by its clock");
    let several = has_several_waves(shown.iter().map(|command| command.wave.as_str()));
    let rows: Vec<Vec<String>> =
        shown.iter().map(|command| command_row(command, several)).collect();
    let header = ["command", "count", "failed", "p50", "p90", "p99", "max", "bytes"];
    page.rows(&header, 1, &rows);
    for command in &shown {
        let pieces = beside(command);
        if !pieces.is_empty() {
            let name = named(&command.wave, &command.state, several);
            let label = format!("  {name} {}  ", clean(&command.command));
            page.painted_flow(Ink::Faint, &label, &pieces);
        }
    }
}

fn command_row(command: &CommandReport, several_waves: bool) -> Vec<String> {
    let state = named(&command.wave, &command.state, several_waves);
    vec![
        format!("{state} {}", clean(&command.command)),
        command.count.to_string(),
        if command.failed == 0 { "–".to_owned() } else { command.failed.to_string() },
        maybe_ns(command.service_p50_ns),
        maybe_ns(command.service_p90_ns),
        maybe_ns(command.service_p99_ns),
        maybe_ns(command.service_max_ns),
        bytes(command.bytes),
    ]
}

/// What is known of some commands only.
fn beside(command: &CommandReport) -> Vec<String> {
    let mut pieces = Vec::new();
    if command.unanswered > 0 {
        pieces.push(format!("{} never replied", command.unanswered));
    }
    if let Some(phases) = &command.phases {
        let all = [
            ("first byte", phases.first_byte_ns),
            ("transfer", phases.transfer_ns),
            ("disk", phases.disk_ns),
            ("back-off", phases.back_off_ns),
        ];
        let there = all.into_iter().filter(|(_, ns)| *ns > 0);
        pieces.extend(there.map(|(name, ns)| format!("{name} {}", format_ns(ns))));
    }
    if let Some(cpu_ns) = command.cpu_ns {
        pieces.push(format!(
            "CPU {} of {}",
            format_seconds(cpu_ns),
            format_seconds(command.service_ns)
        ));
    }
    if let Some(peak) = command.peak_rss_bytes {
        pieces.push(format!("peak memory {}", bytes(peak.into())));
    }
    pieces
}

/// The longest lives.
pub(super) fn slowest(page: &mut Page<'_>, report: &Report) {
    if report.slowest_workers.len() < 2 {
        return;
    }
    let beside = match report.attempts.checked_sub(report.slowest_workers.len()) {
        None | Some(0) => "all of them".to_owned(),
        Some(more) => format!(
            "and {} with shorter lives",
            counted(u64::try_from(more).unwrap_or(u64::MAX), "attempt")
        ),
    };
    page.heading("Slowest workers", &beside);
    let several = has_several_waves(report.waves.iter().map(|wave| wave.wave.as_str()));
    let rows: Vec<Vec<String>> =
        report.slowest_workers.iter().map(|slow| slow_row(slow, several)).collect();
    let header =
        ["worker", "outcome", "mostly", "life", "longest state", "", "longest command", ""];
    page.rows(&header, 3, &rows);
}

fn slow_row(slow: &SlowWorker, several_waves: bool) -> Vec<String> {
    let mut worker = slow.worker.to_string();
    if slow.attempt > 0 {
        worker.push_str(&format!(" attempt {}", slow.attempt));
    }
    let named_time = |name: &Option<String>, ns: Option<u128>| match (name, ns) {
        (Some(name), Some(ns)) => [clean(name), format_ns(ns)],
        _ => ["–".to_owned(), String::new()],
    };
    let [state, state_ns] = named_time(&slow.main_state, slow.main_state_ns);
    let [command, command_ns] =
        named_time(&slow.main_command, slow.main_command_ns.map(u128::from));
    vec![
        named(&slow.wave, &worker, several_waves),
        slow.outcome.unwrap_or("alive").to_owned(),
        slow.main_category.to_owned(),
        format_ns(slow.life_ns),
        state,
        state_ns,
        command,
        command_ns,
    ]
}

fn has_several_waves<'a>(mut waves: impl Iterator<Item = &'a str>) -> bool {
    waves.next().is_some_and(|first| waves.any(|wave| wave != first))
}

fn named(wave: &str, name: &str, several_waves: bool) -> String {
    if several_waves { format!("{}/{}", clean(wave), clean(name)) } else { clean(name) }
}
