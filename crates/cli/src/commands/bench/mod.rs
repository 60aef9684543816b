//! `musec bench`: what the coordinator, the workers and the journal cost on this machine, each
//! beside the floor that the machine itself sets, measured in the same run.
//!
//! In: sizes. Out: figures, for people or as JSON. CPU and memory are of the process that is
//! measured alone; what makes the load is another process.

mod coordinator;
mod floor;
mod launch;
mod process;
mod record;
mod simulate;

use std::process::ExitCode;

use crate::args::{BenchArgs, BenchCommand};
use crate::error::CliError;

pub(crate) fn bench(args: &BenchArgs) -> Result<ExitCode, CliError> {
    match &args.command {
        BenchCommand::Coordinator(args) => coordinator::coordinator(args),
        BenchCommand::Launch(args) => launch::launch(args),
        BenchCommand::Record(args) => record::record(args),
        BenchCommand::Simulate(args) => simulate::simulate(args),
        BenchCommand::Scripted { workers } => coordinator::scripted(*workers),
        BenchCommand::FloorServer { workers, commands, busy } => {
            floor::serve(*workers, *commands, *busy)
        }
        BenchCommand::FloorLoad { address, workers } => floor::load(*address, *workers),
    }
}
