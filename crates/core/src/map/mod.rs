//! One command for each of many items: the program of `musec map`.
//!
//! In: a command's words, items of any bytes, and where files are delivered. Out: a [`Program`] of
//! one wave, whose workers take items from one queue. Words are parsed once, and filled in without
//! a template engine. Invariants: an item's bytes reach the command unharmed; no two items are
//! delivered to the same file; nothing is looked at on a disk.

mod items;
mod recorded;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use musec_protocol::{Action, Put, Run, Which};
use thiserror::Error;

pub use items::ByteItems;
pub(crate) use items::{decode, encode};

use self::text::{Part, Parts, Text, last_part};
use crate::limits::{CONNECT_TIMEOUT, GRACE, ITEMS_BYTES_MAX, ITEMS_MAX};
use crate::program::node::{ActionTemplate, CommandNode, LaneDef, Node, NodeId, NodeKind};
use crate::program::{
    Count, Items, OutlineStep, Program, ResultRule, StateDef, StateId, Wave, WaveId,
};

/// Name of the job and of its wave.
const NAME: &str = "map";

/// State of the delivery of files.
const DELIVERY: &str = "deliver";

/// Bytes that make one word a text for a shell.
const SHELL_BYTES: &[u8] = b" \t\n|&;<>()$`\\\"'*?[]#~=%{}!";

/// What `musec map` is asked for.
#[derive(Clone, Debug)]
pub struct Map {
    /// The command's words; one word with a shell's characters goes to `/bin/sh -c`.
    pub command: Vec<Vec<u8>>,
    /// The items; at least one.
    pub items: ByteItems,
    /// Where each item's `{out}` is delivered: a path with placeholders.
    pub put: Option<Vec<u8>>,
    /// Absolute folder where relative paths of `put` begin.
    pub folder: Vec<u8>,
    /// How many workers take items; at least 1.
    pub workers: u32,
    /// Time limit of each item's command.
    pub timeout: Option<Duration>,
}

/// Why there can be no such program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    /// No words.
    #[error("no command: write it after `--`")]
    NoCommand,
    /// Nothing to do.
    #[error("no items")]
    NoItems,
    /// More items than fit in memory.
    #[error(
        "{count} items of {bytes} bytes are too many: at most {ITEMS_MAX}, of {ITEMS_BYTES_MAX} bytes"
    )]
    TooMany {
        /// How many.
        count: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// An item that no process can be given.
    #[error("item {number} has a zero byte, which no argument may have; -0 separates items by it")]
    Zero {
        /// The item.
        number: usize,
    },
    /// A URL as the place of delivery.
    #[error("--put {0}: URLs are not yet supported; name a path")]
    Url(String),
    /// The place of delivery depends on itself.
    #[error(
        "--put {0} has {{out}} in it, which is what it delivers; use {{stem}}, {{name}} or {{index}}"
    )]
    OutInPut(String),
    /// `{out}` without a place of delivery.
    #[error(
        "the command has {{out}}, but nothing says where it goes: add --put 'out/{{stem}}.txt'"
    )]
    OutWithoutPut,
    /// A place of delivery without `{out}`.
    #[error("--put delivers the file {{out}}, which the command does not have")]
    PutWithoutOut,
    /// Two items would write the same file.
    #[error(
        "items {first} and {second} would both be delivered to {path}; use {{name}} or {{index}}"
    )]
    SamePath {
        /// The one item.
        first: u64,
        /// The other.
        second: u64,
        /// The path.
        path: String,
    },
    /// A path that cannot be a file.
    #[error("item {number} would be delivered to {path:?}, which names no file")]
    NoFile {
        /// The item.
        number: u64,
        /// The path.
        path: String,
    },
}

/// The command of a map, its words parsed.
#[derive(Debug)]
pub(crate) struct MapRun {
    words: Vec<Text>,
    put: Option<Arc<Target>>,
}

/// The delivery of a map.
#[derive(Debug)]
pub(crate) struct Target {
    path: Text,
    folder: Vec<u8>,
}

