//! Runs of several workers, written by hand: clocks that break, lanes, live counts, tables.

mod common;

use common::{Log, MS, c, hello, reply, w};
use musec_analysis::breakdown::Category;
use musec_analysis::clocks::FaultKind;
use musec_analysis::fold::WorkerStatus;
use musec_analysis::report::Status;
use musec_analysis::{Account, RunLiveness, report, run_row};
use musec_trace::{
    AttemptNo, AttemptOutcome, Cause, ClockKind, Event, LaunchId, PhaseKind, RunStatus, Sample,
    StateId, StepCategory, WaveId, WorkerId,
};

/// Worker `launch`: hello at 20 ms, a `run` in each of `runs` (C), W = C − 8 ms + `shift` of each.
fn worker(log: &mut Log, launch: u64, same: bool, runs: &[(u64, u64, u64)], gaps: &[i64]) {
    log.request(0, launch);
    log.join(launch, 10 * MS, 20 * MS, hello(11 * MS, same));
    for (id, (t0, t3, shift)) in runs.iter().enumerate() {
        let id = id as u64;
        log.send(launch, id, "run", *t0, *t0);
        let (a, b) = (t0 + MS - 8 * MS + shift, t3 - MS - 8 * MS + shift);
        let mut reply = reply(id, [a, a, b, b], &[(PhaseKind::User, a, b)]);
        reply.clock_gap_ns = gaps.get(usize::try_from(id).expect("small")).copied().unwrap_or(0);
        log.reply(launch, *t3, reply);
    }
    let end = runs.last().map_or(20 * MS, |run| run.1) + MS;
    log.send(launch, 99, "quit", end, end);
    log.end(launch, end, end, AttemptOutcome::Done);
}

/// A heartbeat from `t0` (C) on, 1 ms each way, answered at once at `stamp` (W).
fn pulse(t0: u64, stamp: u64) -> Event {
    Event::Pulse {
        launch: LaunchId(0),
        seq: 0,
        t0: c(t0),
        t3: c(t0 + 2 * MS),
        received: w(stamp),
        encoded: w(stamp),
        clock_gap_ns: 0,
    }
}

fn sample(log: &mut Log, at: u64, clock_gap_ns: i64) {
    log.push(
        at,
        Event::Sample(Box::new(Sample { clock_gap_ns, lag_p99_ns: at, ..Sample::default() })),
    );
}

#[test]
fn a_run_counts_where_its_step_says() {
    let mut log = Log::new(200, 1);
    log.category = Some(StepCategory::Storage);
    worker(&mut log, 0, true, &[(30 * MS, 130 * MS, 0)], &[]);
    let (_, account) = log.account();
    let split = &account.attempts[&LaunchId(0)].breakdown.split;
    assert_eq!(split.categories.get(Category::User), 0);
    assert_eq!(split.categories.get(Category::Storage), u128::from(98 * MS));
}

#[test]
fn a_jump_costs_only_the_window_in_which_it_was_noticed() {
    let mut log = Log::new(200, 1);
    let runs =
        [(30 * MS, 130 * MS, 0), (140 * MS, 240 * MS, 500 * MS), (250 * MS, 350 * MS, 500 * MS)];
    worker(&mut log, 0, false, &runs, &[]);
    let (_, account) = log.account();
    let own = &account.attempts[&LaunchId(0)];
    assert_eq!(own.faults.len(), 1);
    assert_eq!((own.faults[0].at, own.faults[0].kind), (c(240 * MS), FaultKind::Clock));
    assert_eq!(own.breakdown.split.unaccounted_ns, u128::from(100 * MS));
    assert_eq!(own.breakdown.split.categories.get(Category::User), u128::from(196 * MS));
}

