//! The journal: one append-only file of checksummed records.
//!
//! ```text
//! file   = magic (8) · version (4) · reserved (4) · entry*
//! entry  = length (4) · crc32c of the payload (4) · crc32c of the eight bytes before (4) · payload
//! payload = protobuf, `proto/journal.proto`
//! ```
//! Numbers are little endian. History: version 1 is the first. An entry that the end of the file
//! cuts short is a torn tail: it was being written when the machine stopped, and nothing before it
//! is touched. Anything else that does not check is damage, and is named with its place. The
//! header has a checksum of its own so that a flipped length cannot pass for a torn tail.

mod reader;
mod writer;

pub use reader::{JournalError, JournalReader, Next};
pub use writer::{Journal, JournalWaits, WriteFailure};

const MAGIC: [u8; 8] = *b"musecjnl";
const VERSION: u32 = 1;
const FILE_HEADER_BYTES: usize = 16;
const ENTRY_HEADER_BYTES: usize = 12;

/// Longest payload of one entry, in bytes: a reply with two output tails and all its objects fits,
/// and a damaged length cannot make a reader allocate more.
pub const ENTRY_BYTES_MAX: usize = 32 << 20;

fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header
}

/// A whole journal of these records, as [`Journal`] writes it.
#[must_use]
pub fn encode<I: IntoIterator<Item = crate::Record>>(records: I) -> Vec<u8> {
    let mut out = file_header().to_vec();
    for record in records {
        append_entry(&mut out, record);
    }
    out
}

/// The payload of one record's entry.
#[must_use]
pub fn payload(record: crate::Record) -> Vec<u8> {
    let mut out = Vec::new();
    crate::encode::encode(record, &mut out);
    out
}

/// Appends an entry with this payload and good checksums, whether it is a record or not: what a
/// newer program, or a bug, may write.
pub fn append_payload(out: &mut Vec<u8>, payload: &[u8]) {
    let start = begin_entry(out);
    out.extend_from_slice(payload);
    end_entry(out, start);
}

/// Appends `record` as an entry of a journal.
pub fn append_entry(out: &mut Vec<u8>, record: crate::Record) {
    let start = begin_entry(out);
    crate::encode::encode(record, out);
    end_entry(out, start);
}

fn begin_entry(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; ENTRY_HEADER_BYTES]);
    start
}

/// Fills in the header of the entry that begins at `start`.
fn end_entry(out: &mut [u8], start: usize) {
    let payload = start + ENTRY_HEADER_BYTES;
    let length = u32::try_from(out.len() - payload).unwrap_or(u32::MAX);
    let crc = crc32c::crc32c(&out[payload..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    let header_crc = crc32c::crc32c(&out[start..start + 8]);
    out[start + 8..payload].copy_from_slice(&header_crc.to_le_bytes());
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}
