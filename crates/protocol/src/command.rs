//! What a worker can be told to do. Dumb and general: nothing here knows what is computed.

use crate::{CommandId, ProtocolError, wire};

/// One command to one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its number within the attempt; the reply carries it.
    pub id: CommandId,
    /// Path of the lane it belongs to; empty for a sequential machine.
    pub lane: Vec<u32>,
    /// Whether the lane goes on without it.
    pub background: bool,
    /// Time limit in milliseconds, from its start at the worker; `None` for no limit.
    pub timeout_ms: Option<u64>,
    /// What to do.
    pub action: Action,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run a process in a group of its own, in the scratch folder.
    Run(Run),
    /// Bring an object into the scratch folder.
    Get(Get),
    /// Put a file of the scratch folder into the store.
    Put(Put),
    /// Answer; the text is of use to the journal only.
    Echo(Vec<u8>),
    /// Wait at the worker, in nanoseconds.
    Sleep {
        /// How long, in nanoseconds.
        duration_ns: u64,
    },
    /// End another command of the same attempt.
    Cancel(CommandId),
    /// Read the end of a file of the scratch folder; it comes back as the tail of standard output.
    Print {
        /// File within the scratch folder.
        file: Vec<u8>,
    },
    /// Empty the scratch folder, between items.
    Clean,
    /// Kill what runs, remove the scratch folder, answer and end.
    Quit,
}

/// A process to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Program and arguments; never empty.
    pub argv: Vec<Vec<u8>>,
    /// Variables added to the worker's own environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Working directory within the scratch folder; the scratch folder itself by default.
    pub cwd: Option<Vec<u8>>,
    /// File within the scratch folder to read as standard input; otherwise it is empty.
    pub stdin: Option<Vec<u8>>,
    /// File within the scratch folder that takes standard output, instead of the tail.
    pub stdout: Option<Vec<u8>>,
    /// From TERM to KILL, in milliseconds, when the time limit is over.
    pub grace_ms: u64,
}

/// Where an object is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The run's store.
    Store,
    /// The job's inputs (`in:` keys).
    Inputs,
}

/// An object to bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// Where it is read.
    pub place: Place,
    /// Its key, without `in:`.
    pub key: String,
    /// File within the scratch folder.
    pub file: Vec<u8>,
}

/// A file to put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// File within the scratch folder.
    pub file: Vec<u8>,
    /// The object's key.
    pub key: String,
}

impl Action {
    /// The command's name as it is written in job files, records and reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Get(_) => "get",
            Self::Put(_) => "put",
            Self::Echo(_) => "echo",
            Self::Sleep { .. } => "sleep",
            Self::Cancel(_) => "cancel",
            Self::Print { .. } => "print",
            Self::Clean => "clean",
            Self::Quit => "quit",
        }
    }

    /// What the command was given, for records and reports; secrets never reach this point.
    #[must_use]
    pub fn arguments(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Run(run) => run.argv.clone(),
            Self::Get(get) => {
                let prefix = if get.place == Place::Inputs { "in:" } else { "" };
                vec![format!("{prefix}{}", get.key).into_bytes(), get.file.clone()]
            }
            Self::Put(put) => vec![put.file.clone(), put.key.clone().into_bytes()],
            Self::Echo(text) => vec![text.clone()],
            Self::Print { file } => vec![file.clone()],
            Self::Sleep { duration_ns } => vec![format!("{duration_ns}ns").into_bytes()],
            Self::Cancel(target) => vec![target.to_string().into_bytes()],
            Self::Clean | Self::Quit => Vec::new(),
        }
    }
}

impl From<&Command> for wire::Command {
    fn from(command: &Command) -> Self {
        Self {
            id: command.id.0,
            lane: command.lane.clone(),
            background: command.background,
            timeout_ms: command.timeout_ms,
            action: Some((&command.action).into()),
        }
    }
}

impl From<&Action> for wire::command::Action {
    fn from(action: &Action) -> Self {
        match action {
            Action::Run(run) => Self::Run(wire::Run {
                argv: run.argv.clone(),
                env: run
                    .env
                    .iter()
                    .map(|(name, value)| wire::EnvVar { name: name.clone(), value: value.clone() })
                    .collect(),
                cwd: run.cwd.clone(),
                stdin: run.stdin.clone(),
                stdout: run.stdout.clone(),
                grace_ms: run.grace_ms,
            }),
            Action::Get(get) => Self::Get(wire::Get {
                place: match get.place {
                    Place::Store => wire::Place::Store,
                    Place::Inputs => wire::Place::Inputs,
                }
                .into(),
                key: get.key.clone(),
                file: get.file.clone(),
            }),
            Action::Put(put) => {
                Self::Put(wire::Put { file: put.file.clone(), key: put.key.clone() })
            }
            Action::Echo(text) => Self::Echo(wire::Echo { text: text.clone() }),
            Action::Sleep { duration_ns } => Self::Sleep(wire::Sleep { duration_ns: *duration_ns }),
            Action::Print { file } => Self::Print(wire::Print { file: file.clone() }),
            Action::Cancel(target) => Self::Cancel(wire::Cancel { target: target.0 }),
            Action::Clean => Self::Clean(wire::Clean {}),
            Action::Quit => Self::Quit(wire::Quit {}),
        }
    }
}

impl TryFrom<wire::Command> for Command {
    type Error = ProtocolError;

    fn try_from(command: wire::Command) -> Result<Self, ProtocolError> {
        let malformed = |why| ProtocolError::Malformed { what: "command", why };
        let action = command.action.ok_or_else(|| malformed("no action"))?;
        Ok(Self {
            id: CommandId(command.id),
            lane: command.lane,
            background: command.background,
            timeout_ms: command.timeout_ms,
            action: action.try_into()?,
        })
    }
}

impl TryFrom<wire::command::Action> for Action {
    type Error = ProtocolError;

    fn try_from(action: wire::command::Action) -> Result<Self, ProtocolError> {
        let malformed = |why| ProtocolError::Malformed { what: "command", why };
        Ok(match action {
            wire::command::Action::Run(run) if run.argv.is_empty() => {
                return Err(malformed("an empty argument list"));
            }
            wire::command::Action::Run(run) => Self::Run(Run {
                argv: run.argv,
                env: run.env.into_iter().map(|var| (var.name, var.value)).collect(),
                cwd: run.cwd,
                stdin: run.stdin,
                stdout: run.stdout,
                grace_ms: run.grace_ms,
            }),
            wire::command::Action::Get(get) => Self::Get(Get {
                place: match get.place() {
                    wire::Place::Store => Place::Store,
                    wire::Place::Inputs => Place::Inputs,
                    wire::Place::Unspecified => return Err(malformed("no place to get from")),
                },
                key: get.key,
                file: get.file,
            }),
            wire::command::Action::Put(put) => Self::Put(Put { file: put.file, key: put.key }),
            wire::command::Action::Echo(echo) => Self::Echo(echo.text),
            wire::command::Action::Sleep(sleep) => Self::Sleep { duration_ns: sleep.duration_ns },
            wire::command::Action::Print(print) => Self::Print { file: print.file },
            wire::command::Action::Cancel(cancel) => Self::Cancel(CommandId(cancel.target)),
            wire::command::Action::Clean(_) => Self::Clean,
            wire::command::Action::Quit(_) => Self::Quit,
        })
    }
}