#[test]
fn an_epoch_ends_the_windows_that_touch() {
    let mut log = Log::new(200, 1);
    // Without a pause in between, all three would be one window.
    let runs =
        [(30 * MS, 130 * MS, 0), (130 * MS, 230 * MS, 500 * MS), (230 * MS, 330 * MS, 500 * MS)];
    worker(&mut log, 0, false, &runs, &[]);
    let (_, account) = log.account();
    let own = &account.attempts[&LaunchId(0)].breakdown;
    assert_eq!(own.split.unaccounted_ns, u128::from(100 * MS));
    assert_eq!(own.split.categories.get(Category::User), u128::from(196 * MS));
}

#[test]
fn a_heartbeat_that_notices_a_jump_spoils_the_command_under_way() {
    let mut log = Log::new(200, 1);
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(11 * MS, false));
    log.push(32 * MS, pulse(30 * MS, 23 * MS));
    log.send(0, 0, "run", 40 * MS, 40 * MS);
    log.push(502 * MS, pulse(500 * MS, 793 * MS));
    log.push(602 * MS, pulse(600 * MS, 893 * MS));
    let (a, b) = (33 * MS, 991 * MS + 300 * MS);
    log.reply(0, 1_000 * MS, reply(0, [a, a, b, b], &[(PhaseKind::User, a, b)]));
    log.send(0, 1, "quit", 1_000 * MS, 1_000 * MS);
    log.end(0, 1_000 * MS, 1_000 * MS, AttemptOutcome::Done);
    let (_, account) = log.account();
    let own = &account.attempts[&LaunchId(0)];
    assert_eq!(own.faults.len(), 1, "the command itself is no second fault");
    assert_eq!(own.breakdown.split.unaccounted_ns, u128::from(960 * MS));
}

#[test]
fn a_suspended_coordinator_is_one_fault_and_ends_the_epochs_of_all() {
    let mut log = Log::new(200, 2);
    let runs = [(30 * MS, 130 * MS, 0), (1_100 * MS, 1_900 * MS, 0), (2_100 * MS, 2_200 * MS, 0)];
    let slept = 7_000_000_000;
    worker(&mut log, 0, true, &runs, &[0, slept, slept]);
    // The other machine went on: seen from C its clock is now 7 s ahead.
    let ahead = [(30 * MS, 130 * MS, 0), (1_100 * MS, 1_900 * MS, 7_000 * MS)];
    worker(
        &mut log,
        1,
        false,
        &[&ahead[..], &[(2_100 * MS, 2_200 * MS, 7_000 * MS)]].concat(),
        &[],
    );
    sample(&mut log, 1_000 * MS, 0);
    sample(&mut log, 2_000 * MS, slept);
    sample(&mut log, 3_000 * MS, slept + 900_000);
    log.records.sort_by_key(|record| record.at);
    let (trace, account) = log.account();
    assert_eq!(account.fault_count(), 1);
    assert_eq!(account.coordinator_faults[0].at, c(2_000 * MS));
    for own in account.attempts.values() {
        assert_eq!(own.breakdown.split.unaccounted_ns, u128::from(800 * MS));
    }
    let report = report(&trace, &account, RunLiveness::NotRunning);
    assert_eq!(report.faults.len(), 1);
    assert_eq!((report.faults[0].worker, report.faults[0].kind), (None, "suspended"));
    assert_eq!(report.rate_bound_ppm, 200, "the largest of 0 and 200");
}

#[test]
fn where_w_is_c_a_suspend_is_the_coordinators_to_tell() {
    let runs = [(30 * MS, 130 * MS, 0), (140 * MS, 240 * MS, 0)];
    let faults = |same: bool| {
        let mut log = Log::new(200, 1);
        worker(&mut log, 0, same, &runs, &[0, 3_000_000_000]);
        log.account().1.fault_count()
    };
    assert_eq!((faults(true), faults(false)), (0, 1));
}

