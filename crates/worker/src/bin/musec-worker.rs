//! The small binary: a worker and nothing else, for hosts that have no `musec`.
//!
//! In: a join ticket in the environment, or `guard SOCKET SCRATCH_ROOT` or `info KEY VALUE` as
//! arguments. Out: the
//! exit code, 0 when the session ended as the coordinator asked; errors go to standard error.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use musec_protocol::Ticket;
use musec_protocol::note::Told;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let result = match arguments.as_slice() {
        [] => std::env::var(Ticket::VARIABLE).map_or_else(
            |_| Err(format!("no join ticket: {} is not set", Ticket::VARIABLE)),
            |ticket| musec_worker::run_worker(&ticket).map_err(|error| chain(&error)),
        ),
        [word, socket, root] if word == "guard" => {
            musec_worker::run_guard(Path::new(socket), Path::new(root))
                .map_err(|error| chain(&error))
        }
        [word, key, value] if word == "info" => info(key, value),
        _ => Err(
            "usage: musec-worker, or musec-worker guard SOCKET SCRATCH_ROOT, or (as musec, in a \
                  run) musec info KEY VALUE"
                .into(),
        ),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    // There is nobody left to tell if standard error is closed.
    drop(writeln!(std::io::stderr(), "musec-worker: {error}"));
    ExitCode::FAILURE
}

fn info(key: &OsStr, value: &OsStr) -> Result<(), String> {
    let key = key.to_str().ok_or("the key is not UTF-8")?.to_owned();
    let text = Told::Info { key, value: value.as_bytes().to_vec() }.to_bytes()?;
    musec_worker::tell(&text).map_err(|error| format!("cannot tell the worker: {error}"))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
