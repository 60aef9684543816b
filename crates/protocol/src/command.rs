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
    /// Remember what is in the scratch folder: [`Self::Clean`] leaves it from now on.
    Mark,
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
    /// Whether the scratch folder is emptied before, unless it is empty.
    pub fresh: bool,
    /// Key of the store under which standard output is put, whole, if it is longer than its tail.
    pub stdout_key: Option<String>,
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
    /// File within the scratch folder; of several objects the folder that takes them.
    pub file: Vec<u8>,
    /// What the key names.
    pub which: Which,
    /// Which bytes of the object; all by default. Only of one object.
    pub range: Option<ByteRange>,
    /// Of several objects, how many are under way at a time; at least 1.
    pub concurrency: u32,
}

/// What a key, or a file's name, stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// One object, or file.
    #[default]
    One,
    /// All in a folder; the name ends with a slash. Below it, they keep their paths.
    Folder,
    /// All that match a glob. They keep their paths below the folder that stands in the glob before
    /// its first special character.
    Glob,
}

/// Bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// From one to another, both included; to the end by default.
    From {
        /// The first byte, from 0.
        from: u64,
        /// The last byte; not before `from`.
        to: Option<u64>,
    },
    /// This many at the end; at least 1.
    Last(u64),
}

impl std::fmt::Display for ByteRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::From { from, to: Some(to) } => write!(f, "bytes {from}-{to}"),
            Self::From { from, to: None } => write!(f, "bytes {from}-"),
            Self::Last(last) => write!(f, "bytes -{last}"),
        }
    }
}

/// A file to put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// File within the scratch folder; a folder or a glob of several.
    pub file: Vec<u8>,
    /// The object's key; of several the beginning of all keys, empty or with a slash at its end.
    pub key: String,
    /// What the file's name stands for.
    pub which: Which,
    /// Of several files, how many are under way at a time; at least 1.
    pub concurrency: u32,
    /// Absolute path, on the worker's machine, that takes one file instead of the store: it is
    /// moved there. The key is then for records only.
    pub deliver: Option<Vec<u8>>,
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
            Self::Mark => "mark",
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
                let mut arguments =
                    vec![format!("{prefix}{}", get.key).into_bytes(), get.file.clone()];
                arguments.extend(get.range.map(|range| range.to_string().into_bytes()));
                arguments
            }
            Self::Put(put) => vec![put.file.clone(), put.key.clone().into_bytes()],
            Self::Echo(text) => vec![text.clone()],
            Self::Print { file } => vec![file.clone()],
            Self::Sleep { duration_ns } => vec![format!("{duration_ns}ns").into_bytes()],
            Self::Cancel(target) => vec![target.to_string().into_bytes()],
            Self::Clean | Self::Mark | Self::Quit => Vec::new(),
        }
    }

    /// How many bytes [`Self::arguments`] has, without making them; a few more for numbers.
    #[must_use]
    pub fn arguments_bytes(&self) -> usize {
        /// Digits and signs of numbers in arguments.
        const NUMBER_BYTES_MAX: usize = 64;
        match self {
            Self::Run(run) => run.argv.iter().map(Vec::len).sum(),
            Self::Get(get) => get.key.len() + get.file.len() + NUMBER_BYTES_MAX,
            Self::Put(put) => put.file.len() + put.key.len(),
            Self::Echo(text) => text.len(),
            Self::Print { file } => file.len(),
            Self::Sleep { .. } | Self::Cancel(_) => NUMBER_BYTES_MAX,
            Self::Clean | Self::Mark | Self::Quit => 0,
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
                fresh: run.fresh,
                stdout_key: run.stdout_key.clone(),
            }),
            Action::Get(get) => Self::Get(wire::Get {
                place: match get.place {
                    Place::Store => wire::Place::Store,
                    Place::Inputs => wire::Place::Inputs,
                }
                .into(),
                key: get.key.clone(),
                file: get.file.clone(),
                which: wire::Which::from(get.which).into(),
                range_from: match get.range {
                    Some(ByteRange::From { from, .. }) => Some(from),
                    Some(ByteRange::Last(_)) | None => None,
                },
                range_to: match get.range {
                    Some(ByteRange::From { to, .. }) => to,
                    Some(ByteRange::Last(_)) | None => None,
                },
                range_last: match get.range {
                    Some(ByteRange::Last(last)) => Some(last),
                    Some(ByteRange::From { .. }) | None => None,
                },
                concurrency: get.concurrency,
            }),
            Action::Put(put) => Self::Put(wire::Put {
                file: put.file.clone(),
                key: put.key.clone(),
                which: wire::Which::from(put.which).into(),
                concurrency: put.concurrency,
                deliver: put.deliver.clone(),
            }),
            Action::Echo(text) => Self::Echo(wire::Echo { text: text.clone() }),
            Action::Sleep { duration_ns } => Self::Sleep(wire::Sleep { duration_ns: *duration_ns }),
            Action::Print { file } => Self::Print(wire::Print { file: file.clone() }),
            Action::Cancel(target) => Self::Cancel(wire::Cancel { target: target.0 }),
            Action::Clean => Self::Clean(wire::Clean { mark: false }),
            Action::Mark => Self::Clean(wire::Clean { mark: true }),
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
                fresh: run.fresh,
                stdout_key: run.stdout_key,
            }),
            wire::command::Action::Get(get) => Self::Get(Get {
                place: match get.place() {
                    wire::Place::Store => Place::Store,
                    wire::Place::Inputs => Place::Inputs,
                    wire::Place::Unspecified => return Err(malformed("no place to get from")),
                },
                range: range(&get)?,
                which: get.which().into(),
                concurrency: get.concurrency.max(1),
                key: get.key,
                file: get.file,
            }),
            wire::command::Action::Put(put) => Self::Put(Put {
                which: put.which().into(),
                concurrency: put.concurrency.max(1),
                file: put.file,
                key: put.key,
                deliver: put.deliver,
            }),
            wire::command::Action::Echo(echo) => Self::Echo(echo.text),
            wire::command::Action::Sleep(sleep) => Self::Sleep { duration_ns: sleep.duration_ns },
            wire::command::Action::Print(print) => Self::Print { file: print.file },
            wire::command::Action::Cancel(cancel) => Self::Cancel(CommandId(cancel.target)),
            wire::command::Action::Clean(clean) if clean.mark => Self::Mark,
            wire::command::Action::Clean(_) => Self::Clean,
            wire::command::Action::Quit(_) => Self::Quit,
        })
    }
}

