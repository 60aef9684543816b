//! Errors as people see them: what, where, the cure; and the exit code that belongs to each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Report,
};
use musec_core::limits::JOB_BYTES_MAX;
use musec_core::{JobError, JobErrors};
use thiserror::Error;

use crate::terminal::look::Look;

/// What a command can end with, other than its result.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} is not UTF-8")]
    NotText { path: PathBuf },
    #[error(
        "{path} is longer than {JOB_BYTES_MAX} bytes, which is the most that a job file may be"
    )]
    JobTooLong { path: PathBuf },
    #[error("the job file has errors")]
    Job { path: PathBuf, text: String, errors: JobErrors },
    #[error(transparent)]
    NoRun(#[from] NoRun),
    #[error(
        "no worker {worker} in run {run}; workers have numbers from 0, in the order of the waves \
         that have begun"
    )]
    NoWorker { run: String, worker: u32 },
    #[error(transparent)]
    Run(#[from] musec_coordinator::RunError),
    #[error("this cannot be told: {0}")]
    NoInfo(&'static str),
    #[error("cannot tell it to the job")]
    NotTold(#[source] std::io::Error),
    #[error("cannot find this program's own file, to start workers from it")]
    NoProgram(#[source] std::io::Error),
    #[error(transparent)]
    Map(musec_core::MapError),
    #[error("{0}")]
    Usage(String),
    #[error("run {0} is under way; stop it first")]
    Running(String),
    #[error("cannot write {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot read the journal {path}")]
    Journal {
        path: PathBuf,
        #[source]
        source: musec_trace::journal::JournalError,
    },
    #[error(transparent)]
    Replay(#[from] musec_core::replay::ReplayError),
    #[error(
        "the run is over ({status:?}), but its journal {path} is not there any more: somebody removed \
         it meanwhile, and nothing else can be told of the run"
    )]
    JournalGone {
        path: PathBuf,
        status: musec_trace::RunStatus,
        #[source]
        source: std::io::Error,
    },
    #[error("the figures of this run do not sum up: {0}; this is a bug of musec, please report it")]
    Conservation(String),
    #[error("cannot write to standard output")]
    Output(#[source] std::io::Error),
    #[error("{what} failed")]
    Bench {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("the thread that runs the coordinator has panicked; this is a bug of musec")]
    Panicked,
}

/// A run that was asked for is not there.
#[derive(Debug, Error)]
pub(crate) enum NoRun {
    #[error("no run in {0}; start one with `musec run`, or name another folder with --runs")]
    None(PathBuf),
    #[error("no run begins with {name:?} in {runs}; `musec runs` lists them")]
    Unknown { name: String, runs: PathBuf },
    #[error("{count} runs begin with {name:?}; give more of the id")]
    Ambiguous { name: String, count: usize },
    #[error("cannot read {path}")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl CliError {
    const fn code(&self) -> u8 {
        use musec_coordinator::RunError;
        match self {
            Self::Read { .. }
            | Self::NotText { .. }
            | Self::JobTooLong { .. }
            | Self::Job { .. }
            | Self::NoRun(_)
            | Self::Map(_)
            | Self::Usage(_)
            | Self::Running(_)
            | Self::NoInfo(_)
            | Self::NoWorker { .. }
            | Self::Run(RunError::Folder(musec_coordinator::FolderError::Ship { .. })) => 2,
            Self::Run(
                RunError::Folder(musec_coordinator::FolderError::Write { .. })
                | RunError::Identity(_)
                | RunError::TooMany { .. }
                | RunError::Store(_)
                | RunError::Listen { .. }
                | RunError::Launcher { .. }
                | RunError::Loop(_),
            )
            | Self::NotTold(_)
            | Self::NoProgram(_) => 3,
            Self::Journal { .. } | Self::Conservation(_) | Self::Replay(_) => 4,
            Self::Run(RunError::ResultsInterrupted { .. }) => 130,
            Self::Run(RunError::Journal { .. } | RunError::Results { .. })
            | Self::Bench { .. }
            | Self::JournalGone { .. }
            | Self::Output(_)
            | Self::Write { .. }
            | Self::Panicked => 1,
        }
    }

    /// Prints the error and tells the exit code.
    pub(crate) fn present(&self) -> ExitCode {
        if let Self::Output(error) = self
            && error.kind() == std::io::ErrorKind::BrokenPipe
        {
            return ExitCode::SUCCESS;
        }
        let text = match self {
            Self::Job { path, text, errors } => render_job(path, text, errors, &Look::of_stderr()),
            other => render_chain(other),
        };
        crate::output::complain(&text);
        ExitCode::from(self.code())
    }
}

fn render_chain(error: &CliError) -> String {
    let mut text = format!("error: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!("\n  because: {cause}"));
        source = cause.source();
    }
    text
}

/// All errors of a job file, each with its place underlined.
fn render_job(path: &Path, text: &str, errors: &JobErrors, look: &Look) -> String {
    let theme =
        if look.colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler =
        GraphicalReportHandler::new_themed(theme).with_width(look.width).with_links(false);
    let mut out = String::new();
    for error in &errors.0 {
        let report = Report::new(Shown(error.clone()))
            .with_source_code(NamedSource::new(path.to_string_lossy(), text.to_owned()));
        if handler.render_report(&mut out, report.as_ref()).is_err() {
            // What cannot be drawn is told in words.
            out.push_str(&format!("{}:{error}\n", path.display()));
        }
        out.push('\n');
    }
    let count = u64::try_from(errors.0.len()).unwrap_or(u64::MAX);
    out.push_str(&format!(
        "{} in {}",
        crate::terminal::page::counted(count, "error"),
        path.display()
    ));
    out
}

/// A job file's error as a diagnostic.
#[derive(Debug, Error)]
#[error("{}", .0.message)]
struct Shown(JobError);

impl Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.0.cure.as_ref().map(|cure| Box::new(cure) as Box<dyn std::fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.0.span.clone();
        Some(Box::new(std::iter::once(LabeledSpan::underline(span))))
    }
}
