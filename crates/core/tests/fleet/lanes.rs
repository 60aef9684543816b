//! Lists, lanes, infos and barriers: what the fleet makes of each, and records.

use super::*;

#[test]
fn infos_and_what_is_garbled_are_recorded_and_waits_that_nobody_ends_come_to_an_end() {
    let mut options = WorldOptions::calm(51);
    options.fate = |_, command| if command == 1 { Fate::Tell } else { Fate::Live };
    let mut world = World::new(&INFOS.replace("workers = 3", "workers = 1"), options);
    assert_eq!(world.run(), RunStatus::Failed);
    let infos = world.records.iter().filter_map(|event| match event {
        Event::Info { key, value, .. } => Some((key.as_str(), value.as_slice())),
        _ => None,
    });
    assert_eq!(infos.collect::<Vec<_>>(), [("x", &b"7"[..])]);
    let garbled = |event: &&Event| matches!(event, Event::Garbled { .. });
    assert_eq!(world.records.iter().filter(garbled).count(), 1);
    let waiting = |event: &&Event| matches!(event, Event::Waiting { reason: WaitReason::Info, .. });
    assert_eq!(world.records.iter().filter(waiting).count(), 1, "at the last step");
    let silent = "wait_info: nothing told `x` within 1m, and no command is running that could";
    assert_eq!(errors(&world.records), [silent]);
}

#[test]
fn a_worker_whose_code_floods_infos_fails_alone_and_by_name() {
    let mut options = WorldOptions::calm(52);
    options.fate = |launch, command| match (launch, command) {
        (1, 1) => Fate::Flood,
        (_, 1) => Fate::Tell,
        _ => Fate::Live,
    };
    let job = INFOS.replace("[[step]]\nwait_info = \"x\"\n", "");
    let mut world = World::new(&job, options);
    assert_eq!(world.run(), RunStatus::Failed);
    let errors = errors(&world.records);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("its code told more than 16777216 bytes of infos"), "{errors:?}");
    assert_eq!(world.ends(AttemptOutcome::Done), 2);
    let told = world.records.iter().filter(|event| matches!(event, Event::Info { .. })).count();
    assert!(told < 2200, "{told}");
}

#[test]
fn a_barrier_waits_for_the_one_that_is_late_and_names_it() {
    let mut options = WorldOptions::calm(61);
    options.fate = |launch, command| match (launch, command) {
        (217, 0) => Fate::Late,
        _ => Fate::Live,
    };
    let job = "[job]\nworkers = 300\n[[step]]\nrun = \"true\"\n[[step]]\nbarrier = \"all\"\n[[step]]\necho = \"on\"\n";
    let mut world = World::new(job, options);
    assert_eq!(world.run(), RunStatus::Done);
    let released: Vec<_> = world
        .records
        .iter()
        .filter_map(|event| match event {
            Event::Released { barrier, workers, last, .. } => {
                Some((barrier.as_str(), *workers, last.0))
            }
            _ => None,
        })
        .collect();
    assert_eq!(released, [("all", 300, 217)], "299 waited for the one");
    let count = |is: fn(&Event) -> bool| world.records.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, Event::Arrived { .. })), 300);
    let waits = count(|event| matches!(event, Event::Waiting { reason: WaitReason::Barrier, .. }));
    assert_eq!(waits, 300, "the last one as well, for no time");
}

#[test]
fn who_dies_or_fails_on_the_way_to_a_barrier_is_not_waited_for() {
    for fate in [Fate::Die, Fate::Exit(1), Fate::NeverConnect, Fate::Refuse, Fate::Twice] {
        let options = WorldOptions {
            fate: match fate {
                Fate::Die => |launch, _| if launch == 3 { Fate::Die } else { Fate::Live },
                Fate::Exit(_) => |launch, _| if launch == 3 { Fate::Exit(1) } else { Fate::Live },
                Fate::NeverConnect => {
                    |launch, _| if launch == 3 { Fate::NeverConnect } else { Fate::Live }
                }
                Fate::Refuse => |launch, _| if launch == 3 { Fate::Refuse } else { Fate::Live },
                _ => |launch, _| if launch == 3 { Fate::Twice } else { Fate::Live },
            },
            ..WorldOptions::calm(62)
        };
        let mut world = World::new(BARRIERS, options);
        assert_eq!(world.run(), RunStatus::Failed, "{fate:?}");
        assert_eq!(world.ends(AttemptOutcome::Done), 4, "{fate:?}");
        let released = world.records.iter().filter(|e| matches!(e, Event::Released { .. })).count();
        assert_eq!(released, 4, "{fate:?}");
    }
}

#[test]
fn groups_meet_by_themselves() {
    let job = "[job]\nworkers = 7\ngroup_size = 3\n[[step]]\nrun = \"true\"\n[[step]]\nbarrier = \"row\"\nscope = \"group\"\n[[step]]\necho = \"on\"\n";
    let released = |fate: fn(u64, u64) -> Fate| {
        let mut world = World::new(job, WorldOptions { fate, ..WorldOptions::calm(65) });
        world.run();
        let all = world.records.iter().filter_map(|event| match event {
            Event::Released { workers, last, .. } => Some((*workers, last.0 % 3)),
            _ => None,
        });
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all
    };
    assert_eq!(released(|_, _| Fate::Live), [(2, 1), (2, 2), (3, 0)]);
    // Worker 3 is of group 0, which then has two.
    let dies = |launch, _| if launch == 3 { Fate::Die } else { Fate::Live };
    assert_eq!(released(dies), [(2, 0), (2, 1), (2, 2)]);
}

