//! Launches that come to nothing, by a launcher that loses some on purpose: they are named, fail
//! alone after `connect_timeout`, and their time is accounted for.
//!
//! The run is started through the coordinator's façade, whose program for workers is a script here.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use musec_analysis::{Account, AttemptAccount, Category, Trace};
use musec_coordinator::{Finished, LaunchBy, Run, RunError, RunSetup};
use musec_core::job::{Options, parse};
use musec_trace::journal::{JournalReader, Next};
use musec_trace::{AttemptOutcome, EndCause, RunStatus};
use serde_json::Value;
use support::watchdog::watch_thread;
use support::{MUSEC, Place, assert_conserved, json, number, text};

const LIMIT: Duration = Duration::from_secs(10);

/// Longer than a worker takes to connect on a busy machine.
const CONNECT_TIMEOUT_NS: u64 = 4_000_000_000;

const JOB: &str = r#"
[job]
workers = 9
at_once = 9
connect_timeout = "4s"
[[step]]
state = "work"
run = "echo {{ index }} done"
"#;

/// What stands in for `musec` when the coordinator starts workers. Each takes the next number, and
/// what becomes of it goes by that: 1 sleeps, 3 exits, 5 connects and says nothing, 7 connects and
/// says something else; all others are true workers.
const LAUNCHER: &str = r#"#!/bin/bash
export MARK
[ "$1" = worker ] || exec MUSEC "$@"
n=0
until mkdir "PLACE/n$n" 2>/dev/null; do n=$((n + 1)); done
echo $$ > "PLACE/n$n/pid"
case $n in
    1) exec sleep 3600 ;;
    3) echo "musec worker, pid $$: no luck today" >&2; exit 7 ;;
    5) exec 3<>/dev/tcp/127.0.0.1/PORT; exec sleep 3601 ;;
    7) exec 3<>/dev/tcp/127.0.0.1/PORT; echo GET / >&3; exec sleep 3602 ;;
    *) exec MUSEC "$@" ;;
esac
"#;

struct Lossy {
    place: Place,
}

impl Lossy {
    fn new(job: &str) -> Self {
        Self { place: Place::new(job) }
    }

    /// Runs the job to its end, and tells where its journal is.
    fn execute(&self, job: &str) -> (Finished, PathBuf) {
        // A port that was free a moment ago may be taken by now: then another is tried.
        let run = (0..20).find_map(|_| match Run::create(self.setup(job)) {
            Err(RunError::Listen { .. }) => None,
            run => Some(run.expect("prepared")),
        });
        let run = run.expect("a port is free");
        let journal = run.folder().journal();
        let finished = watch_thread(&self.place, move || run.execute());
        (finished.expect("recorded to its end"), journal)
    }

    fn setup(&self, job: &str) -> RunSetup {
        let place = &self.place;
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("bound").local_addr();
        let listen = free.expect("an address");
        let launcher = place.path("launcher");
        let script = LAUNCHER
            .replace("MARK", place.mark())
            .replace("MUSEC \"", &format!("{MUSEC} \""))
            .replace("PLACE", place.path("").display().to_string().trim_end_matches('/'))
            .replace("PORT", &listen.port().to_string());
        fs::write(&launcher, script).expect("written");
        fs::set_permissions(&launcher, PermissionsExt::from_mode(0o755)).expect("executable");
        let program = parse(job, &Options { name: "lossy".into(), ..Options::default() });
        RunSetup {
            program: Arc::new(program.unwrap_or_else(|errors| panic!("{:?}", errors.0))),
            job_text: job.into(),
            job_folder: place.path(""),
            runs: place.path(".musec/runs"),
            worker_program: launcher,
            launch_by: LaunchBy::Local,
            is_recorded: true,
            listen,
            options_json: "{}".into(),
            version: "test".into(),
        }
    }

    /// The process that took this number.
    fn pid(&self, number: u32) -> String {
        let pid = fs::read_to_string(self.place.path(&format!("n{number}/pid"))).expect("launched");
        pid.trim().to_owned()
    }
}

