//! A world of fake workers around a fleet: a queue of what will happen, a seed, and a clock that
//! jumps from event to event.

pub(crate) mod journal;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use musec_core::fleet::{Closed, Fleet, FleetOptions, Input, Output};
use musec_core::job::{Options, parse};
use musec_core::replay::{ReplayError, Replayed};
use musec_core::{Look, Program, Seen};
use musec_protocol::{Action, Command, CommandId, LaunchId, Note, Outcome, Pong, WTime};
use musec_trace::{AttemptOutcome, CTime, Event, Joined, RunStatus};
use wire::{hello, reply};

/// Virtual time after which a run that has not ended counts as hanging.
const HANGING_AFTER: Duration = Duration::from_secs(24 * 3600);

/// What happens to a fake worker at one of its commands (or at its launch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It does what it is told.
    Live,
    /// Its process exits with this code.
    Exit(i32),
    /// It is killed.
    Die,
    /// It never answers, but is alive; it obeys quit.
    Hang,
    /// It answers a command that was not sent.
    Lie,
    /// It takes an hour for its answer.
    Late,
    /// It answers twice.
    Twice,
    /// Its code tells an info, and what nobody understands, before its answer.
    Tell,
    /// Its code tells without end.
    Flood,
    /// Its process starts and never says hello.
    NeverConnect,
    /// The launcher cannot start it.
    Refuse,
    /// It stops answering heartbeats too, and does not obey.
    Freeze,
}

#[derive(Clone)]
pub(crate) struct WorldOptions {
    pub(crate) seed: u64,
    pub(crate) jitter_ms: u64,
    /// Fate by launch and command; command 0 decides on the launch too.
    pub(crate) fate: fn(u64, u64) -> Fate,
    pub(crate) cancel: Vec<Duration>,
    /// What is in every file that is looked at.
    pub(crate) text: &'static str,
    pub(crate) starting_max: Option<u32>,
}

impl WorldOptions {
    pub(crate) fn calm(seed: u64) -> Self {
        Self {
            seed,
            jitter_ms: 90,
            fate: |_, _| Fate::Live,
            cancel: Vec::new(),
            starting_max: None,
            text: "",
        }
    }
}

pub(crate) struct World {
    pub(crate) fleet: Fleet,
    pub(crate) now: CTime,
    pub(crate) records: Vec<Event>,
    /// When each was recorded.
    pub(crate) times: Vec<CTime>,
    pub(crate) sent: Vec<Action>,
    pub(crate) stopped: BTreeSet<LaunchId>,
    pub(crate) alive_max: usize,
    pub(crate) joins_refused: usize,
    pub(crate) outputs_kept: usize,
    /// Keys that workers put, of commands that were answered or not.
    pub(crate) puts: BTreeSet<String>,
    /// Of a program that was made otherwise there is no text to decide it again from.
    job: Option<(String, Options)>,
    options: WorldOptions,
    random: u64,
    future: BTreeMap<(CTime, u64), Input>,
    scheduled: u64,
    frozen: BTreeSet<LaunchId>,
    /// When each lane has answered all that was sent to it: it does one command after another.
    busy: BTreeMap<(LaunchId, Vec<u32>), CTime>,
    /// Where the reply to a command is in the future; `None` if none will come.
    answers: BTreeMap<(LaunchId, CommandId), Option<(CTime, u64)>>,
    status: Option<RunStatus>,
}

impl World {
    pub(crate) fn new(job: &str, options: WorldOptions) -> Self {
        Self::with(job, &Options::default(), options)
    }

    pub(crate) fn with(job: &str, beside: &Options, options: WorldOptions) -> Self {
        let program = parse(job, beside).unwrap_or_else(|errors| panic!("{:?} in {job}", errors.0));
        Self { job: Some((job.to_owned(), beside.clone())), ..Self::of(program, options) }
    }

    pub(crate) fn of(program: Program, options: WorldOptions) -> Self {
        let fleet_options = FleetOptions {
            cores: 2,
            starting_max: options.starting_max,
            ..FleetOptions::default()
        };
        let mut world = Self {
            fleet: Fleet::new(Arc::new(program), fleet_options),
            now: CTime::ZERO,
            records: Vec::new(),
            times: Vec::new(),
            sent: Vec::new(),
            stopped: BTreeSet::new(),
            alive_max: 0,
            joins_refused: 0,
            outputs_kept: 0,
            puts: BTreeSet::new(),
            job: None,
            random: options.seed | 1,
            future: BTreeMap::new(),
            scheduled: 0,
            frozen: BTreeSet::new(),
            busy: BTreeMap::new(),
            answers: BTreeMap::new(),
            status: None,
            options,
        };
        for at in world.options.cancel.clone() {
            world.at(CTime::ZERO.after(at), Input::Cancel { cause: "test".into() });
        }
        world
    }

    pub(crate) fn start(&mut self) {
        self.fleet.handle(self.now, Input::Start);
        self.drain();
    }

