//! `musec bench record`, `simulate` and `launch`, small: the figures are there, belong together and
//! leave nothing behind. How good they are is measured elsewhere, on an idle machine.

mod support;

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use support::{Place, json, number, text};

/// Far above what these take; then something hangs.
const LIMIT: Duration = Duration::from_secs(120);

fn figures(place: &Place, words: &[&str]) -> Value {
    let words = [&["bench"], words, &["--format", "json"]].concat();
    let mut command = place.musec(&words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let pid = child.id();
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(LIMIT) else {
        let left = place.processes();
        support::kill("KILL", pid);
        panic!("{words:?} did not end; there were {left:?}");
    };
    let output = output.expect("awaited");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    json(&output)
}

#[test]
fn recording_an_event_costs_something_and_its_parts_belong_together() {
    let place = Place::new("");
    let figures = figures(&place, &["record", "--events", "3000", "--rounds", "3"]);
    assert_eq!(figures["schema"], 1);
    let of = |key: &str| number(&figures[key]);
    assert_eq!(of("events"), 3072, "whole batches");
    assert!(of("ns_per_event") > 0);
    assert!(of("loop_cpu_ns_per_event") <= of("ns_per_event"), "{figures}");
    assert!((20..200).contains(&of("bytes_per_event")), "{figures}");
    place.assert_nothing_left(LIMIT);
    assert_no_folders(&place);
}

#[test]
fn a_run_of_fake_workers_is_decided_folded_and_encoded_to_its_end() {
    let place = Place::new("");
    let figures = figures(&place, &["simulate", "--workers", "1001", "--commands", "2"]);
    assert_eq!(figures["schema"], 1);
    let of = |key: &str| number(&figures[key]);
    assert_eq!((of("workers"), of("commands")), (1001, 2));
    // A worker: asked for, accepted, joined, into its state twice and out of it, ended; three
    // commands, quit among them, decided, sent and answered; two heartbeats, its closing. The run:
    // a name of a state, a wave's start and end, its own end.
    assert_eq!(of("events"), 1001 * (3 + 3 + 1 + 3 * 3 + 2 + 1) + 4, "{figures}");
    let parts = ["deciding", "encoding", "folding"].map(|part| of(&format!("{part}_ns_per_event")));
    assert!(parts.iter().all(|part| *part > 0), "{figures}");
    let whole = of("ns_per_event");
    assert!(
        (parts.iter().sum::<u64>()..=parts.iter().sum::<u64>() + 3).contains(&whole),
        "{figures}"
    );
    assert!(of("ns_per_event_of_1000") > 0 && of("ratio_thousandths") > 0, "{figures}");
    assert!(of("bytes_per_worker") > 0 && of("wall_ns") > 0, "{figures}");
    place.assert_nothing_left(LIMIT);
}

#[test]
fn workers_that_are_launched_are_measured_from_request_to_hello_and_there_and_back() {
    let place = Place::new("");
    let figures = figures(&place, &["launch", "--workers", "3"]);
    assert_eq!(figures["schema"], 1);
    let of = |key: &str| number(&figures[key]);
    assert_eq!(of("workers"), 3);
    assert!(of("start_to_hello_ns") > 0);
    assert!(of("start_to_hello_ns") < of("exec_to_hello_ns"), "{figures}");
    assert!(of("exec_to_hello_ns") <= of("exec_to_hello_p99_ns"), "{figures}");
    assert!(of("loaded_exec_to_hello_ns") < of("wall_ns"), "{figures}");
    // Which of both is larger is no matter of a test on a busy machine.
    for key in ["floor_run_true_ns", "run_true_ns", "background_run_true_ns"] {
        assert!(of(key) > 0, "{key} in {figures}");
    }
    let memory = 1 << 20..200 << 20;
    assert!(memory.contains(&of("worker_rss_bytes")), "{figures}");
    assert!(of("worker_peak_rss_bytes") >= of("worker_rss_bytes"), "{figures}");
    let curve = figures["curve"].as_array().expect("a curve");
    let last = curve.last().expect("a point");
    assert_eq!(last["percent"], 100);
    for point in curve {
        let of = |key: &str| number(&point[key]);
        assert!(of("requested_ns") < of("hello_ns") && of("hello_ns") < of("ended_ns"), "{point}");
        assert!(of("hello_ns") <= number(&last["hello_ns"]), "{point}");
    }
    place.assert_nothing_left(LIMIT);
    assert_no_folders(&place);
}

/// The benches write into the temporary folder, which is this place's.
fn assert_no_folders(place: &Place) {
    let left: Vec<String> = std::fs::read_dir(place.path("."))
        .expect("read")
        .map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("musec-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