#[test]
fn a_slewed_clock_is_allowed_more_than_the_run_says() {
    let bound = |given: u32, kind: ClockKind| {
        let mut log = Log::new(given, 1);
        log.request(0, 0);
        let mut hello = hello(11 * MS, false);
        hello.clock = kind;
        log.join(0, 10 * MS, 20 * MS, hello);
        let (_, account) = log.account();
        account.attempts[&LaunchId(0)].clock.rate().ppm()
    };
    assert_eq!(bound(200, ClockKind::MonotonicRaw), 200);
    assert_eq!(bound(50, ClockKind::MonotonicRaw), 50);
    assert_eq!(bound(0, ClockKind::MonotonicRaw), 200);
    assert_eq!(bound(200, ClockKind::Monotonic), 600);
    assert_eq!(bound(900, ClockKind::Monotonic), 900);
}

#[test]
fn of_two_lanes_the_higher_category_wins_and_of_equal_ones_the_first_lane() {
    let mut log = Log::new(200, 1);
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(12 * MS, true));
    // W = C − 8 ms. Lane 1: a `get` 31…91; lane 0: a `put` 41…61; lane 2: a `run` 51…56 (C).
    log.send_on(0, 0, "get", 30 * MS, 30 * MS, &[1], false);
    log.send_on(0, 1, "put", 40 * MS, 40 * MS, &[0], false);
    log.send_on(0, 2, "run", 50 * MS, 50 * MS, &[2], false);
    let phases = [(PhaseKind::User, 43 * MS, 48 * MS)];
    log.reply(0, 57 * MS, reply(2, [43 * MS, 43 * MS, 48 * MS, 48 * MS], &phases));
    log.reply(0, 62 * MS, reply(1, [33 * MS, 33 * MS, 53 * MS, 53 * MS], &[]));
    log.reply(0, 92 * MS, reply(0, [23 * MS, 23 * MS, 83 * MS, 83 * MS], &[]));
    log.send(0, 3, "quit", 92 * MS, 92 * MS);
    log.end(0, 92 * MS, 92 * MS, AttemptOutcome::Done);
    let (_, account) = log.account();
    let own = &account.attempts[&LaunchId(0)];
    let of = |category| own.breakdown.split.categories.get(category);
    assert_eq!(of(Category::User), u128::from(5 * MS));
    assert_eq!(of(Category::Storage), u128::from(55 * MS));
    assert_eq!(of(Category::Network), u128::from(2 * MS));
    assert_eq!(own.breakdown.put_ns, u128::from(15 * MS), "lane 0 comes before lane 1");
    assert_eq!(own.breakdown.get_ns, u128::from(40 * MS));
    // Each had 2 ms of its own network: 2 ms by largest remainder, two to `store`, one to `work`.
    let work = own.visits[&Some((StateId(0), 0))].categories.get(Category::Network);
    assert_eq!(work, 666_666);
}

#[test]
fn a_command_that_never_replies_is_lost_after_the_last_reply_of_its_window() {
    let mut log = Log::new(200, 1);
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(12 * MS, true));
    log.send_on(0, 0, "run", 30 * MS, 30 * MS, &[0], false);
    log.send_on(0, 1, "get", 40 * MS, 40 * MS, &[1], false);
    log.reply(0, 60 * MS, reply(1, [33 * MS, 33 * MS, 51 * MS, 51 * MS], &[]));
    log.end(0, 200 * MS, 60 * MS, AttemptOutcome::Lost);
    let (_, account) = log.account();
    let own = &account.attempts[&LaunchId(0)];
    let of = |category| own.breakdown.split.categories.get(category);
    assert_eq!(of(Category::Storage), u128::from(18 * MS));
    assert_eq!(of(Category::Network), u128::from(12 * MS));
    assert_eq!(of(Category::Lost), u128::from(140 * MS));
    // In transit for 30 ms of which nothing is known, and for 2 ms: 12 ms in that proportion.
    let work = &own.visits[&Some((StateId(0), 0))].categories;
    assert_eq!(work.get(Category::Network), 11_250_000);
    assert_eq!(work.get(Category::Lost), u128::from(140 * MS));
}

