//! Nothing in any order of events can hang a run: whatever a fleet was told, in whatever order,
//! with whatever lost or told twice, once it is told nothing more its deadlines alone end the run.
//!
//! What happens is drawn from a seed: what would follow from what the fleet decided, at any later
//! instant, never, or again and again; and things that follow from nothing. The one input that is
//! never lost is the answer to a look at a store, as the coordinator gives one whatever happens.

#[path = "world/journal.rs"]
mod journal;
#[path = "world/wire.rs"]
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use musec_core::fleet::{
    Closed, FROZEN_TIME_MAX, Fleet, FleetOptions, Input, Output, QUIT_TIME_MAX,
};
use musec_core::job::{Options, parse};
use musec_core::{Look, Seen};
use musec_protocol::{Action, CommandId, ErrorKind, LaunchId, Note, Outcome, Pong, Stall, WTime};
use musec_trace::{CTime, Event, Joined, RunStatus, WaveId};
use proptest::prelude::*;
use wire::{hello, reply};

/// Jobs with everything that waits: queues, waves after waves, items that come one by one, branches
/// for failures, limits of steps and attempts, and none at all, pipelined lists, lanes, races,
/// commands in the background, barriers, and waits for what code tells.
const JOBS: [&str; 7] = [
    "[job]\nworkers = 3\nconnect_timeout = \"10s\"\n[[step]]\nrun = \"true\"\n\
     [[step]]\nsleep = \"1h\"\n",
    "[job]\nworkers = 4\nat_once = 2\nconnect_timeout = \"10s\"\nitems = { range = \"7\" }\n\
     timeout = \"40s\"\n[[step]]\nrun = \"work\"\ntimeout = \"9s\"\non_error = [{ run = \"mend\" }]\n",
    "[[wave]]\nname = \"split\"\nworkers = 3\nconnect_timeout = \"10s\"\n\
     [[wave.step]]\nput = \"part\"\nas = \"parts/{{ index }}\"\n\
     [[wave]]\nname = \"work\"\nafter = [\"split\"]\neach = true\nitems = \"parts/*\"\n\
     connect_timeout = \"10s\"\n[[wave.step]]\nget = \"{{ item }}\"\n\
     [[wave]]\nname = \"merge\"\nafter = [\"work\"]\nworkers = 1\nconnect_timeout = \"10s\"\n\
     [[wave.step]]\nrun = \"merge\"\n",
    "[[wave]]\nname = \"list\"\nitems = \"in:*\"\nconnect_timeout = \"10s\"\nat_once = 2\n\
     [[wave.step]]\nwhile = \"true\"\ndo = [{ run = \"again\" }, { break_if = \"index\" }]\n\
     [[wave]]\nname = \"other\"\nworkers = 2\nconnect_timeout = \"10s\"\n\
     [[wave.step]]\necho = \"x\"\n",
    "[job]\nworkers = 2\nconnect_timeout = \"10s\"\n\
     [[step]]\npipelined = true\ndo = [{ run = \"a\" }, { sleep = \"1h\" }, { run = \"b\" }]\n\
     on_error = [{ run = \"mend\" }]\n\
     [[step]]\nparallel = { a = [{ run = \"l\" }, { run = \"m\" }], b = [{ sleep = \"1h\" }] }\n\
     [[step]]\nparallel = { a = [{ run = \"x\" }], b = [{ run = \"y\" }] }\nfirst = true\n",
    "[job]\nworkers = 2\nconnect_timeout = \"10s\"\n\
     [[step]]\nname = \"bg\"\nbackground = true\nrun = \"a\"\n\
     [[step]]\nname = \"left\"\nbackground = true\nsleep = \"1h\"\n\
     [[step]]\nrun = \"b\"\n[[step]]\nawait = \"bg\"\ntimeout = \"9s\"\n\
     on_error = [{ run = \"mend\" }]\n",
    "[job]\nworkers = 3\nconnect_timeout = \"10s\"\n\
     [[step]]\nparallel = { a = [{ barrier = \"in\", timeout = \"20s\" }], b = [{ run = \"a\" }] }\n\
     on_error = [{ run = \"mend\" }]\n\
     [[step]]\nbarrier = \"b\"\n[[step]]\nwait_info = \"x\"\n\
     [[step]]\nfirst = true\nparallel = { a = [{ wait_info = \"x\" }], b = [{ sleep = \"1h\" }] }\n\
     [[step]]\nbarrier = \"b2\"\n",
];

