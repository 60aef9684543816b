//! Paths of attempts by hand: what is recorded in another order is the same; what is done otherwise
//! is named.

mod common;

use common::{Log, MS, c, reply};
use musec_analysis::Trace;
use musec_analysis::paths::{Canonical, paths, word};
use musec_trace::{
    AttemptOutcome, Cause, CommandId, Event, LaunchId, Outcome, Queued, StateId, WaveId,
};
use proptest::prelude::*;

/// Events of one attempt, by what they say.
#[derive(Clone, Debug)]
enum Say {
    Move(&'static [u32], Option<u32>, Option<u32>, Cause),
    Fork(&'static [u32], bool),
    Merge(Option<u32>),
    Begin(u32),
    Command(&'static [u32], u64, u32),
    Info,
}

/// A trace whose n-th worker does the n-th list. Names of lanes: `a`, `b`, `daemon`.
fn trace(workers: &[Vec<Say>]) -> Trace {
    let mut log = Log::new(0, u32::try_from(workers.len()).expect("few"));
    for (last, name) in [(0, "a"), (1, "b"), (2, "daemon")] {
        let (wave, path, name) = (WaveId(0), vec![last], name.to_owned());
        log.push(0, Event::LaneNamed { wave, path, name });
    }
    for (launch, says) in (0..).zip(workers) {
        log.request(MS, launch);
        for (at, say) in (2..).zip(says) {
            write(&mut log, at * MS, LaunchId(launch), say);
        }
        log.end(launch, 900 * MS, 900 * MS, AttemptOutcome::Done);
    }
    log.fold()
}

fn write(log: &mut Log, at: u64, launch: LaunchId, say: &Say) {
    let event = match say.clone() {
        Say::Move(lane, from, to, cause) => {
            let (from, to) = (from.map(StateId), to.map(StateId));
            Event::Transition { launch, lane: lane.to_vec(), from, to, cause }
        }
        Say::Fork(lanes, first) => {
            Event::Forked { launch, lane: Vec::new(), lanes: lanes.to_vec(), first }
        }
        Say::Merge(winner) => Event::Merged { launch, lane: Vec::new(), winner },
        Say::Begin(background) => Event::Begun { launch, lane: Vec::new(), background },
        Say::Command(lane, id, step) => Event::Queued(Box::new(Queued {
            launch,
            id: CommandId(id),
            lane: lane.to_vec(),
            state: Some(StateId(0)),
            visit: 0,
            name: "run".into(),
            arguments: Vec::new(),
            pipelined: false,
            background: false,
            category: None,
            step,
        })),
        Say::Info => Event::Info {
            launch,
            t3: c(at),
            received: common::w(at),
            key: "port".to_owned(),
            value: b"1".to_vec(),
        },
    };
    log.push(at, event);
    if let Say::Command(_, id, _) = say {
        log.push(at, Event::Sent { launch, id: CommandId(*id), t0: c(at) });
        let mut reply = reply(*id, [at; 4], &[]);
        reply.outcome = if *id >= 100 { Outcome::Exited(1) } else { Outcome::Ok };
        log.reply(launch.0, at, reply);
    }
}

const START: Say = Say::Move(&[], None, Some(0), Cause::Start);
const END: Say = Say::Move(&[], Some(0), None, Cause::Done);

fn lane(path: &'static [u32], commands: &[(u64, u32)], cause: Cause) -> Vec<Say> {
    let mut says = vec![Say::Move(path, None, Some(0), Cause::Start)];
    says.extend(commands.iter().map(|(id, step)| Say::Command(path, *id, *step)));
    says.push(Say::Move(path, Some(0), None, cause));
    says
}

/// Two sequences in one, by which of them goes on next; what is left at the end follows.
fn shuffled(a: &[Say], b: &[Say], turns: &[bool]) -> Vec<Say> {
    let (mut a, mut b) = (a.iter().cloned(), b.iter().cloned());
    let mut all: Vec<Say> =
        turns.iter().filter_map(|turn| if *turn { a.next() } else { b.next() }).collect();
    all.extend(a.chain(b));
    all
}

fn forked(lanes: Vec<Say>, first: bool, winner: Option<u32>) -> Vec<Say> {
    let mut all = vec![START, Say::Fork(&[0, 1], first)];
    all.extend(lanes);
    all.extend([Say::Merge(winner), END]);
    all
}

fn shown(trace: &Trace) -> Vec<(String, Vec<u32>)> {
    paths(trace).paths.into_iter().map(|group| (group.path, group.workers)).collect()
}

proptest! {
    #[test]
    fn lanes_that_are_recorded_in_any_order_are_one_execution_and_one_path(
        turns in prop::collection::vec(any::<bool>(), 0..14),
        length in 1..5_u64,
    ) {
        let a: Vec<(u64, u32)> = (0..length).map(|id| (id, 3)).collect();
        let (a, b) = (lane(&[0], &a, Cause::Done), lane(&[1], &[(10, 5), (11, 6)], Cause::Done));
        let one = forked(shuffled(&a, &b, &[]), false, None);
        let other = forked(shuffled(&a, &b, &turns), false, None);
        let longer = lane(&[1], &[(10, 5), (11, 6), (12, 7)], Cause::Done);
        let odd = forked(shuffled(&a, &longer, &turns), false, None);
        let trace = trace(&[one, other, odd]);
        let forms: Vec<Canonical> =
            trace.attempts().values().map(|attempt| Canonical::of(word(attempt))).collect();
        prop_assert!(forms[0].is_same_execution(&forms[1]));
        prop_assert!(!forms[0].is_same_execution(&forms[2]));
        let workers: Vec<_> = shown(&trace).into_iter().map(|(_, workers)| workers).collect();
        prop_assert_eq!(workers, [vec![0, 1], vec![2]]);
    }
}

#[test]
fn a_cancelled_lane_is_the_same_however_far_it_came_and_its_end_depends_on_the_winner() {
    let winner = lane(&[1], &[(10, 5)], Cause::Done);
    let far = lane(&[0], &[(0, 3), (1, 4)], Cause::Cancelled);
    let near = lane(&[0], &[(0, 3)], Cause::Cancelled);
    let all = [far, near].map(|lost| forked([winner.clone(), lost].concat(), true, Some(1)));
    let trace = trace(&all);
    assert_eq!(shown(&trace), [("work[a…cancelled | b: run]".to_owned(), vec![0, 1])]);
    for attempt in trace.attempts().values() {
        let form = Canonical::of(word(attempt));
        let step = |last: u32| {
            let track = musec_analysis::paths::Track::Lane(vec![last]);
            form.tracks().get(&track).and_then(|letters| letters.last()).map(|(step, _)| *step)
        };
        assert!(step(0) > step(1), "what was cancelled ended after what cancelled it");
    }
}

#[test]
fn loops_fold_across_workers_and_steps_that_look_alike_are_told_apart() {
    let loops = |times: u64| {
        let mut says = vec![START];
        says.extend((0..times).map(|id| Say::Command(&[], id, 3)));
        says.extend([Say::Command(&[], 50, 4), END]);
        says
    };
    let all = trace(&[loops(1), loops(5), loops(2)]);
    assert_eq!(shown(&all), [("work((run)×n run)".to_owned(), vec![0, 1, 2])]);

    let branch = |step: u32| vec![START, Say::Command(&[], 0, step), END];
    let all = trace(&[branch(3), branch(3), branch(4)]);
    let wanted = [("work(run#3)".to_owned(), vec![0, 1]), ("work(run#4)".to_owned(), vec![2])];
    assert_eq!(shown(&all), wanted);
    let differs = paths(&all).paths[1].differs.clone().expect("it differs");
    assert_eq!(
        (differs.has, differs.instead_of),
        (vec!["run#4 in work".to_owned()], vec!["run#3 in work".to_owned()],)
    );
}

#[test]
fn failures_daemons_infos_and_states_that_were_never_left_are_in_the_path() {
    let mut says = vec![START, Say::Begin(2)];
    says.push(Say::Move(&[2], None, Some(1), Cause::Start));
    says.extend([Say::Info, Say::Command(&[], 100, 3)]);
    says.push(Say::Move(&[], Some(0), Some(1), Cause::Failed));
    says.push(Say::Move(&[2], Some(1), None, Cause::Cancelled));
    let all = trace(&[says]);
    let path = "work(&[daemon…cancelled] run failed) ✗ → store… → info port";
    assert_eq!(shown(&all), [(path.to_owned(), vec![0])]);
}
