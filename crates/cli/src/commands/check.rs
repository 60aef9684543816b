//! `musec check`: a job file read and checked, and what it would do.

use std::process::ExitCode;

use musec_core::Outline;
use serde::Serialize;

use crate::args::{CheckArgs, Format};
use crate::commands::job::{Beside, read};
use crate::error::CliError;
use crate::output::{print, print_json};
use crate::terminal::look::Look;

/// A sound job file, as JSON.
#[derive(Serialize)]
struct Checked {
    schema: u32,
    #[serde(flatten)]
    outline: Outline,
}

/// Prints the outline of a job file, or all that is wrong with it.
pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, CliError> {
    let job = read(&args.job, &Beside { params: &args.params, ..Beside::default() })?;
    let outline = job.program.outline();
    match args.format {
        Format::Json => print_json(&Checked { schema: 1, outline })?,
        Format::Human => print(crate::terminal::outline::render(&outline, &Look::of_stdout()))?,
    }
    Ok(ExitCode::SUCCESS)
}
