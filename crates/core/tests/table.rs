//! The fleet's table: whatever a worker waits for, whatever it does or suffers has a defined
//! outcome. What comes of each stands in a snapshot, so that a change of it is seen.

use std::fmt::Write as _;
use std::sync::Arc;

use musec_core::fleet::{Closed, Fleet, FleetOptions, Input, Output};
use musec_core::job::{Options, parse};
use musec_protocol::{Action, Command, CommandId, LaunchId, Note, Outcome, WTime};
use musec_trace::{CTime, Event, Joined};

#[path = "world/wire.rs"]
mod wire;

/// What the one worker waits for, and a job that leads there; commands called `fails` fail, and
/// those called `done` succeed.
const WAITS: &[(&str, &str)] = &[
    ("a command", "[[step]]\nrun = \"a\"\n"),
    ("a pipelined list", "[[step]]\npipelined = true\ndo = [{ run = \"a\" }, { run = \"b\" }]\n"),
    (
        "a list that was cancelled",
        "[[step]]\npipelined = true\ndo = [{ run = \"fails\" }, { run = \"a\" }]\n",
    ),
    ("lanes", "[[step]]\nparallel = { l = [{ run = \"a\" }], m = [{ run = \"b\" }] }\n"),
    (
        "a lane that was cancelled",
        "[[step]]\nparallel = { l = [{ run = \"fails\" }], m = [{ run = \"a\" }] }\n",
    ),
    (
        "a background command",
        "[[step]]\nname = \"g\"\nrun = \"a\"\nbackground = true\n[[step]]\nawait = \"g\"\n",
    ),
    (
        "an info",
        "[[step]]\nname = \"g\"\nrun = \"a\"\nbackground = true\n[[step]]\nwait_info = \"x\"\n",
    ),
    (
        "a barrier",
        "[[step]]\nname = \"g\"\nrun = \"a\"\nbackground = true\n[[step]]\nrun = \"done\"\n[[step]]\nif = \"index == 0\"\nbarrier = \"b\"\nelse = [{ sleep = \"1h\" }]\n",
    ),
];

const LAUNCH: LaunchId = LaunchId(0);

struct Table {
    fleet: Fleet,
    now: CTime,
    out: Vec<Command>,
    log: Vec<String>,
}

impl Table {
    fn at(steps: &str) -> Self {
        let workers = if steps.contains("barrier") { 2 } else { 1 };
        let job = format!("[job]\nworkers = {workers}\n{steps}[[step]]\necho = \"next\"\n");
        let program = parse(&job, &Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
        let fleet = Fleet::new(Arc::new(program), FleetOptions::default());
        let mut table = Self { fleet, now: CTime::ZERO, out: Vec::new(), log: Vec::new() };
        table.give(Input::Start);
        for launch in 0..workers {
            let (launch, at) = (LaunchId(launch), table.now);
            let hello = wire::hello();
            let joined = Joined { launch, tcp: at, tls: at, t3: at, hello };
            table.give(Input::Joined(Box::new(joined)));
        }
        for (text, code) in [("fails", 7), ("done", 0)] {
            let is_it =
                |command: &Command| command.action.arguments().concat().ends_with(text.as_bytes());
            if let Some(command) = table.out.iter().find(|command| is_it(command)) {
                table.reply(command.id, Outcome::Exited(code));
            }
        }
        table.log.clear();
        table
    }

    fn give(&mut self, input: Input) {
        self.now = CTime::from_ns(self.now.ns + 1_000);
        self.fleet.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.fleet.poll_output() {
            match output {
                Output::Send(LAUNCH, command) => {
                    self.log.push(format!("sends {}", command.action.name()));
                    self.out.push(*command);
                }
                Output::Record(_, Event::Failure(failure)) if failure.launch == LAUNCH => {
                    let state =
                        failure.state.map_or_else(String::new, |state| format!("{}", state.0));
                    let (name, error) = (failure.name, failure.error);
                    self.log.push(format!("fails in {state}: {name}: {error}"));
                }
                Output::Record(_, Event::Ended { launch: LAUNCH, outcome, .. }) => {
                    self.log.push(format!("ends {}", outcome.name()));
                }
                Output::Record(_, Event::Info { .. }) => self.log.push("records it".to_owned()),
                Output::Record(_, Event::Garbled { .. }) => self.log.push("counts it".to_owned()),
                Output::Finished(status) => self.log.push(format!("run {}", status.name())),
                _ => {}
            }
        }
    }

    fn reply(&mut self, id: CommandId, outcome: Outcome) {
        self.out.retain(|command| command.id != id);
        let reply = Box::new(wire::reply(id, outcome));
        self.give(Input::Replied { launch: LAUNCH, t3: self.now, reply });
    }

    fn note(&mut self, text: &[u8]) {
        let note = Note { received: WTime::from_ns(1), text: text.to_vec() };
        self.give(Input::Noted { launch: LAUNCH, t3: self.now, note: note.into() });
    }

    fn cancel(&mut self) {
        self.give(Input::Cancel { cause: "test".into() });
    }

    /// What is out is answered in order, as cancelled; `quit` well.
    fn answer_all(&mut self) {
        while let Some(command) = self.out.first().cloned() {
            let is_own = matches!(command.action, Action::Quit | Action::Cancel(_));
            self.reply(command.id, if is_own { Outcome::Ok } else { Outcome::Cancelled });
        }
    }

    fn happens(&mut self, what: &str) {
        let first = self.out.iter().find(|command| matches!(command.action, Action::Run(_)));
        let first = first.map(|command| command.id);
        let at = self.now;
        match what {
            "a reply that nobody awaits" => self.reply(CommandId(77), Outcome::Ok),
            "a reply twice" => {
                let id = first.expect("something is out");
                self.reply(id, Outcome::Exited(0));
                self.reply(id, Outcome::Exited(0));
            }
            "an info" => self.note(b"info x\n1"),
            "a word that nobody understands" => self.note(b"nonsense"),
            "its death" => {
                let why = Closed::Lost("reset".into());
                self.give(Input::Closed { launch: LAUNCH, at, why });
                let status = "killed by signal 9".to_owned();
                self.give(Input::Exited { launch: LAUNCH, at, status });
            }
            "a breach of the protocol" => {
                let why = Closed::Protocol("garbage".into());
                self.give(Input::Closed { launch: LAUNCH, at, why });
            }
            "an interruption" => self.cancel(),
            "an interruption, with late replies" => {
                self.cancel();
                self.answer_all();
                let why = Closed::Lost("closed".into());
                self.give(Input::Closed { launch: LAUNCH, at: self.now, why });
            }
            "two interruptions" => {
                self.cancel();
                self.cancel();
            }
            other => panic!("{other}"),
        }
    }
}

const HAPPENINGS: &[&str] = &[
    "a reply that nobody awaits",
    "a reply twice",
    "an info",
    "a word that nobody understands",
    "its death",
    "a breach of the protocol",
    "an interruption",
    "an interruption, with late replies",
    "two interruptions",
];

#[test]
fn whatever_a_worker_waits_for_whatever_happens_to_it_has_a_defined_outcome() {
    let mut text = String::new();
    for (wait, steps) in WAITS {
        writeln!(text, "waits for {wait}").expect("a string takes all");
        for what in HAPPENINGS {
            let mut table = Table::at(steps);
            table.happens(what);
            let outcome = if table.log.is_empty() { "-".to_owned() } else { table.log.join("; ") };
            writeln!(text, "  {what}: {outcome}").expect("a string takes all");
        }
    }
    insta::assert_snapshot!(text);
}
