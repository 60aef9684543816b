//! How many workers a wave has, and what they work on.

use musec_core::{Glob, ItemList, PlanError, Program, Seen, WaveId};
use musec_protocol::Place;
use serde_json::json;

use crate::job;

fn with(workers: &str) -> Program {
    job(&format!(
        "[job]\n{workers}\n[params]\nn = 6\nnames = [\"a\", \"b\"]\nfolder = \"x\"\n[[step]]\necho = \"x\"\n"
    ))
}

fn counts(workers: &str, cores: u32) -> (u32, Option<u64>, bool, Option<u32>) {
    let plan = with(workers).plan(WaveId(0), cores, None).unwrap();
    (plan.workers, plan.items.map(|items| items.len()), plan.queue, plan.at_once)
}

#[test]
fn workers_are_counted_listed_or_both() {
    assert_eq!(counts("workers = 25", 4), (25, None, false, None));
    assert_eq!(counts("workers = \"cores\"", 4), (4, None, false, None));
    assert_eq!(counts("workers = \"n // 2\"\nat_once = \"cores\"", 4), (3, None, false, Some(4)));
    assert_eq!(counts("items = { range = \"n\" }", 4), (6, Some(6), false, None));
    assert_eq!(
        counts("items = { list = [1, \"a\"] }\nworkers = \"cores\"", 4),
        (2, Some(2), true, None)
    );
    assert_eq!(
        counts("items = { range = 100 }\nworkers = \"{{ cores }}\"", 4),
        (4, Some(100), true, None)
    );
    assert_eq!(counts("items = \"{{ names }}\"", 4), (2, Some(2), false, None));
}

#[test]
fn items_keep_their_types() {
    let program = with("items = { list = [1, 2.5, \"a\", true, { k = 1 }] }");
    let items = program.plan(WaveId(0), 1, None).unwrap().items.unwrap();
    let all: Vec<_> = (0..6).map(|number| items.item(number)).collect();
    let expected = [json!(1), json!(2.5), json!("a"), json!(true), json!({"k": 1})];
    assert_eq!(all[..5], expected.map(Some));
    assert_eq!(all[5], None);
    assert_eq!(ItemList::Range(3).item(2), Some(json!(2)));
    assert_eq!(ItemList::Range(3).item(3), None);
}

#[test]
fn a_glob_is_listed_first_and_its_keys_are_sorted_by_bytes() {
    let program = with("items = \"in:{{ folder }}/*.png\"");
    let glob = program.glob(WaveId(0)).unwrap().unwrap();
    assert_eq!(
        (glob.place, glob.pattern.as_str(), glob.folder.as_str()),
        (Place::Inputs, "x/*.png", "x")
    );
    let error = program.plan(WaveId(0), 1, None).unwrap_err();
    assert!(matches!(error, PlanError::NotListed { .. }), "{error}");
    let keys =
        ["x/b.png", "x/ä.png", "x/B.png", "x/y/a.png", "z.png", "x/b.png"].map(str::to_owned);
    let plan = program.plan(WaveId(0), 1, Some(&Seen::Keys(keys.to_vec()))).unwrap();
    let items = plan.items.unwrap();
    let all: Vec<_> = (0..items.len()).filter_map(|number| items.item(number)).collect();
    assert_eq!(all, ["in:x/B.png", "in:x/b.png", "in:x/ä.png"]);
    let error = program.plan(WaveId(0), 1, Some(&Seen::Keys(Vec::new()))).unwrap_err();
    assert_eq!(error.to_string(), "no item for wave `job`: nothing matches `in:x/*.png`");
}

#[test]
fn an_outline_says_which_items_are_known_only_at_run_time() {
    let of = |items: &str| with(items).outline().waves[0].items_at_run_time;
    assert!(of("items = \"tiles/*.rgb\""));
    assert!(!of("items = \"in:*.png\"") && !of("items = { range = 3 }") && !of("workers = 1"));
}

#[test]
fn globs_know_folders_and_what_needs_to_be_listed() {
    let glob = |pattern: &str| Glob::new(Place::Store, pattern).unwrap();
    assert!(glob("a/**/c").matches("a/b/b/c") && glob("a/**/c").matches("a/c"));
    assert!(!glob("a/*").matches("a/b/c") && glob("**").matches("a/b/c"));
    assert!(glob("a.{png,jpg}").matches("a.jpg") && glob("[ab]?").matches("bx"));
    for (pattern, folder) in [("a/b/*.png", "a/b"), ("a*/b", ""), ("a/b", "a"), ("**", "")] {
        assert_eq!(glob(pattern).folder, folder, "{pattern}");
    }
}

#[test]
fn numbers_are_bounded_when_they_are_known() {
    let program = with("workers = \"cores * 1000000\"");
    assert_eq!(program.plan(WaveId(0), 1, None).unwrap().workers, 1_000_000);
    let error = program.plan(WaveId(0), 4, None).unwrap_err();
    assert_eq!(error.to_string(), "`workers` of wave `job` is 4000000, allowed are 1 to 1048576");
    assert!(program.plan(WaveId(7), 4, None).is_err());
}
