//! `musec bench record`: what it costs to record an event: its bytes, its checksum, and the thread
//! that writes them.
//!
//! The events are those of commands as a run has them: for each command it is queued, sent and
//! answered, and the machine moves on. A run makes and frees them whether it records or not, so
//! that what this takes is measured apart, batch for batch, and taken off. The journal is a real
//! one, in a temporary folder, synced at its end.

use std::process::ExitCode;
use std::time::Duration;

use musec_trace::journal::Journal;
use musec_trace::{
    CClock, CTime, Cause, CommandId, Event, LaunchId, Outcome, Phase, PhaseKind, Queued, Record,
    Reply, StateId, Tail, Usage, WTime,
};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::process::{Scratch, cpu, median, per};
use crate::args::{BenchRecordArgs, Format};
use crate::error::CliError;
use crate::output::{print, print_json};

/// Commands between two looks at the clock, which is slow.
const BATCH: u64 = 256;

/// Events of a command.
const EVENTS: u64 = 4;

/// What came of it: medians of the rounds.
#[derive(Debug, Serialize)]
struct Figures {
    schema: u32,
    events: u64,
    rounds: u32,
    /// CPU of both threads.
    ns_per_event: u64,
    /// CPU of the thread that records, which in a run is the coordinator's loop.
    loop_cpu_ns_per_event: u64,
    /// CPU of the thread that writes, the sync at the end included.
    writer_cpu_ns_per_event: u64,
    /// Wall time of the thread that records, waits for the writer included.
    loop_wall_ns_per_event: u64,
    /// How often recording had to wait for the writer, in all rounds.
    waits: u64,
    bytes_per_event: u64,
}

/// One round.
#[derive(Clone, Copy, Debug)]
struct Round {
    both: Duration,
    recording: Duration,
    wall: Duration,
    waits: u64,
    bytes: u64,
}

pub(super) fn record(args: &BenchRecordArgs) -> Result<ExitCode, CliError> {
    let batches = args.events.div_ceil(BATCH * EVENTS);
    let events = batches * BATCH * EVENTS;
    let rounds: Vec<Round> = (0..args.rounds).map(|_| round(batches)).collect::<Result<_, _>>()?;
    let of = |figure: fn(&Round) -> Duration| {
        let figures: Vec<u64> = rounds.iter().map(|round| per(figure(round), events)).collect();
        median(&figures).unwrap_or_default()
    };
    let figures = Figures {
        schema: 1,
        events,
        rounds: args.rounds,
        ns_per_event: of(|round| round.both),
        loop_cpu_ns_per_event: of(|round| round.recording),
        writer_cpu_ns_per_event: of(|round| round.both.saturating_sub(round.recording)),
        loop_wall_ns_per_event: of(|round| round.wall),
        waits: rounds.iter().map(|round| round.waits).sum(),
        bytes_per_event: rounds.first().map_or(0, |round| round.bytes / events),
    };
    match args.format {
        Format::Json => print_json(&figures)?,
        Format::Human => print(in_words(&figures))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(figures: &Figures) -> String {
    format!(
        "record: {} events, {} rounds\n\
         \x20 CPU an event        {:>8} ns\n\
         \x20   of the loop       {:>8} ns\n\
         \x20   of the writer     {:>8} ns\n\
         \x20 wall time an event  {:>8} ns\n\
         \x20 size of an event    {:>8} B\n\
         \x20 waits for the disk  {:>8}\n",
        figures.events,
        figures.rounds,
        figures.ns_per_event,
        figures.loop_cpu_ns_per_event,
        figures.writer_cpu_ns_per_event,
        figures.loop_wall_ns_per_event,
        figures.bytes_per_event,
        figures.waits,
    )
}

fn round(batches: u64) -> Result<Round, CliError> {
    let scratch = Scratch::create("record")?;
    let path = scratch.path().join("journal.musec");
    let failed = |source| CliError::Write { path: path.clone(), source };
    let clock = CClock::start();
    let mut journal = Journal::create(&path, clock).map_err(failed)?;
    let (mut made, mut recorded) = (Spent::default(), Spent::default());
    let before = cpu();
    for batch in 0..batches {
        let commands = batch * BATCH..(batch + 1) * BATCH;
        let start = Spent::now();
        for record in commands.clone().flat_map(|command| events(clock.now(), command)) {
            drop(std::hint::black_box(record));
        }
        let middle = Spent::now();
        for record in commands.flat_map(|command| events(clock.now(), command)) {
            journal.record(record);
        }
        recorded.add(middle, Spent::now());
        made.add(start, middle);
    }
    let waits = journal.waits().count;
    journal.close().map_err(|failure| failed(failure.source))?;
    let both = (cpu() - before).saturating_sub(2 * made.cpu);
    let bytes = std::fs::metadata(&path).map_err(failed)?.len();
    Ok(Round {
        both,
        recording: recorded.cpu.saturating_sub(made.cpu),
        wall: recorded.wall.saturating_sub(made.wall),
        waits,
        bytes,
    })
}

/// What this thread has spent.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    cpu: Duration,
    wall: Duration,
}

impl Spent {
    /// CPU of this thread, and time since some instant.
    fn now() -> Self {
        let [cpu, wall] = [ClockId::ThreadCPUTime, ClockId::Monotonic].map(|clock| {
            let time = clock_gettime(clock);
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
        });
        Self { cpu, wall }
    }

    fn add(&mut self, from: Self, to: Self) {
        self.cpu += to.cpu.saturating_sub(from.cpu);
        self.wall += to.wall.saturating_sub(from.wall);
    }
}

/// The events of a command: `run` of a short script, on one of a thousand workers.
fn events(now: CTime, command: u64) -> [Record; 4] {
    let (launch, id) = (LaunchId(command % 1000), CommandId(command / 1000));
    let ns = 1_000_000_000 + command * 10_000;
    let w = WTime::from_ns;
    let state = Some(StateId(3));
    let queued = Queued {
        launch,
        id,
        lane: Vec::new(),
        state,
        visit: 0,
        name: "run".into(),
        arguments: ["/bin/sh", "-c", "encode item.png out.y4m"]
            .map(|word| word.as_bytes().to_vec())
            .to_vec(),
        pipelined: false,
        background: false,
        category: None,
        step: 1,
    };
    let reply = Reply {
        received: w(ns),
        started: w(ns + 1_000),
        finished: w(ns + 900_000),
        encoded: w(ns + 901_000),
        phases: vec![Phase { kind: PhaseKind::User, from: w(ns + 2_000), to: w(ns + 890_000) }],
        usage: Some(Usage { user_ns: 400_000, system_ns: 300_000, peak_rss_bytes: 2 << 20 }),
        stdout: Tail { text: Vec::new(), total_bytes: 80 },
        ..Reply::bare(id, Outcome::Exited(0))
    };
    [
        Event::Transition {
            launch,
            lane: Vec::new(),
            from: Some(StateId(2)),
            to: state,
            cause: Cause::Done,
        },
        Event::Queued(Box::new(queued)),
        Event::Sent { launch, id, t0: now },
        Event::Replied { launch, t3: now, reply: Box::new(reply) },
    ]
    .map(|event| Record { at: now, event })
}
