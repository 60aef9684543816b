//! `musec paths`: workers grouped by what they did.

use std::process::ExitCode;

use musec_analysis::paths::paths as arrange;

use crate::args::{Format, PathsArgs, Places};
use crate::error::CliError;
use crate::output::{complain, print, print_json};
use crate::runs::find;
use crate::terminal::look::Look;
use crate::terminal::report::torn;

/// Prints the paths of a run's workers.
pub(crate) fn paths(places: &Places, args: &PathsArgs) -> Result<ExitCode, CliError> {
    let read = find(&places.runs, &args.run)?.read()?;
    let paths = arrange(&read.trace);
    if read.torn_bytes > 0 {
        complain(&format!("note: {}", torn(read.torn_bytes)));
    }
    match args.format {
        Format::Json => print_json(&paths)?,
        Format::Human => print(crate::terminal::paths::render(&paths, &Look::of_stdout()))?,
    }
    Ok(ExitCode::SUCCESS)
}
