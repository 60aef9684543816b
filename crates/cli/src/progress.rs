//! How a run is going, on standard error: a display that redraws itself on a terminal, plain lines
//! elsewhere.
//!
//! In: the fold of what is recorded so far. Invariants: one look costs what it shows, however many
//! workers there are; nothing is shown when asked to be quiet, since the failures are told at the
//! end with all that is known of them.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use musec_analysis::fold::{Present, Wave, WorkerStatus};
use musec_analysis::{Trace, format_ns};
use musec_trace::{CTime, Failure, WaveId, WorkerId};

use crate::output::complain;
use crate::terminal::figures::short_id;
use crate::terminal::look::{Ink, Look};
use crate::terminal::page::{Page, clean, counted, short};

/// Time between two plain lines about the same waves.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Workers that are shown with their present command.
const SLOWEST_MAX: usize = 5;

/// Failures told in one look; many at once are counted.
const FAILURES_MAX: usize = 5;

/// Waves that are shown at a time.
const WAVES_MAX: usize = 8;

/// Workers of a wave whose items are counted at each look.
const COUNTED_WORKERS_MAX: u32 = 4_096;

/// Shows how a run goes.
pub(crate) struct Progress {
    run: String,
    how: How,
    look: Look,
    began: Instant,
    told: Instant,
    failures: usize,
    waves: BTreeMap<WaveId, Told>,
}

enum How {
    Quiet,
    Lines,
    Display(ProgressBar),
}

/// What was said of a wave.
#[derive(Clone, Copy, Default)]
struct Told {
    started: bool,
    over: bool,
}

impl Progress {
    /// Begins to show the run with this id.
    pub(crate) fn start(run_id: &str, quiet: bool) -> Self {
        let how = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => How::Quiet,
            (false, false) => How::Lines,
            (false, true) => How::Display(display()),
        };
        if matches!(how, How::Lines) {
            complain(&format!("run {run_id}"));
        }
        let now = Instant::now();
        Self {
            run: run_id.to_owned(),
            how,
            look: Look::of_stderr(),
            began: now,
            told: now,
            failures: 0,
            waves: BTreeMap::new(),
        }
    }

    /// Shows what `trace` tells of now.
    pub(crate) fn show(&mut self, trace: &Trace) {
        if matches!(self.how, How::Quiet) {
            return;
        }
        let changes = self.changes(trace);
        // Records may be rare; the display's own clock goes on between them.
        let since = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = CTime::from_ns(since).max(trace.last());
        match &self.how {
            How::Quiet => {}
            How::Lines => {
                let is_due = self.told.elapsed() >= LINE_EVERY;
                if !changes.is_empty() || is_due {
                    self.told = Instant::now();
                }
                changes.iter().for_each(|line| complain(line));
                if is_due && trace.ended().is_none() {
                    complain(&line(trace, now));
                }
            }
            How::Display(bar) => {
                changes.iter().for_each(|line| bar.println(line));
                bar.set_message(screen(trace, now, &self.run, &self.look));
            }
        }
    }

    /// Takes the display away.
    pub(crate) fn end(&mut self) {
        if let How::Display(bar) = &self.how {
            bar.finish_and_clear();
        }
    }

    /// What has not been told yet: waves and failures.
    fn changes(&mut self, trace: &Trace) -> Vec<String> {
        let mut lines = Vec::new();
        let plain = matches!(self.how, How::Lines);
        for (id, wave) in trace.waves() {
            let told = self.waves.entry(*id).or_default();
            let name = clean(&trace.wave_name(*id));
            if let Some(reason) = wave.skipped.as_ref().filter(|_| !told.over) {
                told.over = true;
                lines.push(format!("wave {name}: not started: {}", clean(reason)));
            }
            if let Some(at) = wave.started.filter(|_| plain && !told.started) {
                told.started = true;
                let workers = counted(u64::from(wave.workers), "worker");
                let items = match wave.items {
                    0 => String::new(),
                    items => format!(" for {}", counted(items, "item")),
                };
                let at = format_ns(trace.elapsed_ns(at).into());
                lines.push(format!("{at}  wave {name}: started, {workers}{items}"));
            }
            if let Some(at) = wave.ended.filter(|_| plain && !told.over) {
                told.over = true;
                let at = format_ns(trace.elapsed_ns(at).into());
                lines.push(format!("{at}  wave {name}: ended"));
            }
        }
        let new = trace.failures().get(self.failures..).unwrap_or_default();
        self.failures += new.len();
        lines.extend(new.iter().take(FAILURES_MAX).map(|(at, failure)| {
            let text = short(&failure_line(trace, failure), self.look.width.saturating_sub(12));
            let at = format_ns(trace.elapsed_ns(*at).into());
            format!("{at}  {}", self.look.paint(Ink::Bad, &text))
        }));
        let more = new.len().saturating_sub(FAILURES_MAX);
        if more > 0 {
            lines.push(self.look.paint(Ink::Bad, &format!("and {more} more failures")));
        }
        lines
    }
}

fn display() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // The template has one field and is fixed; should it not parse, the default shows the message.
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    bar
}

