//! The journal from outside: what goes in comes out, and what breaks is named.

use std::fs::{self, File};

use musec_trace::journal::{self, Journal, JournalError, JournalReader, Next};
use musec_trace::{
    AttemptNo, AttemptOutcome, CClock, CTime, Cause, CommandId, EndCause, ErrorKind, Event,
    LaunchId, Object, Outcome, Phase, PhaseKind, Queued, Record, Reply, RunStatus, Sample, StateId,
    StepCategory, Stream, Tail, Timer, Usage, WTime, WaitReason, WaveId, WorkerId,
};
use proptest::prelude::*;

fn w(ns: u64) -> WTime {
    WTime::from_ns(ns)
}

fn reply(outcome: Outcome) -> Reply {
    Reply {
        id: CommandId(1),
        received: w(1),
        started: w(2),
        finished: w(30),
        encoded: w(31),
        clock_gap_ns: -4,
        remaining_started_ms: Some(-1),
        remaining_finished_ms: None,
        outcome,
        phases: vec![Phase { kind: PhaseKind::User, from: w(3), to: w(29) }],
        usage: Some(Usage { user_ns: 5, system_ns: 6, peak_rss_bytes: 7 }),
        stdout: Tail { text: b"\xff out".to_vec(), total_bytes: 500 },
        stderr: Tail::default(),
        bytes: 8,
        objects: vec![Object {
            key: "a/b".into(),
            etag: "e".into(),
            version: String::new(),
            bytes: 8,
            asked: w(4),
            first_byte: w(5),
            last_byte: w(6),
            done: w(7),
        }],
    }
}

fn samples() -> Vec<Record> {
    let launch = LaunchId(9);
    let outcomes = [
        Outcome::Ok,
        Outcome::Exited(-3),
        Outcome::Signalled(9),
        Outcome::TimedOut { limit_ms: 12 },
        Outcome::Failed { kind: ErrorKind::Missing, text: "no such key".into() },
        Outcome::Cancelled,
    ];
    let mut events = vec![
        Event::StateNamed { state: StateId(3), wave: WaveId(1), name: "encode".into() },
        Event::WaveStarted {
            wave: WaveId(1),
            name: "w".into(),
            first_worker: WorkerId(4),
            workers: 5,
            items: 6,
        },
        Event::Requested { launch, worker: WorkerId(4), attempt: AttemptNo(1), wave: WaveId(1) },
        Event::Accepted { launch, accepted: CTime::from_ns(11), engine_id: "77".into() },
        Event::NotLaunched { launch, error: "no fork".into() },
        Event::ItemGiven { launch, item: 3, value_json: "\"x\"".into() },
        Event::Transition {
            launch,
            lane: vec![1, 0],
            from: None,
            to: Some(StateId(0)),
            cause: Cause::Start,
        },
        Event::Queued(Box::new(Queued {
            launch,
            id: CommandId(1),
            lane: Vec::new(),
            state: Some(StateId(0)),
            visit: 2,
            name: "run".into(),
            arguments: vec![b"/bin/sh".to_vec(), b"\xfe".to_vec()],
            pipelined: true,
            background: false,
            category: Some(StepCategory::Storage),
            step: 3,
        })),
        Event::Sent { launch, id: CommandId(1), t0: CTime::from_ns(44) },
        Event::Pulse {
            launch,
            seq: 1,
            t0: CTime::from_ns(1),
            t3: CTime::from_ns(9),
            received: w(3),
            encoded: w(4),
            clock_gap_ns: 1,
        },
        Event::Stalled { launch, t3: CTime::from_ns(3), from: w(1), to: w(2) },
        Event::Frozen { launch, since: CTime::from_ns(1), thawed: true },
        Event::Waiting { launch, reason: WaitReason::Barrier },
        Event::LaneNamed { wave: WaveId(1), path: vec![0, 2], name: "a".into() },
        Event::Forked { launch, lane: vec![1], lanes: vec![0, 1], first: true },
        Event::Merged { launch, lane: Vec::new(), winner: Some(0) },
        Event::Info {
            launch,
            t3: CTime::from_ns(7),
            received: w(3),
            key: "port".into(),
            value: b"\xff".to_vec(),
        },
        Event::Arrived { launch, lane: vec![1], barrier: "b".into() },
        Event::Released { wave: WaveId(1), barrier: "b".into(), workers: 300, last: launch },
        Event::Garbled {
            launch,
            t3: CTime::from_ns(7),
            received: w(3),
            why: "no key".into(),
            bytes: 9,
        },
        Event::WrongReply { launch, t3: CTime::from_ns(8), id: CommandId(9), objects: 2 },
        Event::Given { wave: WaveId(0), items: vec![b"a\xff".to_vec(), Vec::new()] },
        Event::Begun { launch, lane: vec![1], background: 2 },
        Event::Awaited { launch, lane: vec![1], background: 2 },
        Event::TimerFired { timer: Timer::Connect, launch: None },
        Event::Ended {
            launch,
            end: CTime::from_ns(99),
            last_sign: CTime::from_ns(98),
            cause: EndCause::Exited,
            outcome: AttemptOutcome::Done,
        },
        Event::Printed { launch, text: b"42\n".to_vec(), total_bytes: 9 },
        Event::Listed { wave: WaveId(0), keys: vec!["in:a".into()] },
        Event::Read { wave: WaveId(0), text: b"a\n\xff".to_vec() },
        Event::Sample(Box::new(Sample {
            refused: [("not TLS".to_owned(), 3)].into(),
            ..Sample::default()
        })),
        Event::Cancelled { cause: "SIGINT".into() },
        Event::Output {
            launch,
            id: CommandId(1),
            stream: Stream::Stderr,
            tail: Tail { text: b"x".to_vec(), total_bytes: 1 },
        },
        Event::Closed {
            launch,
            closed: CTime::from_ns(5),
            why: "reset".into(),
            broke_protocol: true,
        },
        Event::Exited { launch, exited: CTime::from_ns(6), status: "exited with 0".into() },
        Event::WaveSkipped { wave: WaveId(2), name: "w".into(), reason: "r".into() },
        Event::RunEnded { status: RunStatus::Failed },
        Event::WaveEnded { wave: WaveId(1) },
    ];
    events.extend(outcomes.into_iter().map(|outcome| Event::Replied {
        launch,
        t3: CTime::from_ns(50),
        reply: Box::new(reply(outcome)),
    }));
    (0..).zip(events).map(|(ns, event)| Record { at: CTime::from_ns(ns), event }).collect()
}

