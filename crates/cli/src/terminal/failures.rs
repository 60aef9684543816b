//! Why attempts have no result. Failures that differ by nothing but their worker are told once,
//! with all their workers.

use std::collections::BTreeMap;

use musec_analysis::Report;
use musec_analysis::report::FailureReport;

use super::figures::{bytes, numbers};
use super::look::{Ink, Look};
use super::page::{Page, clean, short};

/// Different failures that are told in full: more would hide the rest of the report.
const TOLD_MAX: usize = 10;

/// Lines of output with each of them, from its end.
const LINES_MAX: usize = 10;

/// Workers that are named with each of them.
const WORKERS_MAX: usize = 20;

/// What makes two failures the same.
type Kind<'a> = (Option<&'a str>, Option<&'a str>, &'a str, &'a str, &'a str);

/// The section alone; empty without failures.
pub(crate) fn render(report: &Report, look: &Look) -> String {
    let mut page = Page::new(look);
    write_all(&mut page, &report.failures.iter().collect::<Vec<_>>());
    page.into_text()
}

/// Those of attempts; why a wave did not start has been told.
pub(super) fn write(page: &mut Page<'_>, report: &Report) {
    let failures = report.failures.iter();
    write_all(page, &failures.filter(|failure| !is_of_wave(failure)).collect::<Vec<_>>());
}

fn is_of_wave(failure: &FailureReport) -> bool {
    failure.worker.is_none() && failure.wave.is_some()
}

fn write_all(page: &mut Page<'_>, failures: &[&FailureReport]) {
    if failures.is_empty() {
        return;
    }
    let count = u64::try_from(failures.len()).unwrap_or(u64::MAX);
    page.heading("Failures", &format!("{count}; those alike are told once"));
    let groups = group(failures);
    for failures in groups.iter().take(TOLD_MAX) {
        one(page, failures);
    }
    let untold = groups.len().saturating_sub(TOLD_MAX);
    if untold > 0 {
        let text = format!("and {untold} other kinds; `musec report --format json` has all");
        page.painted(Ink::Bad, &text);
    }
}

/// The same failures together, in order of the first of each.
fn group<'a>(failures: &[&'a FailureReport]) -> Vec<Vec<&'a FailureReport>> {
    let mut places: BTreeMap<Kind<'_>, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&FailureReport>> = Vec::new();
    for &failure in failures {
        let kind = (
            failure.wave.as_deref(),
            failure.state.as_deref(),
            failure.command.as_str(),
            failure.error.as_str(),
            failure.output.as_str(),
        );
        let place = *places.entry(kind).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(failure),
            None => groups.push(vec![failure]),
        }
    }
    groups
}

fn one(page: &mut Page<'_>, failures: &[&FailureReport]) {
    let Some(first) = failures.first() else { return };
    let look = *page.look;
    let mut place = vec![whose(failures)];
    place.extend(first.state.as_ref().map(|state| format!("state {}", clean(state))));
    if !is_of_wave(first) {
        place.push(clean(&first.command));
    }
    page.flow(&format!("{} ", look.paint(Ink::Bad, "✗")), &[place.join(", ")]);
    page.sentence(Some(Ink::Bad), "  ", &clean(&first.error));
    if !first.arguments.is_empty() {
        let words: Vec<String> = first.arguments.iter().map(|word| clean(word)).collect();
        let text = short(&words.join(" "), look.width.saturating_sub(4));
        page.painted(Ink::Faint, &format!("  $ {text}"));
    }
    let lines: Vec<&str> = first.output.lines().collect();
    let skipped = lines.len().saturating_sub(LINES_MAX);
    if skipped > 0 {
        page.painted(Ink::Faint, &format!("  │ … {skipped} lines before"));
    }
    for line in lines.iter().skip(skipped) {
        page.line(&format!("  │ {}", short(line, look.width.saturating_sub(4))));
    }
    if lines.is_empty() && first.command == "run" {
        let text = match first.output_bytes {
            None => "  what it wrote is not known: it never replied".to_owned(),
            Some(0) => "  it wrote nothing".to_owned(),
            Some(size) => format!("  it wrote {}: see `musec logs`", bytes(size.into())),
        };
        page.painted(Ink::Faint, &text);
    }
}

/// `worker 3, attempt 0`; of several `workers 3, 5, 9`, with their attempts where they were not
/// the first.
fn whose(failures: &[&FailureReport]) -> String {
    let attempt = |failure: &FailureReport| failure.attempt.unwrap_or(0);
    if let [one] = failures {
        let Some(worker) = one.worker else {
            let of_wave = |wave| format!("wave {}, which did not start", clean(wave));
            let wave = one.wave.as_deref();
            return wave.map_or_else(|| "an attempt that was never asked for".into(), of_wave);
        };
        return format!("worker {worker}, attempt {}", attempt(one));
    }
    let workers: Vec<u32> = failures.iter().filter_map(|failure| failure.worker).collect();
    let mut attempts: Vec<u32> = failures.iter().map(|failure| attempt(failure)).collect();
    attempts.sort_unstable();
    attempts.dedup();
    let plural = if attempts.len() == 1 { "" } else { "s" };
    let attempts = numbers(&attempts, WORKERS_MAX);
    format!("workers {}, attempt{plural} {attempts}", numbers(&workers, WORKERS_MAX))
}
