//! Standard output and standard error: the only place that writes to them.

use std::io::Write;

use serde::Serialize;

use crate::error::CliError;

/// Prints a result.
pub(crate) fn print(bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes.as_ref()).and_then(|()| out.flush()).map_err(CliError::Output)
}

/// Prints all that a source has; [`print_all`] sends it off.
pub(crate) fn print_from(source: &mut impl std::io::Read) -> Result<(), CliError> {
    std::io::copy(source, &mut std::io::stdout().lock()).map(drop).map_err(CliError::Output)
}

/// Sends off what was printed.
pub(crate) fn print_all() -> Result<(), CliError> {
    std::io::stdout().lock().flush().map_err(CliError::Output)
}

/// A result as JSON, on standard error.
pub(crate) fn complain_json(value: &impl Serialize) {
    if let Ok(text) = serde_json::to_string_pretty(value) {
        complain(&text);
    }
}

/// Prints a result as one JSON value and a line end.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)
        .map_err(|error| CliError::Output(error.into()))?;
    out.write_all(b"\n").and_then(|()| out.flush()).map_err(CliError::Output)
}

/// Says something to the person at the terminal. Nobody may be there to hear it.
pub(crate) fn complain(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}
