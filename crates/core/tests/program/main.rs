//! Job files to programs, and machines that walk them, through the crate's public face.

#![allow(clippy::unwrap_used, reason = "a helper's panic is a failed test")]

mod background;
mod barrier;
mod broken;
mod control;
mod errors;
mod goto;
mod grammar;
mod infos;
mod lanes;
mod machine;
mod pipelined;
mod plan;
mod reference;
mod table;
mod templates;

use std::fmt::Write as _;

use musec_core::job::{Options, parse};
use musec_core::{
    Advance, Effect, Facts, JobErrors, LaneNo, Machine, Moved, NextCommand, Program, Progress,
    StepFailure, Token, WaveId,
};
use musec_protocol::{Action, AttemptNo, CommandId, Outcome, Reply, Tail, WTime};
use musec_trace::CTime;

/// A job of one worker with these steps.
fn steps(text: &str) -> Program {
    job(&format!("[job]\nname = \"main\"\nworkers = 1\n{text}"))
}

/// A whole job that is right.
fn job(text: &str) -> Program {
    match parse(text, &options()) {
        Ok(program) => program,
        Err(errors) => panic!("{}", render(text, &errors)),
    }
}

/// What is wrong with a job, as text.
fn wrong(text: &str) -> String {
    match parse(text, &options()) {
        Ok(program) => panic!("accepted: {:?}", program.outline()),
        Err(errors) => render(text, &errors),
    }
}

fn options() -> Options {
    Options { name: "job".to_owned(), ..Options::default() }
}

/// A plain rendering: line, column, message, the text underlined, the cure.
fn render(text: &str, errors: &JobErrors) -> String {
    let mut out = String::new();
    for error in &errors.0 {
        let line_start = text[..error.span.start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].lines().next().unwrap_or_default();
        let line_end = line_start + line.len();
        let until = error.span.end.min(line_end).max(error.span.start);
        let width = text[error.span.start..until].chars().count().max(1);
        writeln!(out, "{}:{}: {}", error.line, error.column, error.message).unwrap();
        writeln!(out, "    {line}").unwrap();
        writeln!(out, "    {}{}", " ".repeat(error.column - 1), "^".repeat(width)).unwrap();
        if let Some(cure) = &error.cure {
            writeln!(out, "  cure: {}", cure.replace('\n', "\n        ")).unwrap();
        }
    }
    out
}

fn facts() -> Facts {
    Facts { index: 0, workers: 1, attempt: AttemptNo(0), item: None }
}

/// A reply that says that all went well.
fn ok() -> Reply {
    reply(Outcome::Ok, "")
}

fn reply(outcome: Outcome, stdout: &str) -> Reply {
    Reply {
        id: CommandId(0),
        received: WTime::from_ns(0),
        started: WTime::from_ns(1_000_000),
        finished: WTime::from_ns(43_900_000),
        encoded: WTime::from_ns(44_000_000),
        clock_gap_ns: 0,
        remaining_started_ms: None,
        remaining_finished_ms: None,
        outcome,
        phases: Vec::new(),
        usage: None,
        stdout: Tail { text: stdout.as_bytes().to_vec(), total_bytes: stdout.len() as u64 },
        stderr: Tail::default(),
        bytes: 0,
        objects: Vec::new(),
    }
}

/// What a machine that has one command at a time does next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Command(NextCommand),
    Done,
    Failed(StepFailure),
}

/// A machine with its program, what it did so far, one line each, and what it awaits replies to.
#[derive(Clone)]
struct Walk<'p> {
    program: &'p Program,
    machine: Machine,
    log: Vec<String>,
    moves: Vec<Moved>,
    sent: Vec<NextCommand>,
}

impl<'p> Walk<'p> {
    fn new(program: &'p Program, facts: Facts) -> Self {
        let machine = Machine::new(program, WaveId(0), facts);
        Self { program, machine, log: Vec::new(), moves: Vec::new(), sent: Vec::new() }
    }