fn written(records: &[Record]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("journal.musec");
    let mut journal = Journal::create(&path, CClock::start()).expect("created");
    for record in records {
        journal.record(record.clone());
    }
    journal.close().expect("closed");
    fs::read(&path).expect("read back")
}

fn read(bytes: &[u8]) -> (Vec<Record>, Result<u64, JournalError>) {
    let mut reader = JournalReader::new(bytes);
    let mut records = Vec::new();
    loop {
        match reader.read_next() {
            Ok(Next::Record(record)) => records.push(record),
            Ok(Next::End { torn_bytes }) => return (records, Ok(torn_bytes)),
            Err(error) => return (records, Err(error)),
        }
    }
}

#[test]
fn what_is_recorded_is_read_back_the_same() {
    let (records, end) = read(&written(&samples()));
    assert_eq!(records, samples());
    assert_eq!(end.expect("sound"), 0);
}

#[test]
fn a_journal_in_memory_is_that_of_the_disk() {
    let all = samples();
    assert_eq!(journal::encode(all.iter().cloned()), written(&all));
}

#[test]
fn a_journal_cut_at_any_byte_loses_only_the_entry_that_was_cut() {
    let all = samples();
    let bytes = written(&all);
    let mut whole_before = 0;
    for cut in 0..bytes.len() {
        let (records, end) = read(&bytes[..cut]);
        end.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        assert_eq!(records[..], all[..records.len()], "cut at {cut}");
        assert!(records.len() >= whole_before, "cut at {cut}");
        whole_before = records.len();
    }
    assert_eq!(whole_before, all.len() - 1);
}

#[test]
fn zeros_after_the_last_entry_are_a_torn_tail() {
    let mut bytes = written(&samples());
    bytes.extend_from_slice(&[0; 4096]);
    let (records, end) = read(&bytes);
    assert_eq!(records.len(), samples().len());
    assert_eq!(end.expect("torn, not damaged"), 4096);
}

#[test]
fn something_else_is_not_taken_for_a_journal() {
    let (_, end) = read(b"PK\x03\x04 and so on");
    assert!(matches!(end, Err(JournalError::NotAJournal(_))));
    let mut newer = written(&[]);
    newer[8] = 200;
    assert!(matches!(read(&newer).1, Err(JournalError::Version { found: 200, ours: 1 })));
}

