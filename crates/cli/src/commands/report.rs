//! `musec report`: where the time of a run went.

use std::process::ExitCode;

use musec_analysis::{Account, Report, report as arrange};

use crate::args::{Format, Places, ReportArgs};
use crate::error::CliError;
use crate::output::{complain, complain_json, print, print_json};
use crate::runs::{ReadRun, find};
use crate::terminal::look::Look;
use crate::terminal::report as screen;

/// Prints the report of a run that is or was; of a damaged journal that of what precedes the
/// damage, which is the error then.
pub(crate) fn report(places: &Places, args: &ReportArgs) -> Result<ExitCode, CliError> {
    let (run, damage) = find(&places.runs, &args.run)?.read_to_damage()?;
    show_report(&run, args.format)?;
    damage.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Prints the report of what was read. Nothing is printed if its figures do not sum up.
pub(crate) fn show_report(run: &ReadRun, format: Format) -> Result<(), CliError> {
    let report = checked(run)?;
    match format {
        Format::Json => {
            if run.torn_bytes > 0 {
                complain(&format!("note: {}", screen::torn(run.torn_bytes)));
            }
            print_json(&report)
        }
        Format::Human => print(screen::render(&report, run.torn_bytes, &Look::of_stdout())),
    }
}

/// The report on standard error, for commands whose result is something else.
pub(crate) fn complain_report(run: &ReadRun, format: Format) -> Result<(), CliError> {
    let report = checked(run)?;
    match format {
        Format::Json => complain_json(&report),
        Format::Human => {
            let text = screen::render(&report, run.torn_bytes, &Look::of_stderr());
            complain(text.trim_end());
        }
    }
    Ok(())
}

/// Prints what the job itself prints; and, to standard error, why workers failed.
pub(crate) fn show_answer(run: &ReadRun) -> Result<(), CliError> {
    let report = checked(run)?;
    let failures = crate::terminal::failures::render(&report, &Look::of_stderr());
    if !failures.is_empty() {
        complain(failures.trim_end());
    }
    // As the commands gave it, byte for byte: the report's copy is text.
    for answer in run.trace.prints() {
        if answer.cut_bytes > 0 {
            complain(&format!("warning: of what follows, {}", not_kept(answer.cut_bytes)));
        }
        print(&answer.text)?;
    }
    Ok(())
}

/// That the beginning of an answer is missing, and how to have all of it.
pub(crate) fn not_kept(cut_bytes: u64) -> String {
    format!(
        "the first {cut_bytes} bytes were not kept: `put` a long answer, and name it in `results`"
    )
}

fn checked(run: &ReadRun) -> Result<Report, CliError> {
    let account = Account::of(&run.trace);
    account.check_conservation().map_err(|error| CliError::Conservation(error.to_string()))?;
    Ok(arrange(&run.trace, &account, run.liveness))
}
