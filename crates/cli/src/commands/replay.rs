//! `musec replay`: a run decided again from its journal, and compared with it byte for byte.

use std::process::ExitCode;

use musec_analysis::RunLiveness;
use musec_core::replay::{Difference, Entry, Replay, ReplayError, Replayed};
use musec_trace::Record;
use musec_trace::journal::{JournalReader, Next};
use serde::Serialize;

use crate::args::{Format, Places, ReplayArgs};
use crate::error::CliError;
use crate::output::{print, print_json};
use crate::runs::{Follower, FoundRun, find, open_regular};
use crate::terminal::page::counted;

/// Exit code when the journal and core do not agree.
const DIFFERS: u8 = 4;

/// Decides a run again, and says whether that is how it was.
pub(crate) fn replay(places: &Places, args: &ReplayArgs) -> Result<ExitCode, CliError> {
    let run = find(&places.runs, &args.run)?;
    let liveness = Follower::open(&run.folder)?.liveness();
    let (told, difference) = match decide_again(&run)? {
        Ok(replayed) => (replayed, None),
        Err(ReplayError::Differs(difference)) => (difference.before.clone(), Some(difference)),
        Err(other) => return Err(other.into()),
    };
    let id = run.manifest.run.as_str();
    match args.format {
        Format::Json => print_json(&Comparison::of(id, &told, difference.as_deref()))?,
        Format::Human => print(match &difference {
            None => agreement(id, &told, liveness),
            Some(difference) => difference_in_words(id, difference),
        })?,
    }
    Ok(if difference.is_some() { ExitCode::from(DIFFERS) } else { ExitCode::SUCCESS })
}

/// Hands the whole journal, as far as it is written, to core.
fn decide_again(run: &FoundRun) -> Result<Result<Replayed, ReplayError>, CliError> {
    let path = run.folder.journal();
    let file =
        open_regular(&path).map_err(|source| CliError::Read { path: path.clone(), source })?;
    let mut reader = JournalReader::new(file);
    let mut replay = Replay::default();
    loop {
        let place = reader.position();
        let next = reader.read_next();
        match next.map_err(|source| CliError::Journal { path: path.clone(), source })? {
            Next::Record(record) => {
                let bytes = reader.payload().to_vec();
                if let Err(error) = replay.take(Entry { place, record, bytes }) {
                    return Ok(Err(error));
                }
            }
            Next::End { .. } => return Ok(replay.finish()),
        }
    }
}

fn agreement(id: &str, told: &Replayed, liveness: RunLiveness) -> String {
    let (decisions, inputs) = (counted(told.decisions, "decision"), counted(told.inputs, "input"));
    let until = match (told.is_whole, liveness) {
        (true, _) => "",
        (false, RunLiveness::Running) => ", as far as the journal goes: the run is under way",
        (false, RunLiveness::NotRunning) => {
            ", as far as the journal goes: it ends before the run does"
        }
    };
    format!("run {id}: {decisions} made again from {inputs}, and all agree{until}\n")
}

fn difference_in_words(id: &str, difference: &Difference) -> String {
    let place = difference.place.map_or_else(
        || "at the end of its journal".to_owned(),
        |byte| format!("at record {} of its journal, byte {byte}", difference.number),
    );
    let before = counted(difference.before.decisions, "decision");
    let in_words = |record: &Option<Record>, nothing: &str| match record {
        Some(Record { at, event }) => format!("at {} ns, {event:?}", at.ns),
        None => nothing.to_owned(),
    };
    format!(
        "run {id}: decided otherwise {place}, after {before} that agree\n  recorded: {}\n  \
         decided:  {}\n",
        in_words(&difference.recorded, "nothing more"),
        in_words(&difference.decided, "nothing"),
    )
}

/// The comparison as JSON.
#[derive(Serialize)]
struct Comparison<'a> {
    schema: u32,
    run: &'a str,
    agrees: bool,
    is_whole: bool,
    inputs: u64,
    decisions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Place>,
}

/// Where the two differ.
#[derive(Serialize)]
struct Place {
    record: u64,
    byte: Option<u64>,
    recorded: Option<Told>,
    decided: Option<Told>,
}

#[derive(Serialize)]
struct Told {
    at_ns: u64,
    event: String,
}

impl Told {
    fn of(record: &Record) -> Self {
        Self { at_ns: record.at.ns, event: format!("{:?}", record.event) }
    }
}

impl<'a> Comparison<'a> {
    fn of(run: &'a str, told: &Replayed, difference: Option<&Difference>) -> Self {
        Self {
            schema: 1,
            run,
            agrees: difference.is_none(),
            is_whole: told.is_whole,
            inputs: told.inputs,
            decisions: told.decisions,
            difference: difference.map(|difference| Place {
                record: difference.number,
                byte: difference.place,
                recorded: difference.recorded.as_ref().map(Told::of),
                decided: difference.decided.as_ref().map(Told::of),
            }),
        }
    }
}