fn read(journal: PathBuf) -> Trace {
    let mut reader = JournalReader::new(fs::File::open(journal).expect("a journal"));
    let mut trace = Trace::default();
    while let Next::Record(record) = reader.read_next().expect("undamaged") {
        trace.apply(&record);
    }
    trace
}

#[test]
fn launches_that_never_connect_are_named_and_fail_alone() {
    let lossy = Lossy::new(JOB);
    let (finished, journal) = lossy.execute(JOB);
    assert_eq!(finished.status, RunStatus::Failed);
    let report = lossy.place.report();
    assert_conserved(&report);
    let workers = &report["workers"];
    assert_eq!(number(&workers["never_connected"]), 4, "{workers}");
    assert_eq!(number(&workers["done"]), 5, "{workers}");
    assert_eq!(number(&workers["total"]), 9, "{workers}");
    assert_eq!(number(&report["breakdown"]["unaccounted_ns"]), 0);

    let failures = report["failures"].as_array().expect("failures");
    assert_eq!(failures.len(), 4, "{failures:?}");
    let error_with = |part: &str| {
        let errors = failures.iter().filter_map(|failure| failure["error"].as_str());
        let found: Vec<_> = errors.filter(|error| error.contains(part)).collect();
        assert_eq!(found.len(), 1, "{part:?} in {failures:?}");
        found[0].to_owned()
    };
    for number in [1, 5, 7] {
        let error = error_with(&format!("the launcher started it as {}", lossy.pid(number)));
        assert!(error.contains("never connected within 4s"), "{error}");
        assert!(error.contains("connect_timeout"), "{error}");
    }
    error_with("its process ended before it connected: exited with 7: no luck today");

    let refused = &report["coordinator"]["refused"];
    assert!(number(&refused["not TLS"]) >= 1, "the one that said something else: {refused}");
    accounts_are_exact(&read(journal));
    lossy.place.assert_nothing_left(LIMIT);
}

/// Each that never connected lived for its `connect_timeout`, or until its process ended, and all
/// of that is `launch` until its launcher took it, and `start` since.
fn accounts_are_exact(trace: &Trace) {
    let account = Account::of(trace);
    account.check_conservation().expect("sums are exact");
    let mut lost = 0;
    for (launch, attempt) in trace.attempts() {
        let AttemptAccount { milestones, breakdown, .. } = &account.attempts[launch];
        let ended = attempt.ended.as_ref().expect("every attempt has an end");
        if ended.outcome != AttemptOutcome::NeverConnected {
            continue;
        }
        lost += 1;
        let launched = u128::from(milestones.accepted.since(milestones.requested));
        let started = u128::from(milestones.end.since(milestones.accepted));
        let split: BTreeMap<_, _> =
            breakdown.split.categories.iter().filter(|(_, ns)| *ns > 0).collect();
        let wanted = BTreeMap::from([(Category::Launch, launched), (Category::Start, started)]);
        assert_eq!(split, wanted, "{launch}");
        assert_eq!(breakdown.life_ns, launched + started);
        let exited = ended.cause == EndCause::Exited;
        assert!(exited || milestones.life_ns() >= CONNECT_TIMEOUT_NS, "{launch}: {milestones:?}");
    }
    assert_eq!(lost, 4);
}

#[test]
fn a_wave_of_which_nobody_connects_ends_and_so_do_those_after_it() {
    let job = "[[wave]]\nname = \"lost\"\nworkers = 1\nconnect_timeout = \"1s\"\n\
               [[wave.step]]\necho = \"x\"\n\
               [[wave]]\nname = \"next\"\nafter = [\"lost\"]\nworkers = 1\n\
               [[wave.step]]\necho = \"y\"\n";
    let lossy = Lossy::new(job);
    // The number that sleeps is the first.
    fs::create_dir(lossy.place.path("n0")).expect("taken");
    let (finished, _) = lossy.execute(job);
    assert_eq!(finished.status, RunStatus::Failed);
    let output = lossy.place.run(&["report", "--format", "json"]);
    let report: Value = json(&output);
    assert_eq!(number(&report["workers"]["never_connected"]), 1, "{}", text(&output.stdout));
    assert_conserved(&report);
    lossy.place.assert_nothing_left(LIMIT);
}
