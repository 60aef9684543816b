//! `musec map`: one command for each of many items.
//!
//! In: items and a command. Out: each item's standard output, whole and in the order of the items,
//! on standard output; all else on standard error. Invariants: memory does not grow with what
//! commands print; a reader that closes the pipe ends the run quietly.

mod items;
mod printer;
mod told;

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use musec_analysis::RunLiveness;
use musec_coordinator::{Finished, LaunchBy, Run, RunError, RunSetup};
use musec_core::{ByteItems, Map};
use musec_trace::RunStatus;

use self::printer::Printer;
use self::told::Told;
use crate::args::{Format, MapArgs, Places};
use crate::commands::report::complain_report;
use crate::error::CliError;
use crate::output::complain;
use crate::runs::{Follower, ReadRun};

/// Time between two looks at the journal.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs the command for every item.
pub(crate) fn map(places: &Places, args: &MapArgs) -> Result<ExitCode, CliError> {
    let items = items::read(args)?;
    if items.is_empty() {
        complain("no items: nothing to do");
        return Ok(ExitCode::SUCCESS);
    }
    let hint = relative_hint(args, &items);
    let count = items.len() as u64;
    let setup = setup(places, args, items)?;
    let run = Run::create(setup)?;
    let folder = run.folder().clone();
    let stopper = run.stopper();
    let mut told = Told::start(&run.id().to_string(), count, args.quiet, args.format);
    let mut printer = Printer::new(&folder);
    let ended = start(run)?;
    let finished = loop {
        let waited = ended.recv_timeout(LOOK_EVERY);
        let printed = printer.advance(&mut told);
        told.show();
        match (printed, waited) {
            (Err(error), waited) => {
                stopper.stop("nobody reads its output any more");
                told.end();
                // What the run says from now on is of no interest.
                if waited.is_err() {
                    drop(ended.recv());
                }
                return Err(error);
            }
            (Ok(()), Ok(finished)) => break finished,
            (Ok(()), Err(RecvTimeoutError::Timeout)) => {}
            (Ok(()), Err(RecvTimeoutError::Disconnected)) => break Err(CliError::Panicked),
        }
    };
    // Why the run itself could not be is told before what follows from that.
    let printed = printer.finish(&mut told);
    told.end();
    let concluded = conclude(&folder, args, &told);
    let finished = finished?;
    printed.and(concluded)?;
    if told.failed() > 0
        && let Some(hint) = hint
    {
        complain(&hint);
    }
    Ok(match finished.status {
        RunStatus::Done => ExitCode::SUCCESS,
        RunStatus::Failed => ExitCode::from(1),
        RunStatus::Interrupted => ExitCode::from(130),
    })
}

/// Starts the coordinator on a thread of its own.
fn start(run: Run) -> Result<Receiver<Result<Finished, CliError>>, CliError> {
    let (done, ended) = channel();
    std::thread::Builder::new()
        .name("coordinator".into())
        .spawn(move || drop(done.send(run.execute().map_err(CliError::from))))
        .map_err(|source| CliError::Run(RunError::Loop(source)))?;
    Ok(ended)
}

fn setup(places: &Places, args: &MapArgs, items: ByteItems) -> Result<RunSetup, CliError> {
    let folder = items::here()?;
    let count = items.len();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = args.at_once.unwrap_or_else(|| u32::try_from(cores).unwrap_or(u32::MAX));
    let command: Vec<Vec<u8>> = args.command.iter().map(|word| word.as_bytes().to_vec()).collect();
    let map = Map {
        command,
        items,
        put: args.put.as_ref().map(|path| path.as_bytes().to_vec()),
        folder: folder.as_os_str().as_bytes().to_vec(),
        workers: workers.min(u32::try_from(count).unwrap_or(u32::MAX)),
        timeout: args.timeout,
    };
    let options = map.to_json();
    let program = map.program().map_err(CliError::Map)?;
    Ok(RunSetup {
        program: Arc::new(program),
        job_text: format!("# musec map: {options}\n").into_bytes(),
        job_folder: folder,
        runs: places.runs.clone(),
        worker_program: std::env::current_exe().map_err(CliError::NoProgram)?,
        launch_by: LaunchBy::Local,
        is_recorded: true,
        listen: args.listen,
        options_json: options,
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// The report, on standard error.
fn conclude(
    folder: &musec_coordinator::RunFolder,
    args: &MapArgs,
    told: &Told,
) -> Result<(), CliError> {
    if args.quiet && args.format == Format::Human {
        told.complain_failures();
        return Ok(());
    }
    let mut follower = Follower::open(folder)?;
    let torn_bytes = follower.advance()?;
    let liveness = RunLiveness::NotRunning;
    let read = ReadRun { trace: follower.trace, liveness, torn_bytes };
    complain_report(&read, args.format)
}

/// What to say when items failed that are paths from the current folder: commands run elsewhere.
fn relative_hint(args: &MapArgs, items: &ByteItems) -> Option<String> {
    if !args.globs.is_empty() {
        return None;
    }
    let first = std::path::Path::new(std::ffi::OsStr::from_bytes(items.item(0)?));
    let is_here = first.is_relative() && !first.as_os_str().is_empty() && first.exists();
    is_here.then(|| {
        "note: commands run in a scratch folder, where paths from the current folder lead nowhere; \
         use -i 'GLOB', or absolute paths like those of `find \"$PWD\"`"
            .to_owned()
    })
}
