//! `musec replay`: real runs are decided again from their journals; a journal in which something
//! was changed is found, and the place named.

mod support;

use std::fs;
use std::path::PathBuf;

use musec_trace::journal::{JournalReader, Next, encode};
use musec_trace::{Event, Outcome, Record};
use support::{Place, json, text};

const JOB: &str = r#"
[params]
greeting = "hello"
[job]
inputs = "in"
items = { csv = "in:table.csv" }
workers = 2
[[step]]
run = "echo {{ greeting }} {{ name }}"
expect = "greeting in last.output"
[[step]]
if = "name == 'b'"
parallel = { one = [{ run = "true" }], two = [{ echo = "2" }] }
[[step]]
print = "table.csv.out"
if = "false"
"#;

/// The folder of a run of the job that went well.
fn ran() -> Place {
    let place = Place::new(JOB);
    fs::create_dir(place.path("in")).expect("made");
    fs::write(place.path("in/table.csv"), "name\na\nb\nc\n").expect("written");
    let output = place.run(&["run", "job.toml", "-q", "--param", "greeting=hi"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    place
}

fn journal(place: &Place) -> PathBuf {
    let mut runs = fs::read_dir(place.path(".musec/runs")).expect("runs");
    runs.next().expect("a run").expect("a folder").path().join("journal.musec")
}

fn records(place: &Place) -> Vec<Record> {
    let bytes = fs::read(journal(place)).expect("a journal");
    let mut reader = JournalReader::new(bytes.as_slice());
    let mut records = Vec::new();
    while let Next::Record(record) = reader.read_next().expect("sound") {
        records.push(record);
    }
    records
}

/// What `musec replay` says of a run whose journal was changed; the journal is then as it was.
fn replay_changed(place: &Place, change: impl FnOnce(&mut Vec<Record>)) -> serde_json::Value {
    let path = journal(place);
    let sound = fs::read(&path).expect("a journal");
    let mut changed = records(place);
    change(&mut changed);
    fs::write(&path, encode(changed)).expect("written");
    let human = place.run(&["replay"]);
    let output = place.run(&["replay", "--format", "json"]);
    fs::write(&path, sound).expect("written");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert_eq!(human.status.code(), Some(4));
    let words = text(&human.stdout);
    assert!(words.contains("decided otherwise at record "), "{words}");
    assert!(words.contains("\n  recorded: at ") && words.contains("\n  decided:  "), "{words}");
    json(&output)
}

#[test]
fn a_run_is_decided_again_and_agrees() {
    let place = ran();
    let output = place.run(&["replay"]);
    let words = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{words}{}", text(&output.stderr));
    assert!(words.contains(" decisions made again from "), "{words}");
    assert!(words.ends_with(" inputs, and all agree\n"), "{words}");
    let told = json(&place.run(&["replay", "latest", "--format", "json"]));
    assert_eq!((&told["agrees"], &told["is_whole"]), (&true.into(), &true.into()), "{told}");
    let own = |event: &Event| {
        matches!(event, Event::RunStarted(_) | Event::Sent { .. } | Event::Sample(_))
    };
    let count = records(&place).iter().filter(|record| !own(&record.event)).count() as u64;
    let agreed = support::number(&told["decisions"]) + support::number(&told["inputs"]);
    assert_eq!(agreed, count, "every record was compared: {told}");
}

#[test]
fn the_outcome_of_a_reply_that_was_flipped_is_found_at_what_follows_from_it() {
    let place = ran();
    let told = replay_changed(&place, |records| {
        let reply = records.iter_mut().find_map(|record| match &mut record.event {
            // Of `true`: the other command has `expect`, which does not ask for its exit code.
            Event::Replied { reply, .. } if reply.usage.is_some() => {
                (reply.stdout.total_bytes == 0).then_some(reply)
            }
            _ => None,
        });
        reply.expect("a reply").outcome = Outcome::Exited(1);
    });
    assert_eq!(told["agrees"], false);
    let difference = &told["difference"];
    let decided = difference["decided"]["event"].as_str().expect("a decision");
    let recorded = difference["recorded"]["event"].as_str().expect("a record");
    assert_ne!(decided, recorded);
    assert!(difference["byte"].as_u64().is_some_and(|byte| byte > 16), "{difference}");
}

#[test]
fn a_change_of_state_that_was_dropped_is_what_core_decides_instead() {
    let place = ran();
    let mut dropped = None;
    let told = replay_changed(&place, |records| {
        let is_change = |record: &Record| matches!(record.event, Event::Transition { .. });
        let at = records.iter().rposition(is_change).expect("a change of state");
        dropped = Some((at, records.remove(at)));
    });
    let (at, record) = dropped.expect("it was dropped");
    let difference = &told["difference"];
    assert_eq!(difference["decided"]["event"], format!("{:?}", record.event), "{difference}");
    let number = usize::try_from(support::number(&difference["record"])).expect("few");
    assert!(number >= at && number <= at + 2, "{number} is not at {at}: {difference}");
}

#[test]
fn a_journal_that_was_cut_off_agrees_as_far_as_it_goes_and_says_so() {
    let place = ran();
    let sound = fs::read(journal(&place)).expect("a journal");
    for share in [1, 5, 9, 13] {
        fs::write(journal(&place), &sound[..sound.len() * share / 16 + 7]).expect("written");
        let output = place.run(&["replay"]);
        let words = text(&output.stdout);
        assert!(output.status.success(), "{words}{}", text(&output.stderr));
        assert!(words.ends_with("as far as the journal goes: it ends before the run does\n"));
    }
    fs::write(journal(&place), sound).expect("written");
}

#[test]
fn a_map_of_items_of_any_bytes_is_decided_again() {
    let place = Place::new("");
    fs::write(place.path("items"), b"a\xff\0b\nb\0%41").expect("written");
    let words = ["-q", "-0", "--items", "items", "--put", "out/{index}", "--timeout", "60s"];
    let command = ["--", "cp {in} {out} 2> err; echo {in} > {out}"];
    let output = place.run(&[&["map"][..], &words, &command].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = json(&place.run(&["replay", "--format", "json"]));
    assert_eq!((&told["agrees"], &told["is_whole"]), (&true.into(), &true.into()), "{told}");
    let lost = replay_changed_items(&place);
    assert_eq!(lost.status.code(), Some(4), "{}", text(&lost.stdout));
    assert!(text(&lost.stderr).contains("of 3 items 0 are recorded"), "{}", text(&lost.stderr));
}

/// What `musec replay` says when the items are not in the journal.
fn replay_changed_items(place: &Place) -> std::process::Output {
    let path = journal(place);
    let sound = fs::read(&path).expect("a journal");
    let all = records(place).into_iter();
    let without = all.filter(|record| !matches!(record.event, Event::Given { .. }));
    fs::write(&path, encode(without)).expect("written");
    let output = place.run(&["replay"]);
    fs::write(&path, sound).expect("written");
    output
}

#[test]
fn a_run_under_way_is_decided_again_as_far_as_it_came() {
    let place =
        Place::new("[job]\nworkers = 1\n[[step]]\nrun = \"echo\"\n[[step]]\nsleep = \"1h\"\n");
    let mut running = place.start(&[]);
    let told = support::wait_for(std::time::Duration::from_secs(60), || {
        let output = place.run(&["replay", "--format", "json"]);
        // There may be no journal yet.
        let told = output.status.success().then(|| json(&output))?;
        let inputs = support::number(&told["inputs"]);
        assert_eq!((&told["agrees"], &told["is_whole"]), (&true.into(), &false.into()), "{told}");
        // It was accepted, has joined and answered; now it sleeps.
        (inputs >= 3).then_some(told)
    });
    let told = told.unwrap_or_else(|| panic!("{}", place.log()));
    assert!(support::number(&told["decisions"]) > 5, "{told}");
    let words = text(&place.run(&["replay"]).stdout);
    assert!(words.ends_with("as far as the journal goes: the run is under way\n"), "{words}");
    support::kill("KILL", running.id());
    running.wait().expect("it ends");
}
