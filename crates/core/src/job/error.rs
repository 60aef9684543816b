//! What is wrong with a job file: all of it at once, each with its place and the cure.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}:{column}: {message}")]
pub struct JobError {
    /// Line in the text, from 1.
    pub line: usize,
    /// Column in that line, in characters from 1.
    pub column: usize,
    /// Where in the text, in bytes; within the text and at boundaries of characters.
    pub span: Range<usize>,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub cure: Option<String>,
}

/// All that is wrong with a job file, in the order of its text; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct JobErrors(pub Vec<JobError>);

impl fmt::Display for JobErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => one.fmt(f),
            many => write!(f, "{} errors in the job file", many.len()),
        }
    }
}
