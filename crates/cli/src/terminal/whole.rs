//! Where the time went: one bar, and the roll-up with what its rows are made of.

use musec_analysis::breakdown::Group;
use musec_analysis::report::{RollupPart, Status};
use musec_analysis::{Report, format_seconds};

use super::bar::cells;
use super::figures::{grouped, percent};
use super::look::Ink;
use super::page::{Page, counted};

/// What was wanted first, what it cost after.
const ORDER: [Group; 6] =
    [Group::User, Group::Storage, Group::Messages, Group::Waiting, Group::Overhead, Group::Lost];

/// Columns of a row's name, its mark and the indentation of its parts included.
const NAME_COLUMNS: usize = 17;

/// Above this, in percent of itself, how sure `network` is stands beside it.
const PLUS_MINUS_PERCENT: f64 = 10.0;

/// A row of the roll-up, ready to be shown.
struct Row<'a> {
    name: &'static str,
    ink: Ink,
    mark: char,
    total_ns: u128,
    percent: f64,
    parts: &'a [RollupPart],
    remark: &'static str,
}

pub(super) fn write(page: &mut Page<'_>, report: &Report) {
    let life_ns = report.breakdown.life_ns;
    let lives = u64::try_from(report.attempts).unwrap_or(u64::MAX);
    let beside =
        format!("{} of worker time in {}", format_seconds(life_ns), counted(lives, "life"));
    page.heading("Where the time went", &beside.replace("lifes", "lives"));
    if life_ns == 0 {
        page.line("No worker was asked for, so there is no time to tell of.");
        return;
    }
    let rows = rows(report);
    page.line(&bar(page, &rows));
    page.gap();
    let is_wide = |percent: &f64| *percent > PLUS_MINUS_PERCENT;
    let plus_minus = report.breakdown.network_plus_minus_percent.filter(is_wide);
    for row in &rows {
        write_row(page, row, plus_minus);
    }
    let total = line("", "total", 100.0, life_ns, "");
    page.line(&total);
    let note = format!("parts sum to the whole, to the nanosecond: {} ns", grouped(life_ns));
    page.painted(Ink::Faint, &format!("  {note}"));
}

fn rows(report: &Report) -> Vec<Row<'_>> {
    let breakdown = &report.breakdown;
    let groups = ORDER.into_iter().map(|group| Row {
        name: group.name(),
        ink: Ink::Group(group),
        mark: mark(group),
        total_ns: breakdown.rollup.get(group),
        percent: breakdown.rollup_percent_of(group),
        parts: report.rollup_parts.get(group.name()).map_or(&[], Vec::as_slice),
        remark: none_of(group),
    });
    let unaccounted = Row {
        name: "unaccounted",
        ink: Ink::Unaccounted,
        mark: '?',
        total_ns: breakdown.unaccounted_ns,
        percent: breakdown.rollup_percent.get("unaccounted").copied().unwrap_or(0.0),
        parts: &[],
        remark: match (breakdown.unaccounted_ns, report.status) {
            (0, _) => "every nanosecond has its category",
            (_, Status::Running) => "commands that have not replied yet",
            (_, Status::Done | Status::Failed | Status::Interrupted) => {
                "nothing can be proved of it"
            }
        },
    };
    groups.chain([unaccounted]).collect()
}

/// With colours one bar of full blocks; without, each row has a mark of its own.
fn bar(page: &Page<'_>, rows: &[Row<'_>]) -> String {
    let parts: Vec<u128> = rows.iter().map(|row| row.total_ns).collect();
    let cells = cells(page.look.width, &parts);
    let drawn = rows.iter().zip(cells).map(|(row, count)| {
        let mark = if page.look.colour && row.mark != '?' { '█' } else { row.mark };
        page.look.paint(row.ink, &mark.to_string().repeat(count))
    });
    drawn.collect()
}

