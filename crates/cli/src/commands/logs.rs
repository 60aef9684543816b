//! `musec logs`: what commands wrote to standard output and standard error, as far as it was kept.
//!
//! In: a run's file of outputs, and its journal for names. Out: a header line and the bytes as they
//! are, one output after the other in order of replies; outputs are never all in memory at once,
//! but for JSON, which is one value.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use musec_analysis::{RunLiveness, Trace};
use musec_trace::journal::{JournalReader, Next};
use musec_trace::{CommandId, Event, LaunchId, Stream, Tail, WorkerId};
use serde::Serialize;

use crate::args::{Format, LogsArgs, Places};
use crate::error::CliError;
use crate::output::{complain, print, print_json};
use crate::runs::{Follower, FoundRun, find, open_regular};
use crate::terminal::figures::bytes;
use crate::terminal::look::{Ink, Look};
use crate::terminal::page::short;

/// Columns of a command's arguments in a header.
const ARGUMENT_COLUMNS: usize = 40;

/// All outputs, as JSON.
#[derive(Serialize)]
struct Logs {
    schema: u32,
    outputs: Vec<Row>,
}

/// One output, as JSON.
#[derive(Serialize)]
struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    command: String,
    arguments: Vec<String>,
    id: u64,
    stream: &'static str,
    /// How long it was; `text` is its end.
    total_bytes: u64,
    text: String,
}

/// One output as it was kept.
struct Kept {
    launch: LaunchId,
    id: CommandId,
    stream: Stream,
    tail: Tail,
}

/// Time between two looks at a run that is under way.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// Prints outputs as they come, until the run is over.
fn follow(run: &FoundRun, worker: Option<WorkerId>) -> Result<ExitCode, CliError> {
    let look = Look::of_stdout();
    let mut follower = Follower::open(&run.folder)?;
    let mut outputs = Outputs::open(run)?;
    let mut waiting = std::collections::VecDeque::new();
    loop {
        // Whether it is over is asked first, so that nothing written before its end is missed.
        let is_over = follower.liveness() == RunLiveness::NotRunning;
        while let Some(kept) = outputs.read_next()? {
            waiting.push_back(kept);
        }
        follower.advance()?;
        while let Some(kept) = waiting.pop_front() {
            let attempt = follower.trace.attempts().get(&kept.launch);
            let is_known = attempt.is_some_and(|of| of.commands.contains_key(&kept.id));
            if !is_known && !is_over {
                waiting.push_front(kept);
                break;
            }
            if worker.is_none_or(|worker| attempt.is_some_and(|of| of.worker == worker)) {
                print_one(&row(&follower.trace, &kept), &kept.tail, &look)?;
            }
        }
        if is_over {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Prints the kept ends of all outputs, or of one worker's.
pub(crate) fn logs(places: &Places, args: &LogsArgs) -> Result<ExitCode, CliError> {
    let run = find(&places.runs, &args.run)?;
    if args.follow {
        return follow(&run, args.worker.map(WorkerId));
    }
    let trace = run.read()?.trace;
    let worker = args.worker.map(WorkerId);
    if let Some(WorkerId(number)) = worker.filter(|worker| !trace.workers().contains_key(worker)) {
        return Err(CliError::NoWorker { run: run.manifest.run, worker: number });
    }
    let is_asked = |kept: &Kept| {
        worker.is_none_or(|worker| {
            trace.attempts().get(&kept.launch).is_some_and(|attempt| attempt.worker == worker)
        })
    };
    let mut outputs = Outputs::open(&run)?;
    match args.format {
        Format::Json => {
            let mut rows = Vec::new();
            while let Some(kept) = outputs.read_next()? {
                rows.extend(is_asked(&kept).then(|| row(&trace, &kept)));
            }
            print_json(&Logs { schema: 1, outputs: rows })?;
        }
        Format::Human => {
            let look = Look::of_stdout();
            let mut is_empty = true;
            while let Some(kept) = outputs.read_next()? {
                if is_asked(&kept) {
                    is_empty = false;
                    print_one(&row(&trace, &kept), &kept.tail, &look)?;
                }
            }
            if is_empty {
                complain("no command has printed anything");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_one(row: &Row, tail: &Tail, look: &Look) -> Result<(), CliError> {
    let who = match (row.worker, row.attempt) {
        (Some(worker), Some(attempt)) => format!("worker {worker}, attempt {attempt}"),
        _ => "an attempt that was never asked for".to_owned(),
    };
    let state = row.state.as_deref().unwrap_or("(none)");
    let arguments = short(&row.arguments.join(" "), ARGUMENT_COLUMNS);
    let kept = u64::try_from(tail.text.len()).unwrap_or(u64::MAX);
    let size = if kept < row.total_bytes {
        format!("last {} of {}", bytes(kept.into()), bytes(row.total_bytes.into()))
    } else {
        bytes(kept.into())
    };
    let state = short(state, ARGUMENT_COLUMNS);
    let header = format!("== {who}, {state}: {} {arguments} ({}, {size})", row.command, row.stream);
    print(format!("{}\n", look.paint(Ink::Strong, &header)))?;
    print(&tail.text)?;
    if tail.text.last().is_some_and(|byte| *byte != b'\n') {
        print("\n")?;
    }
    Ok(())
}

fn row(trace: &Trace, kept: &Kept) -> Row {
    let attempt = trace.attempts().get(&kept.launch);
    let command = attempt.and_then(|attempt| attempt.commands.get(&kept.id));
    let queued = command.and_then(|command| command.queued.as_ref());
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    Row {
        worker: attempt.map(|attempt| attempt.worker.0),
        attempt: attempt.map(|attempt| attempt.number.0),
        state: queued.and_then(|queued| queued.state).map(|state| trace.state_name(Some(state))),
        command: queued.map(|queued| queued.name.to_string()).unwrap_or_default(),
        arguments: queued
            .map(|queued| queued.arguments.iter().map(text).collect())
            .unwrap_or_default(),
        id: kept.id.0,
        stream: kept.stream.name(),
        total_bytes: kept.tail.total_bytes,
        text: text(&kept.tail.text),
    }
}

/// The file of outputs, read from its beginning.
struct Outputs {
    path: PathBuf,
    /// `None` where a run has none: it was killed before it began.
    reader: Option<JournalReader<File>>,
}

impl Outputs {
    fn open(run: &FoundRun) -> Result<Self, CliError> {
        let path = run.folder.outputs();
        match open_regular(&path) {
            Ok(file) => Ok(Self { path, reader: Some(JournalReader::new(file)) }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self { path, reader: None })
            }
            Err(source) => Err(CliError::Read { path, source }),
        }
    }

    /// The next output; a torn end ends it.
    fn read_next(&mut self) -> Result<Option<Kept>, CliError> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        loop {
            let next = reader.read_next();
            match next.map_err(|source| CliError::Journal { path: self.path.clone(), source })? {
                Next::End { .. } => return Ok(None),
                Next::Record(record) => {
                    if let Event::Output { launch, id, stream, tail } = record.event {
                        return Ok(Some(Kept { launch, id, stream, tail }));
                    }
                }
            }
        }
    }
}