/// The range of a get, checked.
fn range(get: &wire::Get) -> Result<Option<ByteRange>, ProtocolError> {
    let malformed = |why| ProtocolError::Malformed { what: "command", why };
    match (get.range_from, get.range_to, get.range_last) {
        (None, None, None) => Ok(None),
        (Some(from), Some(to), None) if to < from => Err(malformed("a range that ends too early")),
        (Some(from), to, None) => Ok(Some(ByteRange::From { from, to })),
        (None, None, Some(0)) => Err(malformed("a range without bytes")),
        (None, None, Some(last)) => Ok(Some(ByteRange::Last(last))),
        (None, Some(_), _) | (Some(_), _, Some(_)) => Err(malformed("half a range")),
    }
}

impl From<Which> for wire::Which {
    fn from(which: Which) -> Self {
        match which {
            Which::One => Self::One,
            Which::Folder => Self::Folder,
            Which::Glob => Self::Glob,
        }
    }
}

impl From<wire::Which> for Which {
    fn from(which: wire::Which) -> Self {
        match which {
            wire::Which::One => Self::One,
            wire::Which::Folder => Self::Folder,
            wire::Which::Glob => Self::Glob,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    fn get(which: Which, range: Option<ByteRange>) -> Action {
        Action::Get(Get {
            place: Place::Inputs,
            key: "a/*".into(),
            file: b"\xff".to_vec(),
            which,
            range,
            concurrency: 3,
        })
    }

    fn back(action: &Action) -> Result<Action, ProtocolError> {
        let command = Command {
            id: CommandId(7),
            lane: vec![1, 0],
            background: true,
            timeout_ms: Some(9),
            action: action.clone(),
        };
        let bytes = wire::Command::from(&command).encode_to_vec();
        let wire = wire::Command::decode(bytes.as_slice()).expect("what was encoded");
        Command::try_from(wire).map(|command| command.action)
    }

    #[test]
    fn transfers_and_marks_come_out_as_they_went_in() {
        let put = |which| {
            Action::Put(Put {
                file: b"x/".to_vec(),
                key: "y/".into(),
                which,
                concurrency: 1,
                deliver: None,
            })
        };
        let ranges = [
            None,
            Some(ByteRange::From { from: 0, to: None }),
            Some(ByteRange::From { from: 3, to: Some(3) }),
            Some(ByteRange::Last(u64::MAX)),
        ];
        let mut actions = vec![Action::Clean, Action::Mark, Action::Quit];
        for which in [Which::One, Which::Folder, Which::Glob] {
            actions.push(put(which));
            actions.extend(ranges.map(|range| get(which, range)));
        }
        for action in actions {
            assert_eq!(back(&action), Ok(action.clone()));
        }
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        for range in [ByteRange::From { from: 4, to: Some(3) }, ByteRange::Last(0)] {
            assert!(back(&get(Which::One, Some(range))).is_err(), "{range}");
        }
        let half = wire::Get {
            place: wire::Place::Store.into(),
            range_to: Some(3),
            ..wire::Get::default()
        };
        assert!(Action::try_from(wire::command::Action::Get(half)).is_err());
    }

    #[test]
    fn deliveries_and_whole_outputs_pass_the_wire() {
        let run = Run {
            argv: vec![b"\xff".to_vec()],
            fresh: true,
            stdout_key: Some("stdout/7".into()),
            ..Run::default()
        };
        let put = Put {
            file: b"./\xff".to_vec(),
            key: "out/%FF".into(),
            which: Which::One,
            concurrency: 1,
            deliver: Some(b"/out/\xff".to_vec()),
        };
        for action in [Action::Run(run), Action::Put(put)] {
            let wire = wire::command::Action::from(&action);
            assert_eq!(Action::try_from(wire), Ok(action));
        }
    }

    #[test]
    fn a_get_of_an_older_coordinator_is_of_one_object() {
        let old = wire::Get {
            place: wire::Place::Store.into(),
            key: "k".into(),
            file: b"f".to_vec(),
            ..wire::Get::default()
        };
        let Ok(Action::Get(get)) = Action::try_from(wire::command::Action::Get(old)) else {
            panic!("no get");
        };
        assert_eq!((get.which, get.range, get.concurrency), (Which::One, None, 1));
    }

    #[test]
    fn the_bytes_of_arguments_are_counted_without_making_them() {
        let echo = Action::Echo(vec![b'x'; 1000]);
        assert_eq!(echo.arguments_bytes(), 1000);
        let range = Some(ByteRange::From { from: u64::MAX, to: Some(u64::MAX) });
        for action in [get(Which::One, range), get(Which::Glob, None), Action::Cancel(CommandId(7))]
        {
            let made: usize = action.arguments().iter().map(Vec::len).sum();
            let counted = action.arguments_bytes();
            assert!(made <= counted && counted <= made + 64, "{action:?}: {made}, {counted}");
        }
    }
}
