//! A run's program, made again from what is recorded of it.
//!
//! In: the run's start and the items that it was given. Out: the very program that it had: the job
//! file goes through the same parser with the same options, and `musec map` through its own.

use musec_trace::{Event, RunStarted, WaveId};

use crate::job::{Options, parse};
use crate::map::{ByteItems, Map};
use crate::program::{Items, Program};

/// Bytes of items, and items, that go into one record at most: a damaged one costs little, and it
/// is far below [`musec_trace::journal::ENTRY_BYTES_MAX`].
const GIVEN_BYTES_MAX: usize = 1 << 20;
const GIVEN_MAX: usize = 1 << 16;

/// The items that a program was given beside its job file, to be recorded after the run's start.
pub fn given(program: &Program) -> impl Iterator<Item = Event> {
    program.waves().flat_map(|(wave, def)| match &def.items {
        Some(Items::Bytes(items)) => records(wave, items),
        Some(
            Items::List(_)
            | Items::Values(_)
            | Items::Range(_)
            | Items::Glob { .. }
            | Items::Lines { .. }
            | Items::Csv { .. },
        )
        | None => Vec::new(),
    })
}

fn records(wave: WaveId, all: &ByteItems) -> Vec<Event> {
    let mut records = Vec::new();
    let (mut items, mut bytes) = (Vec::new(), 0);
    for item in all.iter() {
        if bytes + item.len() > GIVEN_BYTES_MAX || items.len() >= GIVEN_MAX {
            records.push(Event::Given { wave, items: std::mem::take(&mut items) });
            bytes = 0;
        }
        bytes += item.len();
        items.push(item.to_vec());
    }
    records.push(Event::Given { wave, items });
    records
}

/// The program, or why there is none.
pub(super) fn program(started: &RunStarted, items: ByteItems) -> Result<Program, String> {
    if let Some(map) = Map::from_json(&started.options_json, items)? {
        return map.program().map_err(|error| error.to_string());
    }
    let text = std::str::from_utf8(&started.job_text).map_err(|_| "its job file is no text")?;
    let options = Options::from_json(&started.options_json, &started.job)?;
    parse(text, &options).map_err(|errors| {
        let errors: Vec<String> = errors.0.iter().map(|error| error.message.clone()).collect();
        errors.join("; ")
    })
}
