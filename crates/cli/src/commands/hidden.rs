//! The commands that people do not type: a worker's and its guard's processes.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::output::complain;

/// `musec worker`: joins a run by the ticket in its environment.
pub(crate) fn worker() -> ExitCode {
    let ticket = std::env::var(musec_protocol::Ticket::VARIABLE).unwrap_or_default();
    finish("worker", musec_worker::run_worker(&ticket))
}

/// `musec guard SOCKET FOLDER`: kills what is left when workers die by force.
pub(crate) fn guard(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(socket), Some(folder)) = (words.next(), words.next()) else {
        complain("error: musec guard is started by musec itself, with a socket and a folder");
        return ExitCode::from(2);
    };
    finish("guard", musec_worker::run_guard(Path::new(&socket), Path::new(&folder)))
}

fn finish<E: std::error::Error>(who: &str, result: Result<(), E>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let mut text = format!("musec {who}, pid {}: {error}", std::process::id());
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    complain(&text);
    ExitCode::FAILURE
}