/// The longest that one attempt can last when nothing is heard of it: it never connects, or stands
/// still until it is given up, or is asked to quit and does not; and a look of a second at each.
const ATTEMPT_MAX: Duration =
    Duration::from_secs(10 + FROZEN_TIME_MAX.as_secs() + QUIT_TIME_MAX.as_secs() + 2);

/// Deadlines that one attempt can have, those of the look for frozen workers among them.
const TICKS_PER_ATTEMPT: u32 = 200;

/// Attempts that any of the jobs can have: no job launches without an end.
const ATTEMPTS_MAX: u64 = 40;

struct Chaos {
    fleet: Fleet,
    now: CTime,
    random: u64,
    /// Of a hundred things that happen, how many are as they should be.
    calm: u64,
    /// What would follow from what was decided.
    likely: Vec<Input>,
    looks: BTreeMap<WaveId, Seen>,
    launched: u64,
    ended: BTreeSet<LaunchId>,
    records: Vec<(CTime, Event)>,
    job: (&'static str, Option<u32>),
    status: Option<RunStatus>,
}

impl Chaos {
    fn new(job: &'static str, seed: u64) -> Self {
        let program = parse(job, &Options::default());
        let program = program.unwrap_or_else(|errors| panic!("{:?} in {job}", errors.0));
        let starting_max = (seed.is_multiple_of(3)).then_some(2);
        let options = FleetOptions { cores: 2, starting_max, ..FleetOptions::default() };
        let mut chaos = Self {
            fleet: Fleet::new(Arc::new(program), options),
            now: CTime::ZERO,
            random: seed | 1,
            calm: [0, 80, 97, 100][usize::try_from(seed / 3 % 4).unwrap_or(0)],
            likely: Vec::new(),
            looks: BTreeMap::new(),
            launched: 0,
            ended: BTreeSet::new(),
            records: Vec::new(),
            job: (job, starting_max),
            status: None,
        };
        chaos.tell(Input::Start);
        chaos
    }

    /// A number below `most`: xorshift64.
    fn draw(&mut self, most: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % most.max(1)
    }

    fn tell(&mut self, input: Input) {
        self.fleet.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.fleet.poll_output() {
            assert!(self.status.is_none(), "decided after the end: {output:?}");
            match output {
                Output::Record(at, event) => {
                    assert_eq!(at, self.now);
                    if let Event::Ended { launch, .. } = event {
                        assert!(self.ended.insert(launch), "{launch} ended twice");
                    }
                    self.records.push((at, event));
                }
                Output::Launch(launch) => self.launch(launch),
                Output::Send(launch, command) => {
                    let outcome = self.outcome(&command.action);
                    self.reply(launch, command.id, outcome);
                    if command.action == Action::Quit {
                        self.close(launch);
                    }
                }
                Output::Stop(launch) => self.exit(launch),
                Output::Hangup(launch) => self.close(launch),
                Output::Look { wave, look } => {
                    let keys = ["parts/0", "parts/1", "a"].map(str::to_owned).to_vec();
                    let seen = match *look {
                        Look::Keys(_) => Seen::Keys(keys),
                        Look::Text { .. } => Seen::Text(b"a\nb\n".to_vec()),
                    };
                    self.looks.insert(wave, seen);
                }
                Output::Finished(status) => self.status = Some(status),
                Output::Welcome(..) | Output::KeepOutput { .. } | Output::Sync => {}
            }
        }
    }