#[test]
fn stamps_of_two_epochs_are_never_compared_though_a_command_spans_both() {
    let mut log = Log::new(200, 1);
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(12 * MS, false));
    log.send_on(0, 0, "run", 30 * MS, 30 * MS, &[0], false);
    for (id, t0, shift) in [(1, 40 * MS, 0), (2, 150 * MS, 300 * MS)] {
        log.send_on(0, id, "get", t0, t0, &[1], false);
        let (a, b) = (t0 - 7 * MS + shift, t0 + 11 * MS + shift);
        log.reply(0, t0 + 20 * MS, reply(id, [a, a, b, b], &[]));
        if id == 1 {
            log.push(102 * MS, pulse(100 * MS, 393 * MS));
        }
    }
    log.end(0, 300 * MS, 170 * MS, AttemptOutcome::Lost);
    let (_, account) = log.account();
    let own = &account.attempts[&LaunchId(0)].breakdown.split;
    assert_eq!(account.fault_count(), 1);
    assert_eq!(own.unaccounted_ns, u128::from(140 * MS));
    assert_eq!(own.categories.get(Category::Lost), u128::from(130 * MS));
}

#[test]
fn heartbeats_narrow_the_network_of_a_long_command() {
    let mut log = Log::new(200, 1);
    // W runs 100 ppm fast: the busy time alone would not tell 0.2 s of network from none.
    let stamp = |at: u64| at + at / 10_000;
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(stamp(19 * MS), false));
    log.push(32 * MS, pulse(30 * MS, stamp(31 * MS)));
    let (t0, t3) = (40 * MS, 1_000_040 * MS);
    log.send(0, 0, "run", t0, t0);
    log.push(1_000_022 * MS, pulse(1_000_020 * MS, stamp(1_000_021 * MS)));
    let (a, b) = (stamp(t0 + 3 * MS), stamp(t3 - 3 * MS));
    log.reply(0, t3, reply(0, [a, a, b, b], &[(PhaseKind::User, a, b)]));
    log.send(0, 1, "quit", t3, t3);
    log.end(0, t3, t3, AttemptOutcome::Done);
    let (_, account) = log.account();
    let own = &account.attempts[&LaunchId(0)].breakdown;
    let (least, most) = own.network_bounds_ns;
    let (truth, said) = (u128::from(6 * MS), own.split.categories.get(Category::Network));
    assert!(least <= truth && truth <= most && most - least < u128::from(5 * MS));
    assert!(least <= said && said <= most, "{said} is not in {least}..{most}");
    assert_eq!(own.fitted_windows, 1);
    assert_eq!(account.fault_count(), 0);
}

#[test]
fn a_background_command_counts_only_where_nothing_else_is_outstanding() {
    let mut log = Log::new(200, 1);
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(12 * MS, true));
    log.send_on(0, 0, "run", 30 * MS, 30 * MS, &[0], true);
    log.send_on(0, 1, "get", 40 * MS, 40 * MS, &[0], false);
    let phases = [(PhaseKind::User, 23 * MS, 83 * MS)];
    log.reply(0, 62 * MS, reply(1, [33 * MS, 33 * MS, 53 * MS, 53 * MS], &[]));
    log.reply(0, 92 * MS, reply(0, [23 * MS, 23 * MS, 83 * MS, 83 * MS], &phases));
    log.send(0, 2, "quit", 92 * MS, 92 * MS);
    log.end(0, 92 * MS, 92 * MS, AttemptOutcome::Done);
    let (_, account) = log.account();
    let own = &account.attempts[&LaunchId(0)].breakdown;
    assert_eq!(own.split.categories.get(Category::Storage), u128::from(20 * MS));
    assert_eq!(own.split.categories.get(Category::User), u128::from(40 * MS));
}

/// A daemon from 30 to 100 ms of C (W = C − 7 ms), busy all the time; beside it, three echos of a
/// round trip of 10 ms each, in a lane, one after another.
fn beside_a_daemon(log: &mut Log) {
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(12 * MS, true));
    log.send_on(0, 0, "run", 30 * MS, 30 * MS, &[0], true);
    for (id, t0) in [(1, 40 * MS), (2, 50 * MS), (3, 60 * MS)] {
        log.send_on(0, id, "echo", t0, t0, &[], false);
        let w = t0 + 5 * MS - 7 * MS;
        log.reply(0, t0 + 10 * MS, reply(id, [w; 4], &[]));
    }
}