fn failure_line(trace: &Trace, failure: &Failure) -> String {
    let worker = trace.attempts().get(&failure.launch).map(|attempt| attempt.worker.0);
    let who = worker.map_or_else(|| "a launch".to_owned(), |worker| format!("worker {worker}"));
    let state = failure.state.map(|state| format!(", state {}", trace.state_name(Some(state))));
    format!("{who}{}, {}: {}", state.unwrap_or_default(), failure.name, failure.error)
}

/// One plain line about now.
fn line(trace: &Trace, now: CTime) -> String {
    let mut pieces = vec![totals(trace)];
    pieces.extend(under_way(trace).filter_map(|(id, wave)| {
        let taken = taken(trace, wave)?;
        Some(format!("{}: {taken}", clean(&trace.wave_name(id))))
    }));
    let slowest = trace.slowest(now, 1);
    pieces.extend(slowest.iter().map(|present| format!("longest: {}", at_work(present))));
    format!("{}  {}", format_ns(trace.elapsed_ns(now).into()), pieces.join("; "))
}

/// The display's text.
fn screen(trace: &Trace, now: CTime, run: &str, look: &Look) -> String {
    let mut page = Page::new(look);
    let job = trace.run().map(|run| clean(&run.job)).unwrap_or_default();
    let elapsed = format_ns(trace.elapsed_ns(now).into());
    let head = [
        format!("musec  {}  {}", look.paint(Ink::Strong, &job), look.paint(Ink::Lively, &elapsed)),
        look.paint(Ink::Faint, &format!("run {}", short_id(run))),
        totals(trace),
    ];
    page.flow("", &head);
    for (id, wave) in under_way(trace) {
        let mut pieces = states(trace, id);
        pieces.extend(taken(trace, wave));
        page.flow(&format!("  {}  ", clean(&trace.wave_name(id))), &pieces);
    }
    for present in trace.slowest(now, SLOWEST_MAX) {
        let text = short(&at_work(&present), look.width.saturating_sub(4));
        let ink = if present.frozen { Ink::Alert } else { Ink::Faint };
        page.painted(ink, &format!("    {text}"));
    }
    page.into_text().trim_end().to_owned()
}

/// Workers of all waves by what they count as.
fn totals(trace: &Trace) -> String {
    let mut running = 0;
    let (mut launching, mut done, mut failed, mut lost) = (0, 0, 0, 0);
    for ((_, status), count) in trace.counts() {
        match status {
            WorkerStatus::Launching => launching += count,
            WorkerStatus::Running(_) => running += count,
            WorkerStatus::Done => done += count,
            WorkerStatus::Failed => failed += count,
            WorkerStatus::Lost | WorkerStatus::NeverConnected => lost += count,
            WorkerStatus::NotNeeded => {}
        }
    }
    let of = [
        (launching, "starting"),
        (running, "running"),
        (trace.waiting(), "waiting"),
        (failed, "failed"),
        (lost, "lost"),
    ];
    let others = of.into_iter().filter(|(count, _)| *count > 0);
    let mut pieces = vec![format!("{done} of {} done", counted(trace.total_workers(), "worker"))];
    pieces.extend(others.map(|(count, what)| format!("{count} {what}")));
    pieces.join(", ")
}

/// Running workers of a wave by state.
fn states(trace: &Trace, wave: WaveId) -> Vec<String> {
    let of_wave = trace.counts().iter().filter(|((of, _), _)| *of == wave);
    let running = of_wave.filter_map(|((_, status), count)| match status {
        WorkerStatus::Running(state) => {
            let name = state
                .map_or_else(|| "between states".to_owned(), |_| clean(&trace.state_name(*state)));
            Some(format!("{name} {count}"))
        }
        WorkerStatus::Launching => Some(format!("starting {count}")),
        WorkerStatus::Done
        | WorkerStatus::Failed
        | WorkerStatus::Lost
        | WorkerStatus::NeverConnected
        | WorkerStatus::NotNeeded => None,
    });
    running.collect()
}

/// The waves that are shown: the first of those that have started and not ended.
fn under_way(trace: &Trace) -> impl Iterator<Item = (WaveId, &Wave)> {
    let waves = trace.waves().iter().map(|(id, wave)| (*id, wave));
    waves.filter(|(_, wave)| wave.started.is_some() && wave.ended.is_none()).take(WAVES_MAX)
}

/// How many items the workers of a wave were given, if it has items and few enough workers.
fn taken(trace: &Trace, wave: &Wave) -> Option<String> {
    if wave.items == 0 || wave.workers > COUNTED_WORKERS_MAX {
        return None;
    }
    let until = WorkerId(wave.first_worker.0.saturating_add(wave.workers));
    let workers = trace.workers().range(wave.first_worker..until);
    let launches = workers.flat_map(|(_, worker)| &worker.attempts);
    let attempts = launches.filter_map(|launch| trace.attempts().get(launch));
    let given: usize = attempts.map(|attempt| attempt.items.len()).sum();
    Some(format!("{given} of {} taken", counted(wave.items, "item")))
}

fn at_work(present: &Present) -> String {
    let elapsed = format_ns(present.elapsed_ns.into());
    let frozen = if present.frozen { ", frozen" } else { "" };
    let Present { worker, state, command, .. } = present;
    format!("worker {}  {}: {} for {elapsed}{frozen}", worker.0, clean(state), clean(command))
}
