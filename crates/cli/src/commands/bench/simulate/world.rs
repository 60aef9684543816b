//! A fleet and its fake workers: what is sent is answered a second later.
//!
//! In: how many workers, and how many commands each has. Out: a run from its start to its end, and
//! what each part of it took. Invariant: inputs come in the order of their instants. As all delays
//! are the same, a queue is enough for that, and it costs the same however many workers there are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use musec_analysis::Trace;
use musec_core::fleet::{Closed, Fleet, FleetOptions, Input, Output};
use musec_core::job::{Options, parse};
use musec_protocol::{Action, ClockKind, CommandId, Hello, LaunchId, Outcome, Pong, Reply, WTime};
use musec_trace::journal::append_entry;
use musec_trace::{CTime, Event, Joined, Phase, PhaseKind, Record, RunStatus, Usage};
use rustix::time::{ClockId, clock_gettime};

use crate::error::CliError;

/// Inputs between two looks at the clock, which is slow.
const BATCH: usize = 256;

/// From a command to its reply, and from a launch to its hello.
const DELAY: Duration = Duration::from_secs(1);

/// CPU of this thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) deciding: Duration,
    pub(super) encoding: Duration,
    pub(super) folding: Duration,
}

/// What a fake worker does next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Join,
    Answer(CommandId),
    /// The last answer, and the end of its connection.
    Leave(CommandId),
}

/// One run.
pub(super) struct World {
    fleet: Fleet,
    now: CTime,
    workers: u32,
    future: VecDeque<(CTime, LaunchId, Next)>,
    /// What was recorded and is not folded yet.
    records: Vec<Record>,
    /// Room for their bytes, used again and again as a journal uses its chunks.
    bytes: Vec<u8>,
    trace: Trace,
    status: Option<RunStatus>,
    launched: u32,
    /// Workers that have a command.
    busy: u32,
    events: u64,
    spent: Spent,
}

impl World {
    pub(super) fn new(workers: u32, commands: u32) -> Result<Self, CliError> {
        let text = job(workers, commands);
        let wrong = |errors: musec_core::JobErrors| CliError::Usage(format!("{:?}", errors.0));
        let program = parse(&text, &Options::default()).map_err(wrong)?;
        let mut fleet = Fleet::new(Arc::new(program), FleetOptions::default());
        fleet.handle(CTime::ZERO, Input::Start);
        Ok(Self {
            fleet,
            now: CTime::ZERO,
            workers,
            future: VecDeque::new(),
            records: Vec::new(),
            bytes: Vec::new(),
            trace: Trace::default(),
            status: None,
            launched: 0,
            busy: 0,
            events: 0,
            spent: Spent::default(),
        })
    }

    /// Goes on until every worker has a command, without folding.
    pub(super) fn gather(&mut self) {
        while self.busy < self.workers && self.status.is_none() {
            self.decide();
            self.records.clear();
        }
    }

    /// Goes on to the end.
    pub(super) fn run(&mut self) {
        while self.status.is_none() {
            let start = cpu();
            self.decide();
            let decided = cpu();
            for record in &self.records {
                self.trace.apply(record);
            }
            let folded = cpu();
            self.events += self.records.len() as u64;
            self.bytes.clear();
            for record in self.records.drain(..) {
                append_entry(&mut self.bytes, record);
            }
            std::hint::black_box(&self.bytes);
            let encoded = cpu();
            self.spent.deciding += decided.saturating_sub(start);
            self.spent.folding += folded.saturating_sub(decided);
            self.spent.encoding += encoded.saturating_sub(folded);
        }
    }

    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    pub(super) const fn spent(&self) -> Spent {
        self.spent
    }

    /// Hands the next inputs to the fleet, and does what it decides.
    fn decide(&mut self) {
        self.drain();
        for _ in 0..BATCH {
            let Some((at, launch, next)) = self.future.pop_front() else {
                return;
            };
            while let Some(due) = self.fleet.next_deadline().filter(|due| *due <= at) {
                self.now = self.now.max(due);
                self.fleet.tick(self.now);
                self.drain();
            }
            self.now = self.now.max(at);
            self.happen(launch, next);
        }
    }