fn end_of_daemon(log: &mut Log) {
    let phases = [(PhaseKind::User, 23 * MS, 93 * MS)];
    log.reply(0, 100 * MS, reply(0, [23 * MS, 23 * MS, 93 * MS, 93 * MS], &phases));
}

fn split_of(log: &mut Log) -> (u128, u128) {
    log.send(0, 9, "quit", 100 * MS, 100 * MS);
    log.end(0, 100 * MS, 100 * MS, AttemptOutcome::Done);
    let (_, account) = log.account();
    let categories = &account.attempts[&LaunchId(0)].breakdown.split.categories;
    (categories.get(Category::User), categories.get(Category::Network))
}

#[test]
fn a_daemon_does_not_hide_the_network_of_the_commands_beside_it() {
    let mut log = Log::new(200, 1);
    beside_a_daemon(&mut log);
    end_of_daemon(&mut log);
    assert_eq!(split_of(&mut log), (u128::from(40 * MS), u128::from(30 * MS)));
}

#[test]
fn a_background_command_counts_while_a_lane_awaits_it() {
    let mut log = Log::new(200, 1);
    log.request(0, 0);
    log.join(0, 10 * MS, 20 * MS, hello(12 * MS, true));
    log.send_on(0, 0, "run", 30 * MS, 30 * MS, &[0, 0], true);
    log.send_on(0, 1, "echo", 40 * MS, 40 * MS, &[1], false);
    let w = 50 * MS - 7 * MS;
    log.reply(0, 100 * MS, reply(1, [w; 4], &[]));
    end_of_daemon(&mut log);
    let awaited = Event::Awaited { launch: LaunchId(0), lane: vec![0], background: 0 };
    log.push(100 * MS, awaited);
    let (user, network) = split_of(&mut log);
    assert_eq!((user, network), (u128::from(70 * MS), 0), "lane 0 did nothing else");
}

#[test]
fn progress_counts_every_worker_once_and_names_the_slowest() {
    let mut log = Log::new(200, 4);
    let begun = |log: &Log| {
        let trace = log.fold();
        (trace.waiting(), trace.total_workers(), trace.count(WorkerStatus::Launching))
    };
    assert_eq!(begun(&log), (4, 4, 0));
    for launch in 0..3 {
        log.request(0, launch);
    }
    assert_eq!(begun(&log), (1, 4, 3));
    for launch in 0..2 {
        log.join(launch, 10 * MS, 20 * MS, hello(12 * MS, true));
        log.push(
            20 * MS,
            Event::Transition {
                launch: LaunchId(launch),
                lane: vec![],
                from: None,
                to: Some(StateId(0)),
                cause: Cause::Start,
            },
        );
    }
    log.send(1, 0, "run", 30 * MS, 30 * MS);
    log.send(0, 0, "get", 40 * MS, 40 * MS);
    let trace = log.fold();
    assert_eq!(trace.count(WorkerStatus::Running(Some(StateId(0)))), 2);
    let slowest = trace.slowest(c(100 * MS), 5);
    let rows: Vec<_> =
        slowest.iter().map(|row| (row.worker.0, &*row.command, row.elapsed_ns)).collect();
    assert_eq!(rows, [(1, "run", 70 * MS), (0, "get", 60 * MS)]);
    assert_eq!(slowest[0].state, "work");
    assert_eq!(trace.slowest(c(100 * MS), 1).len(), 1);

    log.end(1, 50 * MS, 45 * MS, AttemptOutcome::Lost);
    log.reply(0, 60 * MS, reply(0, [33 * MS; 4], &[]));
    let trace = log.fold();
    assert_eq!(trace.count(WorkerStatus::Lost), 1);
    assert!(trace.slowest(c(100 * MS), 5).is_empty());
}

