//! Waves in a world of fake workers: setup, items out of files, numbers that depend on earlier
//! waves, items that come one by one, workers that are left out.

#[allow(dead_code, reason = "other tests of this world look at more of it")]
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use musec_core::job::Options;
use musec_protocol::{Action, LaunchId};
use musec_trace::{AttemptOutcome, Event, RunStatus, StepCategory, WaitReason, WaveId};
use proptest::prelude::*;
use world::{Fate, World, WorldOptions};

/// Commands of each attempt, in order: name and arguments.
fn commands(world: &World) -> BTreeMap<u64, Vec<String>> {
    let mut all: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for event in &world.records {
        if let Event::Queued(queued) = event {
            let words = queued.arguments.iter().map(|word| String::from_utf8_lossy(word));
            let words: Vec<String> = words.map(std::borrow::Cow::into_owned).collect();
            let text = format!("{} {}", queued.name, words.join(" ")).trim().to_owned();
            all.entry(queued.launch.0).or_default().push(text);
        }
    }
    all
}

fn items(world: &World, wave: u32) -> Vec<String> {
    let launches: Vec<LaunchId> = world
        .records
        .iter()
        .filter_map(|event| match event {
            Event::Requested { launch, wave: of, .. } if *of == WaveId(wave) => Some(*launch),
            _ => None,
        })
        .collect();
    let given = world.records.iter().filter_map(|event| match event {
        Event::ItemGiven { launch, value_json, .. } if launches.contains(launch) => {
            Some(value_json.clone())
        }
        _ => None,
    });
    given.collect()
}

fn started(world: &World) -> Vec<(String, u32, u64)> {
    let waves = world.records.iter().filter_map(|event| match event {
        Event::WaveStarted { name, workers, items, .. } => Some((name.clone(), *workers, *items)),
        _ => None,
    });
    waves.collect()
}

fn skipped(world: &World) -> Vec<String> {
    let waves = world.records.iter().filter_map(|event| match event {
        Event::WaveSkipped { name, reason, .. } => Some(format!("{name}: {reason}")),
        _ => None,
    });
    waves.collect()
}

const SETUP: &str = r#"
[job]
workers = 2
items = { range = 7 }
[[setup]]
run = "prepare"
[[setup]]
set = { seen = "'yes'" }
[[step]]
set = { n = "item + 1" }
[[step]]
echo = "{{ vars.seen }} {{ vars.n }}"
[[step]]
set = { seen = "'no'" }
"#;

#[test]
fn setup_runs_once_for_each_worker_and_its_variables_are_there_for_every_item() {
    let mut world = World::new(SETUP, WorldOptions::calm(1));
    assert_eq!(world.run(), RunStatus::Done);
    let mut echoes = Vec::new();
    for commands in commands(&world).values() {
        assert_eq!(commands[0], "run /bin/sh -c prepare");
        assert_eq!(commands[1], "mark", "what setup left stays");
        assert_eq!(commands.iter().filter(|command| command.starts_with("run")).count(), 1);
        let work: Vec<_> =
            commands[2..].iter().filter(|c| !["clean", "quit"].contains(&c.as_str())).collect();
        echoes.extend(work.into_iter().cloned());
    }
    echoes.sort();
    let expected: Vec<String> = (1..=7).map(|n| format!("echo yes {n}")).collect();
    assert_eq!(echoes, expected);
}

#[test]
fn a_worker_whose_setup_fails_takes_no_item() {
    let mut options = WorldOptions::calm(2);
    options.fate = |launch, command| match (launch, command) {
        (0, 0) => Fate::Exit(1),
        _ => Fate::Live,
    };
    let mut world = World::new(SETUP, options);
    assert_eq!(world.run(), RunStatus::Failed);
    assert_eq!(world.ends(AttemptOutcome::Failed), 1);
    assert_eq!(world.ends(AttemptOutcome::Done), 1);
    assert_eq!(items(&world, 0).len(), 7, "the other one takes them all");
}

#[test]
fn kept_scratch_is_not_cleaned_between_items() {
    let job = SETUP.replace("workers = 2", "workers = 2\nkeep = true");
    let mut world = World::new(&job, WorldOptions::calm(3));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(items(&world, 0).len(), 7);
    assert!(!world.sent.iter().any(|action| matches!(action, Action::Clean | Action::Mark)));
}

#[test]
fn items_without_commands_do_not_hold_the_loop() {
    let job = "[job]\nworkers = 1\nitems = { range = 50000 }\nkeep = true\n[[step]]\nset = { a = \"item\" }\n";
    let mut world = World::new(job, WorldOptions::calm(4));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(items(&world, 0).len(), 50_000);
}

