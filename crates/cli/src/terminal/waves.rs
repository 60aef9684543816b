//! How even each wave was: the times of its items or workers, and who was last.

use musec_analysis::report::{Evenness, WaveReport};
use musec_analysis::{Quantiles, Report, format_ns, format_seconds};

use super::look::Ink;
use super::page::{Page, clean, counted, short};

/// Columns of a remark about one item.
const VALUE_COLUMNS: usize = 24;

/// Indentation of what is said of a wave.
const UNDER: &str = "  ";

pub(super) fn write(page: &mut Page<'_>, report: &Report) {
    if report.waves.is_empty() {
        return;
    }
    page.heading("How even it was", "by wave; waiting before an attempt is in no life");
    for wave in &report.waves {
        one(page, wave);
    }
}

fn one(page: &mut Page<'_>, wave: &WaveReport) {
    let name = page.look.paint(Ink::Strong, &clean(&wave.wave));
    if let Some(reason) = &wave.skipped {
        let text = format!("not started: {}", clean(reason));
        page.sentence(Some(Ink::Alert), &format!("{name}  "), &text);
        return;
    }
    let work = match wave.items {
        Some(items) => {
            format!("{} by {}", counted(items, "item"), counted(wave.workers.total, "worker"))
        }
        None => counted(wave.workers.total, "worker"),
    };
    let span = match (wave.span_ns, wave.ended_ns) {
        (Some(span), Some(_)) => format!("in {}", format_ns(span.into())),
        (Some(span), None) => format!("not ended after {}", format_ns(span.into())),
        (None, _) => "not started".to_owned(),
    };
    page.flow(&format!("{name}  "), &[format!("{work} {span}")]);
    match &wave.evenness {
        Some(evenness) => even(page, evenness),
        None => page.painted(Ink::Faint, "  how even is not known: no attempt has ended"),
    }
}

fn even(page: &mut Page<'_>, evenness: &Evenness) {
    if let Some(items) = &evenness.items {
        spread(page, "items    ", items);
    }
    spread(page, "lives    ", &evenness.lives);
    if let Some(longest) = &evenness.longest_item {
        let number = longest.item.to_string();
        let value = if longest.value == number {
            String::new()
        } else {
            format!(" ({})", short(&longest.value, VALUE_COLUMNS))
        };
        let took = format_ns(longest.duration_ns.into());
        let text = format!("item {number}{value}, {took} on worker {}", longest.worker);
        page.flow(&format!("{UNDER}longest  "), &[text]);
    }
    let Some(last_by) = evenness.last_by_ns else { return };
    let last = format_ns(last_by.into());
    let pieces = [
        format!("worker {} ended {last} after the one before it", evenness.last_worker),
        format!("{} after the median", format_ns(evenness.last_after_median_ns.into())),
        format!("{} of the others idle until then", format_seconds(evenness.idle_at_end_ns)),
    ];
    page.flow(&format!("{UNDER}last     "), &pieces);
}

fn spread(page: &mut Page<'_>, what: &str, times: &Quantiles) {
    if times.count == 1 {
        page.flow(&format!("{UNDER}{what}"), &[format!("one, {}", format_ns(times.max_ns))]);
        return;
    }
    let figures = [
        ("min", times.min_ns),
        ("p50", times.p50_ns),
        ("p90", times.p90_ns),
        ("p99", times.p99_ns),
        ("max", times.max_ns),
    ];
    let mut pieces = figures.map(|(name, ns)| format!("{name} {}", format_ns(ns))).to_vec();
    if let Some(ratio) = times.max_to_median() {
        pieces.push(format!("max is {ratio:.1} × p50"));
    }
    page.flow(&format!("{UNDER}{what}"), &pieces);
}
