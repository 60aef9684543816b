//! Whatever the records are, in whatever order, with whatever stamps: nothing panics, and every sum
//! is exact. The sums are computed here once more, apart from the checks of the account itself.

mod common;

use std::collections::BTreeMap;

use common::{c, hello, reply, run_started, w};
use musec_analysis::breakdown::{Milestones, Split};
use musec_analysis::fold::WorkerStatus;
use musec_analysis::{Account, RunLiveness, Trace, report, run_row, show};
use musec_trace::{
    AttemptNo, AttemptOutcome, Cause, ClockKind, CommandId, EndCause, Event, Failure, Joined,
    LaunchId, Outcome, PhaseKind, Queued, Record, RunStatus, Sample, StateId, StepCategory, Usage,
    WaitReason, WaveId, WorkerId,
};
use proptest::prelude::*;

/// Stamps of all sizes, so that they often meet and sometimes overflow what is careless.
fn stamp() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..40_u64,
        8 => (0..60_u64).prop_map(|ms| ms * 1_000_000),
        4 => 0..100_000_000_u64,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

fn gap() -> impl Strategy<Value = i64> {
    prop_oneof![9 => Just(0_i64), 1 => Just(5_000_000_000_i64), 1 => any::<i64>()]
}

fn launch() -> impl Strategy<Value = LaunchId> {
    prop_oneof![9 => (0..4_u64).prop_map(LaunchId), 1 => Just(LaunchId(99))]
}

fn command() -> impl Strategy<Value = CommandId> {
    (0..6_u64).prop_map(CommandId)
}

fn state() -> impl Strategy<Value = Option<StateId>> {
    prop::option::of((0..3_u32).prop_map(StateId))
}

fn phase() -> impl Strategy<Value = (PhaseKind, u64, u64)> {
    let kind = prop::sample::select(vec![
        PhaseKind::User,
        PhaseKind::Sleep,
        PhaseKind::FirstByte,
        PhaseKind::Transfer,
        PhaseKind::Disk,
        PhaseKind::BackOff,
    ]);
    (kind, stamp(), stamp())
}

fn queued() -> impl Strategy<Value = Event> {
    let name = prop::sample::select(vec![
        "run", "get", "put", "sleep", "echo", "send", "receive", "clean", "quit", "new",
    ]);
    let lane = prop::sample::select(vec![vec![], vec![0], vec![1], vec![1, 0]]);
    (launch(), command(), name, lane, state(), 0..3_u32, any::<bool>()).prop_map(
        |(launch, id, name, lane, state, visit, background)| {
            Event::Queued(Box::new(Queued {
                launch,
                id,
                lane,
                state,
                visit,
                name: name.into(),
                arguments: vec![vec![0xff]],
                pipelined: false,
                background,
                category: StepCategory::from_code(visit * 2),
                step: visit,
            }))
        },
    )
}

fn replied() -> impl Strategy<Value = Event> {
    let phases = prop::collection::vec(phase(), 0..4);
    let outcome = prop::sample::select(vec![
        Outcome::Ok,
        Outcome::Exited(3),
        Outcome::Signalled(9),
        Outcome::TimedOut { limit_ms: 1 },
        Outcome::Cancelled,
    ]);
    let stamps = [stamp(), stamp(), stamp(), stamp()];
    let sorted = any::<bool>();
    (launch(), command(), stamp(), stamps, sorted, phases, outcome, gap()).prop_map(
        |(launch, id, t3, mut stamps, sorted, phases, outcome, clock_gap_ns)| {
            if sorted {
                stamps.sort_unstable();
            }
            let mut reply = reply(id.0, stamps, &phases);
            reply.outcome = outcome;
            reply.clock_gap_ns = clock_gap_ns;
            reply.bytes = u64::MAX;
            reply.usage = Some(Usage { user_ns: u64::MAX, system_ns: 1, peak_rss_bytes: 1 });
            Event::Replied { launch, t3: c(t3), reply: Box::new(reply) }
        },
    )
}

