//! Reading: also while the journal is being written, also when it is torn or damaged.

use std::io::{self, Read};

use prost::Message;
use thiserror::Error;

use super::{ENTRY_BYTES_MAX, ENTRY_HEADER_BYTES, FILE_HEADER_BYTES, MAGIC, VERSION, number};
use crate::{Record, wire};

/// Bytes asked from the source at a time.
const READ_BYTES: usize = 256 << 10;

/// Reads a journal from its beginning.
#[derive(Debug)]
pub struct JournalReader<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    /// Place in the file of `buffer[start]`.
    offset: u64,
    opened: bool,
    /// Length of the payload that ends at `start`: that of the last record.
    payload_bytes: usize,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A record.
    Record(Record),
    /// Nothing more for now. Of a journal that is still written, call again later; of one that is
    /// not, `torn_bytes` tells what its last write left unfinished.
    End {
        /// Bytes after the last whole record.
        torn_bytes: u64,
    },
}

/// A journal that cannot be read on.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The source could not be read.
    #[error("cannot read the journal")]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("not a musec journal: it begins with {0}")]
    NotAJournal(String),
    /// A newer program wrote it.
    #[error("journal of version {found}, this program reads up to {ours}")]
    Version {
        /// The file's version.
        found: u32,
        /// The highest that is read here.
        ours: u32,
    },
    /// Bytes that do not check; the records before them are good.
    #[error("damaged at byte {offset}: {why}")]
    Damaged {
        /// Where the damaged entry begins, in bytes from the file's start.
        offset: u64,
        /// What does not check.
        why: &'static str,
    },
}

impl<R: Read> JournalReader<R> {
    /// Reads from `source`, which stands at the journal's first byte.
    pub const fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), start: 0, offset: 0, opened: false, payload_bytes: 0 }
    }

    /// Reads on from `source`, which stands at `position`, where another reader said that a record
    /// begins.
    pub const fn resume(source: R, position: u64) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            offset: position,
            opened: true,
            payload_bytes: 0,
        }
    }

    /// Where the next record begins, in bytes from the file's start.
    #[must_use]
    pub const fn position(&self) -> u64 {
        if self.opened { self.offset } else { FILE_HEADER_BYTES as u64 }
    }

    /// The bytes of the record that [`Self::read_next`] returned last, until it is called again.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.buffer[self.start - self.payload_bytes..self.start]
    }

    /// The next record.
    ///
    /// # Errors
    /// If the source fails, or holds something else than a sound journal; what was returned before
    /// stays good, and the same error comes again.
    pub fn read_next(&mut self) -> Result<Next, JournalError> {
        self.payload_bytes = 0;
        if !self.opened && !self.open()? {
            return Ok(self.end());
        }
        if !self.fill(ENTRY_HEADER_BYTES)? {
            return Ok(self.end());
        }
        let header = &self.buffer[self.start..self.start + ENTRY_HEADER_BYTES];
        let [length, crc, header_crc] = [0, 4, 8].map(|at| number(header, at));
        if crc32c::crc32c(&header[..8]) != header_crc {
            return if self.rest_is_zero()? {
                Ok(self.end())
            } else {
                Err(self.damaged("an entry's header fails its checksum"))
            };
        }
        let length = length as usize;
        if length > ENTRY_BYTES_MAX {
            return Err(self.damaged("an entry longer than any may be"));
        }
        if !self.fill(ENTRY_HEADER_BYTES + length)? {
            return Ok(self.end());
        }
        let payload = self.start + ENTRY_HEADER_BYTES;
        let bytes = &self.buffer[payload..payload + length];
        if crc32c::crc32c(bytes) != crc {
            return if self.is_last(ENTRY_HEADER_BYTES + length)? {
                Ok(self.end())
            } else {
                Err(self.damaged("an entry fails its checksum"))
            };
        }
        let record = wire::Record::decode(bytes)
            .map_err(|_| "an entry that is no record")
            .and_then(Record::try_from)
            .map_err(|why| self.damaged(why))?;
        self.consume(ENTRY_HEADER_BYTES + length);
        self.payload_bytes = length;
        Ok(Next::Record(record))
    }

    /// Reads the file's header; false if it is not there whole yet.
    fn open(&mut self) -> Result<bool, JournalError> {
        let whole = self.fill(FILE_HEADER_BYTES)?;
        let there = &self.buffer[self.start..];
        let magic = &there[..there.len().min(MAGIC.len())];
        if !MAGIC.starts_with(magic) {
            return Err(JournalError::NotAJournal(magic.escape_ascii().to_string()));
        }
        if !whole {
            return Ok(false);
        }
        let found = number(there, 8);
        if found == 0 || found > VERSION {
            return Err(JournalError::Version { found, ours: VERSION });
        }
        self.consume(FILE_HEADER_BYTES);
        self.opened = true;
        Ok(true)
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    fn damaged(&self, why: &'static str) -> JournalError {
        JournalError::Damaged { offset: self.offset, why }
    }

    fn end(&self) -> Next {
        Next::End { torn_bytes: (self.buffer.len() - self.start) as u64 }
    }

    /// Makes `wanted` bytes available; false if the source ends before.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        while self.buffer.len() - self.start < wanted {
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            let have = self.buffer.len();
            self.buffer.resize(have + READ_BYTES.max(wanted - have), 0);
            let read = self.source.read(&mut self.buffer[have..]);
            self.buffer.truncate(have + read.as_ref().map_or(0, |read| *read));
            match read {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether the source ends with the next `bytes`: a write that the machine's stop tore.
    fn is_last(&mut self, bytes: usize) -> io::Result<bool> {
        Ok(!self.fill(bytes + 1)?)
    }

    /// Whether only zeros follow, as some file systems leave them after a crash.
    fn rest_is_zero(&mut self) -> io::Result<bool> {
        let mut seen = 0;
        while self.fill(seen + 1)? {
            if self.buffer[self.start + seen..].iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            seen = self.buffer.len() - self.start;
        }
        Ok(true)
    }
}
