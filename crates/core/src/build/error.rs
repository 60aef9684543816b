//! Why a job cannot be built.

use std::fmt;

use thiserror::Error;

use crate::job::JobErrors;

/// All that is wrong with a job: each error has its place in the job's text, and a cure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct BuildError {
    /// The job as a job file.
    pub text: String,
    /// What is wrong with it; never empty.
    #[source]
    pub errors: JobErrors,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the job cannot be built")?;
        for error in &self.errors.0 {
            let line = self.text.lines().nth(error.line.saturating_sub(1)).unwrap_or_default();
            write!(f, "; {} in `{}`", error.message, line.trim())?;
            if let Some(cure) = &error.cure {
                write!(f, " ({cure})")?;
            }
        }
        Ok(())
    }
}
