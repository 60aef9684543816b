//! Every run of every test is decided again from its journal: those that ended, those that were
//! killed, those whose disk was full.
//!
//! In: a test's folder, with whatever runs it has. Out: nothing, or a panic that says where core
//! decides otherwise. A journal that a test damaged, or made up, is taken out by that test.

use std::fs::File;
use std::path::Path;

use musec_core::replay::{Entry, Replay, ReplayError, Replayed};
use musec_trace::journal::{JournalError, JournalReader, Next};

use super::Place;
use super::watchdog::journals;

/// Decides all runs of a folder again.
pub(crate) fn assert_decided_again(place: &Place) {
    for path in journals(place.path("")) {
        match decided_again(&path) {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => panic!("{}: {error}: {error:?}", path.display()),
            Err(error) => panic!("{}: {error}: {error:?}", path.display()),
        }
    }
}

/// Decides a run again from its journal, as far as that is sound.
pub(crate) fn decided_again(journal: &Path) -> Result<Result<Replayed, ReplayError>, JournalError> {
    let mut reader = JournalReader::new(File::open(journal)?);
    let mut replay = Replay::default();
    loop {
        let place = reader.position();
        match reader.read_next()? {
            Next::Record(record) => {
                let bytes = reader.payload().to_vec();
                if let Err(error) = replay.take(Entry { place, record, bytes }) {
                    return Ok(Err(error));
                }
            }
            Next::End { .. } => return Ok(replay.finish()),
        }
    }
}
