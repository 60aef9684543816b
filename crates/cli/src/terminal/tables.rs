//! States, commands and the slowest workers, row by row.

use musec_analysis::report::{CommandReport, SlowWorker, StateReport, Status};
use musec_analysis::{Report, format_ns, format_seconds};

use super::figures::{bytes, maybe_ns, percent};
use super::look::Ink;
use super::page::{Page, clean, counted, short};

/// Columns of a name in the table of slowest workers.
const NAME_COLUMNS: usize = 14;

/// Time by state.
pub(super) fn states(page: &mut Page<'_>, report: &Report) {
    if report.states.is_empty() {
        return;
    }
    page.heading("States", "time of a visit, its overhead and waiting included");
    let rows = report.states.iter().map(|state| (state.wave.as_str(), state_row(state)));
    let rows = by_wave(rows, has_several_waves(report));
    page.rows(&["<state", "visits", "share", "total", "p50", "p90", "p99", "max"], &rows);
}

fn state_row(state: &StateReport) -> Vec<String> {
    vec![
        clean(&state.state),
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
    let shown = || report.commands.iter().filter(|command| !is_own(command));
    page.heading("Commands", "service: start to finish at the worker, by its clock");
    if shown().next().is_none() {
        page.painted(Ink::Faint, "no command of the job was sent");
        return;
    }
    let several = has_several_waves(report);
    let rows = shown().map(|command| (command.wave.as_str(), command_row(command)));
    let rows = by_wave(rows, several);
    let header = ["<command", "count", "failed", "p50", "p90", "p99", "max", "bytes"];
    page.rows(&header, &rows);
    page.gap();
    for command in shown() {
        let pieces = beside(command);
        if !pieces.is_empty() {
            let wave = if several { format!("{} ", clean(&command.wave)) } else { String::new() };
            page.painted_flow(Ink::Faint, &format!("{wave}{}  ", named(command)), &pieces);
        }
    }
}

/// Whether it is one that musec adds to every job, and that did what it should.
fn is_own(command: &CommandReport) -> bool {
    matches!(command.command.as_str(), "quit" | "clean" | "mark")
        && command.failed == 0
        && command.unanswered == 0
}

fn command_row(command: &CommandReport) -> Vec<String> {
    vec![
        named(command),
        command.count.to_string(),
        if command.failed == 0 { "–".to_owned() } else { command.failed.to_string() },
        maybe_ns(command.service_p50_ns),
        maybe_ns(command.service_p90_ns),
        maybe_ns(command.service_p99_ns),
        maybe_ns(command.service_max_ns),
        bytes(command.bytes),
    ]
}

fn named(command: &CommandReport) -> String {
    format!("{} {}", clean(&command.state), clean(&command.command))
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
        None | Some(0) => "by life; all of them".to_owned(),
        Some(more) => {
            let more = counted(u64::try_from(more).unwrap_or(u64::MAX), "attempt");
            format!("by life; {more} with shorter lives not shown")
        }
    };
    page.heading("Slowest workers", &beside);
    let rows = report.slowest_workers.iter().map(|slow| slow_row(slow, report.status));
    let rows: Vec<Vec<String>> = rows.collect();
    let header =
        ["worker", "<wave", "<outcome", "life", "<mostly", "<longest state", "<longest command"];
    page.rows(&header, &rows);
}

fn slow_row(slow: &SlowWorker, status: Status) -> Vec<String> {
    // Nobody saw the end of those that a run without an end left.
    let no_outcome = match status {
        Status::Running => "alive",
        Status::Done | Status::Failed | Status::Interrupted => "not known",
    };
    let mut worker = slow.worker.to_string();
    if slow.attempt > 0 {
        worker.push_str(&format!(", attempt {}", slow.attempt));
    }
    let named_time = |name: &Option<String>, ns: Option<u128>| match (name, ns) {
        (Some(name), Some(ns)) => format!("{} {}", short(name, NAME_COLUMNS), format_ns(ns)),
        _ => "–".to_owned(),
    };
    vec![
        worker,
        short(&slow.wave, NAME_COLUMNS),
        slow.outcome.unwrap_or(no_outcome).to_owned(),
        format_ns(slow.life_ns),
        slow.main_category.to_owned(),
        named_time(&slow.main_state, slow.main_state_ns),
        named_time(&slow.main_command, slow.main_command_ns.map(u128::from)),
    ]
}

fn has_several_waves(report: &Report) -> bool {
    report.waves.len() > 1
}

/// Rows below the name of their wave, if there are several.
fn by_wave<'a>(
    rows: impl Iterator<Item = (&'a str, Vec<String>)>,
    several: bool,
) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut present = None;
    for (wave, mut row) in rows {
        if several && present != Some(wave) {
            present = Some(wave);
            all.push(vec![format!("{}:", clean(wave))]);
        }
        if let Some(name) = row.first_mut().filter(|_| several) {
            name.insert_str(0, "  ");
        }
        all.push(row);
    }
    all
}
