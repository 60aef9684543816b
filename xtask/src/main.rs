//! Developer chores of musec: `cargo xtask tidy`, `test`, `fuzz`, `performance`,
//! `check-report`.
//!
//! In: a chore's name. Out: words on the terminal, and exit code 0 (well), 1 (a chore found
//! something) or 2 (there is no such chore). Chores only read the tree; `test` and `fuzz` also
//! build.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

mod fuzz;
mod needs;
mod performance;
mod report;
mod run_tests;
mod source;
mod tidy;
mod tree;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask CHORE

  tidy                lengths, headers, dependencies between crates, the dependency budget, papers
  test [-- ARGS]      installs what the tests need, and passes them; ARGS go to `cargo test`
  fuzz [--seconds N] [LAW]
                      tries random bytes for N seconds (60) on each law of fuzz/, or on one
  fuzz LAW --replay FILE
                      tries one input, such as one that broke the law before
  performance [--quick]
                      measures on an idle machine, and writes docs/src/performance.md
  check-report FILE   checks the sums of a report of `musec report --format json`
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["tidy"] => tidy::run(),
        ["test"] => run_tests::run(&[]),
        ["test", "--", rest @ ..] => run_tests::run(rest),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["performance", rest @ ..] => performance::run(rest),
        ["check-report", file] => report::run(file.as_ref()),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
