//! A log written by hand or by a simulation: short ways to say records.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;

use musec_analysis::{Account, Trace};
use musec_trace::{
    AttemptNo, AttemptOutcome, CTime, ClockKind, CommandId, EndCause, Event, Hello, Joined,
    LaunchId, Outcome, Phase, PhaseKind, Queued, Record, Reply, RunId, RunStarted, StateId,
    StepCategory, Tail, WTime, WaveId, WorkerId,
};

/// One microsecond, in nanoseconds.
pub(crate) const US: u64 = 1_000;
/// One millisecond, in nanoseconds.
pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn c(ns: u64) -> CTime {
    CTime::from_ns(ns)
}

pub(crate) fn w(ns: u64) -> WTime {
    WTime::from_ns(ns)
}

/// Records, and how the run is described.
pub(crate) struct Log {
    pub(crate) records: Vec<Record>,
    /// What the steps of the commands that follow say of their time.
    pub(crate) category: Option<StepCategory>,
}

/// What a run says of its clock.
pub(crate) fn run_started(rate_bound_ppm: u32) -> RunStarted {
    RunStarted {
        run: RunId([7; 16]),
        job: "job".to_owned(),
        launcher: "local".to_owned(),
        wall_ns: 1_700_000_000_000_000_000,
        boot_id: "boot".to_owned(),
        time_namespace: "ns".to_owned(),
        clock: ClockKind::MonotonicRaw,
        rate_bound_ppm,
        seed: 1,
        version: "0".to_owned(),
        job_text: Vec::new(),
        options_json: "{}".to_owned(),
        clock_gap_ns: 0,
        cores: 2,
        starting_max: 4,
    }
}

/// A hello with b = `encoded`, from the coordinator's machine or another.
pub(crate) fn hello(encoded: u64, same_machine: bool) -> Hello {
    Hello {
        host: b"host".to_vec(),
        boot_id: if same_machine { "boot" } else { "other" }.to_owned(),
        time_namespace: "ns".to_owned(),
        pid: 42,
        clock: ClockKind::MonotonicRaw,
        encoded: w(encoded),
        clock_gap_ns: 0,
        wall_ns: 0,
        cpus: 1,
        memory_bytes: 0,
        version: "0".to_owned(),
        facts: BTreeMap::new(),
    }
}

/// A reply with stamps [a, s, f, b].
pub(crate) fn reply(id: u64, stamps: [u64; 4], phases: &[(PhaseKind, u64, u64)]) -> Reply {
    let [received, started, finished, encoded] = stamps.map(w);
    Reply {
        id: CommandId(id),
        received,
        started,
        finished,
        encoded,
        clock_gap_ns: 0,
        remaining_started_ms: None,
        remaining_finished_ms: None,
        outcome: Outcome::Ok,
        phases: phases
            .iter()
            .map(|(kind, from, to)| Phase { kind: *kind, from: w(*from), to: w(*to) })
            .collect(),
        usage: None,
        stdout: Tail::default(),
        stderr: Tail::default(),
        bytes: 0,
        objects: Vec::new(),
    }
}

impl Log {
    /// A run with one wave of `workers` and the states `work` (0) and `store` (1).
    pub(crate) fn new(rate_bound_ppm: u32, workers: u32) -> Self {
        let mut log = Self { records: Vec::new(), category: None };
        log.push(0, Event::RunStarted(Box::new(run_started(rate_bound_ppm))));
        for (number, name) in [(0, "work"), (1, "store")] {
            log.push(
                0,
                Event::StateNamed {
                    state: StateId(number),
                    wave: WaveId(0),
                    name: name.to_owned(),
                },
            );
        }
        log.push(
            0,
            Event::WaveStarted {
                wave: WaveId(0),
                name: "only".to_owned(),
                first_worker: WorkerId(0),
                workers,
                items: 0,
            },
        );
        log
    }

    pub(crate) fn push(&mut self, at: u64, event: Event) {
        self.records.push(Record { at: c(at), event });
    }

    /// Worker `launch`'s first attempt.
    pub(crate) fn request(&mut self, at: u64, launch: u64) {
        self.push(
            at,
            Event::Requested {
                launch: LaunchId(launch),
                worker: WorkerId(u32::try_from(launch).expect("small")),
                attempt: AttemptNo(0),
                wave: WaveId(0),
            },
        );
    }

    pub(crate) fn accept(&mut self, at: u64, launch: u64) {
        self.push(
            at,
            Event::Accepted {
                launch: LaunchId(launch),
                accepted: c(at),
                engine_id: "1".to_owned(),
            },
        );
    }

    pub(crate) fn join(&mut self, launch: u64, tcp: u64, t3: u64, hello: Hello) {
        self.push(
            t3,
            Event::Joined(Box::new(Joined {
                launch: LaunchId(launch),
                tcp: c(tcp),
                tls: c(tcp.midpoint(t3)),
                t3: c(t3),
                hello,
            })),
        );
    }

    /// Queued and sent; `clean` and `quit` are in no state, `put` and `get` in `store`.
    pub(crate) fn send(&mut self, launch: u64, id: u64, name: &'static str, queued: u64, t0: u64) {
        self.send_on(launch, id, name, queued, t0, &[], false);
    }

    #[allow(clippy::too_many_arguments, reason = "a command has that many parts")]
    pub(crate) fn send_on(
        &mut self,
        launch: u64,
        id: u64,
        name: &'static str,
        queued: u64,
        t0: u64,
        lane: &[u32],
        background: bool,
    ) {
        let state = match name {
            "quit" | "clean" => None,
            "get" | "put" => Some(StateId(1)),
            _ => Some(StateId(0)),
        };
        self.push(
            queued,
            Event::Queued(Box::new(Queued {
                launch: LaunchId(launch),
                id: CommandId(id),
                lane: lane.to_vec(),
                state,
                visit: 0,
                name: name.into(),
                arguments: Vec::new(),
                pipelined: false,
                background,
                category: self.category,
                step: 0,
            })),
        );
        self.push(t0, Event::Sent { launch: LaunchId(launch), id: CommandId(id), t0: c(t0) });
    }

    pub(crate) fn reply(&mut self, launch: u64, t3: u64, reply: Reply) {
        self.push(
            t3,
            Event::Replied { launch: LaunchId(launch), t3: c(t3), reply: Box::new(reply) },
        );
    }

    pub(crate) fn end(&mut self, launch: u64, end: u64, last_sign: u64, outcome: AttemptOutcome) {
        self.push(
            end,
            Event::Ended {
                launch: LaunchId(launch),
                end: c(end),
                last_sign: c(last_sign),
                cause: EndCause::Closed,
                outcome,
            },
        );
    }

    pub(crate) fn fold(&self) -> Trace {
        let mut trace = Trace::default();
        self.records.iter().for_each(|record| trace.apply(record));
        trace
    }

    pub(crate) fn account(&self) -> (Trace, Account) {
        let trace = self.fold();
        let account = Account::of(&trace);
        account.check_conservation().expect("conserved");
        (trace, account)
    }
}
