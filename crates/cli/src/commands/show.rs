//! `musec show`: one worker's commands.

use std::process::ExitCode;

use musec_analysis::{Account, RunLiveness, show as arrange};
use musec_trace::WorkerId;

use crate::args::{Format, Places, ShowArgs};
use crate::error::CliError;
use crate::output::{print, print_json};
use crate::runs::find;
use crate::terminal::look::Look;

/// Prints every command of every attempt of a worker.
pub(crate) fn show(places: &Places, args: &ShowArgs) -> Result<ExitCode, CliError> {
    let run = find(&places.runs, &args.run)?;
    let (read, damage) = run.read_to_damage()?;
    let account = match read.liveness {
        RunLiveness::Running => Account::of_running(&read.trace),
        RunLiveness::NotRunning => Account::of(&read.trace),
    };
    account.check_conservation().map_err(|error| CliError::Conservation(error.to_string()))?;
    let Some(show) = arrange(&read.trace, &account, WorkerId(args.worker)) else {
        return Err(CliError::NoWorker { run: run.manifest.run, worker: args.worker });
    };
    match args.format {
        Format::Json => print_json(&show)?,
        Format::Human => print(crate::terminal::show::render(&show, &Look::of_stdout()))?,
    }
    damage.map_or(Ok(ExitCode::SUCCESS), Err)
}
