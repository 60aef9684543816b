//! Reading a job file, for every command that takes one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use musec_core::job::{Options, parse};
use musec_core::limits::JOB_BYTES_MAX;
use musec_core::{Items, Look, Program, csv_header};
use musec_protocol::Place;

use crate::error::CliError;

/// How much of a table is read for its header.
const HEADER_BYTES_MAX: u64 = 1 << 16;

/// A job file that was read and checked.
pub(crate) struct Job {
    pub(crate) text: String,
    pub(crate) folder: PathBuf,
    pub(crate) options: Options,
    pub(crate) program: Program,
}

/// What the command line says beside the job file.
#[derive(Default)]
pub(crate) struct Beside<'a> {
    pub(crate) params: &'a [(String, String)],
    pub(crate) at_once: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) inputs: Option<&'a Path>,
    pub(crate) only: &'a [u32],
}

pub(crate) fn read(path: &Path, beside: &Beside<'_>) -> Result<Job, CliError> {
    let read_error = |source| CliError::Read { path: path.to_owned(), source };
    let text = read_text(path)?;
    let absolute = std::path::absolute(path).map_err(read_error)?;
    let folder = absolute.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
    let inputs = beside.inputs.map(std::path::absolute).transpose().map_err(read_error)?;
    let mut options = Options {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        params: beside.params.iter().cloned().collect(),
        at_once: beside.at_once,
        timeout: beside.timeout,
        only: (!beside.only.is_empty())
            .then(|| beside.only.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()),
        inputs: inputs.map(|path| path.to_string_lossy().into_owned()),
        ..Options::default()
    };
    if let Ok(program) = parse(&text, &options) {
        options.csv_headers = csv_headers(&program, &folder);
    }
    match parse(&text, &options) {
        Ok(program) => Ok(Job { text, folder, options, program }),
        Err(errors) => Err(CliError::Job { path: path.to_owned(), text, errors }),
    }
}

/// The file's text. Of one that is longer than a job file may be only as much as shows that: it may
/// be a device without an end.
fn read_text(path: &Path) -> Result<String, CliError> {
    let read_error = |source| CliError::Read { path: path.to_owned(), source };
    let most = u64::try_from(JOB_BYTES_MAX).unwrap_or(u64::MAX);
    let file = File::open(path).map_err(read_error)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(read_error)?;
    if bytes.len() > JOB_BYTES_MAX {
        return Err(CliError::JobTooLong { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| CliError::NotText { path: path.to_owned() })
}

/// Columns of the tables that items are made of, or what is wrong with them. What cannot be read
/// is told when the wave begins.
fn csv_headers(program: &Program, folder: &Path) -> BTreeMap<String, Result<Vec<String>, String>> {
    let inputs = folder.join(program.inputs.as_deref().unwrap_or("."));
    let tables = program.waves().filter(|(_, wave)| matches!(wave.items, Some(Items::Csv { .. })));
    let headers = tables.filter_map(|(wave, _)| match program.look(wave) {
        Ok(Some(Look::Text { place: Place::Inputs, key })) => {
            let path = inputs.join(&key);
            // To open a pipe would wait for its writer.
            let is_file = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file());
            let file = is_file.then(|| File::open(path).ok())??;
            let mut text = Vec::new();
            file.take(HEADER_BYTES_MAX).read_to_end(&mut text).ok()?;
            Some((format!("in:{key}"), csv_header(&text)))
        }
        Ok(_) | Err(_) => None,
    });
    headers.collect()
}