    fn launch(&mut self, launch: LaunchId) {
        self.launched += 1;
        assert!(self.launched <= ATTEMPTS_MAX, "launches without an end");
        let at = self.now;
        self.likely.push(Input::Accepted { launch, at, engine_id: launch.to_string() });
        self.join(launch);
        if !self.is_calm() && self.draw(4) == 0 {
            self.likely.push(Input::NotLaunched { launch, error: "no room".into() });
        }
        if !self.is_calm() && self.draw(4) == 0 {
            self.exit(launch);
        }
    }

    fn join(&mut self, launch: LaunchId) {
        let at = self.now;
        let joined = Joined { launch, tcp: at, tls: at, t3: at, hello: hello() };
        self.likely.push(Input::Joined(Box::new(joined)));
    }

    fn exit(&mut self, launch: LaunchId) {
        let (at, status) = (self.now, "exited with 1".into());
        self.likely.push(Input::Exited { launch, at, status });
    }

    fn close(&mut self, launch: LaunchId) {
        let why = match self.draw(3) {
            0 => Closed::Protocol("nonsense".into()),
            _ => Closed::Lost("reset".into()),
        };
        self.likely.push(Input::Closed { launch, at: self.now, why });
    }

    fn reply(&mut self, launch: LaunchId, id: CommandId, outcome: Outcome) {
        let reply = Box::new(reply(id, outcome));
        self.likely.push(Input::Replied { launch, t3: self.now, reply });
    }

    fn outcome(&mut self, action: &Action) -> Outcome {
        let luck = if self.is_calm() { 7 } else { self.draw(8) };
        match (luck, action) {
            (0, _) => Outcome::Failed { kind: ErrorKind::Io, text: "broken".into() },
            (1, _) => Outcome::TimedOut { limit_ms: 9_000 },
            (2, Action::Run(_)) => Outcome::Exited(3),
            (3, Action::Run(_)) => Outcome::Signalled(9),
            (4, _) => Outcome::Cancelled,
            (_, Action::Run(_)) => Outcome::Exited(0),
            _ => Outcome::Ok,
        }
    }

    fn is_calm(&mut self) -> bool {
        self.draw(100) < self.calm
    }

    /// One thing happens; or, what should, does not.
    fn step(&mut self) {
        if self.is_calm() {
            self.answer_look();
            if !self.likely.is_empty() {
                let input = self.likely.remove(0);
                self.tell(input);
            }
            return;
        }
        let which = self.draw(100);
        let any = usize::try_from(self.random % self.likely.len().max(1) as u64).unwrap_or(0);
        match which {
            // What should happen does, now or twice; or it is lost.
            0..45 if !self.likely.is_empty() => {
                let input = self.likely.swap_remove(any);
                self.tell(input);
            }
            45..55 if !self.likely.is_empty() => {
                let input = self.likely[any].clone();
                self.tell(input);
            }
            55..62 if !self.likely.is_empty() => drop(self.likely.swap_remove(any)),
            62..68 => self.answer_look(),
            68..90 => self.pass(),
            90 if self.draw(3) == 0 => self.tell(Input::Cancel { cause: "test".into() }),
            _ => self.something_else(),
        }
    }

    /// Time passes: to the next deadline, or only a little.
    fn pass(&mut self) {
        let due = self.fleet.next_deadline().filter(|_| self.random.is_multiple_of(3));
        let little = self.now.after(Duration::from_millis(self.draw(1500)));
        self.now = due.unwrap_or(little).max(self.now);
        self.fleet.tick(self.now);
        self.drain();
    }

    fn answer_look(&mut self) {
        if let Some((wave, seen)) = self.looks.pop_first() {
            let fails = !self.is_calm() && self.draw(5) == 0;
            self.tell(Input::Seen {
                wave,
                seen: if fails { Err("gone".into()) } else { Ok(seen) },
            });
        }
    }