    /// One input, and all that comes of it.
    fn input(&mut self, now: CTime, input: Advance<'_>) -> Progress {
        let mut effects = Vec::new();
        let progress = self.machine.advance(self.program, now, input, &mut effects);
        for effect in effects {
            let line = match effect {
                Effect::Moved(moved) => self.moved(moved),
                Effect::Cancel(lane) => format!("cancel {}", self.lane(lane)),
                Effect::Forked { lane, lanes, .. } => {
                    let lanes: Vec<_> = lanes.iter().map(|lane| self.lane(*lane)).collect();
                    format!("{}forks {}", self.prefix(lane), lanes.join(" "))
                }
                Effect::Arrived { lane, barrier } => {
                    format!("{}arrives at {barrier}", self.prefix(lane))
                }
                Effect::Left { barrier } => format!("leaves {barrier}"),
                Effect::Begun { lane, background } => {
                    format!("{}begins {}", self.prefix(lane), self.lane(background))
                }
                Effect::Awaited { lane, background } => {
                    format!("{}has awaited {}", self.prefix(lane), self.lane(background))
                }
                Effect::Merged { lane, winner } => {
                    let winner = winner.map(|winner| format!(" won by {}", self.lane(winner)));
                    format!("{}merges{}", self.prefix(lane), winner.unwrap_or_default())
                }
                Effect::Send(next) => {
                    let lane = self.prefix(next.lane);
                    let state = self.name(next.state);
                    let line = format!("{lane}{state}#{} {}", next.visit, shown(&next));
                    self.sent.push(next);
                    line
                }
            };
            self.log.push(line);
        }
        match &progress {
            Progress::Waits => {}
            Progress::Done => self.log.push("done".to_owned()),
            Progress::Failed(failure) => {
                self.log.push(format!("failed at {}: {}", failure.name, failure.error));
            }
        }
        progress
    }

    fn moved(&mut self, moved: Moved) -> String {
        self.moves.push(moved);
        let Moved { lane, from, to, cause } = moved;
        let name = |state: Option<_>| state.map_or("-", |state| self.name(state));
        let lane = self.prefix(lane);
        format!("{lane}{} > {} {}", name(from), name(to), cause.name())
    }

    /// What a lane is called: names from the outside in; `main` for the program itself.
    fn lane(&self, lane: LaneNo) -> String {
        let wave = self.program.wave(WaveId(0)).unwrap();
        let path = wave.lane_path(lane);
        if path.is_empty() {
            return "main".to_owned();
        }
        let named = |path: &[u32]| wave.lanes().find(|(known, _)| *known == path).unwrap().1;
        let names: Vec<_> = (1..=path.len()).map(|length| named(&path[..length])).collect();
        names.join(".")
    }

    fn prefix(&self, lane: LaneNo) -> String {
        let name = self.lane(lane);
        if name == "main" { String::new() } else { format!("{name}: ") }
    }

    fn name(&self, state: musec_core::StateId) -> &'p str {
        self.program.state(state).unwrap().name.as_str()
    }

    /// One input to a machine that has one command at a time.
    fn advance(&mut self, now: CTime, input: Advance<'_>) -> Step {
        self.sent.clear();
        match self.input(now, input) {
            Progress::Waits => {
                let [next] = self.sent.as_slice() else { panic!("{:?}", self.sent) };
                Step::Command(next.clone())
            }
            Progress::Done => Step::Done,
            Progress::Failed(failure) => Step::Failed(failure),
        }
    }

    /// The token of the one command that is out.
    fn token(&self) -> Token {
        let [next] = self.sent.as_slice() else { panic!("{:?}", self.sent) };
        next.token
    }

    fn start(&mut self) -> Step {
        self.advance(CTime::ZERO, Advance::Start)
    }

    fn replied(&mut self, reply: &Reply) -> Step {
        self.replied_at(CTime::ZERO, reply)
    }

    fn replied_at(&mut self, now: CTime, reply: &Reply) -> Step {
        let token = self.token();
        self.advance(now, Advance::Replied(token, reply))
    }

    /// From the start to the end; every command goes well.
    fn all(mut self) -> String {
        let mut step = self.start();
        for _ in 0..1000 {
            match step {
                Step::Command(_) => step = self.replied(&ok()),
                Step::Done | Step::Failed(_) => return self.log.join("\n"),
            }
        }
        panic!("it does not end");
    }
}

fn shown(next: &NextCommand) -> String {
    let words: Vec<String> = next
        .action
        .arguments()
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    format!("{} {}", next.name, words.join(" "))
}

/// The first command of a machine.
fn first(program: &Program, facts: Facts) -> NextCommand {
    match Walk::new(program, facts).start() {
        Step::Command(next) => next,
        other => panic!("{other:?}"),
    }
}

/// The text of a job's one `echo`.
fn echoed(program: &Program, facts: Facts) -> String {
    match first(program, facts).action {
        Action::Echo(text) => String::from_utf8(text).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// How a job's first step fails at once.
fn failure(program: &Program) -> StepFailure {
    match Walk::new(program, facts()).start() {
        Step::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}
