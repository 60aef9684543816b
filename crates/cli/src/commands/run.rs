//! `musec run`: the coordinator on a thread of its own, the screen fed by the journal it writes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use musec_analysis::RunLiveness;
use musec_coordinator::{Finished, LaunchBy, Run, RunError, RunFolder, RunSetup};
use musec_trace::RunStatus;

use crate::args::{Format, Places, RunArgs};
use crate::commands::job::{Beside, read};
use crate::commands::report::show_report;
use crate::error::CliError;
use crate::output::complain;
use crate::progress::Progress;
use crate::runs::{Follower, ReadRun};

/// Time between two looks at the journal.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks after which what is past is forgotten: progress shows what goes on, and the report at the
/// end reads the journal anew.
const FORGET_EVERY: u64 = 10;

pub(crate) fn run(places: &Places, args: &RunArgs) -> Result<ExitCode, CliError> {
    let beside = Beside {
        params: &args.params,
        at_once: args.at_once,
        timeout: args.timeout,
        inputs: args.inputs.as_deref(),
        only: &args.only,
    };
    let job = read(&args.job, &beside)?;
    if args.dry_run {
        return crate::commands::dry_run::dry_run(&job, args.format);
    }
    let setup = RunSetup {
        program: Arc::new(job.program),
        job_text: job.text.into_bytes(),
        job_folder: job.folder,
        runs: places.runs.clone(),
        worker_program: std::env::current_exe().map_err(CliError::NoProgram)?,
        launch_by: LaunchBy::Local,
        is_recorded: true,
        listen: args.listen,
        options_json: job.options.to_json(),
        version: env!("CARGO_PKG_VERSION").into(),
    };
    let run = Run::create(setup)?;
    let folder = run.folder().clone();
    let mut progress = Progress::start(&run.id().to_string(), args.quiet);
    let finished = execute(run, &folder, &mut progress);
    progress.end();
    let outcome = conclude(&folder, args, finished.as_ref().ok());
    let finished = finished?;
    outcome?;
    Ok(match finished.status {
        RunStatus::Done => ExitCode::SUCCESS,
        RunStatus::Failed => ExitCode::from(1),
        RunStatus::Interrupted => ExitCode::from(130),
    })
}

/// Runs to the end while showing how it goes.
fn execute(run: Run, folder: &RunFolder, progress: &mut Progress) -> Result<Finished, CliError> {
    let (done, ended) = channel();
    let coordinator = std::thread::Builder::new()
        .name("coordinator".into())
        .spawn(move || drop(done.send(run.execute())))
        .map_err(|source| CliError::Run(RunError::Loop(source)))?;
    let mut follower = None;
    let mut looks = 0u64;
    let result = loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok(result) => break result.map_err(CliError::from),
            Err(RecvTimeoutError::Disconnected) => break Err(CliError::Panicked),
            Err(RecvTimeoutError::Timeout) => {}
        }
        // The journal may not be there yet, and a damaged one is told of at the end.
        follower = follower.or_else(|| Follower::open(folder).ok());
        if let Some(follower) = &mut follower
            && follower.advance().is_ok()
        {
            progress.show(&follower.trace);
            looks += 1;
            if looks.is_multiple_of(FORGET_EVERY) {
                follower.trace.forget_past();
            }
        }
    };
    // It has sent its result, or has panicked; either way there is nothing to wait for.
    drop(coordinator.join());
    result
}

/// Prints the report of what was recorded, however the run ended.
fn conclude(
    folder: &RunFolder,
    args: &RunArgs,
    finished: Option<&Finished>,
) -> Result<(), CliError> {
    let mut follower = Follower::open(folder).map_err(|error| gone(error, finished))?;
    let torn_bytes = follower.advance()?;
    let liveness = RunLiveness::NotRunning;
    let read = ReadRun { trace: follower.trace, liveness, torn_bytes };
    if !args.quiet || args.format == Format::Json {
        show_report(&read, args.format)?;
    } else {
        crate::commands::report::show_answer(&read)?;
    }
    let Some(finished) = finished else { return Ok(()) };
    for glob in &finished.results.unmatched {
        complain(&format!("warning: no object matches {glob:?} of `results`"));
    }
    if !args.quiet && !finished.results.files.is_empty() {
        complain(&came_back(&finished.results.files));
    }
    Ok(())
}

/// A journal that cannot be read when its run has just ended was taken away meanwhile.
fn gone(error: CliError, finished: Option<&Finished>) -> CliError {
    match (error, finished) {
        (CliError::Read { path, source }, Some(finished)) => {
            CliError::JournalGone { path, status: finished.status, source }
        }
        (error, _) => error,
    }
}

fn came_back(files: &[PathBuf]) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let shown = |file: &PathBuf| file.strip_prefix(&here).unwrap_or(file).display().to_string();
    match files {
        [one] => format!("result: {}", shown(one)),
        [first, .., last] => {
            format!("results: {} files, {} to {}", files.len(), shown(first), shown(last))
        }
        [] => String::new(),
    }
}