fn session_event() -> impl Strategy<Value = Event> {
    let waits = prop::sample::select(WaitReason::ALL);
    prop_oneof![
        3 => queued(),
        4 => (launch(), command(), stamp())
            .prop_map(|(launch, id, t0)| Event::Sent { launch, id, t0: c(t0) }),
        4 => replied(),
        1 => (launch(), stamp(), stamp(), stamp(), stamp(), gap()).prop_map(
            |(launch, t0, t3, a, b, clock_gap_ns)| Event::Pulse {
                launch,
                seq: 0,
                t0: c(t0),
                t3: c(t3),
                received: w(a),
                encoded: w(b),
                clock_gap_ns,
            }
        ),
        1 => (launch(), stamp(), stamp())
            .prop_map(|(launch, from, to)| {
                let t3 = musec_trace::CTime::from_ns(to);
                Event::Stalled { launch, t3, from: w(from), to: w(to) }
            }),
        1 => (launch(), stamp(), any::<bool>())
            .prop_map(|(launch, since, thawed)| Event::Frozen { launch, since: c(since), thawed }),
        1 => (launch(), waits).prop_map(|(launch, reason)| Event::Waiting { launch, reason }),
        2 => (launch(), 0..3_u32, 0..3_u32).prop_map(|(launch, lane, background)| {
            Event::Awaited { launch, lane: vec![lane], background }
        }),
        1 => (launch(), 0..5_u64).prop_map(|(launch, item)| Event::ItemGiven {
            launch,
            item,
            value_json: "1".to_owned(),
        }),
    ]
}

fn life_event() -> impl Strategy<Value = Event> {
    let outcomes = prop::sample::select(AttemptOutcome::ALL);
    prop_oneof![
        3 => (launch(), 0..3_u32, 0..3_u32, 0..2_u32).prop_map(|(launch, worker, no, wave)| {
            Event::Requested {
                launch,
                worker: WorkerId(worker),
                attempt: AttemptNo(no),
                wave: WaveId(wave),
            }
        }),
        1 => (launch(), stamp()).prop_map(|(launch, at)| Event::Accepted {
            launch,
            accepted: c(at),
            engine_id: String::new(),
        }),
        1 => launch()
            .prop_map(|launch| Event::NotLaunched { launch, error: "no".to_owned() }),
        3 => (launch(), stamp(), stamp(), stamp(), any::<bool>()).prop_map(
            |(launch, tcp, t3, encoded, same)| Event::Joined(Box::new(Joined {
                launch,
                tcp: c(tcp),
                tls: c(tcp),
                t3: c(t3),
                hello: hello(encoded, same),
            }))
        ),
        2 => (launch(), stamp(), stamp(), outcomes).prop_map(|(launch, end, sign, outcome)| {
            Event::Ended {
                launch,
                end: c(end),
                last_sign: c(sign),
                cause: EndCause::Closed,
                outcome,
            }
        }),
        2 => (launch(), state()).prop_map(|(launch, to)| Event::Transition {
            launch,
            lane: vec![],
            from: None,
            to,
            cause: Cause::Done,
        }),
    ]
}

fn run_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..1_000_000_u32, any::<bool>()).prop_map(|(ppm, slewed)| {
            let mut run = run_started(ppm);
            if slewed {
                run.clock = ClockKind::Monotonic;
            }
            Event::RunStarted(Box::new(run))
        }),
        (0..2_u32, 0..5_u32).prop_map(|(wave, workers)| Event::WaveStarted {
            wave: WaveId(wave),
            name: "w".to_owned(),
            first_worker: WorkerId(0),
            workers,
            items: 0,
        }),
        (0..3_u32).prop_map(|wave| Event::WaveEnded { wave: WaveId(wave) }),
        gap().prop_map(|clock_gap_ns| Event::Sample(Box::new(Sample {
            clock_gap_ns,
            ..Sample::default()
        }))),
        (launch(), state(), command()).prop_map(|(launch, state, id)| {
            Event::Failure(Box::new(Failure {
                launch,
                state,
                command: Some(id),
                name: "run".to_owned(),
                error: "exit 3".to_owned(),
                output: vec![0xfe],
            }))
        }),
        Just(Event::Cancelled { cause: "SIGINT".to_owned() }),
        Just(Event::RunEnded { status: RunStatus::Failed }),
    ]
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let event = prop_oneof![2 => life_event(), 6 => session_event(), 1 => run_event()];
    let record = (stamp(), event).prop_map(|(at, event)| Record { at: c(at), event });
    // A sound beginning, so that most of the rest has something to fall upon.
    prop::collection::vec(record, 0..80).prop_map(|mut records| {
        let mut all =
            vec![Record { at: c(0), event: Event::RunStarted(Box::new(run_started(200))) }];
        for launch in 0..3_u64 {
            all.push(Record {
                at: c(launch),
                event: Event::Requested {
                    launch: LaunchId(launch),
                    worker: WorkerId(u32::try_from(launch).expect("small")),
                    attempt: AttemptNo(0),
                    wave: WaveId(0),
                },
            });
            all.push(Record {
                at: c(launch),
                event: Event::Joined(Box::new(Joined {
                    launch: LaunchId(launch),
                    tcp: c(launch + 1),
                    tls: c(launch + 2),
                    t3: c(launch + 5),
                    hello: hello(3, launch == 0),
                })),
            });
        }
        let early = records.len() % 3 == 0;
        if early {
            records.extend(all);
            return records;
        }
        all.append(&mut records);
        all
    })
}

