//! What the coordinator's stamps alone would say of commands, beside the truth.

mod common;

use common::{Log, MS, hello, reply};
use musec_analysis::{RunLiveness, report, show};
use musec_trace::{AttemptOutcome, WorkerId};

/// Two commands of one lane are sent at once, 1 ms before they arrive; each takes 10 ms, and its
/// reply 1 ms. A command of another lane goes on beside them.
#[test]
fn an_estimate_begins_at_the_reply_before_it_in_its_lane_and_its_error_is_told() {
    let mut log = Log::new(0, 1);
    log.request(0, 0);
    log.accept(0, 0);
    log.join(0, MS, 2 * MS, hello(0, true));
    let lane = |log: &mut Log, id, lane: &[u32]| {
        log.send_on(0, id, "run", 10 * MS, 10 * MS, lane, false);
    };
    lane(&mut log, 0, &[0]);
    lane(&mut log, 1, &[0]);
    lane(&mut log, 2, &[1]);
    log.reply(0, 22 * MS, reply(0, [9, 9, 19, 19].map(|at| at * MS), &[]));
    log.reply(0, 30 * MS, reply(2, [9, 9, 27, 27].map(|at| at * MS), &[]));
    log.reply(0, 32 * MS, reply(1, [9, 19, 29, 29].map(|at| at * MS), &[]));
    log.end(0, 40 * MS, 32 * MS, AttemptOutcome::Done);
    let (trace, account) = log.account();
    let shown = show(&trace, &account, WorkerId(0)).expect("it is there");
    let commands = &shown.attempts[0].commands;
    let estimates: Vec<_> = commands.iter().map(|of| of.estimated_service_ns).collect();
    assert_eq!(estimates, [Some(12 * MS), Some(10 * MS), Some(20 * MS)]);
    let errors: Vec<_> = commands.iter().filter_map(|of| of.estimate_error).collect();
    let wanted = [0.2, 0.0, 1.0 / 9.0];
    assert!(errors.iter().zip(wanted).all(|(is, should)| (is - should).abs() < 1e-9), "{errors:?}");
    let told = report(&trace, &account, RunLiveness::NotRunning).estimate_error["user"];
    assert!((told.p50 - 1.0 / 9.0).abs() < 1e-9 && (told.p99 - 0.2).abs() < 1e-9, "{told:?}");
    // As if it had not been pipelined: its own time is what it is, the rest is named.
    let second = &commands[1];
    assert_eq!(second.service_ns, Some(10 * MS));
    assert_eq!(second.queue_ns, Some(10 * MS));
    assert_eq!((second.overhead_ns, second.network_ns), (Some(0), Some(i128::from(2 * MS))));
}