#[test]
fn a_wave_whose_barriers_cannot_be_complete_is_skipped_in_words() {
    let job = "[job]\nitems = { range = 5 }\nat_once = 2\n[[step]]\nbarrier = \"b\"\n";
    let mut world = World::new(job, WorldOptions::calm(63));
    assert_eq!(world.run(), RunStatus::Failed);
    let reason = world.records.iter().find_map(|event| match event {
        Event::WaveSkipped { reason, .. } => Some(reason.as_str()),
        _ => None,
    });
    let expected = "its barriers need all 5 workers alive together, and `at_once` is 2";
    assert_eq!(reason, Some(expected));
}

#[test]
fn workers_of_a_queue_meet_until_there_are_no_more_items() {
    for items in [1, 2, 3, 7] {
        let job = format!(
            "[job]\nworkers = 3\nitems = {{ range = {items} }}\n[[step]]\nrun = \"true\"\n[[step]]\nbarrier = \"b\"\n[[step]]\necho = \"x\"\n"
        );
        let mut options = WorldOptions::calm(64);
        options.starting_max = Some(1);
        let mut world = World::new(&job, options);
        assert_eq!(world.run(), RunStatus::Done, "{items}");
        let arrived = world.records.iter().filter(|e| matches!(e, Event::Arrived { .. })).count();
        assert_eq!(arrived, items, "each item once");
    }
}

#[test]
fn lanes_are_named_and_recorded_with_forks_and_joins() {
    let mut world = World::new(LANES, WorldOptions::calm(41));
    assert_eq!(world.run(), RunStatus::Done);
    let named = world.records.iter().filter_map(|event| match event {
        Event::LaneNamed { path, name, .. } => Some((path.clone(), name.as_str())),
        _ => None,
    });
    let named: Vec<_> = named.collect();
    let expected = [
        (vec![0], "a"),
        (vec![1], "b"),
        (vec![2], "zip"),
        (vec![3], "daemon"),
        (vec![4], "a"),
        (vec![5], "b"),
        (vec![5, 0], "c"),
        (vec![5, 1], "d"),
    ];
    assert_eq!(named, expected);
    let count = |is: fn(&Event) -> bool| world.records.iter().filter(|event| is(event)).count();
    let races = count(|event| matches!(event, Event::Merged { winner: Some(_), .. }));
    assert_eq!(races, 5, "one for each item");
    assert_eq!(
        count(|event| matches!(event, Event::Forked { .. })),
        count(|event| matches!(event, Event::Merged { .. }))
    );
    check_commands(&world);
    check_lanes(&world);
}

#[test]
fn the_commands_of_a_list_are_recorded_as_pipelined_and_the_others_are_not() {
    let mut world = World::new(LISTS, WorldOptions::calm(31));
    assert_eq!(world.run(), RunStatus::Done);
    let queued = world.records.iter().filter_map(|event| match event {
        Event::Queued(queued) => Some((queued.pipelined, queued.name.as_ref())),
        _ => None,
    });
    let (listed, others): (Vec<_>, Vec<_>) = queued.partition(|(pipelined, _)| *pipelined);
    assert_eq!(listed.len(), 3 * (30 + 5 + 3));
    assert!(others.iter().all(|(_, name)| ["clean", "quit"].contains(name)), "{others:?}");
    check_commands(&world);
}

#[test]
fn a_failed_list_is_cancelled_and_handled_when_its_replies_are_there() {
    let mut options = WorldOptions::calm(32);
    options.fate = |_, command| if command == 4 { Fate::Exit(7) } else { Fate::Live };
    let job = LISTS.replace("range = \"3\"", "range = \"1\"");
    let mut world = World::new(&job, options);
    assert_eq!(world.run(), RunStatus::Done);
    let cancels = world.sent.iter().filter(|action| matches!(action, Action::Cancel(_))).count();
    let cancelled = world.records.iter().filter(|event| {
        matches!(event, Event::Replied { reply, .. } if reply.outcome == Outcome::Cancelled)
    });
    assert_eq!((cancels, cancelled.count()), (30, 30), "all after the fifth of 35");
    let mended = |event: &&Event| matches!(event, Event::Queued(q) if q.state == Some(StateId(2)));
    assert_eq!(world.records.iter().filter(mended).count(), 1);
    check_commands(&world);
}

#[test]
fn a_list_that_hangs_is_cancelled_when_the_time_of_its_step_is_over() {
    let mut options = WorldOptions::calm(33);
    options.fate = |_, command| if command == 36 { Fate::Hang } else { Fate::Live };
    let job = LISTS.replace("range = \"3\"", "range = \"1\"");
    let mut world = World::new(&job, options);
    assert_eq!(world.run(), RunStatus::Failed);
    let fired = |event: &&Event| matches!(event, Event::TimerFired { timer: Timer::Step, .. });
    assert_eq!(world.records.iter().filter(fired).count(), 1);
    assert_eq!(errors(&world.records), ["do: timed out: the 3s of `do` are over"]);
    assert_eq!(world.ends(AttemptOutcome::Failed), 1);
}
