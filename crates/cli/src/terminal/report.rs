//! The report: what a run was, where its time went, what took long, what went wrong, and how sure
//! all that is.

use musec_analysis::report::Status;
use musec_analysis::{Report, format_ns};

use super::figures::{short_id, utc};
use super::look::{Ink, Look};
use super::page::{Page, clean, counted};
use super::{certainty, failures, tables, waves, whole};

/// What is said of a journal's unfinished end.
pub(crate) fn torn(bytes: u64) -> String {
    format!("the journal ends within a record: its last {} are left out", counted(bytes, "byte"))
}

/// The whole report. `torn_bytes` are those at the journal's end that make no record.
pub(crate) fn render(report: &Report, torn_bytes: u64, look: &Look) -> String {
    let mut page = Page::new(look);
    header(&mut page, report);
    unfinished(&mut page, report, torn_bytes);
    whole::write(&mut page, report);
    waves::write(&mut page, report);
    tables::states(&mut page, report);
    tables::commands(&mut page, report);
    tables::slowest(&mut page, report);
    failures::write(&mut page, report);
    certainty::write(&mut page, report);
    answer(&mut page, report);
    page.into_text()
}

fn header(page: &mut Page<'_>, report: &Report) {
    let look = *page.look;
    let (ink, mark, verb) = match report.status {
        Status::Running => (Ink::Lively, '▶', "running for"),
        Status::Done => (Ink::Good, '✓', "done in"),
        Status::Failed => (Ink::Bad, '✗', "failed after"),
        Status::Interrupted => (Ink::Alert, '■', "interrupted after"),
    };
    let status =
        look.paint(ink, &format!("{mark} {verb} {}", format_ns(report.makespan_ns.into())));
    let job = look.paint(Ink::Strong, &clean(&report.job));
    let run = look.paint(Ink::Faint, &format!("run {}", short_id(&report.run)));
    page.flow("", &[format!("musec  {job}  {status}"), run]);
    let workers = &report.workers;
    let of = [
        (workers.failed, "failed"),
        (workers.lost, "lost"),
        (workers.never_connected, "never connected"),
    ];
    let mut pieces = vec![format!("{} of {} done", workers.done, counted(workers.total, "worker"))];
    let troubles = of.into_iter().filter(|(count, _)| *count > 0);
    pieces.extend(troubles.map(|(count, what)| look.paint(Ink::Bad, &format!("{count} {what}"))));
    let attempts = u64::try_from(report.attempts).unwrap_or(u64::MAX);
    if attempts != workers.total {
        pieces.push(counted(attempts, "attempt"));
    }
    pieces.push(format!("launcher {}", clean(&report.launcher)));
    pieces.push(format!("started {}", utc(report.started_wall_ns)));
    page.flow("", &pieces);
}

/// What must be known before the figures of a run without an end are read.
fn unfinished(page: &mut Page<'_>, report: &Report, torn_bytes: u64) {
    match (report.status, &report.cancelled) {
        (Status::Running, _) => page.sentence(
            Some(Ink::Lively),
            "",
            "The run goes on: these are its figures until now. Workers that are alive end here.",
        ),
        (Status::Interrupted, Some(cause)) => {
            let text = format!("Told to stop by {}: these are the figures of what was done.", clean(cause));
            page.sentence(Some(Ink::Alert), "", &text);
        }
        (Status::Interrupted, None) => page.sentence(
            Some(Ink::Alert),
            "",
            "The journal has no end and no coordinator is at it: it was killed, its disk was full, \
             or its machine stopped. These are the figures of what was recorded; what workers did after their last \
             sign of life is not known, and counted as lost.",
        ),
        (Status::Done | Status::Failed, _) => {}
    }
    if torn_bytes > 0 {
        page.painted(Ink::Alert, &format!("Note: {}.", torn(torn_bytes)));
    }
}

/// What the job printed.
fn answer(page: &mut Page<'_>, report: &Report) {
    if report.prints.is_empty() {
        return;
    }
    page.heading("Answer", "what the job printed");
    for print in &report.prints {
        if print.cut_bytes > 0 {
            let note = crate::commands::report::not_kept(print.cut_bytes);
            page.sentence(Some(Ink::Alert), "", &format!("Of what follows, {note}"));
        }
        for line in print.text.lines() {
            page.line(&clean(line));
        }
    }
}
