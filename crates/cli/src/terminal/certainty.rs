//! How sure the figures are, how the coordinator did, and what is not known.

use musec_analysis::report::{CoordinatorReport, Report, Status};
use musec_analysis::{Category, format_ns, format_seconds};

use super::figures::{bytes, relative};
use super::look::Ink;
use super::page::{Page, clean, counted};

/// Above this share of a figure that is shown, in percent, its uncertainty is said aloud.
const LOUD_PERCENT: f64 = 5.0;

/// A category below this share of the time, in percent, is not worth an alarm however unsure it is.
const MATTERS_PERCENT: f64 = 0.1;

/// Stalls that are named.
const STALLS_MAX: usize = 5;

pub(super) fn write(page: &mut Page<'_>, report: &Report) {
    page.heading("How sure this is", "");
    clocks(page, report);
    loud(page, report);
    view(page, report);
    faults(page, report);
    stalls(page, report);
    coordinator(page, report.coordinator.as_ref());
    unknown(page, report);
}

fn clocks(page: &mut Page<'_>, report: &Report) {
    let mut pieces = Vec::new();
    match &report.position_uncertainty_ns {
        Some(width) => {
            pieces.push(format!("commands placed within {} (p50)", format_ns(width.p50)));
            pieces.push(format!("{} (p99)", format_ns(width.p99)));
            pieces.push(format!("{} (max)", format_ns(width.max)));
            let share = report.position_uncertainty_percent;
            pieces
                .extend(share.map(|share| {
                    format!("p50 is {} of a median command", relative(share / 100.0))
                }));
        }
        None => pieces.push("no command was placed in time: none has replied".to_owned()),
    }
    pieces.push(match report.rate_bound_ppm {
        0 => "workers share the coordinator's clock".to_owned(),
        ppm => format!("clock rates within {ppm} ppm"),
    });
    pieces.push(counted(u64::try_from(report.clock_faults).unwrap_or(u64::MAX), "clock fault"));
    pieces.push(format!("{} fitted", counted(report.breakdown.fitted_windows, "window")));
    page.flow("clocks       ", &pieces);
}

/// What is less sure than the figures that are shown make believe.
fn loud(page: &mut Page<'_>, report: &Report) {
    let label = "ATTENTION    ";
    let is_loud = |percent: &f64| *percent > LOUD_PERCENT;
    let network = report.breakdown.network_plus_minus_percent;
    let matters = report.breakdown.percent_of(Category::Network) >= MATTERS_PERCENT;
    if matters && network.is_some_and(|percent| is_loud(&percent)) {
        let (least, most) = report.breakdown.network_bounds_ns;
        let text = format!(
            "clocks prove no more than that `network` is between {} and {}; what it is less or \
             more, the busy categories are more or less",
            format_ns(least),
            format_ns(most)
        );
        page.sentence(Some(Ink::Alert), label, &text);
    }
    let unaccounted = report.breakdown.rollup_percent.get("unaccounted").copied();
    if let Some(percent) = unaccounted.filter(is_loud) {
        let why = match report.status {
            Status::Running => "commands have not replied yet",
            Status::Done | Status::Failed | Status::Interrupted => "see the faults below",
        };
        let text = format!("{percent:.0} % of the time is unaccounted: {why}");
        page.sentence(Some(Ink::Alert), label, &text);
    }
}

/// By how much one would have been wrong without clocks in workers.
fn view(page: &mut Page<'_>, report: &Report) {
    let errors = report.coordinator_view_error.iter();
    let mut pieces: Vec<String> = errors
        .map(|(category, error)| {
            format!("{category} by {} (p50), {} (p99)", relative(error.p50), relative(error.p99))
        })
        .collect();
    if pieces.is_empty() {
        pieces.push("not known: no run, get or put has replied".to_owned());
    }
    pieces.insert(0, "had only the coordinator a clock, commands would look too long".to_owned());
    page.flow("without them ", &pieces);
}

fn faults(page: &mut Page<'_>, report: &Report) {
    for fault in report.faults.iter().take(STALLS_MAX) {
        let who = match (fault.worker, fault.attempt) {
            (Some(worker), Some(attempt)) => format!("worker {worker}, attempt {attempt}"),
            _ => "the coordinator".to_owned(),
        };
        let at = format_ns(fault.at_ns.into());
        page.painted(Ink::Alert, &format!("fault        {who}: {} at {at}", fault.kind));
    }
}

fn stalls(page: &mut Page<'_>, report: &Report) {
    if report.stalls.is_empty() {
        return;
    }
    let count = u64::try_from(report.stalls.len()).unwrap_or(u64::MAX);
    let mut workers: Vec<u32> = report.stalls.iter().map(|stall| stall.worker).collect();
    workers.sort_unstable();
    workers.dedup();
    let workers = super::figures::numbers(&workers, STALLS_MAX);
    let text = format!(
        "{} of workers {workers}: they did not run for over 0.3 s; what was beside a program of \
         theirs stays `user`",
        counted(count, "stall")
    );
    page.sentence(Some(Ink::Alert), "stalls       ", &text);
}

fn coordinator(page: &mut Page<'_>, of: Option<&CoordinatorReport>) {
    let label = "coordinator  ";
    let Some(of) = of else {
        page.flow(label, &["not known: no sample was recorded"]);
        return;
    };
    let waits = if of.journal_waits == 0 {
        "never waited for the journal".to_owned()
    } else {
        format!(
            "waited {} for the journal, {} in all",
            counted(of.journal_waits, "time"),
            format_ns(of.journal_wait_ns.into())
        )
    };
    let pieces = [
        format!("CPU {}", format_seconds(of.cpu_ns.into())),
        format!("lag {} (p99 of the worst second)", format_ns(of.loop_lag_p99_ns.into())),
        format!("{} max", format_ns(of.loop_lag_max_ns.into())),
        waits,
        format!("{} in", bytes(of.bytes_in.into())),
        format!("{} out", bytes(of.bytes_out.into())),
    ];
    page.flow(label, &pieces);
    if !of.refused.is_empty() {
        let reasons = of.refused.iter().map(|(why, count)| format!("{count} {}", clean(why)));
        page.painted_flow(Ink::Alert, "refused      ", &reasons.collect::<Vec<_>>());
    }
}

fn unknown(page: &mut Page<'_>, report: &Report) {
    let mut pieces = vec!["what your programs do inside `user`".to_owned()];
    if report.stray_records > 0 {
        let count = counted(report.stray_records, "record");
        pieces.push(format!("{count} of attempts that were never asked for, left out"));
    }
    pieces.push("critical path and outliers: in a later version".to_owned());
    page.painted_flow(Ink::Faint, "not known    ", &pieces);
}
