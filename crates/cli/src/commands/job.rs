//! Reading a job file, for every command that takes one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use musec_core::Program;
use musec_core::job::{Options, parse};

use crate::error::CliError;

/// A job file that was read and checked.
pub(crate) struct Job {
    pub(crate) text: String,
    pub(crate) folder: PathBuf,
    pub(crate) program: Program,
}

/// What the command line says beside the job file.
#[derive(Default)]
pub(crate) struct Beside<'a> {
    pub(crate) params: &'a [(String, String)],
    pub(crate) at_once: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) inputs: Option<&'a Path>,
}

pub(crate) fn read(path: &Path, beside: &Beside<'_>) -> Result<Job, CliError> {
    let read_error = |source| CliError::Read { path: path.to_owned(), source };
    let bytes = std::fs::read(path).map_err(read_error)?;
    let text = String::from_utf8(bytes).map_err(|_| CliError::NotText { path: path.to_owned() })?;
    let absolute = std::path::absolute(path).map_err(read_error)?;
    let folder = absolute.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
    let inputs = beside.inputs.map(std::path::absolute).transpose().map_err(read_error)?;
    let options = Options {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        params: beside.params.iter().cloned().collect(),
        at_once: beside.at_once,
        timeout: beside.timeout,
        inputs: inputs.map(|path| path.to_string_lossy().into_owned()),
    };
    match parse(&text, &options) {
        Ok(program) => Ok(Job { text, folder, program }),
        Err(errors) => Err(CliError::Job { path: path.to_owned(), text, errors }),
    }
}
