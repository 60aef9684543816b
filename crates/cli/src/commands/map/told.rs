//! What is said of a map while it runs, and of its failures when its report is not wanted.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use musec_trace::{Failure, LaunchId};

use crate::args::Format;
use crate::output::complain;
use crate::terminal::page::{clean, counted};

/// Failures that are told in full.
const FAILURES_MAX: usize = 20;

/// Lines of output with each of them, from its end.
const LINES_MAX: usize = 10;

/// Time between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Counts items, and tells.
pub(super) struct Told {
    how: How,
    items: u64,
    done: u64,
    /// The last item of each attempt that failed, so that each counts once.
    failed_of: BTreeMap<LaunchId, Option<u64>>,
    failed: u64,
    failures: Vec<String>,
    told: Instant,
}

enum How {
    Quiet,
    Lines,
    Display(ProgressBar),
}

impl Told {
    pub(super) fn start(run: &str, items: u64, quiet: bool, format: Format) -> Self {
        let how = match (quiet || format == Format::Json, std::io::stderr().is_terminal()) {
            (true, _) => How::Quiet,
            (false, false) => How::Lines,
            (false, true) => {
                How::Display(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()))
            }
        };
        if matches!(how, How::Lines) {
            complain(&format!("run {run}: {}", counted(items, "item")));
        }
        Self {
            how,
            items,
            done: 0,
            failed_of: BTreeMap::new(),
            failed: 0,
            failures: Vec::new(),
            told: Instant::now(),
        }
    }

    /// An item's command has ended.
    pub(super) const fn item_ended(&mut self) {
        self.done += 1;
    }

    /// Something failed while an attempt had this item.
    pub(super) fn failure(&mut self, item: Option<u64>, failure: &Failure) {
        if self.failed_of.insert(failure.launch, item) != Some(item) {
            self.failed += 1;
        }
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(in_words(failure));
        }
    }

    /// How many items failed.
    pub(super) const fn failed(&self) -> u64 {
        self.failed
    }

    /// Shows how far it is.
    pub(super) fn show(&mut self) {
        match &self.how {
            How::Quiet => {}
            How::Lines => {
                if self.told.elapsed() >= LINE_EVERY {
                    self.told = Instant::now();
                    complain(&self.line());
                }
            }
            How::Display(bar) => bar.set_message(self.line()),
        }
    }

    fn line(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        format!("{} of {} done{failed}", self.done, counted(self.items, "item"))
    }

    pub(super) fn end(&self) {
        if let How::Display(bar) = &self.how {
            bar.finish_and_clear();
        }
    }

    /// Tells the failures alone.
    pub(super) fn complain_failures(&self) {
        for failure in &self.failures {
            complain(failure);
        }
        let untold = self.failed.saturating_sub(FAILURES_MAX as u64);
        if untold > 0 {
            complain(&format!("and {untold} more failures; `musec report` tells of them"));
        }
    }
}

/// A failure with the last lines that its command printed.
fn in_words(failure: &Failure) -> String {
    let mut words = format!("error: {}: {}", failure.name, clean(&failure.error));
    let output = String::from_utf8_lossy(&failure.output);
    let lines: Vec<&str> = output.lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(LINES_MAX)) {
        words.push_str("\n  | ");
        words.push_str(&clean(line));
    }
    words
}