#[test]
fn a_journal_that_is_being_written_is_locked_and_can_be_followed() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("journal.musec");
    let mut journal = Journal::create(&path, CClock::start()).expect("created");
    let mut reader = JournalReader::new(File::open(&path).expect("opened"));
    assert_eq!(reader.read_next().expect("sound"), Next::End { torn_bytes: 0 });
    let record = samples().remove(0);
    journal.record(record.clone());
    assert!(journal.is_dirty());
    journal.sync();
    let seen = std::iter::repeat_with(|| reader.read_next().expect("sound"))
        .inspect(|_| std::thread::yield_now())
        .find(|next| matches!(next, Next::Record(_)));
    assert_eq!(seen, Some(Next::Record(record)));
    let other = File::open(&path).expect("opened");
    assert!(other.try_lock_shared().is_err(), "the writer holds the lock");
    journal.close().expect("closed");
    assert!(other.try_lock_shared().is_ok(), "the lock is gone with the writer");
    assert!(Journal::create(&path, CClock::start()).is_err(), "never written over");
}

/// What a journal that is damaged first at `place` gives: the records before it, and the damage by
/// name; or a torn tail, where only the last entry is touched.
fn assert_read_up_to(place: usize, bytes: &[u8], all: &[Record], entries: &[usize]) {
    let (records, end) = read(bytes);
    let before = entries.iter().filter(|end| **end <= place).count();
    assert_eq!(records[..], all[..records.len()], "damaged at {place}");
    match end {
        Ok(_) => assert!(records.len() >= all.len() - 1, "damaged at {place}: {}", records.len()),
        Err(JournalError::Damaged { offset, .. }) => {
            assert_eq!(records.len(), before, "damaged at {place}");
            let entry = if before == 0 { 16 } else { entries[before - 1] };
            assert_eq!(usize::try_from(offset).ok(), Some(entry), "damaged at {place}");
        }
        Err(JournalError::NotAJournal(_)) => assert!(place < 8, "damaged at {place}"),
        Err(JournalError::Version { .. }) => assert!((8..12).contains(&place)),
        Err(error @ JournalError::Io(_)) => panic!("damaged at {place}: {error}"),
    }
}

/// Where each entry ends.
fn entries(all: &[Record]) -> Vec<usize> {
    (1..=all.len()).map(|count| journal::encode(all[..count].iter().cloned()).len()).collect()
}

#[test]
fn a_journal_with_any_byte_changed_is_read_up_to_it_and_the_damage_named() {
    let all = samples();
    let (sound, entries) = (written(&all), entries(&all));
    for place in (0..sound.len()).filter(|place| !(12..16).contains(place)) {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = sound.clone();
            bytes[place] ^= change;
            assert_read_up_to(place, &bytes, &all, &entries);
        }
    }
}

proptest! {
    #[test]
    fn a_journal_with_several_bytes_changed_is_read_up_to_the_first(
        places in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..6),
    ) {
        let all = samples();
        let (mut bytes, entries) = (journal::encode(all.iter().cloned()), entries(&all));
        let places: std::collections::BTreeMap<usize, u8> = places
            .into_iter()
            .map(|(place, change)| (place.index(bytes.len()), change))
            .filter(|(place, _)| !(12..16).contains(place))
            .collect();
        for (place, change) in &places {
            bytes[*place] ^= change;
        }
        if let Some((first, _)) = places.first_key_value() {
            assert_read_up_to(*first, &bytes, &all, &entries);
        }
    }

    #[test]
    fn a_flipped_bit_is_named_and_the_records_before_it_are_good(
        place in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let all = samples();
        let mut bytes = written(&all);
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        let (records, end) = read(&bytes);
        prop_assert_eq!(&records[..], &all[..records.len()]);
        if (12..16).contains(&place) {
            prop_assert_eq!(records.len(), all.len(), "reserved bytes mean nothing yet");
        } else {
            // Only the very last entry may pass for torn.
            let torn_last = records.len() == all.len() - 1 && end.is_ok();
            prop_assert!(torn_last || end.is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_never_make_the_reader_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..600),
        honest in any::<bool>(),
    ) {
        if honest {
            let mut start = written(&samples()[..3]);
            start.append(&mut bytes);
            bytes = start;
        }
        let _records = read(&bytes);
    }
}
