//! Lives written by hand, with every nanosecond of their account worked out on paper.

mod common;

use common::{Log, MS, US, c, hello, reply, w};
use musec_analysis::breakdown::{Category, Group};
use musec_analysis::{Account, RunLiveness, Trace, report, show};
use musec_trace::{
    AttemptOutcome, CommandId, Event, LaunchId, PhaseKind, RunStatus, StateId, WaitReason, WorkerId,
};

/// Checks the categories of attempt `launch`; those not named must be 0.
#[track_caller]
fn expect(account: &Account, launch: u64, expected: &[(Category, u64)]) {
    let account = &account.attempts[&LaunchId(launch)];
    for (category, ns) in account.breakdown.split.categories.iter() {
        let wanted = expected.iter().find(|(other, _)| *other == category);
        let wanted = wanted.map_or(0, |(_, ns)| u128::from(*ns));
        assert_eq!(ns, wanted, "{category}");
    }
    assert_eq!(account.breakdown.split.unaccounted_ns, 0);
}

/// requested 1, accepted 3, tcp 10, hello 20 ms; W = C − 8 ms.
fn begin(log: &mut Log, launch: u64) {
    log.request(MS, launch);
    log.accept(3 * MS, launch);
    log.join(launch, 10 * MS, 20 * MS, hello(11 * MS, true));
}

/// A `run` from 22 to 122 ms with user code for 96 ms, then a `put` from 123 to 143 ms.
fn simple() -> Log {
    let mut log = Log::new(200, 1);
    begin(&mut log, 0);
    log.send(0, 0, "run", 21 * MS, 22 * MS);
    let stamps = [14_500 * US, 15 * MS, 113 * MS, 113_500 * US];
    log.reply(0, 122 * MS, reply(0, stamps, &[(PhaseKind::User, 16 * MS, 112 * MS)]));
    log.send(0, 1, "put", 122 * MS, 123 * MS);
    let stamps = [115_500 * US, 115_600 * US, 134_500 * US, 134_800 * US];
    let phases = [(PhaseKind::Transfer, 116 * MS, 130 * MS)];
    log.reply(0, 143 * MS, reply(1, stamps, &phases));
    log.send(0, 2, "quit", 143 * MS, 144 * MS);
    log.reply(0, 146 * MS, reply(2, [137 * MS; 4], &[]));
    log.end(0, 150 * MS, 146 * MS, AttemptOutcome::Done);
    log
}

const SIMPLE: [(Category, u64); 9] = [
    (Category::User, 96 * MS),
    (Category::Storage, 18_900 * US),
    (Category::Overhead, 3_400 * US),
    (Category::Network, 1_700 * US),
    (Category::Coordinator, 4 * MS),
    (Category::Launch, 2 * MS),
    (Category::Start, 7 * MS),
    (Category::Handshake, 10 * MS),
    (Category::Teardown, 6 * MS),
];

#[test]
fn a_simple_life_is_split_to_the_nanosecond() {
    let (_, account) = simple().account();
    expect(&account, 0, &SIMPLE);
    let of = &account.attempts[&LaunchId(0)];
    assert_eq!(of.breakdown.life_ns, u128::from(149 * MS));
    assert_eq!(of.breakdown.put_ns, u128::from(18_900 * US));
    assert_eq!(of.breakdown.get_ns, 0);
    assert_eq!(of.breakdown.rollup.get(Group::User), u128::from(96 * MS));
    // Same clock: busy times are known within 1 µs either way, in each of two windows.
    let network = u128::from(1_700 * US);
    assert_eq!(of.breakdown.network_bounds_ns, (network - 2_000, network + 2_000));
    assert_eq!(of.visits[&Some((StateId(0), 0))].total(), u128::from(100 * MS));
    assert_eq!(of.visits[&Some((StateId(1), 0))].total(), u128::from(20 * MS));
    assert_eq!(of.visits[&None].total(), u128::from(29 * MS));
    assert_eq!(account.fault_count(), 0);
}

