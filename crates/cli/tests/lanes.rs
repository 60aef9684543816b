//! Lanes and pipelined lists over the real binary: paths of many workers, and times that are the
//! same however commands were sent.

mod support;

use std::time::Duration;

use serde_json::Value;
use support::{Place, assert_conserved, json, number, text};

const LIMIT: Duration = Duration::from_secs(10);

/// Two lanes of three commands whose durations differ from worker to worker, so that lanes overtake
/// one another in all ways. One worker may take another branch, which looks the same.
const LANES: &str = r#"
[job]
workers = 200
[params]
odd = -1
[[step]]
state = "work"
[step.parallel]
left = [
    { sleep = "{{ (index * 7919 + 13) % 23 }}ms" },
    { sleep = "{{ (index * 104729 + 5) % 19 }}ms" },
    { if = "index == odd", sleep = "{{ (index * 31) % 17 }}ms", else = [
        { sleep = "{{ (index * 37) % 17 }}ms" },
    ] },
]
right = [
    { sleep = "{{ (index * 15485863 + 1) % 21 }}ms" },
    { sleep = "{{ (index * 611953 + 7) % 29 }}ms" },
    { state = "tell", echo = "{{ index }}" },
]
"#;

fn paths(place: &Place) -> Vec<Value> {
    let paths = json(&place.run(&["paths", "--format", "json"]));
    assert_eq!(paths["schema"], 1);
    paths["paths"].as_array().expect("paths").clone()
}

#[test]
fn two_hundred_workers_with_racing_lanes_are_one_path_and_the_odd_one_is_named() {
    let place = Place::new(LANES);
    let output = place.run(&["run", "job.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let all = paths(&place);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["path"], "work[left: sleep sleep sleep | right: sleep sleep → tell(echo)]");
    assert_eq!(all[0]["workers"].as_array().map(Vec::len), Some(200));
    assert_eq!(all[0].get("differs"), None);
    // The lanes did race: not all records came in the same order.
    let orders: std::collections::BTreeSet<Vec<u64>> =
        (0..8).map(|worker| order_of_replies(&place.show(worker))).collect();
    assert!(orders.len() > 1, "{orders:?}");

    let output = place.run(&["run", "job.toml", "--quiet", "--param", "odd=137"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let all = paths(&place);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0]["workers"].as_array().map(Vec::len), Some(199));
    assert_eq!(all[1]["workers"], serde_json::json!([137]));
    assert_ne!(all[0]["path"], all[1]["path"]);
    let differs = &all[1]["differs"];
    assert_eq!(differs["after"], "sleep in work, lane left");
    assert_eq!(differs["has"].as_array().map(Vec::len), Some(1), "{differs}");
    assert_ne!(differs["has"], differs["instead_of"]);
    let shown = text(&place.run(&["paths"]).stdout);
    assert!(shown.contains("1 worker  wave job: 137"), "{shown}");
    assert!(shown.contains("199 workers  wave job: 0–136, 138–199"), "{shown}");
    place.assert_nothing_left(LIMIT);
}

/// Ids of commands in the order of their replies.
fn order_of_replies(show: &Value) -> Vec<u64> {
    let mut commands = commands(show);
    commands.sort_by_key(|command| number(&command["replied_ns"]));
    commands.iter().map(|command| number(&command["id"])).collect()
}

fn commands(show: &Value) -> Vec<Value> {
    assert_eq!(show["attempts"].as_array().map(Vec::len), Some(1));
    show["attempts"][0]["commands"].as_array().expect("commands").clone()
}

/// Each worker does both, half of them in the other order, so that whatever else the machine does
/// meets both alike.
const BOTH: &str = r#"
[job]
workers = 50
[[step]]
if = "index % 2 == 0"
do = [
    { state = "piped", for = { k = "range(50)" }, pipelined = true, do = [{ sleep = "30ms" }] },
    { state = "single", for = { k = "range(50)" }, do = [{ sleep = "30ms" }] },
]
else = [
    { state = "single", for = { k = "range(50)" }, do = [{ sleep = "30ms" }] },
    { state = "piped", for = { k = "range(50)" }, pipelined = true, do = [{ sleep = "30ms" }] },
]
"#;

#[test]
fn fifty_commands_of_fifty_workers_take_as_long_each_pipelined_or_not_and_less_in_all() {
    let place = Place::new(BOTH);
    let output = place.run(&["run", "job.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_conserved(&report);
    // All commands of all workers: their medians, by the workers' clocks.
    let rows = report["commands"].as_array().expect("commands");
    let [piped, single] = ["piped", "single"].map(|state| {
        let row = rows.iter().find(|row| row["state"] == state).expect("a row");
        assert_eq!((&row["command"], number(&row["count"])), (&"sleep".into(), 2_500));
        number(&row["service_p50_ns"])
    });
    let allowed = (single / 20).max(50_000);
    assert!(piped.abs_diff(single) <= allowed, "{piped} ns pipelined, {single} ns not");
    let told = &report["estimate_error"]["wait"];
    let [p50, p99] = ["p50", "p99"].map(|rank| told[rank].as_f64().expect("a ratio"));
    assert!(p50 <= p99, "{told}");
    // Some workers' commands one by one.
    let (mut piped_ns, mut single_ns) = (0, 0);
    for worker in 0..8 {
        let commands = commands(&place.show(worker));
        commands.iter().for_each(assert_exact);
        assert_one_offset_is_in_all_bounds(&commands);
        for (state, whole_ns) in [("piped", &mut piped_ns), ("single", &mut single_ns)] {
            let is_of = |command: &&Value| command["state"] == state;
            let of: Vec<&Value> = commands.iter().filter(is_of).collect();
            assert_eq!(of.len(), 50);
            assert!(of.iter().all(|command| command["pipelined"] == (state == "piped")));
            assert!(of.iter().all(|command| command["estimate_error"].is_f64()));
            *whole_ns += number(&of[49]["replied_ns"]) - number(&of[0]["sent_ns"]);
        }
    }
    assert!(piped_ns < single_ns, "{piped_ns} ns pipelined, {single_ns} ns not");
    place.assert_nothing_left(LIMIT);
}

/// t3 − t0 is the sum of its four parts, to the nanosecond.
fn assert_exact(command: &Value) {
    let parts = ["network_ns", "queue_ns", "overhead_ns", "service_ns"];
    let sum: u64 = parts.iter().map(|part| number(&command[*part])).sum();
    let whole = number(&command["replied_ns"]) - number(&command["sent_ns"]);
    assert_eq!(sum, whole, "{command}");
}

/// On one machine W is C but for one offset: there is one that places every start and end within
/// its bounds, to the resolution of a microsecond.
fn assert_one_offset_is_in_all_bounds(commands: &[Value]) {
    let (mut low, mut high) = (i128::MIN, i128::MAX);
    for command in commands {
        for (stamp, bounds) in [("started_ns", "start_bounds_ns"), ("finished_ns", "end_bounds_ns")]
        {
            let at = i128::from(number(&command[stamp]));
            let [from, to] = [0, 1].map(|end| i128::from(number(&command[bounds][end])));
            let (sent, replied) = (number(&command["sent_ns"]), number(&command["replied_ns"]));
            assert!(i128::from(sent) <= from && from <= to && to <= i128::from(replied));
            low = low.max(from - at);
            high = high.min(to - at);
        }
    }
    assert!(low <= high + 1_000, "no offset: at least {low}, at most {high}");
}
