//! A run with honest workers, and rogues: attempts whose tickets fall into the test's hands, while
//! a process that only sleeps stands in for them.
//!
//! Without rogues the coordinator is the real binary. With them it is the façade in a process of
//! its own, since only the façade lets the program of workers be chosen.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use musec_coordinator::{LaunchBy, Run, RunSetup};
use musec_core::job::{Options, parse};
use musec_protocol::Ticket;
use serde_json::Value;

use crate::measure::{self, Halves};
use crate::support::{Place, assert_conserved, number, wait_for};

/// Workers that do their job, in every run here.
pub(crate) const HONEST: u32 = 2;

/// Rounds of commands that each of them does before and during an attack, at least.
const ROUNDS: u64 = 40;

/// What fails a run that makes no progress.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// Runs that measure are alone on the machine, as far as that is ours to decide.
static ALONE: Mutex<()> = Mutex::new(());

/// Tells the façade's process what to run.
const FOLDER: &str = "MUSEC_TEST_STAGE";

pub(crate) struct Stage {
    pub(crate) place: Place,
    coordinator: Child,
    rogues: u32,
    _alone: MutexGuard<'static, ()>,
}

/// The tickets of a place's workers, as whoever has the same user id can read them.
pub(crate) fn tickets_of_workers(place: &Place) -> Vec<Ticket> {
    let workers = place.processes_like(" worker");
    let mut tickets: Vec<Ticket> = workers.into_iter().filter_map(ticket_of).collect();
    tickets.sort_by_key(|ticket| ticket.launch);
    tickets
}

/// A worker's ticket, where it has to be: in its own environment.
pub(crate) fn ticket_of(pid: u32) -> Option<Ticket> {
    let prefix = format!("{}=", Ticket::VARIABLE);
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environ.split(|byte| *byte == 0);
    let text = variables.find_map(|word| word.strip_prefix(prefix.as_bytes()))?;
    Ticket::from_text(&String::from_utf8_lossy(text)).ok()
}

/// What honest workers do until a file is there: a round trip, and a process.
fn rounds(state: &str, until: &str) -> String {
    format!(
        "[[step]]\nset = {{ over = false }}\n\
         [[step]]\nstate = \"{state}\"\nwhile = \"not vars.over\"\ndo = [\n\
         {{ sleep = \"10ms\" }},\n{{ echo = \"{state}\" }},\n\
         {{ run = \"printf . >> $STAGE/{state}.$MUSEC_WORKER; [ ! -e $STAGE/{until} ] || echo over\" }},\n\
         {{ set = {{ over = \"'over' in last.output\" }} }},\n]\n"
    )
}

impl Stage {
    /// Starts a run with so many rogues; returns when the honest workers are at work.
    pub(crate) fn new(rogues: u32) -> Self {
        Self::with_steps(rogues, "")
    }