#[test]
fn progress_is_told_the_same_when_what_is_past_is_forgotten() {
    let mut log = Log::new(200, 2);
    for launch in 0..2 {
        log.request(0, launch);
        log.join(launch, 10 * MS, 20 * MS, hello(12 * MS, true));
    }
    for id in 0..50 {
        let at = (30 + id) * MS;
        log.send(0, id, "run", at, at);
        log.reply(0, at, reply(id, [at; 4], &[]));
    }
    log.send(0, 50, "get", 90 * MS, 90 * MS);
    log.send(1, 0, "run", 95 * MS, 95 * MS);
    let whole = log.fold();
    let mut short = log.fold();
    short.forget_past();
    let commands = |trace: &musec_analysis::Trace| -> usize {
        trace.attempts().values().map(|attempt| attempt.commands.len()).sum()
    };
    assert_eq!((commands(&whole), commands(&short)), (52, 2));
    let told = |trace: &musec_analysis::Trace| {
        let slowest = trace.slowest(c(100 * MS), 5);
        let rows = slowest.iter().map(|row| (row.worker.0, row.command.clone(), row.elapsed_ns));
        (rows.collect::<Vec<_>>(), trace.counts().clone(), trace.total_workers(), trace.waiting())
    };
    assert_eq!(told(&whole), told(&short));
    assert_eq!(told(&short).0.len(), 2);
}

#[test]
fn a_worker_counts_by_its_last_attempt_that_did_not_stand_aside() {
    let mut log = Log::new(200, 1);
    for (launch, outcome) in
        [(0, AttemptOutcome::Failed), (1, AttemptOutcome::Done), (2, AttemptOutcome::Superseded)]
    {
        log.push(
            launch,
            Event::Requested {
                launch: LaunchId(launch),
                worker: WorkerId(0),
                attempt: AttemptNo(u32::try_from(launch).expect("small")),
                wave: WaveId(0),
            },
        );
        log.end(launch, 10 * MS, 0, outcome);
    }
    log.push(10 * MS, Event::RunEnded { status: RunStatus::Done });
    let (trace, account) = log.account();
    let report = report(&trace, &account, RunLiveness::NotRunning);
    let workers = report.workers;
    assert_eq!((workers.total, workers.done, workers.failed), (1, 1, 0));
    assert_eq!(report.attempts, 3);
    // The lives of attempts without result are lost; the other one's is launch.
    let lost = u128::from(20 * MS) - 2;
    assert_eq!(report.breakdown.rollup.get(musec_analysis::breakdown::Group::Lost), lost);
    assert_eq!(report.breakdown.categories.get(Category::Lost), 0);
}