#[test]
fn the_bounds_of_a_command_follow_from_all_exchanges() {
    let (trace, account) = simple().account();
    let shown = show(&trace, &account, WorkerId(0)).expect("a worker");
    let run = &shown.attempts[0].commands[0];
    // Earliest: 22 ms + (s − a) − ε. Latest: from the hello, 20 ms + (15 − 11) + ε = 24.001 ms,
    // which is later than the reply of `run` allows: t3 − (b − s) + ε = 23.501 ms, and than that of
    // quit: 146 − (137 − 15) + ε = 24.001 ms; `put` gives 143 − (134.8 − 15) + ε = 23.201 ms.
    assert_eq!(run.start_bounds_ns, Some((22_499 * US, 23_201 * US)));
    assert_eq!(run.network_ns, Some(i128::from(MS)));
    assert_eq!(run.overhead_ns, Some(MS));
    assert_eq!(run.service_ns, Some(98 * MS));
    assert_eq!(run.queue_ns, Some(0));
    assert_eq!(shown.attempts[0].rate_bound_ppm, 0);
}

#[test]
fn a_lost_worker_is_named_and_its_time_accounted() {
    let mut log = Log::new(200, 1);
    begin(&mut log, 0);
    log.send(0, 0, "echo", 21 * MS, 22 * MS);
    log.reply(0, 23 * MS, reply(0, [14_200 * US, 14_200 * US, 14_300 * US, 14_400 * US], &[]));
    log.send(0, 1, "run", 23 * MS, 24 * MS);
    log.push(
        500 * MS,
        Event::Pulse {
            launch: LaunchId(0),
            seq: 0,
            t0: c(499 * MS),
            t3: c(500 * MS),
            received: w(491_500 * US),
            encoded: w(491_500 * US),
            clock_gap_ns: 0,
        },
    );
    log.end(0, 1_024 * MS, 500 * MS, AttemptOutcome::Lost);
    let (trace, account) = log.account();
    expect(
        &account,
        0,
        &[
            (Category::Overhead, 200 * US),
            (Category::Network, 800 * US),
            (Category::Coordinator, 3 * MS),
            (Category::Lost, 1_000 * MS),
            (Category::Launch, 2 * MS),
            (Category::Start, 7 * MS),
            (Category::Handshake, 10 * MS),
        ],
    );
    let of = &account.attempts[&LaunchId(0)];
    let lost = of.visits[&Some((StateId(0), 0))].categories.get(Category::Lost);
    assert_eq!(lost, u128::from(1_000 * MS), "the loss is its command's state's");
    assert_eq!(of.breakdown.rollup.get(Group::Lost), of.breakdown.life_ns);
    let report = report(&trace, &account, RunLiveness::NotRunning);
    assert_eq!(report.workers.lost, 1);
    assert_eq!(report.slowest_workers[0].main_command.as_deref(), Some("run"));
    assert_eq!(report.commands.iter().map(|row| row.unanswered).sum::<u64>(), 1);
}

#[test]
fn without_a_quit_the_time_after_the_last_sign_of_life_is_lost() {
    let mut log = Log::new(200, 1);
    begin(&mut log, 0);
    log.send(0, 0, "echo", 21 * MS, 22 * MS);
    log.reply(0, 23 * MS, reply(0, [14_200 * US; 4], &[]));
    log.push(90 * MS, Event::RunEnded { status: RunStatus::Interrupted });
    let (_, account) = log.account();
    expect(
        &account,
        0,
        &[
            (Category::Network, MS),
            (Category::Coordinator, 2 * MS),
            (Category::Lost, 67 * MS),
            (Category::Launch, 2 * MS),
            (Category::Start, 7 * MS),
            (Category::Handshake, 10 * MS),
        ],
    );
}

#[test]
fn a_worker_that_never_connected_is_launch_and_start() {
    let mut log = Log::new(200, 2);
    log.request(MS, 0);
    log.accept(3 * MS, 0);
    log.end(0, 60 * MS, MS, AttemptOutcome::NeverConnected);
    log.request(MS, 1);
    log.end(1, 61 * MS, MS, AttemptOutcome::NeverConnected);
    let (trace, account) = log.account();
    expect(&account, 0, &[(Category::Launch, 2 * MS), (Category::Start, 57 * MS)]);
    expect(&account, 1, &[(Category::Launch, 60 * MS)]);
    let report = report(&trace, &account, RunLiveness::NotRunning);
    assert_eq!((report.workers.total, report.workers.never_connected), (2, 2));
    assert!(report.position_uncertainty_ns.is_none(), "nothing was measured");
}