impl Map {
    /// The program.
    ///
    /// # Errors
    /// When there is nothing to do, or the placeholders do not fit together.
    pub fn program(self) -> Result<Program, MapError> {
        self.check_items()?;
        let put = self.put.as_deref().map(|path| Target::parse(path, &self.folder)).transpose()?;
        let put = put.map(Arc::new);
        let (program, words) = words(&self.command)?;
        let names_out = words.iter().any(|word| word.has(Part::Out));
        match (&put, names_out) {
            (None, true) => return Err(MapError::OutWithoutPut),
            (Some(_), false) => return Err(MapError::PutWithoutOut),
            (Some(target), true) => target.check(&self.items)?,
            (None, false) => {}
        }
        let mut nodes = vec![Node { state: None, name: "end".to_owned(), kind: NodeKind::End }];
        let mut states = vec![program];
        if let Some(target) = &put {
            let action = ActionTemplate::Deliver(Arc::clone(target));
            nodes.push(command("put", StateId(1), action, None, NodeId(0)));
            states.push(DELIVERY.to_owned());
        }
        let next = NodeId(u32::from(put.is_some()));
        let entry = NodeId(next.0 + 1);
        let action = ActionTemplate::Map(Box::new(MapRun { words, put }));
        nodes.push(command("run", StateId(0), action, self.timeout, next));
        Ok(self.assemble(nodes, entry, states))
    }

    fn check_items(&self) -> Result<(), MapError> {
        let (count, bytes) = (self.items.len(), self.items.bytes());
        if count == 0 {
            return Err(MapError::NoItems);
        }
        if count as u64 > ITEMS_MAX || bytes > ITEMS_BYTES_MAX {
            return Err(MapError::TooMany { count, bytes });
        }
        match self.items.iter().position(|item| item.contains(&0)) {
            Some(number) => Err(MapError::Zero { number }),
            None => Ok(()),
        }
    }

    fn assemble(self, nodes: Vec<Node>, entry: NodeId, states: Vec<String>) -> Program {
        let outline = self.outline(&states);
        let wave = WaveId(0);
        let states = states.into_iter().map(|name| StateDef { wave, name }).collect();
        let wave = Wave {
            name: NAME.to_owned(),
            after: Vec::new(),
            each: false,
            max_workers: self.workers.max(1),
            only: None,
            keep: true,
            workers: Some(Count::Number(self.workers.max(1))),
            items: Some(Items::Bytes(Arc::new(self.items))),
            at_once: Some(Count::Number(self.workers.max(1))),
            timeout: None,
            connect_timeout: CONNECT_TIMEOUT,
            nodes,
            lanes: vec![LaneDef::main()],
            entry,
            setup: None,
            slots: 0,
            vars: Vec::new(),
            group_size: None,
            barriers: Vec::new(),
            infos: Vec::new(),
            reads_output: false,
            outline,
            setup_outline: Vec::new(),
        };
        Program {
            job: NAME.to_owned(),
            params: BTreeMap::new(),
            states,
            waves: vec![wave],
            files: Vec::new(),
            inputs: None,
            store: None,
            results: Vec::<ResultRule>::new(),
            keep_scratch: false,
            param_values: Vec::new(),
        }
    }

    fn outline(&self, states: &[String]) -> Vec<OutlineStep> {
        let words: Vec<String> = self.command.iter().map(|word| lossy(word)).collect();
        let texts = [
            ("run", words.join(" ")),
            ("put", self.put.as_deref().map_or_else(String::new, lossy)),
        ];
        let steps = states.iter().zip(texts).map(|(state, (action, text))| OutlineStep {
            action,
            text,
            state: state.clone(),
            pipelined: false,
            background: false,
            condition: None,
            steps: Vec::new(),
            lanes: Vec::new(),
            otherwise: Vec::new(),
            on_error: Vec::new(),
        });
        steps.collect()
    }
}