    /// The same, with steps before the others; rogues get their commands first.
    pub(crate) fn with_steps(rogues: u32, steps: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let workers = HONEST + rogues;
        let job = format!(
            "[job]\nname = \"stage\"\nworkers = {workers}\n{steps}{}{}",
            rounds("quiet", "attack"),
            rounds("attacked", "over"),
        );
        let place = Place::new(&job);
        let coordinator = if rogues == 0 { real(&place) } else { facade(&place, rogues) };
        let stage = Self { place, coordinator, rogues, _alone: alone };
        stage.await_rounds("quiet", 1);
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    pub(crate) fn coordinator(&self) -> u32 {
        self.coordinator.id()
    }

    /// The ticket of rogue `number`, from 0, as soon as it was launched.
    pub(crate) fn rogue(&self, number: u32) -> Ticket {
        let path = self.path(&format!("rogue.{number}")).join("ticket");
        let text = wait_for(WATCHDOG, || fs::read_to_string(&path).ok());
        Ticket::from_text(&text.unwrap_or_else(|| self.fail("no ticket"))).expect("a ticket")
    }

    /// The tickets of all rogues.
    pub(crate) fn rogues(&self) -> Vec<Ticket> {
        (0..self.rogues).map(|number| self.rogue(number)).collect()
    }

    /// Tickets of workers that are at work.
    pub(crate) fn stolen(&self) -> Vec<Ticket> {
        tickets_of_workers(&self.place)
    }

    fn count(&self, half: &str, worker: u32) -> u64 {
        fs::metadata(self.path(&format!("{half}.{worker}"))).map_or(0, |file| file.len())
    }

    /// Workers that have begun to work: of all workers, those that are honest.
    fn honest(&self) -> Vec<u32> {
        (0..HONEST + self.rogues).filter(|worker| self.count("quiet", *worker) > 0).collect()
    }

    /// Waits until each honest worker has done so many rounds.
    pub(crate) fn await_rounds(&self, half: &str, rounds: u64) {
        let reached = wait_for(WATCHDOG, || {
            if self.has_ended() {
                self.fail("the run has ended");
            }
            let honest = self.honest();
            let all = honest.iter().all(|worker| self.count(half, *worker) >= rounds);
            (all && honest.len() >= HONEST as usize).then_some(())
        });
        if reached.is_none() {
            self.fail(&format!("no {rounds} rounds {half}"));
        }
    }

    /// Whether the coordinator's process is gone, and not yet waited for.
    fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.coordinator()));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    }

    fn fail(&self, what: &str) -> ! {
        let log = fs::read_to_string(self.path("musec.log")).unwrap_or_default();
        panic!("{what}: {:?}\n{log}", self.place.processes())
    }

    fn mark(&self, name: &str) {
        fs::write(self.path(name), "").expect("marked");
    }

    /// Lets the honest ones work in quiet, then while `attack` goes on: it is told whether it is to
    /// go on, and called once. Returns when all is over.
    pub(crate) fn under<T>(self, attack: impl FnOnce(&Self, &dyn Fn() -> bool) -> T) -> (Over, T) {
        self.await_rounds("quiet", ROUNDS);
        let watch = measure::Rss::watch(self.coordinator());
        self.mark("attack");
        self.await_rounds("attacked", 1);
        let enough = || {
            let mut honest = self.honest().into_iter();
            honest.all(|worker| self.count("attacked", worker) >= ROUNDS)
        };
        let seen = attack(&self, &|| !enough());
        self.await_rounds("attacked", ROUNDS);
        let grown = watch.grown_bytes();
        self.mark("over");
        (self.end(grown), seen)
    }

    fn end(mut self, grown_bytes: u64) -> Over {
        let ended = wait_for(WATCHDOG, || self.coordinator.try_wait().expect("waited"));
        if ended.is_none() {
            self.fail("the run does not end");
        }
        let honest = self.honest();
        assert_eq!(honest.len(), HONEST as usize, "{honest:?}");
        let report = self.place.report();
        assert_conserved(&report);
        assert_eq!(number(&report["workers"]["done"]), u64::from(HONEST), "{report}");
        assert_eq!(number(&report["attempts"]), u64::from(HONEST + self.rogues), "{report}");
        let shows: Vec<Value> = honest.iter().map(|worker| self.place.show(*worker)).collect();
        let halves = Halves::of(&shows);
        halves.assert_unmoved();
        let run = report["run"].as_str().expect("an id");
        let journal = self.path(".musec/runs").join(run).join("journal.musec");
        measure::assert_lag_is_small(&journal);
        println!("{halves} grown {} KiB", grown_bytes >> 10);
        self.place.assert_nothing_left(WATCHDOG);
        Over { report, grown_bytes, honest }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A test that failed leaves no run to those after it.
        drop(self.coordinator.kill());
        drop(self.coordinator.wait());
    }
}

/// A run that is over, the honest workers' part of which was as it should be.
pub(crate) struct Over {
    pub(crate) report: Value,
    pub(crate) grown_bytes: u64,
    pub(crate) honest: Vec<u32>,
}

impl Over {
    /// How many were refused for this reason.
    pub(crate) fn refused(&self, reason: &str) -> u64 {
        self.report["coordinator"]["refused"][reason].as_u64().unwrap_or(0)
    }

