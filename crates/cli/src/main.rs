//! What is shown: commands, reports, progress, errors, exit codes.
//!
//! In: the command line. Out: text or JSON on standard output, progress and errors on standard
//! error, an exit code. Invariants: no figure is computed here; JSON is alone on standard output;
//! a reader that closes the pipe is no error.

mod address;
mod args;
mod commands;
mod error;
mod logging;
mod output;
mod progress;
mod runs;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::error::CliError;

fn main() -> ExitCode {
    // Workers start by the thousand: they are spared the parsing of a command line.
    let mut words = std::env::args_os().skip(1);
    match words.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("worker") => return commands::hidden::worker(),
        Some("guard") => return commands::hidden::guard(words),
        Some(_) | None => {}
    }
    let args = Args::parse();
    logging::start(args.verbose);
    let done = match args.command {
        Command::Run(run) => commands::run::run(&args.places, &run),
        Command::Map(map) => commands::map::map(&args.places, &map),
        Command::Check(check) => commands::check::check(&check),
        Command::Graph(graph) => commands::graph::graph(&args.places, &graph),
        Command::Fetch(fetch) => commands::housekeeping::fetch(&args.places, &fetch),
        Command::Rm(rm) => commands::housekeeping::rm(&args.places, &rm),
        Command::Gc(gc) => commands::housekeeping::gc(&args.places, &gc),
        Command::Runs(runs) => commands::runs::runs(&args.places, &runs),
        Command::Report(report) => commands::report::report(&args.places, &report),
        Command::Replay(replay) => commands::replay::replay(&args.places, &replay),
        Command::Show(show) => commands::show::show(&args.places, &show),
        Command::Paths(paths) => commands::paths::paths(&args.places, &paths),
        Command::Bench(bench) => commands::bench::bench(&bench),
        Command::Info(info) => commands::info::info(&info),
        Command::Logs(logs) => commands::logs::logs(&args.places, &logs),
    };
    done.unwrap_or_else(|error: CliError| error.present())
}