    fn happen(&mut self, launch: LaunchId, next: Next) {
        match next {
            Next::Join => {
                let (at, engine_id) = (self.now, String::new());
                self.handle(Input::Accepted { launch, at, engine_id });
                self.handle(Input::Joined(Box::new(joined(launch, self.now))));
                self.busy += 1;
            }
            Next::Answer(id) => {
                self.answer(launch, id);
                let (t0, t3, seq) = (before(self.now, 1_000_000), self.now, id.0);
                let (received, encoded) = (worker_time(t0), worker_time(t0));
                let pong = Pong { seq, received, encoded, clock_gap_ns: 0 };
                self.handle(Input::Pulsed { launch, t0, t3, pong });
            }
            Next::Leave(id) => {
                self.answer(launch, id);
                let (at, why) = (self.now, Closed::Lost("closed".to_owned()));
                self.handle(Input::Closed { launch, at, why });
            }
        }
    }

    fn answer(&mut self, launch: LaunchId, id: CommandId) {
        let (t3, reply) = (self.now, Box::new(reply(id, self.now)));
        self.handle(Input::Replied { launch, t3, reply });
    }

    fn handle(&mut self, input: Input) {
        self.fleet.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.fleet.poll_output() {
            match output {
                Output::Record(at, event) => self.records.push(Record { at, event }),
                Output::Launch(launch) => {
                    // Workers come one after the other, and so does all that they do.
                    let gap = DELAY / self.workers * self.launched;
                    self.launched += 1;
                    let at = self.now.after(DELAY).after(gap);
                    self.future.push_back((at, launch, Next::Join));
                }
                Output::Send(launch, command) => {
                    let (at, id) = (self.now, command.id);
                    self.records.push(Record { at, event: Event::Sent { launch, id, t0: at } });
                    let next = match command.action {
                        Action::Quit => Next::Leave(id),
                        _ => Next::Answer(id),
                    };
                    self.future.push_back((at.after(DELAY), launch, next));
                }
                Output::Finished(status) => self.status = Some(status),
                Output::KeepOutput { .. }
                | Output::Welcome(..)
                | Output::Hangup(_)
                | Output::Stop(_)
                | Output::Look { .. }
                | Output::Sync => {}
            }
        }
    }
}

/// A machine with a loop, a state that is entered anew in each round, and texts to evaluate.
fn job(workers: u32, commands: u32) -> String {
    format!(
        "[job]\nworkers = {workers}\n\n[[step]]\nfor = {{ k = \"range({commands})\" }}\n\
         do = [{{ state = \"work\", run = [\"work\", \"{{{{ index }}}}\", \"{{{{ k }}}}\"] }}]\n"
    )
}

/// CPU of this thread so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn before(at: CTime, ns: u64) -> CTime {
    CTime::from_ns(at.ns.saturating_sub(ns))
}

/// An instant as a worker's clock shows it: they began at other times.
fn worker_time(at: CTime) -> WTime {
    WTime::from_ns(at.ns + 1_000_000_000_000)
}

fn joined(launch: LaunchId, now: CTime) -> Joined {
    let hello = Hello {
        host: b"a-host-somewhere".to_vec(),
        boot_id: "00000000-0000-0000-0000-000000000000".to_owned(),
        time_namespace: String::new(),
        pid: 1,
        clock: ClockKind::MonotonicRaw,
        encoded: worker_time(now),
        clock_gap_ns: 0,
        wall_ns: 0,
        cpus: 2,
        memory_bytes: 1 << 30,
        version: String::new(),
        facts: BTreeMap::new(),
    };
    Joined { launch, tcp: now, tls: now, t3: now, hello }
}

fn reply(id: CommandId, now: CTime) -> Reply {
    let [from, to] = [900_000_000, 1_000_000].map(|ns| worker_time(before(now, ns)));
    Reply {
        received: from,
        started: from,
        finished: to,
        encoded: to,
        phases: vec![Phase { kind: PhaseKind::User, from, to }],
        usage: Some(Usage { user_ns: 400_000, system_ns: 300_000, peak_rss_bytes: 2 << 20 }),
        ..Reply::bare(id, Outcome::Exited(0))
    }
}
