//! `musec info`: user code tells a value to the job that runs it.

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use musec_protocol::note::Told;

use crate::args::InfoArgs;
use crate::error::CliError;

/// Tells it to the worker, which forwards it.
pub(crate) fn info(args: &InfoArgs) -> Result<ExitCode, CliError> {
    let told = Told::Info { key: args.key.clone(), value: args.value.as_bytes().to_vec() };
    let text = told.to_bytes().map_err(CliError::NoInfo)?;
    musec_worker::tell(&text).map_err(CliError::NotTold)?;
    Ok(ExitCode::SUCCESS)
}
