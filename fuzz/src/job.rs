//! Job files: any text is a program, or a list of what is wrong with it.
//!
//! Errors point into the text, at boundaries of characters. A program can be listed, looked at and
//! planned, and its machines walk it, whatever workers reply.

use std::collections::VecDeque;

use musec_core::job::{Options, parse};
use musec_core::{Advance, Effect, Facts, Look, Machine, Program, Progress, Seen, WaveId};
use musec_protocol::{AttemptNo, CommandId, Outcome, Reply, Tail, WTime};
use musec_trace::{CTime, WaitReason};

/// Commands after which a machine is left: programs may be endless.
const COMMANDS_MAX: usize = 40;

pub(crate) fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        check_text(text);
    }
}

pub(crate) fn check_text(text: &str) {
    match parse(text, &Options::default()) {
        Ok(program) => check_program(&program),
        Err(errors) => {
            assert!(!errors.0.is_empty(), "refused without an error");
            for error in &errors.0 {
                assert!(text.get(error.span.clone()).is_some(), "outside of the text: {error:?}");
                assert!(error.line >= 1 && error.column >= 1, "{error:?}");
            }
        }
    }
}

fn check_program(program: &Program) {
    let outline = program.outline();
    assert_eq!(outline.waves.len(), program.waves.len());
    assert!(serde_json::to_string(&outline).is_ok());
    for (id, wave) in program.waves() {
        let seen = match program.look(id) {
            Ok(Some(Look::Keys(glob))) => {
                Some(Seen::Keys(glob.select(["a.png", "in/b.txt", "c/d"].map(str::to_owned))))
            }
            Ok(Some(Look::Text { .. })) => {
                Some(Seen::Text(b"a,b,n\n1,x,2\n3,\"y,z\",4\n".to_vec()))
            }
            Ok(None) | Err(_) => None,
        };
        let Ok(plan) = program.plan(id, 2, seen.as_ref()) else { continue };
        assert!(plan.workers <= wave.max_workers, "{} workers", plan.workers);
        assert!(plan.alive_at_once(2) >= 1);
        let item = plan.items.as_ref().and_then(|items| items.item(0));
        let facts =
            |item| Facts { index: 0, workers: plan.workers.max(1), attempt: AttemptNo(0), item };
        // A queue's worker begins without an item, to do what `setup` says.
        let first = item.clone().filter(|_| !plan.queue);
        let mut machine = Machine::new(program, id, facts(first));
        walk(program, &mut machine, id);
        if let Some(item) = item.filter(|_| plan.queue) {
            machine.take_item(program, &item);
            walk(program, &mut machine, id);
        }
    }
}

/// Walks a program; each command is answered, the oldest first, until the machine ends or has had
/// enough of them. One that waits has something to wait for.
fn walk(program: &Program, machine: &mut Machine, wave: WaveId) {
    let (mut effects, mut sent) = (Vec::new(), VecDeque::new());
    let mut told = TOLD.into_iter();
    let mut progress = machine.advance(program, CTime::ZERO, Advance::Start, &mut effects);
    for n in 0..COMMANDS_MAX {
        for effect in effects.drain(..) {
            if let Effect::Send(command) = effect {
                assert!(program.state(command.state).is_some_and(|state| state.wave == wave));
                sent.push_back(command.token);
            }
        }
        if progress != Progress::Waits {
            break;
        }
        let mut now = CTime::from_ns(1_000_000 * n as u64);
        progress = match (sent.pop_front(), machine.deadline()) {
            (Some(token), _) => {
                machine.advance(program, now, Advance::Replied(token, &reply(n)), &mut effects)
            }
            (None, Some(deadline)) => {
                now = now.max(deadline);
                machine.advance(program, now, Advance::Time, &mut effects)
            }
            (None, None) => match told.next() {
                Some((key, value)) if waits_for_info(machine) => {
                    machine.advance(program, now, Advance::Told(key, value), &mut effects)
                }
                // Nobody tells what it waits for.
                None if waits_for_info(machine) => break,
                Some(_) | None => panic!("a machine that waits for nothing"),
            },
        };
    }
    machine.stop(&mut effects);
    assert_eq!(machine.state(), None, "a machine that has ended is in no state");
}

/// What user code tells machines that wait for it.
const TOLD: [(&str, &[u8]); 3] = [("port", b"4000"), ("other", b"\xff"), ("port", b"")];

fn waits_for_info(machine: &Machine) -> bool {
    machine.wait_reason() == Some(WaitReason::Info)
}

/// One of the ways in which commands end, in turn.
fn reply(n: usize) -> Reply {
    let outcome = match n % 7 {
        3 => Outcome::Exited(1),
        6 => Outcome::TimedOut { limit_ms: 1 },
        _ => Outcome::Ok,
    };
    let text = b"7 lines of {{ output }}\n\xff".to_vec();
    Reply {
        id: CommandId(0),
        received: WTime::from_ns(0),
        started: WTime::from_ns(1),
        finished: WTime::from_ns(2),
        encoded: WTime::from_ns(3),
        clock_gap_ns: 0,
        remaining_started_ms: None,
        remaining_finished_ms: None,
        outcome,
        phases: Vec::new(),
        usage: None,
        stdout: Tail { total_bytes: text.len() as u64, text },
        stderr: Tail::default(),
        bytes: 0,
        objects: Vec::new(),
    }
}