/// The command's program by its name, and its words; the item is the last one where none names it.
fn words(command: &[Vec<u8>]) -> Result<(String, Vec<Text>), MapError> {
    let [first, rest @ ..] = command else { return Err(MapError::NoCommand) };
    if first.is_empty() {
        return Err(MapError::NoCommand);
    }
    let is_shell = rest.is_empty() && first.iter().any(|byte| SHELL_BYTES.contains(byte));
    if is_shell {
        let text = Text::shell(first);
        let text = if text.has_any() { text } else { text.and_item() };
        let words = vec![Text::word(b"/bin/sh"), Text::word(b"-c"), text];
        return Ok(("sh".to_owned(), words));
    }
    let mut words: Vec<Text> = command.iter().map(|word| Text::word(word)).collect();
    if !words.iter().any(Text::has_any) {
        words.push(Text::word(b"{in}"));
    }
    Ok((lossy(last_part(first)), words))
}

fn command(
    name: &str,
    state: StateId,
    action: ActionTemplate,
    timeout: Option<Duration>,
    next: NodeId,
) -> Node {
    let (expect, category, background) = (None, None, None);
    let kind = CommandNode { action, timeout, expect, category, background, next };
    Node { state: Some(state), name: name.to_owned(), kind: NodeKind::Command(Box::new(kind)) }
}

impl MapRun {
    /// The command for one item.
    pub(crate) fn action(&self, item: &[u8], index: u64) -> Action {
        let out = self.put.as_ref().map_or_else(Vec::new, |target| target.scratch(item, index));
        let parts = Parts { item, index, out: &out };
        Action::Run(Run {
            argv: self.words.iter().map(|word| word.fill(&parts)).collect(),
            grace_ms: u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX),
            fresh: true,
            stdout_key: Some(stdout_key(index)),
            ..Run::default()
        })
    }
}

/// Where an item's standard output is put into the run's store if it is too long for a reply.
#[must_use]
pub fn stdout_key(index: u64) -> String {
    format!("stdout/{index}")
}

impl Target {
    fn parse(path: &[u8], folder: &[u8]) -> Result<Self, MapError> {
        if path.windows(3).any(|three| three == b"://") {
            return Err(MapError::Url(lossy(path)));
        }
        let mut written = path.to_vec();
        if written.is_empty() || written.ends_with(b"/") {
            written.extend_from_slice(b"{name}");
        }
        let text = Text::word(&written);
        if text.has(Part::Out) {
            return Err(MapError::OutInPut(lossy(path)));
        }
        Ok(Self { path: text, folder: folder.to_vec() })
    }

    /// Checks that every item has a file of its own.
    fn check(&self, items: &ByteItems) -> Result<(), MapError> {
        let mut paths: Vec<(Vec<u8>, u64)> = Vec::with_capacity(items.len());
        for (number, item) in (0..).zip(items.iter()) {
            let path = self.path(item, number);
            if path.ends_with(b"/") || matches!(last_part(&path), b"" | b"." | b"..") {
                return Err(MapError::NoFile { number, path: lossy(&path) });
            }
            paths.push((path, number));
        }
        paths.sort_unstable();
        let same = paths.windows(2).find_map(|two| match two {
            [(path, first), (other, second)] if path == other => Some((path, *first, *second)),
            _ => None,
        });
        match same {
            Some((path, first, second)) => {
                Err(MapError::SamePath { first, second, path: lossy(path) })
            }
            None => Ok(()),
        }
    }

    fn path(&self, item: &[u8], index: u64) -> Vec<u8> {
        self.path.fill(&Parts { item, index, out: b"" })
    }

    /// `{out}`: a path from the scratch folder, which no program takes for an option. It has the
    /// last part of the path of delivery, for programs that go by its extension.
    fn scratch(&self, item: &[u8], index: u64) -> Vec<u8> {
        [b"./".as_slice(), last_part(&self.path(item, index))].concat()
    }

    /// The delivery of one item's file.
    pub(crate) fn action(&self, item: &[u8], index: u64) -> Action {
        let path = self.path(item, index);
        let mut absolute = Vec::new();
        if !path.starts_with(b"/") {
            absolute.extend_from_slice(&self.folder);
            absolute.push(b'/');
        }
        absolute.extend_from_slice(&path);
        Action::Put(Put {
            file: self.scratch(item, index),
            key: encode(&path),
            which: Which::One,
            concurrency: 1,
            deliver: Some(absolute),
        })
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
