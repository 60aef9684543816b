//! The fleet in a world of fake workers: seeded delays, deaths, refusals, losses, late and foreign
//! messages. After every step the invariants hold, every run ends, and the same seed gives the same
//! records.

mod jobs;
mod lanes;
#[path = "../world/mod.rs"]
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use jobs::{BARRIERS, INFOS, LANES, LISTS, ONE, QUEUE, WAVES};
use musec_core::fleet::{Closed, Input, Output};
use musec_protocol::{Action, LaunchId, Outcome, Refusal};
use musec_trace::{AttemptOutcome, CTime, EndCause, Event, RunStatus, StateId, Timer, WaitReason};
use proptest::prelude::*;
use world::{Fate, World, WorldOptions};

fn ended(records: &[Event]) -> Vec<(u64, AttemptOutcome)> {
    let ends = records.iter().filter_map(|event| match event {
        Event::Ended { launch, outcome, .. } => Some((launch.0, *outcome)),
        _ => None,
    });
    ends.collect()
}

fn errors(records: &[Event]) -> Vec<String> {
    let failures = records.iter().filter_map(|event| match event {
        Event::Failure(failure) => Some(format!("{}: {}", failure.name, failure.error)),
        _ => None,
    });
    failures.collect()
}

#[test]
fn a_worker_runs_its_program_and_quits() {
    let mut world = World::new(ONE, WorldOptions::calm(1));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(ended(&world.records), [(0, AttemptOutcome::Done)]);
    let names: Vec<_> = world
        .records
        .iter()
        .filter_map(|event| match event {
            Event::Queued(queued) => Some(queued.name.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["run", "quit"]);
}

#[test]
fn workers_take_every_item_of_a_queue_once_and_clean_up_in_between() {
    let mut world = World::new(QUEUE, WorldOptions::calm(2));
    assert_eq!(world.run(), RunStatus::Done);
    let mut items: Vec<u64> = Vec::new();
    let mut cleans = 0;
    for event in &world.records {
        match event {
            Event::ItemGiven { item, .. } => items.push(*item),
            Event::Queued(queued) if queued.name == "clean" => cleans += 1,
            _ => {}
        }
    }
    items.sort_unstable();
    assert_eq!(items, (0..10).collect::<Vec<_>>());
    assert!((7..=9).contains(&cleans), "{cleans} cleanings between 10 items of 3 workers");
}

#[test]
fn never_more_attempts_are_alive_than_at_once_allows() {
    let mut world = World::new(WAVES, WorldOptions::calm(3));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(world.alive_max, 2);
    let waves: Vec<_> = world
        .records
        .iter()
        .filter_map(|event| match event {
            Event::WaveStarted { name, workers, .. } => Some((name.clone(), *workers)),
            _ => None,
        })
        .collect();
    assert_eq!(waves, [("split".to_owned(), 5), ("merge".to_owned(), 1)]);
}

#[test]
fn a_failing_command_fails_its_worker_and_the_waves_after_it_do_not_start() {
    let mut options = WorldOptions::calm(4);
    options.fate = |launch, _| if launch == 1 { Fate::Exit(3) } else { Fate::Live };
    let mut world = World::new(WAVES, options);
    assert_eq!(world.run(), RunStatus::Failed);
    assert_eq!(world.ends(AttemptOutcome::Failed), 1);
    assert_eq!(world.ends(AttemptOutcome::Done), 4);
    assert_eq!(errors(&world.records).len(), 1);
    assert!(errors(&world.records)[0].contains("exit"), "{:?}", errors(&world.records));
    let skipped =
        |event: &Event| matches!(event, Event::WaveSkipped { name, .. } if name == "merge");
    assert!(world.records.iter().any(skipped));
}

#[test]
fn a_failed_item_does_not_keep_its_worker_from_the_others() {
    let mut options = WorldOptions::calm(5);
    options.fate = |_, command| if command == 3 { Fate::Exit(1) } else { Fate::Live };
    let mut world = World::new(QUEUE, options);
    assert_eq!(world.run(), RunStatus::Failed);
    let given = world.records.iter().filter(|event| matches!(event, Event::ItemGiven { .. }));
    assert_eq!(given.count(), 10);
}

#[test]
fn a_vanished_worker_is_named_with_its_command_and_exit() {
    let mut options = WorldOptions::calm(6);
    options.fate = |launch, _| if launch == 2 { Fate::Die } else { Fate::Live };
    let mut world = World::new(WAVES, options);
    assert_eq!(world.run(), RunStatus::Failed);
    assert_eq!(world.ends(AttemptOutcome::Lost), 1);
    assert_eq!(errors(&world.records), ["run: the worker vanished: killed by signal 9"]);
}

#[test]
fn an_attempt_that_never_connects_fails_alone_after_its_connect_timeout() {
    let mut options = WorldOptions::calm(7);
    options.fate = |launch, _| if launch == 0 { Fate::NeverConnect } else { Fate::Live };
    let mut world = World::new(WAVES, options);
    assert_eq!(world.run(), RunStatus::Failed);
    assert_eq!(world.ends(AttemptOutcome::NeverConnected), 1);
    assert_eq!(world.ends(AttemptOutcome::Done), 4);
    let fired = |event: &Event| matches!(event, Event::TimerFired { timer: Timer::Connect, .. });
    assert_eq!(world.records.iter().filter(|event| fired(event)).count(), 1);
    assert!(world.stopped.contains(&LaunchId(0)), "the launcher is told to stop it");
}

#[test]
fn an_attempt_that_hangs_is_ended_by_its_timeout() {
    let mut options = WorldOptions::calm(8);
    options.fate = |launch, _| if launch == 3 { Fate::Hang } else { Fate::Live };
    let mut world = World::new(WAVES, options);
    assert_eq!(world.run(), RunStatus::Failed);
    assert!(errors(&world.records)[0].contains("timeout"), "{:?}", errors(&world.records));
}

#[test]
fn a_reply_to_a_command_that_was_not_sent_fails_that_worker_by_name() {
    let mut options = WorldOptions::calm(9);
    options.fate = |launch, _| if launch == 0 { Fate::Lie } else { Fate::Live };
    let mut world = World::new(WAVES, options);
    assert_eq!(world.run(), RunStatus::Failed);
    let broken = world
        .records
        .iter()
        .any(|event| matches!(event, Event::Ended { cause: EndCause::Protocol, .. }));
    assert!(broken);
    assert!(errors(&world.records)[0].contains("not awaited"), "{:?}", errors(&world.records));
}

#[test]
fn a_cancelled_run_tells_its_workers_to_quit_and_is_interrupted() {
    let mut options = WorldOptions::calm(10);
    options.cancel = vec![Duration::from_millis(150)];
    let mut world = World::new(WAVES, options);
    assert_eq!(world.run(), RunStatus::Interrupted);
    assert!(world.ends(AttemptOutcome::Killed) > 0);
    assert_eq!(world.fleet.alive(), 0);
    assert!(errors(&world.records).is_empty(), "being told to stop is no failure");
}

#[test]
fn a_second_request_to_stop_ends_everything_at_once() {
    let mut options = WorldOptions::calm(11);
    options.fate = |_, _| Fate::Hang;
    options.cancel = vec![Duration::from_millis(150), Duration::from_millis(151)];
    let mut world = World::new(WAVES, options);
    assert_eq!(world.run(), RunStatus::Interrupted);
    assert!(world.now < CTime::ZERO.after(Duration::from_millis(200)), "{:?}", world.now);
}

#[test]
fn only_an_awaited_attempt_may_join_and_only_once() {
    let mut world = World::new(ONE, WorldOptions::calm(12));
    assert_eq!(world.fleet.may_join(LaunchId(0)), Err(Refusal::Launch), "nothing launched yet");
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(world.fleet.may_join(LaunchId(0)), Err(Refusal::Over));
    assert_eq!(world.joins_refused, 0);
}

#[test]
fn inputs_about_attempts_that_are_unknown_or_over_change_nothing() {
    let mut world = World::new(ONE, WorldOptions::calm(13));
    world.start();
    for launch in [LaunchId(77), LaunchId(u64::MAX)] {
        let at = world.now;
        world.fleet.handle(at, Input::Closed { launch, at, why: Closed::Lost("x".into()) });
        world.fleet.handle(at, Input::Exited { launch, at, status: "x".into() });
        world.fleet.handle(at, Input::NotLaunched { launch, error: "x".into() });
    }
    let outputs: Vec<_> = std::iter::from_fn(|| world.fleet.poll_output()).collect();
    assert!(outputs.is_empty(), "{outputs:?}");
}

#[test]
fn outputs_of_successful_commands_stay_out_of_the_journal() {
    let mut world = World::new(ONE, WorldOptions::calm(14));
    world.run();
    let texts = world.records.iter().filter_map(|event| match event {
        Event::Replied { reply, .. } => Some((reply.stdout.text.len(), reply.stdout.total_bytes)),
        _ => None,
    });
    assert_eq!(texts.collect::<Vec<_>>(), [(0, 5), (0, 0)]);
    assert_eq!(world.outputs_kept, 1);
}

fn fates(launch: u64, command: u64) -> Fate {
    // A spread of everything that can happen, by numbers that have nothing to do with one another.
    match (launch * 7 + command * 3) % 23 {
        0 => Fate::Exit(1),
        1 => Fate::Die,
        2 => Fate::Hang,
        3 => Fate::Lie,
        4 => Fate::NeverConnect,
        5 => Fate::Refuse,
        6 => Fate::Freeze,
        7 => Fate::Twice,
        8..=10 => Fate::Tell,
        _ => Fate::Live,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_every_run_ends_and_every_attempt_ends_once(
        seed in any::<u64>(),
        job in prop::sample::select(vec![ONE, QUEUE, WAVES, LISTS, LANES, INFOS, BARRIERS]),
        cancel in prop::collection::vec(0u64..20_000, 0..3),
        wild in any::<bool>(),
    ) {
        let mut options = WorldOptions::calm(seed);
        options.jitter_ms = 900;
        if wild {
            options.fate = fates;
        }
        let mut cancel: Vec<_> = cancel.into_iter().map(Duration::from_millis).collect();
        cancel.sort();
        options.cancel = cancel;
        let mut world = World::new(job, options.clone());
        let status = world.run();
        let mut ends = ended(&world.records);
        ends.sort_unstable_by_key(|(launch, _)| *launch);
        let requested = world.records.iter().filter(|e| matches!(e, Event::Requested { .. }));
        prop_assert_eq!(requested.count(), ends.len());
        prop_assert!(ends.windows(2).all(|pair| pair[0].0 < pair[1].0), "{:?}", ends);
        let all_done = ends.iter().all(|(_, outcome)| *outcome == AttemptOutcome::Done);
        prop_assert!(status != RunStatus::Done || all_done);
        prop_assert!(world.fleet.next_deadline().is_none() || world.fleet.alive() == 0);

        check_commands(&world);
        check_lanes(&world);

        let mut again = World::new(job, options);
        prop_assert_eq!(again.run(), status);
        prop_assert_eq!(again.records, world.records, "the same seed gives the same records");
    }
}

/// Commands are numbered in order, each has at most one reply, and a worker that ended well has
/// answered all of them.
fn check_commands(world: &World) {
    let mut commands: BTreeMap<u64, BTreeMap<u64, u32>> = BTreeMap::new();
    for event in &world.records {
        match event {
            Event::Queued(queued) => {
                let known = commands.entry(queued.launch.0).or_default();
                assert_eq!(queued.id.0, known.len() as u64);
                known.insert(queued.id.0, 0);
            }
            Event::Replied { launch, reply, .. } => {
                let known =
                    commands.get_mut(&launch.0).and_then(|known| known.get_mut(&reply.id.0));
                *known.expect("a reply to a command that was sent") += 1;
            }
            _ => {}
        }
    }
    assert!(commands.values().flat_map(BTreeMap::values).all(|replies| *replies <= 1));
    for (launch, outcome) in ended(&world.records) {
        let all = commands.get(&launch).is_none_or(|known| known.values().all(|n| *n == 1));
        assert!(outcome != AttemptOutcome::Done || all, "{launch} ended well without its replies");
    }
}

/// Records of states fit together in each lane of each attempt, commands belong to lanes that are
/// in a state, what forks merges unless the attempt ended before, and what was entered is left.
fn check_lanes(world: &World) {
    let mut states: BTreeMap<(u64, Vec<u32>), Option<StateId>> = BTreeMap::new();
    let mut forked: BTreeMap<(u64, Vec<u32>), Vec<u32>> = BTreeMap::new();
    for event in &world.records {
        match event {
            Event::Transition { launch, lane, from, to, .. } => {
                let state = states.entry((launch.0, lane.clone())).or_default();
                assert_eq!(from, state, "{event:?}");
                *state = *to;
            }
            Event::Queued(queued) if queued.state.is_some() => {
                let state = states.get(&(queued.launch.0, queued.lane.clone()));
                assert_eq!(state, Some(&queued.state), "{queued:?}");
            }
            Event::Forked { launch, lane, lanes, .. } => {
                let before = forked.insert((launch.0, lane.clone()), lanes.clone());
                assert_eq!(before, None, "{event:?}");
            }
            Event::Begun { launch, lane, background } => {
                let path = [lane.as_slice(), &[*background]].concat();
                let state = states.get(&(launch.0, path));
                assert!(state.is_none_or(Option::is_none), "{event:?}: it is at it");
            }
            Event::Merged { launch, lane, winner } => {
                let lanes = forked.remove(&(launch.0, lane.clone())).expect("it forked");
                assert!(winner.is_none_or(|winner| lanes.contains(&winner)), "{event:?}");
                for no in lanes {
                    let path = [lane.as_slice(), &[no]].concat();
                    let state = states.get(&(launch.0, path));
                    assert!(state.is_none_or(Option::is_none), "{event:?}: {no} is in a state");
                }
            }
            _ => {}
        }
    }
    assert!(states.values().all(Option::is_none), "{states:?}");
    for (launch, outcome) in ended(&world.records) {
        let left = forked.keys().any(|(of, _)| *of == launch);
        assert!(outcome != AttemptOutcome::Done || !left, "{launch} ended within a fork");
    }
}

#[test]
fn a_second_reply_to_a_command_fails_that_worker_by_name() {
    let mut options = WorldOptions::calm(34);
    options.fate = |_, command| if command == 3 { Fate::Twice } else { Fate::Live };
    let mut world = World::new(&LISTS.replace("workers = 2", "workers = 1"), options);
    assert_eq!(world.run(), RunStatus::Failed);
    let errors = errors(&world.records);
    assert!(errors[0].contains("it answered command 3, which was not awaited"), "{errors:?}");
}

#[test]
fn a_worker_that_stands_still_is_reported_frozen_and_given_up() {
    let mut options = WorldOptions::calm(15);
    options.fate = |_, _| Fate::Freeze;
    let mut world = World::new(ONE, options);
    assert_eq!(world.run(), RunStatus::Failed);
    let frozen = |event: &Event| matches!(event, Event::Frozen { thawed: false, .. });
    assert_eq!(world.records.iter().filter(|event| frozen(event)).count(), 1);
    assert_eq!(world.ends(AttemptOutcome::Lost), 1);
}

#[test]
fn a_command_is_sent_with_what_its_step_says() {
    let mut world = World::new(ONE, WorldOptions::calm(16));
    world.run();
    let run = world.sent.iter().find_map(|action| match action {
        Action::Run(run) => Some(run.argv.clone()),
        _ => None,
    });
    let argv: Vec<Vec<u8>> = [&b"/bin/sh"[..], b"-c", b"true"].map(<[u8]>::to_vec).into();
    assert_eq!(run, Some(argv));
    assert_eq!(world.sent.last(), Some(&Action::Quit));
    let outcome = Outcome::Exited(0);
    assert!(outcome.is_success());
    assert!(!matches!(world.fleet.poll_output(), Some(Output::Send(..))));
}

#[test]
fn a_template_that_fails_at_run_time_is_blamed_on_its_own_step() {
    let job = r#"
[job]
workers = 1
[[step]]
state = "first"
run = "true"
[[step]]
state = "second"
echo = "{{ 1 / index }}"
"#;
    let mut world = World::new(job, WorldOptions::calm(17));
    assert_eq!(world.run(), RunStatus::Failed);
    let failure = world.records.iter().find_map(|event| match event {
        Event::Failure(failure) => Some(failure),
        _ => None,
    });
    let failure = failure.expect("it failed");
    assert_eq!((failure.command, failure.name.as_str()), (None, "echo"));
    assert_eq!(failure.state, Some(StateId(1)));
    assert!(failure.error.contains("index"), "{}", failure.error);
}

#[test]
fn starts_are_paced_and_one_that_never_connects_holds_nobody_up() {
    let mut options = WorldOptions::calm(18);
    options.starting_max = Some(1);
    options.fate = |launch, _| if launch == 0 { Fate::NeverConnect } else { Fate::Live };
    let job = "[job]\nworkers = 6\nconnect_timeout = \"1h\"\n[[step]]\nrun = \"true\"\n";
    let mut world = World::new(job, options);
    assert_eq!(world.run(), RunStatus::Failed);
    assert_eq!(world.ends(AttemptOutcome::Done), 5);
    let (mut starting, mut starting_max, mut last_done) = (0_i32, 0, CTime::ZERO);
    for (at, event) in world.times.iter().zip(&world.records) {
        match event {
            Event::Requested { .. } => starting += 1,
            Event::Joined(_) => starting -= 1,
            Event::Ended { outcome: AttemptOutcome::Done, .. } => last_done = *at,
            _ => {}
        }
        starting_max = starting_max.max(starting);
    }
    assert_eq!(starting_max, 2, "the slow one, and one at a time beside it");
    assert!(last_done < CTime::ZERO.after(Duration::from_secs(10)), "{last_done:?}");
}

#[test]
fn as_many_workers_take_items_as_the_job_says_and_items_alone_have_as_many_as_cores() {
    let queue = QUEUE.replace("at_once = 3\n", "");
    let mut world = World::new(&queue, WorldOptions::calm(19));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(world.alive_max, 3, "three workers on two cores, because the job says three");
    let alone = queue.replace("workers = 3\n", "");
    let mut world = World::new(&alone, WorldOptions::calm(20));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!((world.alive_max, world.ends(AttemptOutcome::Done)), (2, 10));
}