#[test]
fn an_engine_may_accept_after_the_worker_said_hello() {
    let mut log = Log::new(200, 1);
    log.request(MS, 0);
    log.join(0, 10 * MS, 20 * MS, hello(11 * MS, true));
    log.accept(30 * MS, 0);
    log.send(0, 0, "quit", 40 * MS, 41 * MS);
    log.end(0, 50 * MS, 45 * MS, AttemptOutcome::Done);
    let (_, account) = log.account();
    expect(
        &account,
        0,
        &[
            (Category::Launch, 9 * MS),
            (Category::Handshake, 10 * MS),
            (Category::Coordinator, 21 * MS),
            (Category::Teardown, 9 * MS),
        ],
    );
}

/// One command from 22 to 1022 ms, busy from 22.5 to 1021.5, with a stall of 400 ms within it.
fn stalled(name: &'static str, phase: PhaseKind) -> (Trace, Account) {
    let mut log = Log::new(200, 1);
    begin(&mut log, 0);
    log.send(0, 0, name, 21 * MS, 22 * MS);
    log.push(
        900 * MS,
        Event::Stalled { launch: LaunchId(0), t3: c(900 * MS), from: w(100 * MS), to: w(500 * MS) },
    );
    let stamps = [14_500 * US, 15 * MS, 1_013 * MS, 1_013_500 * US];
    log.reply(0, 1_022 * MS, reply(0, stamps, &[(phase, 15 * MS, 1_013 * MS)]));
    log.send(0, 1, "quit", 1_022 * MS, 1_023 * MS);
    log.end(0, 1_023 * MS, 1_023 * MS, AttemptOutcome::Done);
    log.account()
}

const AROUND: [(Category, u64); 6] = [
    (Category::Overhead, MS),
    (Category::Network, MS),
    (Category::Coordinator, 3 * MS),
    (Category::Launch, 2 * MS),
    (Category::Start, 7 * MS),
    (Category::Handshake, 10 * MS),
];

#[test]
fn a_stall_in_a_sleep_is_a_stall() {
    let (_, account) = stalled("sleep", PhaseKind::Sleep);
    let own = [(Category::Stall, 400 * MS), (Category::Wait, 598 * MS)];
    expect(&account, 0, &[&AROUND[..], &own].concat());
    let of = &account.attempts[&LaunchId(0)];
    let stall = of.visits[&Some((StateId(0), 0))].categories.get(Category::Stall);
    assert_eq!(stall, u128::from(400 * MS), "it held up the sleep");
}

#[test]
fn a_stall_in_a_run_stays_the_users_and_is_reported_beside_it() {
    let (trace, account) = stalled("run", PhaseKind::User);
    expect(&account, 0, &[&AROUND[..], &[(Category::User, 998 * MS)]].concat());
    let report = report(&trace, &account, RunLiveness::NotRunning);
    assert_eq!(report.stalls[0].beside_user_ns, 400 * MS);
    assert_eq!(report.clock_faults, 0);
}

/// One `run` from 22 ms, 1 s long on C, by a worker elsewhere whose clock runs `fast` ns fast.
fn elsewhere(fast: u64) -> Account {
    let mut log = Log::new(200, 1);
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(11 * MS, false));
    log.send(0, 0, "run", 21 * MS, 22 * MS);
    let (a, b) = (14 * MS, 1_014 * MS + fast);
    let phases = [(PhaseKind::User, a + 250 * MS, a + 750 * MS)];
    log.reply(0, 1_022 * MS, reply(0, [a, a, b, b], &phases));
    log.send(0, 1, "quit", 1_022 * MS, 1_022 * MS);
    log.end(0, 1_022 * MS, 1_022 * MS, AttemptOutcome::Done);
    let (_, account) = log.account();
    account
}

