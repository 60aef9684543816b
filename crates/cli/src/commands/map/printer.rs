//! Each item's standard output, whole and in the order of the items, from what a run records.
//!
//! In: the journal, for which command is which item's and when it ended; the file of outputs; the
//! store, where outputs are that are longer than a reply may be. Invariants: of outputs whose turn
//! has not come only the place in the file is kept; an item without a result holds up nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::PathBuf;

use musec_coordinator::RunFolder;
use musec_core::stdout_key;
use musec_trace::journal::{JournalReader, Next};
use musec_trace::{CommandId, Event, LaunchId, Record, Stream, Tail};

use super::told::Told;
use crate::error::CliError;
use crate::output::{print_all, print_from};

/// Prints outputs as their turns come.
pub(super) struct Printer {
    folder: RunFolder,
    journal: Source,
    outputs: Source,
    /// The item whose turn it is.
    turn: u64,
    /// The item that each attempt has, and its command.
    present: BTreeMap<LaunchId, Present>,
    /// Items that ended and were not printed.
    ended: BTreeMap<u64, Printed>,
    /// Standard outputs that were not printed.
    kept: BTreeMap<(LaunchId, CommandId), Kept>,
    /// Bytes of those that are in memory.
    held_bytes: usize,
}

/// An item under way.
struct Present {
    item: u64,
    command: Option<CommandId>,
    ended: bool,
}

/// Bytes of outputs that wait for their turn in memory; of further ones the place is kept.
const HELD_BYTES_MAX: usize = 8 << 20;

/// An output that waits for its turn.
enum Kept {
    Here(Tail),
    At(u64),
}

/// What an item printed.
enum Printed {
    Nothing,
    Something { launch: LaunchId, id: CommandId },
}

impl Printer {
    pub(super) fn new(folder: &RunFolder) -> Self {
        Self {
            folder: folder.clone(),
            journal: Source::new(folder.journal()),
            outputs: Source::new(folder.outputs()),
            turn: 0,
            present: BTreeMap::new(),
            ended: BTreeMap::new(),
            kept: BTreeMap::new(),
            held_bytes: 0,
        }
    }

    /// Reads what was recorded since, and prints what can be printed.
    pub(super) fn advance(&mut self, told: &mut Told) -> Result<(), CliError> {
        while let Some((_, record)) = self.journal.next()? {
            self.see(record, told);
        }
        while let Some((place, record)) = self.outputs.next()? {
            if let Event::Output { launch, id, stream: Stream::Stdout, tail } = record.event {
                let bytes = tail.text.len();
                let kept = if self.held_bytes + bytes <= HELD_BYTES_MAX {
                    self.held_bytes += bytes;
                    Kept::Here(tail)
                } else {
                    Kept::At(place)
                };
                self.kept.insert((launch, id), kept);
            }
        }
        self.print(false)
    }

    /// Prints the rest; items that never ended are passed over.
    pub(super) fn finish(&mut self, told: &mut Told) -> Result<(), CliError> {
        self.advance(told)?;
        self.print(true)
    }

    fn see(&mut self, record: Record, told: &mut Told) {
        match record.event {
            Event::ItemGiven { launch, item, .. } => {
                let present = Present { item, command: None, ended: false };
                if let Some(before) = self.present.insert(launch, present) {
                    self.end(&before, Printed::Nothing, told);
                }
            }
            Event::Queued(queued) if queued.name == "run" => {
                if let Some(present) = self.present.get_mut(&queued.launch) {
                    present.command = Some(queued.id);
                }
            }
            Event::Replied { launch, reply, .. } => {
                let Some(present) = self.present.get_mut(&launch) else { return };
                if present.command == Some(reply.id) {
                    let before = Present { ended: present.ended, ..*present };
                    present.ended = true;
                    let printed = match reply.stdout.total_bytes {
                        0 => Printed::Nothing,
                        _ => Printed::Something { launch, id: reply.id },
                    };
                    self.end(&before, printed, told);
                }
            }
            Event::Ended { launch, .. } => {
                if let Some(before) = self.present.remove(&launch) {
                    self.end(&before, Printed::Nothing, told);
                }
            }
            Event::Failure(failure) => {
                let item = self.present.get(&failure.launch).map(|present| present.item);
                told.failure(item, &failure);
            }
            _ => {}
        }
    }

    fn end(&mut self, present: &Present, printed: Printed, told: &mut Told) {
        if !present.ended {
            told.item_ended();
            self.ended.insert(present.item, printed);
        }
    }

    /// Prints the items whose turn has come; in the end all that there are.
    fn print(&mut self, is_end: bool) -> Result<(), CliError> {
        while let Some((item, printed)) = self.ended.first_key_value() {
            if *item != self.turn && !is_end {
                break;
            }
            let item = *item;
            if let Printed::Something { launch, id } = printed {
                let key = (*launch, *id);
                match self.kept.remove(&key) {
                    Some(kept) => self.print_one(item, kept)?,
                    None if is_end => {}
                    None => break,
                }
            }
            self.ended.pop_first();
            self.turn = item + 1;
        }
        print_all()
    }

    fn print_one(&mut self, item: u64, kept: Kept) -> Result<(), CliError> {
        let tail = match kept {
            Kept::Here(tail) => {
                self.held_bytes = self.held_bytes.saturating_sub(tail.text.len());
                tail
            }
            Kept::At(place) => match self.outputs.tail_at(place)? {
                Some(tail) => tail,
                None => return Ok(()),
            },
        };
        if tail.text.len() as u64 == tail.total_bytes {
            return print_from(&mut tail.text.as_slice());
        }
        // One that was cut short by the end of the run may have no object.
        match File::open(self.folder.objects().join(stdout_key(item))) {
            Ok(mut whole) => print_from(&mut whole),
            Err(_) => print_from(&mut tail.text.as_slice()),
        }
    }
}

/// A file of records that is being written.
struct Source {
    path: PathBuf,
    reader: Option<JournalReader<File>>,
}

impl Source {
    const fn new(path: PathBuf) -> Self {
        Self { path, reader: None }
    }

    /// The next record with its place; `None` if there is none yet, or the file is not there yet.
    fn next(&mut self) -> Result<Option<(u64, Record)>, CliError> {
        if self.reader.is_none() {
            self.reader = File::open(&self.path).ok().map(JournalReader::new);
        }
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let place = reader.position();
        let next = reader.read_next();
        match next.map_err(|source| CliError::Journal { path: self.path.clone(), source })? {
            Next::Record(record) => Ok(Some((place, record))),
            Next::End { .. } => Ok(None),
        }
    }

    /// The output that begins at this place.
    fn tail_at(&self, place: u64) -> Result<Option<Tail>, CliError> {
        let read_error = |source| CliError::Read { path: self.path.clone(), source };
        let mut file = File::open(&self.path).map_err(read_error)?;
        file.seek(SeekFrom::Start(place)).map_err(read_error)?;
        let next = JournalReader::resume(file, place).read_next();
        match next.map_err(|source| CliError::Journal { path: self.path.clone(), source })? {
            Next::Record(Record { event: Event::Output { tail, .. }, .. }) => Ok(Some(tail)),
            Next::Record(_) | Next::End { .. } => Ok(None),
        }
    }
}