fn fold(records: &[Record]) -> Trace {
    let mut trace = Trace::default();
    records.iter().for_each(|record| trace.apply(record));
    trace
}

/// Sums over attempts, made here.
fn check_sums(trace: &Trace, account: &Account) -> Result<(), TestCaseError> {
    let mut lives = 0_u128;
    let mut total = Split::default();
    for (launch, attempt) in trace.attempts() {
        let own = &account.attempts[launch];
        let at = Milestones::of(attempt, trace.last());
        let life = u128::from(at.end.ns) - u128::from(at.requested.ns);
        let parts: u128 = own.breakdown.split.categories.iter().map(|(_, ns)| ns).sum();
        prop_assert_eq!(parts + own.breakdown.split.unaccounted_ns, life);
        let mut visits = Split::default();
        own.visits.values().for_each(|split| visits.add_all(split));
        prop_assert_eq!(visits, own.breakdown.split);
        let (least, most) = own.breakdown.network_bounds_ns;
        prop_assert!(least <= most && most <= life);
        lives += life;
        total.add_all(&visits);
    }
    prop_assert_eq!(account.total().split, total);
    for groups in [
        account.waves().into_values().collect::<Vec<_>>(),
        account.workers().into_values().collect(),
    ] {
        prop_assert_eq!(groups.iter().map(|group| group.life_ns).sum::<u128>(), lives);
    }
    let states: u128 = account.states().values().map(Split::total).sum();
    prop_assert_eq!(states, lives);
    Ok(())
}

/// The live counts, made again from nothing.
fn recount(trace: &Trace) -> u64 {
    let decided = trace.workers().keys().filter(|worker| {
        let attempt = trace.deciding_attempt(**worker).expect("it has one");
        attempt.outcome() == Some(AttemptOutcome::Done)
    });
    decided.count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_records_are_accounted_for_to_the_nanosecond(records in records()) {
        let trace = fold(&records);
        let account = Account::of(&trace);
        prop_assert_eq!(account.check_conservation(), Ok(()));
        check_sums(&trace, &account)?;
        let running = Account::of_running(&trace);
        prop_assert_eq!(running.check_conservation(), Ok(()));
        check_sums(&trace, &running)?;
        let report = report(&trace, &account, RunLiveness::NotRunning);
        let total = report.breakdown.categories.total() + report.breakdown.unaccounted_ns;
        prop_assert_eq!(total, report.breakdown.life_ns);
        let states: u128 = report.states.iter().map(|state| state.total_ns).sum();
        prop_assert_eq!(states, report.breakdown.life_ns);
        for (group, ns) in report.breakdown.rollup.iter() {
            let parts = report.rollup_parts.get(group.name()).into_iter().flatten();
            prop_assert_eq!(parts.map(|part| part.total_ns).sum::<u128>(), ns);
        }
        prop_assert!(serde_json::to_string(&report).is_ok());
        for worker in trace.workers().keys() {
            let shown = show(&trace, &account, *worker);
            prop_assert!(serde_json::to_string(&shown).is_ok());
        }
    }

    #[test]
    fn folding_in_parts_is_folding_at_once(records in records(), part in 0..=100_usize) {
        let place = records.len() * part / 100;
        let mut trace = fold(&records[..place]);
        let seen = (run_row(&trace, RunLiveness::Running), trace.slowest(trace.last(), 5));
        prop_assert!(seen.1.len() <= 5);
        records[place..].iter().for_each(|record| trace.apply(record));
        let whole = fold(&records);
        prop_assert_eq!(&trace, &whole);
        prop_assert_eq!(trace.count(WorkerStatus::Done), recount(&whole));
        let counted: u64 = trace.counts().values().sum();
        prop_assert_eq!(counted, trace.workers().len() as u64);
        prop_assert!(trace.counts().values().all(|count| *count > 0));
    }

    #[test]
    fn what_is_under_way_is_what_was_sent_and_not_replied(records in records()) {
        let trace = fold(&records);
        let mut oldest = BTreeMap::new();
        for (launch, attempt) in trace.attempts() {
            let sent = attempt.commands.iter().filter(|(_, command)| command.reply.is_none());
            let first = sent.filter_map(|(id, command)| Some((command.t0?, *id))).min();
            if let (Some(first), None) = (first, attempt.ended) {
                oldest.insert((first.0, *launch), first.1);
            }
        }
        let slowest = trace.slowest(trace.last(), usize::MAX);
        let expected: Vec<_> = oldest.keys().map(|(_, launch)| *launch).collect();
        let got: Vec<_> = slowest.iter().map(|present| present.launch).collect();
        prop_assert_eq!(got, expected);
    }
}
