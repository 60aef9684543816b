//! The report of runs by hand, as it is shown.

use musec_analysis::{Account, RunLiveness, Trace, report};

use super::fixture::{Log, cut_short, failing, tiles};
use super::look::Look;
use super::report::render;

const NARROW: Look = Look { width: 80, colour: false };
const WIDE: Look = Look { width: 120, colour: false };
const BRIGHT: Look = Look { width: 80, colour: true };

fn shown(log: &Log, liveness: RunLiveness, torn_bytes: u64, look: &Look) -> String {
    let mut trace = Trace::default();
    log.records().iter().for_each(|record| trace.apply(record));
    let account = Account::of(&trace);
    account.check_conservation().expect("conserved");
    render(&report(&trace, &account, liveness), torn_bytes, look)
}

#[test]
fn a_run_that_went_well_at_80_columns() {
    insta::assert_snapshot!(shown(&tiles(), RunLiveness::NotRunning, 0, &NARROW));
}

#[test]
fn a_run_that_went_well_at_120_columns() {
    insta::assert_snapshot!(shown(&tiles(), RunLiveness::NotRunning, 0, &WIDE));
}

#[test]
fn a_run_that_went_well_in_colour() {
    insta::assert_snapshot!(
        shown(&tiles(), RunLiveness::NotRunning, 0, &BRIGHT).replace('\x1b', "␛")
    );
}

#[test]
fn a_run_with_failures_and_without_a_store() {
    insta::assert_snapshot!(shown(&failing(), RunLiveness::NotRunning, 0, &NARROW));
}

#[test]
fn a_run_that_was_cut_short_says_so_and_tells_what_was_done() {
    insta::assert_snapshot!(shown(&cut_short(), RunLiveness::NotRunning, 17, &NARROW));
}

#[test]
fn a_run_that_goes_on_says_so() {
    let text = shown(&cut_short(), RunLiveness::Running, 0, &NARROW);
    assert!(text.contains("running for"), "{text}");
    assert!(text.contains("The run goes on"), "{text}");
}

#[test]
fn an_empty_journal_is_a_run_of_which_nothing_is_known() {
    let trace = Trace::default();
    let account = Account::of(&trace);
    let text = render(&report(&trace, &account, RunLiveness::Running), 0, &NARROW);
    assert!(text.contains("No worker was asked for"), "{text}");
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for log in [tiles(), failing(), cut_short()] {
        for look in [NARROW, WIDE, BRIGHT] {
            let text = shown(&log, RunLiveness::NotRunning, 9, &look);
            let wide = |line: &&str| console::measure_text_width(line) > look.width;
            assert_eq!(text.lines().find(wide), None, "at {} columns", look.width);
        }
    }
}

#[test]
fn colours_change_nothing_but_marks() {
    let plain = shown(&failing(), RunLiveness::NotRunning, 0, &NARROW);
    let bright = shown(&failing(), RunLiveness::NotRunning, 0, &BRIGHT);
    let marks = |text: &str| text.replace(['▓', '▒', '░', '▚', '×'], "█");
    assert_eq!(marks(&console::strip_ansi_codes(&bright)), marks(&plain));
    assert!(!plain.contains('\x1b'));
}