#[test]
fn busy_time_that_exceeds_its_window_within_the_rate_is_fitted() {
    let account = elsewhere(100 * US);
    let of = &account.attempts[&LaunchId(0)].breakdown;
    assert_eq!(of.fitted_windows, 1);
    // user 500 ms and overhead 500.1 ms, times 1000/1000.1, by largest remainder.
    assert_eq!(of.split.categories.get(Category::User), 499_950_005);
    assert_eq!(of.split.categories.get(Category::Overhead), 500_049_995);
    assert_eq!(of.split.categories.get(Category::Network), 0);
    // L − B⁻ = 10^9 − ⌊(1,000,100,000 − 1000)/1.0002⌋ = 10^9 − 999,899,020.
    assert_eq!(of.network_bounds_ns, (0, 100_980));
    assert_eq!(account.fault_count(), 0);
}

#[test]
fn busy_time_that_cannot_have_been_is_unaccounted_with_a_fault() {
    let account = elsewhere(300 * US);
    let of = &account.attempts[&LaunchId(0)];
    assert_eq!(of.breakdown.split.unaccounted_ns, 1_000_000_000);
    assert_eq!(of.breakdown.fitted_windows, 0);
    assert_eq!(of.faults.len(), 1);
    assert_eq!(of.visits[&Some((StateId(0), 0))].unaccounted_ns, 1_000_000_000);
    assert!(of.clock.epoch_of(CommandId(0)).is_none());
}

#[test]
fn the_programs_own_waits_are_told_from_the_coordinators_time() {
    let mut log = Log::new(200, 1);
    begin(&mut log, 0);
    log.push(25 * MS, Event::Waiting { launch: LaunchId(0), reason: WaitReason::Item });
    log.send(0, 0, "echo", 40 * MS, 41 * MS);
    log.reply(0, 42 * MS, reply(0, [33_500 * US; 4], &[]));
    log.push(43 * MS, Event::Waiting { launch: LaunchId(0), reason: WaitReason::Dismissal });
    log.send(0, 1, "quit", 50 * MS, 52 * MS);
    log.end(0, 53 * MS, 52 * MS, AttemptOutcome::Done);
    let (_, account) = log.account();
    expect(
        &account,
        0,
        &[
            (Category::Wait, 22 * MS),
            (Category::Coordinator, 9 * MS),
            (Category::Network, MS),
            (Category::Launch, 2 * MS),
            (Category::Start, 7 * MS),
            (Category::Handshake, 10 * MS),
            (Category::Teardown, MS),
        ],
    );
}

#[test]
fn a_command_behind_a_sleep_queues_and_behind_a_run_does_not_hide_it() {
    let mut log = Log::new(200, 1);
    begin(&mut log, 0);
    log.send(0, 0, "sleep", 21 * MS, 22 * MS);
    log.send(0, 1, "run", 21 * MS, 22 * MS);
    log.send(0, 2, "echo", 21 * MS, 22 * MS);
    log.reply(0, 42 * MS, reply(0, [15 * MS, 15 * MS, 33 * MS, 33 * MS], &[]));
    let phases = [(PhaseKind::User, 33 * MS, 73 * MS)];
    log.reply(0, 82 * MS, reply(1, [15 * MS, 33 * MS, 73 * MS, 73 * MS], &phases));
    log.reply(0, 83 * MS, reply(2, [15 * MS, 73 * MS, 74 * MS, 74 * MS], &[]));
    log.send(0, 3, "quit", 83 * MS, 83 * MS);
    log.end(0, 83 * MS, 83 * MS, AttemptOutcome::Done);
    let (trace, account) = log.account();
    expect(
        &account,
        0,
        &[
            (Category::Queue, 18 * MS),
            (Category::User, 40 * MS),
            (Category::Overhead, MS),
            (Category::Network, 2 * MS),
            (Category::Coordinator, 2 * MS),
            (Category::Launch, 2 * MS),
            (Category::Start, 7 * MS),
            (Category::Handshake, 10 * MS),
        ],
    );
    let shown = show(&trace, &account, WorkerId(0)).expect("a worker");
    let queues: Vec<_> = shown.attempts[0].commands.iter().map(|row| row.queue_ns).collect();
    assert_eq!(queues, [Some(0), Some(18 * MS), Some(58 * MS), None]);
}