    /// Failures of a worker.
    pub(crate) fn failures_of(&self, worker: u32) -> Vec<String> {
        let failures = self.report["failures"].as_array().expect("a list").iter();
        let of = failures.filter(|failure| number(&failure["worker"]) == u64::from(worker));
        of.map(|failure| failure["error"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Asserts that each rogue, and nobody else, failed, with these words.
    pub(crate) fn assert_rogues_failed(&self, words: &str) {
        let total = u32::try_from(number(&self.report["workers"]["total"])).expect("few");
        let counts = ["failed", "lost", "never_connected"];
        let without: u64 = counts.iter().map(|of| number(&self.report["workers"][of])).sum();
        assert_eq!(without, u64::from(total - HONEST), "{}", self.report);
        for worker in (0..total).filter(|worker| !self.honest.contains(worker)) {
            let failures = self.failures_of(worker);
            assert!(failures.iter().any(|error| error.contains(words)), "{words}: {failures:?}");
        }
    }

    /// Asserts that the coordinator's memory grew by no more than this at any time of the attack.
    pub(crate) fn assert_memory(&self, limit_bytes: u64) {
        let grown = self.grown_bytes;
        assert!(grown <= limit_bytes, "the coordinator grew by {grown} of {limit_bytes} bytes");
    }
}

fn real(place: &Place) -> Child {
    let log = fs::File::create(place.path("musec.log")).expect("a log");
    let mut command = place.musec(&["run", "job.toml", "--quiet"]);
    command.env("STAGE", place.path("")).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("musec starts")
}

fn facade(place: &Place, rogues: u32) -> Child {
    let script = place.path("worker.sh");
    fs::write(&script, worker_script(rogues)).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("executable");
    let log = fs::File::create(place.path("musec.log")).expect("a log");
    // Marked like everything of this place, so that it is found should the test fail.
    let marked = place.musec(&[]);
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command
        .args(["--exact", "stage::coordinator_of_the_other_tests", "--ignored", "--nocapture"])
        .envs(marked.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("STAGE", place.path(""))
        .env(FOLDER, place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    command.spawn().expect("the façade starts")
}

/// The first workers hand their tickets over and sleep; the others are real.
fn worker_script(rogues: u32) -> String {
    let musec = env!("CARGO_BIN_EXE_musec");
    let numbers: Vec<String> = (0..rogues).map(|number| number.to_string()).collect();
    format!(
        "#!/bin/sh\n\
         if [ \"$1\" = worker ]; then for i in {}; do\n\
         if mkdir \"$STAGE/rogue.$i\" 2>/dev/null; then\n\
         umask 077; printf %s \"$MUSEC_TICKET\" > \"$STAGE/rogue.$i/part\"\n\
         mv \"$STAGE/rogue.$i/part\" \"$STAGE/rogue.$i/ticket\"; exec sleep 1000000\n\
         fi; done; fi\nexec '{musec}' \"$@\"\n",
        numbers.join(" ")
    )
}

/// No test: the façade in a process of its own, for the tests with rogues.
#[test]
#[ignore = "the coordinator's process of the other tests, which start it"]
fn coordinator_of_the_other_tests() {
    let folder = std::env::var_os(FOLDER).expect("started by a test");
    let folder = Path::new(&folder);
    let text = fs::read_to_string(folder.join("job.toml")).expect("a job");
    let options = Options { name: "stage".into(), ..Options::default() };
    let setup = RunSetup {
        program: Arc::new(parse(&text, &options).expect("a job")),
        job_text: text.into_bytes(),
        job_folder: folder.to_owned(),
        runs: folder.join(".musec/runs"),
        worker_program: folder.join("worker.sh"),
        launch_by: LaunchBy::Local,
        is_recorded: true,
        listen: "127.0.0.1:0".parse().expect("an address"),
        options_json: "{}".into(),
        version: "test".into(),
    };
    let finished = Run::create(setup).expect("created").execute().expect("recorded to its end");
    println!("{finished:?}");
}
