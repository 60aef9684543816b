//! The journal: bytes of a disk.
//!
//! The first byte chooses what the rest is: a whole file; payloads (each with two bytes of length),
//! which are put into entries with good checksums, because no fuzzer guesses those; or a place and
//! a byte for it, to damage a sound journal. What is read is written and read again; of a journal
//! that is damaged at one place, all records before it are read as they were. Whatever is read is
//! folded, and has a report whose parts sum to the whole.

use std::sync::OnceLock;

use musec_analysis::{Account, RunLiveness, Trace};
use musec_trace::Record;
use musec_trace::journal::{self, JournalError, JournalReader, Next};

/// A run's journal.
static SAMPLE: &[u8] = include_bytes!("../corpus/journal/sample");

pub(crate) fn check(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    match kind {
        b'p' => check_file(&entries_of(rest)),
        b'd' => check_damage(rest),
        _ => check_file(bytes),
    }
}

fn check_file(file: &[u8]) {
    let (records, end) = read(file);
    let again = journal::encode(records.iter().cloned());
    let (same, sound) = read(&again);
    assert!(matches!(sound, Ok(0)), "a journal that was just written: {sound:?}");
    assert_eq!(same, records, "what was read, was written and was read again");
    check_report(&records);
    if let Err(JournalError::Damaged { offset, .. }) = end {
        assert!(usize::try_from(offset).is_ok_and(|offset| offset <= file.len()));
    }
}

/// That these records, in whatever order, have a report.
fn check_report(records: &[Record]) {
    let mut trace = Trace::default();
    for record in records {
        trace.apply(record);
    }
    let account = Account::of(&trace);
    if let Err(error) = account.check_conservation() {
        panic!("a report that does not sum up: {error}");
    }
    for liveness in [RunLiveness::NotRunning, RunLiveness::Running] {
        let report = musec_analysis::report(&trace, &account, liveness);
        assert!(serde_json::to_string(&report).is_ok());
    }
}

/// A journal of these payloads, whatever they hold.
fn entries_of(mut payloads: &[u8]) -> Vec<u8> {
    let mut file = journal::encode([]);
    while let Some((length, rest)) = payloads.split_first_chunk::<2>() {
        let (payload, rest) =
            rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        journal::append_payload(&mut file, payload);
        payloads = rest;
    }
    file
}

fn check_damage(rest: &[u8]) {
    static SOUND: OnceLock<Vec<Record>> = OnceLock::new();
    let sound = SOUND.get_or_init(|| read(SAMPLE).0);
    let Some((&[a, b, c, value], _)) = rest.split_first_chunk::<4>() else { return };
    let place = usize::from(u16::from_be_bytes([a, b])) % SAMPLE.len();
    let mut file = SAMPLE.to_vec();
    file[place] ^= value;
    // A second place, behind the first: whatever it does, what is before the first stays.
    let second = place + usize::from(c);
    if let Some(byte) = file.get_mut(second).filter(|_| c > 4) {
        *byte ^= 0xff;
    }
    let (records, _) = read(&file);
    let good = records.iter().zip(sound).take_while(|(one, other)| one == other).count();
    let (before, _) = read(&SAMPLE[..place]);
    assert!(good >= before.len(), "{good} records before byte {place}, not {}", before.len());
}

fn read(file: &[u8]) -> (Vec<Record>, Result<u64, JournalError>) {
    let mut reader = JournalReader::new(file);
    let mut records = Vec::new();
    loop {
        match reader.read_next() {
            Ok(Next::Record(record)) => records.push(record),
            Ok(Next::End { torn_bytes }) => return (records, Ok(torn_bytes)),
            Err(error) => return (records, Err(error)),
        }
    }
}