#[test]
fn a_command_that_outlasts_the_quit_is_cut_there_without_a_fault() {
    let mut log = Log::new(200, 1);
    begin(&mut log, 0);
    log.send(0, 0, "run", 21 * MS, 22 * MS);
    log.send(0, 1, "quit", 60 * MS, 62 * MS);
    // Killed 5 s later: busy for longer than the session went on.
    let phases = [(PhaseKind::User, 15 * MS, 5_015 * MS)];
    log.reply(0, 5_024 * MS, reply(0, [15 * MS, 15 * MS, 5_015 * MS, 5_015 * MS], &phases));
    log.end(0, 5_025 * MS, 5_024 * MS, AttemptOutcome::Killed);
    let (_, account) = log.account();
    expect(
        &account,
        0,
        &[
            (Category::User, 40 * MS),
            (Category::Coordinator, 2 * MS),
            (Category::Launch, 2 * MS),
            (Category::Start, 7 * MS),
            (Category::Handshake, 10 * MS),
            (Category::Teardown, 4_963 * MS),
        ],
    );
    let of = &account.attempts[&LaunchId(0)].breakdown;
    // W when quit was sent: no later than a + (62 − 22) + ε = 55.001 ms. That would be busy for
    // 40.001 ms, more than there was. The hello lets a be 24.001 ms on C at the latest, after which
    // it was busy up to quit.
    assert_eq!((of.fitted_windows, of.network_bounds_ns), (0, (0, u128::from(2_001 * US))));
    assert_eq!(account.fault_count(), 0);
}

#[test]
fn a_command_that_quit_kills_is_cut_where_quit_was_sent() {
    let mut log = Log::new(200, 1);
    begin(&mut log, 0);
    log.send(0, 0, "run", 21 * MS, 22 * MS);
    log.push(
        30_300 * US,
        Event::Pulse {
            launch: LaunchId(0),
            seq: 0,
            t0: c(30 * MS),
            t3: c(30_300 * US),
            received: w(22_200 * US),
            encoded: w(22_200 * US),
            clock_gap_ns: 0,
        },
    );
    log.send(0, 1, "quit", 61 * MS, 62 * MS);
    let stamps = [15 * MS, 15_200 * US, 54_400 * US, 54_500 * US];
    log.reply(0, 62_700 * US, reply(0, stamps, &[(PhaseKind::User, 15_400 * US, 54_300 * US)]));
    let stamps = [54_100 * US, 54_100 * US, 54_600 * US, 54_600 * US];
    log.reply(0, 62_800 * US, reply(1, stamps, &[]));
    log.end(0, 64 * MS, 62_800 * US, AttemptOutcome::Killed);
    let (_, account) = log.account();
    // W at 62 ms: quit's own a gives 54.1 ms + ε at most, the heartbeat's b gives
    // 22.2 + (62 − 30.3) ms − ε = 53.899 ms at least. At most the run was busy up to 54.101 ms.
    // Of a, on C: from quit 62 − (54.1 − 15) ms − ε = 22.899 ms at least, from the heartbeat
    // 30.3 − (22.2 − 15) ms + ε = 23.101 ms at most: thus network is 0.899 to 1.101 ms, truly 1 ms.
    expect(
        &account,
        0,
        &[
            (Category::User, 38_701 * US),
            (Category::Overhead, 400 * US),
            (Category::Network, 899 * US),
            (Category::Coordinator, 2 * MS),
            (Category::Launch, 2 * MS),
            (Category::Start, 7 * MS),
            (Category::Handshake, 10 * MS),
            (Category::Teardown, 2 * MS),
        ],
    );
    let of = &account.attempts[&LaunchId(0)].breakdown;
    let bounds = (u128::from(899 * US), u128::from(1_101 * US));
    assert_eq!((of.fitted_windows, of.network_bounds_ns), (0, bounds));
    assert_eq!(account.fault_count(), 0);
}