    /// Runs to the end; panics, with the seed, if that does not come, or if the run's journal does
    /// not lead to the same decisions again.
    pub(crate) fn run(&mut self) -> RunStatus {
        let status = self.run_once();
        let seed = self.options.seed;
        match self.replay() {
            None => status,
            Some(Ok(replayed)) if replayed.is_whole => status,
            Some(other) => panic!("seed {seed}: decided again: {other:?}"),
        }
    }

    fn replay(&self) -> Option<Result<Replayed, ReplayError>> {
        let (job, beside) = self.job.as_ref()?;
        let records = self.times.iter().copied().zip(self.records.iter().cloned());
        let journal = journal::journal(job, beside, self.options.starting_max, records);
        Some(journal::replay(&journal))
    }

    fn run_once(&mut self) -> RunStatus {
        self.start();
        loop {
            if let Some(status) = self.status {
                return status;
            }
            let seed = self.options.seed;
            let event = self.future.first_key_value().map(|((at, _), _)| *at);
            let next = event.into_iter().chain(self.fleet.next_deadline()).min();
            let next = next.unwrap_or_else(|| panic!("seed {seed}: nothing will ever happen"));
            assert!(next < CTime::ZERO.after(HANGING_AFTER), "seed {seed}: hanging");
            self.now = self.now.max(next);
            match self.future.first_key_value().map(|(key, _)| *key) {
                Some(key) if key.0 <= self.now => {
                    let input = self.future.remove(&key).expect("it was there");
                    self.happen(input);
                }
                Some(_) | None => self.fleet.tick(self.now),
            }
            self.drain();
        }
    }

    pub(crate) fn ends(&self, outcome: AttemptOutcome) -> usize {
        let is = |event: &&Event| matches!(event, Event::Ended { outcome: o, .. } if *o == outcome);
        self.records.iter().filter(is).count()
    }

    fn happen(&mut self, input: Input) {
        if let Input::Joined(joined) = &input
            && self.fleet.may_join(joined.launch).is_err()
        {
            self.joins_refused += 1;
            return;
        }
        if let Input::Pulsed { launch, .. } = &input {
            if self.frozen.contains(launch) || self.status.is_some() {
                return;
            }
            let launch = *launch;
            self.pulse(launch);
        }
        self.fleet.handle(self.now, input);
    }

    fn drain(&mut self) {
        while let Some(output) = self.fleet.poll_output() {
            match output {
                Output::Record(at, event) => {
                    assert_eq!(at, self.now, "records carry the instant of handling");
                    self.records.push(event);
                    self.times.push(at);
                }
                Output::Launch(launch) => self.launch(launch),
                Output::Send(launch, command) => self.command(launch, &command),
                Output::Stop(launch) => {
                    self.stopped.insert(launch);
                    self.exit(launch, "killed by signal 9");
                }
                Output::Finished(status) => self.status = Some(status),
                Output::KeepOutput { .. } => self.outputs_kept += 1,
                Output::Look { wave, look } => {
                    let seen = match *look {
                        Look::Keys(_) => Seen::Keys(self.puts.iter().cloned().collect()),
                        Look::Text { .. } => Seen::Text(self.options.text.into()),
                    };
                    self.soon(Input::Seen { wave, seen: Ok(seen) });
                }
                Output::Hangup(_) | Output::Welcome(..) | Output::Sync => {}
            }
        }
        self.alive_max = self.alive_max.max(self.fleet.alive());
    }

    fn launch(&mut self, launch: LaunchId) {
        let fate = (self.options.fate)(launch.0, 0);
        if fate == Fate::Refuse {
            self.soon(Input::NotLaunched { launch, error: "no room".into() });
            return;
        }
        self.soon(Input::Accepted { launch, at: self.now, engine_id: launch.to_string() });
        if fate != Fate::NeverConnect {
            let (tcp, tls, t3) = (self.now, self.now, self.now);
            self.soon(Input::Joined(Box::new(Joined { launch, tcp, tls, t3, hello: hello() })));
            self.pulse(launch);
        }
    }

