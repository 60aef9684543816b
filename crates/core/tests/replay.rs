//! Runs decided again from their journals: the same decisions, byte for byte; and a journal in
//! which anything was changed is found, at its place.
//!
//! Every other simulated run of `tests/fleet`, `tests/waves.rs` and `tests/endings.rs` is
//! decided again too, where it ends.

mod world;

use musec_core::job::Options;
use musec_core::replay::{Difference, ReplayError, Replayed};
use musec_protocol::Outcome;
use musec_trace::journal::encode;
use musec_trace::{AttemptOutcome, CTime, Event, Record};
use proptest::prelude::*;
use proptest::sample::Index;
use world::journal::{journal, replay};
use world::{Fate, World, WorldOptions};

const JOB: &str = r#"
[job]
workers = 3
items = { range = "5" }
timeout = "3m"
[[setup]]
run = "true"
[[step]]
state = "read"
run = "cat"
expect = "last.exit == 3 or 'hello' in last.output"
[[step]]
run = "false"
expect = "last.exit == 0 and index < 2"
[[step]]
pipelined = true
do = [{ run = "true" }, { put = "a", as = "{{ item }}/a" }, { run = "true" }]
[[step]]
state = "both"
timeout = "20s"
on_error = [{ state = "mend", run = "true" }]
parallel = { a = [{ run = "true" }, { sleep = "1s" }], b = [{ run = "true" }] }
[[step]]
print = "out"
"#;

/// What a run of the job left.
fn records(fate: fn(u64, u64) -> Fate, seed: u64) -> Vec<(CTime, Event)> {
    let mut world = World::new(JOB, WorldOptions { fate, ..WorldOptions::calm(seed) });
    world.run();
    world.times.iter().copied().zip(world.records.clone()).collect()
}

fn again(records: Vec<(CTime, Event)>) -> Result<Replayed, ReplayError> {
    replay(&journal(JOB, &Options::default(), None, records))
}