#[test]
fn a_run_under_way_does_not_call_its_present_commands_lost() {
    let mut log = Log::new(200, 2);
    begin(&mut log, 0);
    log.send(0, 0, "run", 21 * MS, 22 * MS);
    begin(&mut log, 1);
    // Nothing is outstanding here: the coordinator is at it.
    log.records.sort_by_key(|record| record.at);
    log.push(100 * MS, Event::Frozen { launch: LaunchId(0), since: c(90 * MS), thawed: false });
    let trace = log.fold();
    let account = Account::of_running(&trace);
    account.check_conservation().expect("conserved");
    let of = &account.attempts[&LaunchId(0)];
    assert_eq!(of.breakdown.split.unaccounted_ns, u128::from(78 * MS));
    assert_eq!(of.visits[&Some((StateId(0), 0))].unaccounted_ns, u128::from(78 * MS));
    assert_eq!(of.breakdown.split.categories.get(Category::Coordinator), u128::from(2 * MS));
    expect(
        &account,
        1,
        &[
            (Category::Coordinator, 80 * MS),
            (Category::Launch, 2 * MS),
            (Category::Start, 7 * MS),
            (Category::Handshake, 10 * MS),
        ],
    );
    let ended = Account::of(&trace);
    assert_eq!(ended.total().split.categories.get(Category::Lost), u128::from(158 * MS));
    let running = report(&trace, &ended, RunLiveness::Running);
    assert_eq!(running.slowest_workers[0].main_category, "unaccounted");
    assert_eq!(running.slowest_workers[1].main_category, "coordinator");
    let lost = |liveness| report(&trace, &ended, liveness).breakdown.categories.get(Category::Lost);
    assert_eq!(lost(RunLiveness::Running), 0);
    assert_eq!(lost(RunLiveness::NotRunning), u128::from(158 * MS));
}

#[test]
fn the_report_has_the_keys_that_others_rely_on() {
    let mut log = simple();
    log.push(150 * MS, Event::RunEnded { status: RunStatus::Done });
    let (trace, account) = log.account();
    let report = report(&trace, &account, RunLiveness::NotRunning);
    let json = serde_json::to_value(&report).expect("serialisable");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["status"], "done");
    assert_eq!(json["makespan_ns"], 150 * MS);
    assert_eq!(json["workers"]["done"], 1);
    assert_eq!(json["rate_bound_ppm"], 0);
    let breakdown = &json["breakdown"];
    let sum = |key: &str| -> u64 {
        let parts = breakdown[key].as_object().expect("a map");
        parts.values().map(|part| part.as_u64().expect("integer")).sum()
    };
    let life = breakdown["life_ns"].as_u64().expect("integer");
    assert_eq!(breakdown["categories"].as_object().expect("a map").len(), 15);
    assert_eq!(sum("categories") + breakdown["unaccounted_ns"].as_u64().expect("integer"), life);
    assert_eq!(sum("rollup"), life);
    let states = json["states"].as_array().expect("a list");
    let totals = states.iter().map(|state| state["total_ns"].as_u64().expect("integer"));
    assert_eq!(totals.sum::<u64>(), life);
    assert_eq!(states[0]["state"], "(none)");
    assert_eq!(json["commands"][1]["service_max_ns"], 98 * MS);
    // (100 − 98)/98
    let error = json["coordinator_view_error"]["user"]["p50"].as_f64().expect("a number");
    assert!((error - 2.0 / 98.0).abs() < 1e-12);
    // 2 µs of 1.7 ms; a width of 702 µs (`run` starts within 22.499…23.201 ms) and others.
    let percent = json["breakdown"]["network_plus_minus_percent"].as_f64().expect("a number");
    assert!((percent - 2.0 / 17.0).abs() < 1e-9);
    assert_eq!(json["position_uncertainty_ns"]["max"], 702 * US);
    for absent in ["outliers", "critical_path", "coordinator"] {
        assert!(json.get(absent).is_none(), "{absent} is not known");
    }
}

#[test]
fn the_json_of_a_simple_run_stays_as_it_is() {
    let mut log = simple();
    log.push(150 * MS, Event::RunEnded { status: RunStatus::Done });
    let (trace, account) = log.account();
    insta::assert_json_snapshot!("report", report(&trace, &account, RunLiveness::NotRunning));
    insta::assert_json_snapshot!("show", show(&trace, &account, WorkerId(0)));
}