    /// Something that follows from nothing, of an attempt that is or is not.
    fn something_else(&mut self) {
        let launch = LaunchId(self.draw(self.launched + 2));
        let id = CommandId(self.draw(6));
        let before = self.likely.len();
        match self.draw(9) {
            0 => self.exit(launch),
            1 => self.close(launch),
            2 => self.join(launch),
            3 => self.reply(launch, id, Outcome::Ok),
            4 => self.likely.push(Input::NotLaunched { launch, error: "no room".into() }),
            5 => {
                let (from, to) = (WTime::from_ns(1), WTime::from_ns(2));
                let stall = Stall { from, to };
                self.likely.push(Input::Stalled { launch, t3: self.now, stall });
            }
            6 => {
                let text = if self.draw(3) == 0 { &b"nonsense"[..] } else { b"info x\n1" };
                let note = Note { received: WTime::from_ns(1), text: text.to_vec() };
                self.likely.push(Input::Noted { launch, t3: self.now, note: note.into() });
            }
            7 => {
                let wtime = WTime::from_ns(1);
                let pong = Pong { seq: 7, received: wtime, encoded: wtime, clock_gap_ns: 0 };
                let (t0, t3) = (self.now, self.now);
                self.likely.push(Input::Pulsed { launch, t0, t3, pong });
            }
            _ => {
                let at = self.now;
                self.likely.push(Input::Accepted { launch, at, engine_id: "again".into() });
            }
        }
        for input in self.likely.split_off(before) {
            self.tell(input);
        }
    }

    /// Decides all that was decided so far again, from the journal that would be there.
    fn replay(&self) {
        let (job, starting_max) = self.job;
        let records = self.records.iter().cloned();
        let journal = journal::journal(job, &Options::default(), starting_max, records);
        let replayed = journal::replay(&journal).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(replayed.is_whole, self.status.is_some());
        assert_eq!(replayed.beyond, 0);
        let count = replayed.inputs + replayed.decisions;
        assert_eq!(count, self.records.len() as u64);
    }

    /// Nothing is told any more but what stores hold: the deadlines end the run, in time.
    fn end(&mut self) -> RunStatus {
        let (from, mut ticks) = (self.now, 0);
        loop {
            while !self.looks.is_empty() {
                self.answer_look();
            }
            if let Some(status) = self.status {
                return status;
            }
            let due = self.fleet.next_deadline();
            let due = due.unwrap_or_else(|| panic!("nothing will ever happen: {:?}", self.fleet));
            self.now = self.now.max(due);
            self.fleet.tick(self.now);
            self.drain();
            ticks += 1;
            let attempts = u32::try_from(self.launched).expect("few") + 1;
            assert!(ticks < attempts * TICKS_PER_ATTEMPT, "ticks in vain: {:?}", self.fleet);
            let bound = from.after(ATTEMPT_MAX * attempts);
            assert!(self.now <= bound, "too late, at {:?}: {:?}", self.now, self.fleet);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_run_that_is_told_nothing_more_is_ended_by_its_deadlines_whatever_it_was_told(
        seed in any::<u64>(),
        job in prop::sample::select(JOBS.to_vec()),
        steps in 0usize..300,
    ) {
        let mut chaos = Chaos::new(job, seed);
        for _ in 0..steps {
            chaos.step();
        }
        chaos.replay();
        chaos.end();
        chaos.replay();
        prop_assert_eq!(chaos.fleet.alive(), 0);
        prop_assert_eq!(chaos.ended.len() as u64, chaos.launched, "every attempt has one end");
    }
}

/// The property above would hold of runs in which nothing ever happened.
#[test]
fn such_runs_end_in_every_way() {
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        for job in JOBS {
            let mut chaos = Chaos::new(job, seed * 7919);
            for _ in 0..150 {
                chaos.step();
            }
            let early = chaos.status.is_some();
            let status = chaos.end();
            seen.insert((format!("{status:?}"), early));
        }
    }
    let ways: Vec<_> = seen.iter().map(|(status, early)| (status.as_str(), *early)).collect();
    for way in [("Done", true), ("Failed", false), ("Failed", true), ("Interrupted", true)] {
        assert!(ways.contains(&way), "never {way:?}: {ways:?}");
    }
}