const TABLE: &str = r#"
[job]
workers = 1
items = { csv = "in:table.csv" }
[[step]]
echo = "{{ width + 1 }} {{ scale * 2 }} {{ on and 'on' or 'off' }} {{ name }} {{ item.name|length }}"
"#;

#[test]
fn columns_of_a_table_are_names_with_types() {
    let mut options = WorldOptions::calm(5);
    options.text = "width,scale,on,name\n640,0.5,true,\"a, \"\"b\"\"\"\n7,2.0,false,007\n";
    let mut world = World::new(TABLE, options);
    assert_eq!(world.run(), RunStatus::Done);
    let echoes: Vec<String> =
        commands(&world)[&0].iter().filter(|c| c.starts_with("echo")).cloned().collect();
    assert_eq!(echoes, ["echo 641 1.0 on a, \"b\" 6", "echo 8 4.0 off 007 3"]);
    assert!(world.records.iter().any(|event| matches!(event, Event::Read { .. })), "for replay");
}

#[test]
fn a_name_that_is_no_column_is_told_when_the_table_is_known() {
    let mut options = WorldOptions::calm(6);
    options.text = "wide\n640\n";
    let mut world = World::new(TABLE, options);
    assert_eq!(world.run(), RunStatus::Failed);
    let failure = world.records.iter().find_map(|event| match event {
        Event::Failure(failure) => Some(failure.error.clone()),
        _ => None,
    });
    let failure = failure.unwrap_or_default();
    assert!(failure.contains("is not bound, and no column of the table"), "{failure}");
}

#[test]
fn a_table_that_is_none_keeps_its_wave_from_starting() {
    let mut options = WorldOptions::calm(7);
    options.text = "a,b\n1\n";
    let mut world = World::new(TABLE, options);
    assert_eq!(world.run(), RunStatus::Failed);
    let expected = "job: `in:table.csv`: line 2 has 1 fields, the header has 2";
    assert_eq!(skipped(&world), [expected]);
}

#[test]
fn lines_of_a_file_are_items() {
    let job =
        "[job]\nworkers = 2\nitems = { lines = \"in:names\" }\n[[step]]\necho = \"{{ stem }}\"\n";
    let mut options = WorldOptions::calm(8);
    options.text = "a/x.png\r\n\ny.png\n";
    let mut world = World::new(job, options);
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(items(&world, 0), ["\"a/x.png\"", "\"y.png\""]);
}

/// Three waves, the second with a number of workers that the first one's outputs decide.
const PIPELINE: &str = r#"
[[wave]]
name = "split"
workers = 2
[[wave.step]]
for = { k = "range(5)" }
do = [{ put = "x", as = "parts/{{ index }}-{{ k }}" }]

[[wave]]
name = "work"
after = ["split"]
workers = "(outputs_of('split')|length / 4)|round(0, 'ceil')|int"
items = "{{ outputs_of('split') }}"
at_once = 9
[[wave.step]]
get = "{{ item }}"
[[wave.step]]
put = "y"
as = "done/{{ name }}"

[[wave]]
name = "merge"
after = ["work"]
items = "done/*"
workers = 1
[[wave.step]]
echo = "{{ item }}"
"#;

#[test]
fn later_waves_take_their_numbers_and_items_from_earlier_ones() {
    let mut world = World::new(PIPELINE, WorldOptions::calm(9));
    assert_eq!(world.run(), RunStatus::Done);
    let expected = [("split", 2, 0), ("work", 3, 10), ("merge", 1, 10)];
    assert_eq!(started(&world), expected.map(|(name, w, i)| (name.to_owned(), w, i)));
    let mut keys = items(&world, 1);
    keys.sort();
    let parts: Vec<String> =
        (0..2).flat_map(|i| (0..5).map(move |k| format!("\"parts/{i}-{k}\""))).collect();
    assert_eq!(keys, parts);
    assert_eq!(items(&world, 2).len(), 10);
}

#[test]
fn a_number_above_max_workers_is_an_error_and_not_cut() {
    let job = PIPELINE.replace("at_once = 9", "max_workers = 2");
    let mut world = World::new(&job, WorldOptions::calm(10));
    assert_eq!(world.run(), RunStatus::Failed);
    assert_eq!(skipped(&world)[0], "work: `workers` of wave `work` is 3, allowed are 1 to 2");
}

