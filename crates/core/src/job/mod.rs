//! From a job file's text to a program.
//!
//! In: the text, never trusted, and what the command line says beside it. Out: a whole [`Program`],
//! or all errors at once, each with its place in the text and the cure. Invariants: no text makes
//! it panic; what comes out names only what is bound and holds no cycle of waves. No file is opened:
//! paths stay as written.

mod error;
mod nearest;

use std::collections::BTreeMap;
use std::time::Duration;

pub use error::{JobError, JobErrors};
pub(crate) use nearest::nearest;

use crate::program::Program;

/// What is said beside the job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The job's name unless it has one: the file's stem. `job` if empty.
    pub name: String,
    /// Overrides of `[params]`, as texts; each is read as its default's type.
    pub params: BTreeMap<String, String>,
    /// Attempts alive at a time, for all waves.
    pub at_once: Option<u32>,
    /// Time of each attempt, for all waves.
    pub timeout: Option<Duration>,
    /// Where `in:` keys are read.
    pub inputs: Option<String>,
}

/// Parses and checks a job file.
///
/// # Errors
/// With all that is wrong, in the order of the text.
pub fn parse(text: &str, options: &Options) -> Result<Program, JobErrors> {
    todo!("{text} {options:?}")
}
