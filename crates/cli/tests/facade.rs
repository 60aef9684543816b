//! A job that is built in Rust, run by the coordinator's façade with real workers, and read again
//! by the commands that read runs of job files.

mod support;

#[path = "../../coordinator/examples/roots.rs"]
#[allow(dead_code, reason = "its `main` is the example's")]
mod roots;

use std::fs;

use musec_coordinator::{Run, RunSetup};
use musec_trace::RunStatus;
use support::watchdog::watch_thread;
use support::{MUSEC, Place, text};

#[test]
fn a_job_built_in_rust_runs_with_local_workers_and_is_kept_as_a_job_file() {
    let job = roots::job();
    let place = Place::new(&job.text());
    let setup = RunSetup {
        runs: place.path(".musec/runs"),
        job_folder: place.path(""),
        ..RunSetup::local(&job, MUSEC).expect("nothing is wrong with it")
    };
    let run = Run::create(setup).expect("prepared");
    let folder = run.folder().clone();
    let finished = watch_thread(&place, move || run.execute()).expect("recorded to its end");
    assert_eq!(finished.status, RunStatus::Done);
    for (worker, root) in [(0, "10"), (1, "14.142"), (2, "17.320")] {
        let object = folder.objects().join(format!("roots/{worker}"));
        let found = fs::read_to_string(&object).expect("an object");
        assert!(found.starts_with(root), "the root of {}00: {found}", worker + 1);
    }
    let report = place.report();
    assert_eq!(report["status"], "done", "{report}");
    assert_eq!(report["job"], "roots", "{report}");
    let guess =
        report["states"].as_array().expect("states").iter().find(|of| of["state"] == "guess");
    let visits = guess.and_then(|of| of["visits"].as_u64()).expect("visits of guess");
    assert!(visits > 15, "each worker goes to it several times: {visits}");
    let kept = folder.job();
    assert_eq!(fs::read_to_string(&kept).expect("kept"), job.text());
    let graph = text(&place.run(&["graph", &kept.display().to_string()]).stdout);
    assert!(graph.contains("goto guess") && graph.contains("goto deliver"), "{graph}");
}
