//! A whole job.

use crate::build::error::BuildError;
use crate::build::text::Value;
use crate::build::wave::{Wave, write_lines};
use crate::job::{Options, parse};
use crate::program::Program;

/// A job that is being built.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a job does nothing until it is built"]
pub struct Job {
    keys: Vec<(&'static str, Value)>,
    params: Vec<(String, Value)>,
    waves: Vec<Wave>,
}

impl Job {
    /// A job without waves.
    pub fn new(name: &str) -> Self {
        let keys = vec![("name", Value::from(name))];
        Self { keys, params: Vec::new(), waves: Vec::new() }
    }

    /// A key of `[job]`, as a job file has it; what it was set to before is forgotten.
    pub fn key(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.keys.retain(|(known, _)| *known != key);
        self.keys.push((key, value.into()));
        self
    }

    /// Where `in:` keys are read.
    pub fn inputs(self, folder: impl Into<String>) -> Self {
        self.key("inputs", folder.into())
    }

    /// Where workers get and put.
    pub fn store(self, url: impl Into<String>) -> Self {
        self.key("store", url.into())
    }

    /// Files that are shipped to every host, and on the PATH of every `run`.
    pub fn files<const N: usize>(self, files: [&str; N]) -> Self {
        self.key("files", files)
    }

    /// The folder that takes all objects of the store at the end.
    pub fn results(self, folder: impl Into<String>) -> Self {
        self.key("results", folder.into())
    }

    /// A parameter with its value: a name that all expressions know.
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.retain(|(known, _)| known != name);
        self.params.push((name.to_owned(), value.into()));
        self
    }

    /// One more wave.
    pub fn wave(mut self, wave: Wave) -> Self {
        self.waves.push(wave);
        self
    }

    /// It as a job file: what a run keeps of it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = "[job]\n".to_owned();
        write_lines(&mut out, &self.keys);
        if !self.params.is_empty() {
            out.push_str("\n[params]\n");
            write_lines(&mut out, &self.params);
        }
        for wave in &self.waves {
            wave.write(&mut out);
        }
        out
    }

    /// Checks it and makes its program.
    ///
    /// # Errors
    /// With all that is wrong with it.
    pub fn build(&self) -> Result<Program, BuildError> {
        self.build_with(&Options::default())
    }

    /// The same with what a command line may say beside a job.
    ///
    /// # Errors
    /// With all that is wrong with it.
    pub fn build_with(&self, options: &Options) -> Result<Program, BuildError> {
        let text = self.text();
        parse(&text, options).map_err(|errors| BuildError { text, errors })
    }
}
