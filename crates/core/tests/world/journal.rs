//! The journal that a simulated run would have left, and that run decided again from it.

use std::collections::BTreeMap;

use musec_core::job::Options;
use musec_core::replay::{Entry, Replay, ReplayError, Replayed};
use musec_trace::journal::{JournalReader, Next, encode};
use musec_trace::{
    CTime, ClockKind, CommandId, Event, LaunchId, Record, RunId, RunStarted, Sample,
};

/// The bytes of a journal with these records; what the coordinator adds of itself is in between.
pub(crate) fn journal(
    job: &str,
    beside: &Options,
    starting_max: Option<u32>,
    records: impl IntoIterator<Item = (CTime, Event)>,
) -> Vec<u8> {
    let started = RunStarted {
        run: RunId([7; 16]),
        job: "job".to_owned(),
        launcher: "none".to_owned(),
        wall_ns: 1,
        boot_id: String::new(),
        time_namespace: String::new(),
        clock: ClockKind::MonotonicRaw,
        rate_bound_ppm: 0,
        seed: 0,
        version: String::new(),
        job_text: job.as_bytes().to_vec(),
        options_json: beside.to_json(),
        clock_gap_ns: 0,
        cores: 2,
        starting_max: starting_max.unwrap_or(0),
    };
    let mut all = vec![Record { at: CTime::ZERO, event: Event::RunStarted(Box::new(started)) }];
    for (at, event) in records {
        let own = match &event {
            Event::Queued(queued) => {
                Some(Event::Sent { launch: queued.launch, id: queued.id, t0: at })
            }
            Event::WaveEnded { .. } => Some(Event::Sample(Box::new(Sample {
                refused: BTreeMap::from([("not TLS".to_owned(), 1)]),
                ..Sample::default()
            }))),
            Event::Requested { .. } => {
                Some(Event::Sent { launch: LaunchId(0), id: CommandId(0), t0: at })
            }
            _ => None,
        };
        all.push(Record { at, event });
        all.extend(own.map(|event| Record { at, event }));
    }
    encode(all)
}

/// Decides a run again from the bytes of its journal.
pub(crate) fn replay(journal: &[u8]) -> Result<Replayed, ReplayError> {
    let mut reader = JournalReader::new(journal);
    let mut replay = Replay::default();
    loop {
        let place = reader.position();
        match reader.read_next().expect("a sound journal") {
            Next::Record(record) => {
                let bytes = reader.payload().to_vec();
                replay.take(Entry { place, record, bytes })?;
            }
            Next::End { .. } => return replay.finish(),
        }
    }
}