#[test]
fn a_failed_put_is_no_output() {
    let mut options = WorldOptions::calm(11);
    options.fate = |launch, command| match (launch, command) {
        (0, 3) => Fate::Exit(1),
        _ => Fate::Live,
    };
    let job = PIPELINE.replace(
        "as = \"parts/{{ index }}-{{ k }}\"",
        "as = \"parts/{{ index }}-{{ k }}\", expect = \"true\"",
    );
    let mut world = World::new(&job, options);
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(started(&world)[1], ("work".to_owned(), 3, 9));
}

/// A wave that takes what another puts, as it comes.
const EACH: &str = r#"
[[wave]]
name = "make"
workers = 4
at_once = 2
[[wave.step]]
put = "x"
as = "parts/{{ index }}"
[[wave.step]]
put = "log"
as = "logs/{{ index }}"
[[wave.step]]
sleep = "1s"

[[wave]]
name = "use"
after = ["make"]
each = true
workers = 2
items = "parts/*"
at_once = 2
timeout = "1h"
[[wave.step]]
echo = "{{ item }}"

[[wave]]
name = "last"
after = ["use"]
workers = 1
[[wave.step]]
echo = "end"
"#;

/// Where an event is, if it is there.
fn place(world: &World, is: impl Fn(&Event) -> bool) -> usize {
    world.records.iter().position(is).unwrap_or(usize::MAX)
}

#[test]
fn a_wave_with_each_takes_items_as_soon_as_they_are_put() {
    let mut world = World::new(EACH, WorldOptions::calm(12));
    assert_eq!(world.run(), RunStatus::Done);
    let mut keys = items(&world, 1);
    keys.sort();
    assert_eq!(keys, ["\"parts/0\"", "\"parts/1\"", "\"parts/2\"", "\"parts/3\""]);
    let ended =
        |of: u32| place(&world, |event| matches!(event, Event::WaveEnded { wave } if wave.0 == of));
    let first = place(&world, |event| matches!(event, Event::ItemGiven { .. }));
    assert!(first < ended(0), "it does not wait for the end of the wave before it");
    let last = |event: &Event| matches!(event, Event::WaveStarted { name, .. } if name == "last");
    assert!(ended(1) < place(&world, last));
    let waits = |event: &Event| matches!(event, Event::Waiting { reason: WaitReason::Item, .. });
    assert!(world.records.iter().any(waits), "workers wait for items that may come");
}

#[test]
fn without_workers_each_item_has_its_own_as_it_comes() {
    let job =
        EACH.replace("workers = 2\nitems = \"parts/*\"", "items = \"{{ outputs_of('make') }}\"");
    let mut world = World::new(&job, WorldOptions::calm(13));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(items(&world, 1).len(), 8);
    let mut workers: Vec<u32> = Vec::new();
    for event in &world.records {
        if let Event::Requested { worker, .. } = event {
            workers.push(worker.0);
        }
    }
    workers.sort_unstable();
    assert_eq!(workers, (0..13).collect::<Vec<_>>(), "no number twice, none left out");
}

#[test]
fn waves_with_each_can_follow_one_another() {
    let job =
        EACH.replace("echo = \"{{ item }}\"", "put = \"y\"\nas = \"done/{{ name }}\"").replace(
            "workers = 1\n[[wave.step]]\necho = \"end\"",
            "each = true\nitems = \"done/*\"\n[[wave.step]]\necho = \"{{ item }}\"",
        );
    let mut world = World::new(&job, WorldOptions::calm(20));
    assert_eq!(world.run(), RunStatus::Done);
    let mut keys = items(&world, 2);
    keys.sort();
    assert_eq!(keys, ["\"done/0\"", "\"done/1\"", "\"done/2\"", "\"done/3\""]);
    let first = place(
        &world,
        |event| matches!(event, Event::ItemGiven { value_json, .. } if value_json.contains("done")),
    );
    let ended = place(&world, |event| matches!(event, Event::WaveEnded { wave: WaveId(0) }));
    assert!(first < ended, "the third wave begins before the first one has ended");
}

#[test]
fn only_some_of_the_items_that_come_are_taken() {
    let job =
        EACH.replace("workers = 2\nitems = \"parts/*\"", "only = [1, 3, 9]\nitems = \"parts/*\"");
    let mut world = World::new(&job, WorldOptions::calm(21));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(items(&world, 1).len(), 2);
}

#[test]
fn a_wave_with_each_whose_sources_fail_does_what_came_and_counts_as_spoilt() {
    let mut options = WorldOptions::calm(14);
    options.fate = |launch, command| match (launch, command) {
        (1, 2) => Fate::Die,
        _ => Fate::Live,
    };
    let mut world = World::new(EACH, options);
    assert_eq!(world.run(), RunStatus::Failed);
    assert!(!items(&world, 1).is_empty());
    assert_eq!(skipped(&world), ["last: `use`, which it comes after, did not end well"]);
}