fn write_row(page: &mut Page<'_>, row: &Row<'_>, plus_minus: Option<f64>) {
    let look = *page.look;
    let mark = if look.colour && row.mark != '?' { '█' } else { row.mark };
    let start = format!("{} ", look.paint(row.ink, &mark.to_string()));
    if row.total_ns == 0 {
        let text = line("", row.name, row.percent, 0, row.remark);
        // The name's own two columns are where the mark stands.
        page.line(&format!("{start}{}", look.paint(Ink::Faint, text.get(2..).unwrap_or(&text))));
        return;
    }
    let only = match row.parts {
        [one] => Some(one),
        _ => None,
    };
    let remark = only.map_or_else(|| row.remark_of_parts(), |part| meaning(part.category));
    let text = line("", row.name, row.percent, row.total_ns, "");
    let text = look.paint(Ink::Strong, text.get(2..).unwrap_or(&text).trim_end());
    page.line(&format!("{start}{text}   {}", look.paint(Ink::Faint, remark)));
    let is_alone = only.is_some_and(|part| part.category == row.name);
    for part in row.parts.iter().filter(|_| !is_alone) {
        let remark = match plus_minus.filter(|_| part.category == "network") {
            Some(percent) if percent >= 100.0 => "very unsure, see below".to_owned(),
            Some(percent) => format!("± {percent:.0} %: on the way"),
            None if only.is_some() => String::new(),
            None => meaning(part.category).to_owned(),
        };
        let text = line("  ", part.category, part.percent, part.total_ns, "");
        page.line(&format!("{}   {}", text.trim_end(), look.paint(Ink::Faint, &remark)));
    }
}

impl Row<'_> {
    /// Said beside a row that has several parts, or none.
    const fn remark_of_parts(&self) -> &'static str {
        match (self.ink, self.parts) {
            (Ink::Group(Group::Lost), _) => "lives of attempts without a result",
            (Ink::Unaccounted, _) => self.remark,
            _ => "",
        }
    }
}

/// One line of the table: two columns for a mark, the name, share and time, and a remark.
fn line(indent: &str, name: &str, share: f64, ns: u128, remark: &str) -> String {
    let name = format!("  {indent}{name}");
    let time = format_seconds(ns);
    format!("{name:NAME_COLUMNS$}{:>9}{time:>14}   {remark}", percent(share))
}

/// Bars without colour are told apart by these.
const fn mark(group: Group) -> char {
    match group {
        Group::User => '█',
        Group::Storage => '▓',
        Group::Messages => '▒',
        Group::Waiting => '░',
        Group::Overhead => '▚',
        Group::Lost => '×',
    }
}

/// Said of a row without time.
const fn none_of(group: Group) -> &'static str {
    match group {
        Group::User => "no program ran",
        Group::Storage => "nothing was got or put",
        Group::Messages => "no worker sent to another",
        Group::Waiting => "no worker waited by design",
        Group::Overhead => "no overhead was measured",
        Group::Lost => "no attempt was in vain",
    }
}

/// What a category means, in few words.
fn meaning(category: &str) -> &'static str {
    match category {
        "user" => "your programs, spawn to exit",
        "stall" => "stopped, or starved of CPU",
        "storage" => "objects got and put",
        "peer" => "bytes between workers",
        "peer_wait" => "for another worker's bytes",
        "overhead" => "musec's own work at the worker",
        "queue" => "behind an earlier command",
        "network" => "commands and replies on their way",
        "coordinator" => "until the next command was sent",
        "wait" => "sleeps, and queues without items",
        "launch" => "asked for, until accepted",
        "start" => "accepted, until connected",
        "handshake" => "connected, until hello",
        "teardown" => "told to quit, until gone",
        "lost" => "after the last sign of life",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use musec_analysis::Category;

    use super::*;

    #[test]
    fn every_category_is_explained_and_every_row_is_shown_once() {
        for category in Category::ALL {
            assert!(!meaning(category.name()).is_empty(), "{category}");
            assert!(meaning(category.name()).chars().count() <= 80 - 43, "{category}");
        }
        let mut shown = ORDER.to_vec();
        shown.sort_unstable();
        assert_eq!(shown, Group::ALL);
    }
}