    fn command(&mut self, launch: LaunchId, command: &Command) {
        self.sent.push(command.action.clone());
        if let Action::Put(put) = &command.action {
            self.puts.insert(put.key.clone());
        }
        if self.frozen.contains(&launch) {
            return;
        }
        let fate = (self.options.fate)(launch.0, command.id.0);
        if let Action::Cancel(target) = command.action {
            self.answer(launch, command, command.id, Outcome::Ok);
            self.cancel(launch, target);
            return;
        }
        if command.action == Action::Quit {
            // What is still out is answered first.
            let out = self.answers.keys().filter(|(of, _)| *of == launch).map(|(_, id)| *id);
            for target in out.collect::<Vec<_>>() {
                self.cancel(launch, target);
            }
            self.answer(launch, command, command.id, Outcome::Ok);
            let busy = self.busy.get(&(launch, Vec::new())).copied().unwrap_or_default();
            let later = self.later(1_000).max(busy.after(Duration::from_millis(1)));
            self.at(later, Input::Closed { launch, at: later, why: Closed::Lost("closed".into()) });
            return;
        }
        match fate {
            Fate::Live | Fate::NeverConnect | Fate::Refuse => {
                let ran = matches!(command.action, Action::Run(_));
                let outcome = if ran { Outcome::Exited(0) } else { Outcome::Ok };
                self.answer(launch, command, command.id, outcome);
            }
            Fate::Late => {
                let lane = (launch, command.lane.clone());
                self.busy.insert(lane, self.now.after(Duration::from_secs(3600)));
                self.answer(launch, command, command.id, Outcome::Exited(0));
            }
            Fate::Exit(code) => self.answer(launch, command, command.id, Outcome::Exited(code)),
            Fate::Lie => self.answer(launch, command, CommandId(1 << 40), Outcome::Ok),
            Fate::Tell => {
                for text in [&b"info x\n7"[..], b"nonsense"] {
                    self.note(launch, text);
                }
                self.answer(launch, command, command.id, Outcome::Exited(0));
            }
            Fate::Flood => {
                let text = [&b"info x\n"[..], &[b'y'; 8000]].concat();
                for _ in 0..3000 {
                    self.note(launch, &text);
                }
            }
            Fate::Twice => {
                self.answer(launch, command, command.id, Outcome::Ok);
                self.answer(launch, command, command.id, Outcome::Ok);
            }
            Fate::Die => {
                let at = self.later(1);
                self.at(at, Input::Closed { launch, at, why: Closed::Lost("reset".into()) });
                self.exit(launch, "killed by signal 9");
            }
            Fate::Hang => {
                // What comes after it in its lane waits for it.
                let for_long = self.now.after(Duration::from_secs(24 * 3600));
                self.busy.insert((launch, command.lane.clone()), for_long);
                self.answers.insert((launch, command.id), None);
            }
            Fate::Freeze => {
                self.frozen.insert(launch);
            }
        }
    }

    fn note(&mut self, launch: LaunchId, text: &[u8]) {
        let note = Note { received: WTime::from_ns(1), text: text.to_vec() };
        self.at(self.now, Input::Noted { launch, t3: self.now, note: note.into() });
    }

    /// A command that has no reply yet is answered soon, as cancelled.
    fn cancel(&mut self, launch: LaunchId, target: CommandId) {
        match self.answers.remove(&(launch, target)) {
            Some(Some(key)) if self.future.remove(&key).is_none() => return,
            Some(Some(_)) => {}
            Some(None) => self.busy.retain(|(of, _), _| *of != launch),
            None => return,
        }
        let t3 = self.later(20);
        self.answer_at(t3, launch, target, Outcome::Cancelled);
    }

    /// An answer by the lane of a command, when all that was sent to it before is answered.
    fn answer(&mut self, launch: LaunchId, command: &Command, id: CommandId, outcome: Outcome) {
        let later = self.later(self.options.jitter_ms);
        let t3 = match command.action {
            Action::Cancel(_) => later,
            _ => {
                let jitter = later.since(self.now);
                let busy = self.busy.entry((launch, command.lane.clone())).or_default();
                *busy = (*busy).max(self.now).after(Duration::from_nanos(jitter));
                *busy
            }
        };
        self.answer_at(t3, launch, id, outcome);
    }

    fn answer_at(&mut self, t3: CTime, launch: LaunchId, id: CommandId, outcome: Outcome) {
        let reply = reply(id, outcome);
        self.at(t3, Input::Replied { launch, t3, reply: Box::new(reply) });
        self.answers.insert((launch, id), Some((t3, self.scheduled)));
    }

    fn pulse(&mut self, launch: LaunchId) {
        let t3 = self.now.after(Duration::from_secs(1));
        let pong = Pong {
            seq: 0,
            received: WTime::from_ns(1),
            encoded: WTime::from_ns(1),
            clock_gap_ns: 0,
        };
        self.at(t3, Input::Pulsed { launch, t0: self.now, t3, pong });
    }

    fn exit(&mut self, launch: LaunchId, status: &str) {
        let at = self.later(20);
        self.at(at, Input::Exited { launch, at, status: status.into() });
    }

    fn soon(&mut self, input: Input) {
        let at = self.later(self.options.jitter_ms);
        self.at(at, input);
    }

    fn at(&mut self, at: CTime, input: Input) {
        self.scheduled += 1;
        self.future.insert((at, self.scheduled), input);
    }

    /// An instant from now on, within `jitter_ms`; of what depends on order, later is later.
    fn later(&mut self, jitter_ms: u64) -> CTime {
        // xorshift64: enough for delays, and the same everywhere.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.now.after(Duration::from_millis(1 + self.random % jitter_ms.max(1)))
    }
}