fn difference(records: Vec<(CTime, Event)>) -> Difference {
    match again(records) {
        Err(ReplayError::Differs(difference)) => *difference,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_is_decided_again_to_its_end() {
    let records = records(|_, _| Fate::Live, 1);
    let count = records.len() as u64;
    let replayed = again(records).expect("it agrees");
    assert!(replayed.is_whole);
    assert_eq!(replayed.inputs + replayed.decisions, count);
    assert!(replayed.decisions > 90 && replayed.inputs > 40, "{replayed:?}");
}

#[test]
fn a_flipped_outcome_is_found_where_decisions_follow_from_it() {
    let mut records = records(|_, _| Fate::Live, 2);
    let flipped = records
        .iter_mut()
        .position(|(_, event)| match event {
            Event::Replied { reply, .. } if reply.outcome == Outcome::Exited(0) => {
                reply.outcome = Outcome::Exited(1);
                true
            }
            _ => false,
        })
        .expect("a reply");
    let difference = difference(records);
    assert!(difference.number > flipped as u64, "{difference:?}");
    assert!(difference.place.is_some() && difference.before.decisions > 0);
    let decided = difference.decided.expect("something else").event;
    assert!(
        matches!(decided, Event::Failure(_) | Event::Transition { .. } | Event::Queued(_)),
        "{decided:?}"
    );
}

#[test]
fn a_decision_that_is_missing_is_what_core_decides_instead() {
    let mut records = records(|_, _| Fate::Live, 3);
    let at = records.iter().rposition(|(_, event)| matches!(event, Event::Transition { .. }));
    let (_, missing) = records.remove(at.expect("a transition"));
    let difference = difference(records);
    assert_eq!(difference.decided.expect("it").event, missing);
}

#[test]
fn a_decision_that_nothing_led_to_is_found() {
    let mut records = records(|_, _| Fate::Live, 4);
    let at = records.iter().rposition(|(_, event)| matches!(event, Event::Pulse { .. }));
    let more = records.iter().find(|(_, event)| matches!(event, Event::Queued(_)));
    let more = more.expect("a command").clone();
    records.insert(at.expect("a pulse") + 1, more.clone());
    let difference = difference(records);
    assert_eq!(difference.recorded.expect("it").event, more.1);
    assert_eq!(difference.decided, None);
}

#[test]
fn a_journal_that_goes_on_after_its_run_differs_and_one_without_a_start_is_none() {
    let mut all = records(|_, _| Fate::Live, 5);
    let last = all.last().expect("an end").clone();
    all.push(last);
    assert_eq!(difference(all).decided, None);
    assert_eq!(replay(&[]), Ok(Replayed::default()));
    let (at, event) = records(|_, _| Fate::Live, 5).swap_remove(0);
    assert_eq!(replay(&encode([Record { at, event }])), Err(ReplayError::NoStart));
    let broken =
        journal("[[step]]\nrum = 1\n", &Options::default(), None, records(|_, _| Fate::Live, 6));
    assert!(matches!(replay(&broken), Err(ReplayError::NoProgram(_))));
}

#[test]
fn a_worker_that_tells_without_end_is_given_up_again_at_the_same_note() {
    let fate = |_, command| if command == 1 { Fate::Flood } else { Fate::Live };
    let mut world = World::new(JOB, WorldOptions { fate, ..WorldOptions::calm(7) });
    world.run();
    assert_eq!(world.ends(AttemptOutcome::Failed), 3);
    let records = world.times.iter().copied().zip(world.records.clone());
    assert!(again(records.collect()).expect("it agrees").is_whole);
}

fn fate(launch: u64, command: u64) -> Fate {
    match (launch * 7 + command * 13) % 53 {
        1 => Fate::Exit(3),
        2 => Fate::Exit(1),
        3 => Fate::Die,
        4 => Fate::Lie,
        5 => Fate::Twice,
        6 | 7 => Fate::Tell,
        8 => Fate::Late,
        9 => Fate::NeverConnect,
        10 => Fate::Refuse,
        11 => Fate::Freeze,
        12 => Fate::Hang,
        _ => Fate::Live,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_journal_that_was_cut_off_anywhere_agrees_as_far_as_it_goes(
        seed in any::<u64>(),
        cut in 0.0f64..1.0,
    ) {
        let mut records = records(fate, seed);
        let whole = records.len();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        records.truncate((whole as f64 * cut) as usize);
        let kept = records.len() as u64;
        let replayed = again(records);
        prop_assert!(replayed.is_ok(), "seed {}: {:?}", seed, replayed);
        let replayed = replayed.expect("it agrees");
        prop_assert!(!replayed.is_whole);
        // The last may be of an input that is not all there.
        prop_assert!(replayed.inputs + replayed.decisions + 1 >= kept);
    }

    #[test]
    fn a_decision_that_is_not_there_is_noticed(
        seed in any::<u64>(),
        which in any::<Index>(),
    ) {
        let mut records = records(fate, seed);
        let decisions: Vec<usize> =
            (0..records.len() - 1).filter(|at| is_decision(&records[*at].1)).collect();
        let (_, gone) = records.remove(decisions[which.index(decisions.len())]);
        let replayed = again(records);
        prop_assert!(matches!(replayed, Err(ReplayError::Differs(_))), "{:?}: {:?}", gone, replayed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_journal_whose_records_were_lost_doubled_or_moved_never_panics(
        seed in 0u64..8,
        changes in prop::collection::vec((0u8..3, any::<Index>(), any::<Index>()), 1..12),
    ) {
        let mut records = records(fate, seed);
        for (what, from, to) in changes {
            let record = records[from.index(records.len())].clone();
            if what != 1 {
                records.remove(from.index(records.len()));
            }
            if what != 0 {
                records.insert(to.index(records.len() + 1), record);
            }
        }
        // Most differ. Those of which only signs of life were touched need not.
        drop(again(records));
    }
}

/// Whether a record tells what core decided, and not also that something had happened.
const fn is_decision(event: &Event) -> bool {
    matches!(
        event,
        Event::StateNamed { .. }
            | Event::WaveStarted { .. }
            | Event::WaveEnded { .. }
            | Event::Requested { .. }
            | Event::ItemGiven { .. }
            | Event::Transition { .. }
            | Event::Forked { .. }
            | Event::Merged { .. }
            | Event::Queued(_)
            | Event::Failure(_)
            | Event::Ended { .. }
            | Event::RunEnded { .. }
    )
}