#[test]
fn a_wave_with_each_for_which_nothing_was_put_is_skipped_in_words() {
    let job = EACH.replace("items = \"parts/*\"", "items = \"others/*\"");
    let mut world = World::new(&job, WorldOptions::calm(15));
    assert_eq!(world.run(), RunStatus::Failed);
    assert_eq!(skipped(&world)[0], "use: the waves before it put no item for it");
}

#[test]
fn only_the_asked_for_workers_are_launched_and_know_their_numbers() {
    let job =
        "[job]\nworkers = 25\nonly = [17, 3]\n[[step]]\necho = \"{{ index }}/{{ workers }}\"\n";
    let echoes = |world: &World| -> Vec<String> {
        let all: Vec<String> = commands(world).into_values().flatten().collect();
        all.into_iter().filter(|command| command.starts_with("echo")).collect()
    };
    let mut world = World::new(job, WorldOptions::calm(16));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(started(&world), [("job".to_owned(), 2, 0)]);
    let mut found = echoes(&world);
    found.sort();
    assert_eq!(found, ["echo 17/25", "echo 3/25"]);
    let beside = Options { only: Some(vec![24]), ..Options::default() };
    let mut world = World::with(job, &beside, WorldOptions::calm(17));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(echoes(&world), ["echo 24/25"]);
}

#[test]
fn a_wave_without_any_of_the_asked_for_workers_ends_at_once() {
    let job = PIPELINE
        .replace("[[wave]]\nname = \"split\"", "[job]\nonly = [1]\n[[wave]]\nname = \"split\"");
    let mut world = World::new(&job, WorldOptions::calm(18));
    assert_eq!(world.run(), RunStatus::Done);
    assert_eq!(
        items(&world, 1).len(),
        5,
        "worker 1 of `work` takes all that worker 1 of `split` put"
    );
    assert_eq!(started(&world).last(), Some(&("merge".to_owned(), 0, 5)));
}

#[test]
fn what_a_step_says_of_its_time_is_recorded() {
    let job = "[job]\nworkers = 1\n[[step]]\nrun = \"x\"\ncategory = \"storage\"\n";
    let mut world = World::new(job, WorldOptions::calm(19));
    world.run();
    let found = world.records.iter().find_map(|event| match event {
        Event::Queued(queued) => Some(queued.category),
        _ => None,
    });
    assert_eq!(found, Some(Some(StepCategory::Storage)));
}

fn fates(launch: u64, command: u64) -> Fate {
    match (launch * 5 + command * 11) % 29 {
        0 => Fate::Exit(1),
        1 => Fate::Die,
        2 => Fate::Hang,
        3 => Fate::NeverConnect,
        4 => Fate::Refuse,
        _ => Fate::Live,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_happens_waves_end_and_the_same_seed_gives_the_same_records(
        seed in any::<u64>(),
        job in prop::sample::select(vec![SETUP, PIPELINE, EACH]),
        one_each in any::<bool>(),
        cancel in prop::collection::vec(0u64..8_000, 0..3),
        wild in any::<bool>(),
    ) {
        let mut job = job.to_owned();
        if one_each {
            job = job.replace("workers = 2\nitems = \"parts/*\"", "items = \"parts/*\"");
        }
        job = format!("[job]\ntimeout = \"1h\"\n{}", job.trim_start().strip_prefix("[job]").unwrap_or(&job));
        let mut options = WorldOptions::calm(seed);
        options.jitter_ms = 900;
        if wild {
            options.fate = fates;
        }
        let mut cancel: Vec<_> = cancel.into_iter().map(Duration::from_millis).collect();
        cancel.sort();
        options.cancel = cancel;
        let mut world = World::new(&job, options.clone());
        let status = world.run();
        prop_assert_eq!(world.fleet.alive(), 0);
        let count = |is: fn(&Event) -> bool| world.records.iter().filter(|e| is(e)).count();
        let ends = count(|event| matches!(event, Event::Ended { .. }));
        prop_assert_eq!(ends, count(|event| matches!(event, Event::Requested { .. })));
        if status == RunStatus::Done {
            prop_assert!(skipped(&world).is_empty());
        }
        let mut again = World::new(&job, options);
        prop_assert_eq!(again.run(), status);
        prop_assert_eq!(again.records, world.records);
    }
}