#[test]
fn a_state_without_commands_was_visited_for_no_time() {
    let mut log = Log::new(200, 1);
    worker(&mut log, 0, true, &[(30 * MS, 130 * MS, 0)], &[]);
    for (from, to) in [(None, Some(StateId(0))), (Some(StateId(0)), Some(StateId(1)))] {
        log.push(
            131 * MS,
            Event::Transition { launch: LaunchId(0), lane: vec![], from, to, cause: Cause::Done },
        );
    }
    let (trace, account) = log.account();
    let report = report(&trace, &account, RunLiveness::NotRunning);
    let rows = report.states.iter().map(|row| (&*row.state, row.visits, row.total_ns));
    let expected = [("(none)", 1, u128::from(31 * MS)), ("work", 1, 100_000_000), ("store", 1, 0)];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn a_run_without_an_end_is_running_or_interrupted_as_its_lock_says() {
    let mut log = Log::new(200, 1);
    log.request(5 * MS, 0);
    let status = |log: &Log, liveness| run_row(&log.fold(), liveness).status;
    assert_eq!(status(&log, RunLiveness::Running), Status::Running);
    assert_eq!(status(&log, RunLiveness::NotRunning), Status::Interrupted);
    log.push(6 * MS, Event::Cancelled { cause: "SIGINT".to_owned() });
    log.push(9 * MS, Event::RunEnded { status: RunStatus::Failed });
    assert_eq!(status(&log, RunLiveness::NotRunning), Status::Interrupted);
    assert_eq!(run_row(&log.fold(), RunLiveness::NotRunning).makespan_ns, 9 * MS);
}

#[test]
fn a_wave_says_who_was_last_and_which_item_was_longest() {
    let mut log = Log::new(200, 3);
    for (launch, end) in [(0, 100), (1, 110), (2, 400)] {
        log.request(0, launch);
        log.join(launch, MS, 2 * MS, hello(MS, true));
        for (item, at) in [(launch, 10), (launch + 3, 50)] {
            log.push(
                at * MS,
                Event::ItemGiven {
                    launch: LaunchId(launch),
                    item,
                    value_json: format!("\"tile {item}\""),
                },
            );
        }
        log.send(launch, 0, "quit", (end - 1) * MS, (end - 1) * MS);
        log.end(launch, end * MS, end * MS, AttemptOutcome::Done);
    }
    sample(&mut log, 400 * MS, 0);
    log.push(400 * MS, Event::WaveEnded { wave: WaveId(0) });
    let trace = log.fold();
    let report = report(&trace, &Account::of(&trace), RunLiveness::NotRunning);
    let wave = &report.waves[0];
    assert_eq!((wave.wave.as_str(), wave.span_ns), ("only", Some(400 * MS)));
    let even = wave.evenness.as_ref().expect("attempts ended");
    assert_eq!((even.last_worker, even.last_end_ns), (2, 400 * MS));
    assert_eq!((even.last_by_ns, even.last_after_median_ns), (Some(290 * MS), 290 * MS));
    assert_eq!(even.idle_at_end_ns, u128::from(590 * MS));
    let longest = even.longest_item.as_ref().expect("items");
    assert_eq!((longest.item, longest.worker, longest.duration_ns), (5, 2, 349 * MS));
    assert_eq!(even.items.expect("items").p50_ns, u128::from(40 * MS));
    assert_eq!(report.slowest_workers[0].worker, 2);
    assert_eq!(report.coordinator.expect("a sample").loop_lag_p99_ns, 400 * MS);
}

#[test]
fn how_workers_came_is_told_by_growing_shares_and_strangers_to_hello_are_left_out() {
    let mut log = Log::new(200, 3);
    for launch in 0..2 {
        log.request(5 * MS + launch * MS, launch);
        let hello_at = 20 * MS + launch * 10 * MS;
        log.join(launch, 10 * MS, hello_at, hello(4 * MS, true));
        log.send(launch, 0, "run", hello_at, hello_at + MS);
        let stamps = [5 * MS, 5 * MS, 6 * MS, 6 * MS];
        log.reply(launch, hello_at + 4 * MS, reply(0, stamps, &[]));
        log.end(launch, 50 * MS + launch * MS, 50 * MS, AttemptOutcome::Done);
    }
    log.request(9 * MS, 2);
    let (trace, _) = log.account();
    let launches = musec_analysis::Launches::of(&trace).expect("workers came");
    assert_eq!(launches.connected, 2);
    assert_eq!(launches.request_to_hello.p50_ns, u128::from(15 * MS));
    assert_eq!(launches.request_to_hello.max_ns, u128::from(24 * MS));
    assert_eq!(launches.start_to_hello.p50_ns, u128::from(4 * MS));
    let half = launches.curve.iter().find(|share| share.percent == 50).expect("half");
    assert_eq!((half.requested_ns, half.hello_ns, half.ended_ns), (0, 15 * MS, 45 * MS));
    let all = launches.curve.last().expect("all");
    assert_eq!((all.requested_ns, all.hello_ns, all.ended_ns), (MS, 25 * MS, 46 * MS));
    let trips = musec_analysis::round_trips([&trace], "run", false).expect("commands");
    assert_eq!((trips.count, trips.p50_ns), (2, u128::from(3 * MS)));
    assert!(musec_analysis::round_trips([&trace], "put", false).is_none());
    assert!(musec_analysis::round_trips([&trace], "run", true).is_none(), "all were waited for");
}
