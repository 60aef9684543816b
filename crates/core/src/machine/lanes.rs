//! All lanes of a machine: forks, joins, and what ends what.
//!
//! In: what became of one lane. Out: what comes of it for the others, until all wait or the program
//! ends. Invariants: a lane that forked goes on when all its lanes have ended, those that were
//! cancelled included, so that nothing of a step is under way when the next one begins; lanes walk
//! in the order of the program.

use musec_trace::{CTime, Cause, WaitReason};

use crate::limits::SILENT_INFO_MAX;
use crate::machine::lane::{Fault, Lane, Phase, Rest};
use crate::machine::{Effect, Progress, Shared, Turn, lane_of, node_of};
use crate::program::node::{LaneNo, LanesNode, NodeId, NodeKind};
use crate::template::Value;

/// The lanes of one machine.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// The program itself.
    pub main: Lane,
    /// All others that have begun so far, in the order of their numbers. They keep their counts
    /// of visits.
    others: Vec<Lane>,
}

/// A lane that waits for the lanes that it began.
#[derive(Clone, Debug)]
pub(super) struct Join {
    /// How many have not ended.
    left: u32,
    /// Whether the first that ends well ends the others.
    first: bool,
    next: NodeId,
    verdict: Verdict,
}

/// What is decided of a join.
#[derive(Clone, Debug)]
enum Verdict {
    /// Nothing.
    Open,
    /// Lanes of a race have failed, the last one like this.
    Fails(Fault),
    /// A lane has won, or failed for all: the others are cancelled.
    Closed(Result<LaneNo, Fault>),
}

/// How a lane ended.
enum End {
    Done,
    Failed(Fault),
    Cancelled,
}

/// What is to be done with a lane.
enum Job {
    Start(LaneNo),
    /// It rests like this after an input.
    Rests(LaneNo, Rest),
}

impl Join {
    /// Whether its lanes are still at it.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.verdict, Verdict::Open | Verdict::Fails(_))
    }
}

impl Lanes {
    pub(super) const fn new(main: Lane) -> Self {
        Self { main, others: Vec::new() }
    }

    pub(super) fn lane(&mut self, no: LaneNo) -> &mut Lane {
        if no == LaneNo::MAIN {
            return &mut self.main;
        }
        let at = self.others.binary_search_by_key(&no, |lane| lane.no);
        at.ok().and_then(|at| self.others.get_mut(at)).expect("a lane that has begun")
    }

    /// The earliest instant at which a lane wants to be asked, C.
    pub(super) fn deadline(&self, shared: &Shared) -> Option<CTime> {
        let all = std::iter::once(&self.main).chain(&self.others);
        all.filter_map(Lane::deadline).chain(self.silence_ends(shared.quiet_since())).min()
    }

    /// Ends all of them from outside, those within others first.
    pub(super) fn end(&mut self, cause: Cause, out: &mut Vec<Effect>) {
        let all = self.others.iter_mut().rev().chain([&mut self.main]);
        for lane in all {
            lane.end_backgrounds(cause, out);
            lane.end(cause, out);
        }
    }

    /// Lanes whose deadline has come fail, those around others first.
    pub(super) fn time(&mut self, turn: &mut Turn<'_>) -> Progress {
        let all = std::iter::once(&self.main).chain(&self.others);
        let is_due = |lane: &&Lane| lane.deadline().is_some_and(|due| due <= turn.now);
        let due: Vec<LaneNo> = all.filter(is_due).map(|lane| lane.no).collect();
        let mut progress = Progress::Waits;
        for no in due {
            // One around it may have ended it meanwhile.
            let lane = self.lane(no);
            if let Some(fault) = lane.fault_of_limit(turn) {
                let rest = match lane.join {
                    Some(_) => self.close(turn, no, Err(fault)),
                    None => lane.fail_by_limit(turn, fault),
                };
                progress = self.settle(turn, no, rest);
            }
        }
        match progress {
            Progress::Waits => self.fail_in_silence(turn),
            Progress::Done | Progress::Failed(_) => progress,
        }
    }

    /// User code told a value: lanes that wait for its key go on, in the order of the program. If
    /// none does, the next that waits for it does not need to.
    pub(super) fn told(&mut self, turn: &mut Turn<'_>, key: &str, value: &[u8]) -> Progress {
        let Ok(info) = turn.wave.infos.binary_search_by(|known| known.as_str().cmp(key)) else {
            return Progress::Waits;
        };
        let told = turn.shared.infos.get_mut(info).expect("infos are counted");
        told.value = Value::from(String::from_utf8_lossy(value));
        told.is_news = true;
        let info = u32::try_from(info).unwrap_or(u32::MAX);
        let all = std::iter::once(&self.main).chain(&self.others);
        let waiting: Vec<LaneNo> =
            all.filter(|lane| lane.phase == Phase::Informed(info)).map(|lane| lane.no).collect();
        let mut progress = Progress::Waits;
        for no in waiting {
            let lane = self.lane(no);
            // One before it may have ended it, or sent it on to wait anew.
            if lane.phase == Phase::Informed(info) {
                let rest = lane.go_on_from_wait(turn);
                progress = self.settle(turn, no, rest);
            }
        }
        progress
    }

    /// All workers are at a barrier: the lane that waits there goes on.
    pub(super) fn released(&mut self, turn: &mut Turn<'_>, barrier: u32) -> Progress {
        let mut all = std::iter::once(&self.main).chain(&self.others);
        let waits = |lane: &&Lane| lane.phase == Phase::AtBarrier(barrier);
        let Some(no) = all.find(waits).map(|lane| lane.no) else {
            return Progress::Waits;
        };
        let rest = self.lane(no).go_on_from_wait(turn);
        self.settle(turn, no, rest)
    }

    /// What the machine waits for, when no command of it is out.
    pub(super) fn wait_reason(&self) -> Option<WaitReason> {
        let mut all = std::iter::once(&self.main).chain(&self.others);
        all.find_map(|lane| match lane.phase {
            Phase::Informed(_) => Some(WaitReason::Info),
            Phase::AtBarrier(_) => Some(WaitReason::Barrier),
            Phase::Ready
            | Phase::Waiting
            | Phase::Listing
            | Phase::Draining
            | Phase::Joining
            | Phase::Awaiting(_)
            | Phase::Closing
            | Phase::Stopping(_)
            | Phase::Ended => None,
        })
    }

    /// Until when (C) infos are waited for when no command is out. (A command tells what it has to
    /// tell before its reply; what it left behind may tell more.)
    fn silence_ends(&self, quiet_since: Option<CTime>) -> Option<CTime> {
        let since = quiet_since.filter(|_| self.wait_reason() == Some(WaitReason::Info))?;
        Some(since.after(SILENT_INFO_MAX))
    }

    /// Lanes that have waited too long for infos, with no command out that could tell one, fail.
    fn fail_in_silence(&mut self, turn: &mut Turn<'_>) -> Progress {
        let mut progress = Progress::Waits;
        let is_over = |due: CTime| due <= turn.now;
        let is_silent = self.silence_ends(turn.shared.quiet_since()).is_some_and(is_over);
        while is_silent && progress == Progress::Waits {
            let mut all = std::iter::once(&self.main).chain(&self.others);
            let waits = |lane: &&Lane| matches!(lane.phase, Phase::Informed(_));
            let Some(no) = all.find(waits).map(|lane| lane.no) else { break };
            let lane = self.lane(no);
            let fault = lane.fault_of_silence(turn);
            let rest = lane.go_on(turn, Err(fault));
            progress = self.settle(turn, no, rest);
        }
        progress
    }

    /// Goes on with what became of a lane.
    pub(super) fn settle(&mut self, turn: &mut Turn<'_>, no: LaneNo, rest: Rest) -> Progress {
        let mut jobs = vec![Job::Rests(no, rest)];
        while let Some(job) = jobs.pop() {
            let (no, rest) = match job {
                // One that was to begin before it may have won a race.
                Job::Start(no) if !self.lane(no).is_ready() => continue,
                Job::Start(no) => (no, self.lane(no).start(turn)),
                Job::Rests(no, rest) => (no, rest),
            };
            let end = match rest {
                Rest::Waits => continue,
                Rest::Forks => {
                    jobs.extend(self.fork(turn, no).into_iter().rev().map(Job::Start));
                    continue;
                }
                Rest::Done => End::Done,
                Rest::Failed(fault) => End::Failed(fault),
                Rest::Cancelled => End::Cancelled,
            };
            if no == LaneNo::MAIN {
                return match end {
                    End::Done => Progress::Done,
                    End::Failed(fault) => Progress::Failed(fault.into_failure(turn.wave)),
                    End::Cancelled => panic!("nothing within cancels a whole program"),
                };
            }
            let parent = lane_of(turn.wave, no).parent;
            let rest = self.ended(turn, parent, no, end);
            jobs.push(Job::Rests(parent, rest));
        }
        Progress::Waits
    }

    /// Makes the lanes of a fork ready: their numbers, in the order of the program.
    fn fork(&mut self, turn: &mut Turn<'_>, parent: LaneNo) -> Vec<LaneNo> {
        let lane = self.lane(parent);
        let NodeKind::Lanes(LanesNode::Fork { lanes, first, next }) =
            &node_of(turn.wave, lane.node).kind
        else {
            panic!("a lane forks where it stands");
        };
        let left = u32::try_from(lanes.len()).unwrap_or(u32::MAX);
        let join = Join { left, first: *first, next: *next, verdict: Verdict::Open };
        lane.join = Some(Box::new(join));
        let (slots, last) = (lane.slots.clone(), lane.last.clone());
        for (no, entry) in lanes {
            let begun = Lane { slots: slots.clone(), last: last.clone(), ..Lane::at(*no, *entry) };
            match self.others.binary_search_by_key(no, |lane| lane.no) {
                Ok(at) => {
                    if let Some(lane) = self.others.get_mut(at) {
                        *lane = lane.begun_again(begun);
                    }
                }
                Err(at) => self.others.insert(at, begun),
            }
        }
        let numbers: Vec<LaneNo> = lanes.iter().map(|(no, _)| *no).collect();
        turn.out.push(Effect::Forked { lane: parent, lanes: numbers.clone(), first: *first });
        numbers
    }

    /// A lane has ended: what its parent does.
    fn ended(&mut self, turn: &mut Turn<'_>, parent: LaneNo, no: LaneNo, end: End) -> Rest {
        let join = self.join(parent);
        join.left -= 1;
        let verdict = match (&join.verdict, end) {
            (Verdict::Open | Verdict::Fails(_), End::Done) if join.first => Ok(no),
            (Verdict::Open | Verdict::Fails(_), End::Failed(fault)) if join.first => {
                join.verdict = Verdict::Fails(fault);
                return self.join_if_over(turn, parent);
            }
            (Verdict::Open, End::Failed(fault)) => Err(fault),
            (Verdict::Open | Verdict::Fails(_), End::Done | End::Failed(_))
            | (Verdict::Closed(_), End::Done | End::Failed(_))
            | (_, End::Cancelled) => return self.join_if_over(turn, parent),
        };
        self.close(turn, parent, verdict)
    }

    /// Decides a join: the lanes that have not ended are cancelled.
    fn close(
        &mut self,
        turn: &mut Turn<'_>,
        parent: LaneNo,
        verdict: Result<LaneNo, Fault>,
    ) -> Rest {
        self.join(parent).verdict = Verdict::Closed(verdict);
        self.cancel_within(turn, parent);
        self.join_if_over(turn, parent)
    }

    /// Cancels the lanes that a lane has begun.
    fn cancel_within(&mut self, turn: &mut Turn<'_>, parent: LaneNo) {
        let NodeKind::Lanes(LanesNode::Fork { lanes, .. }) =
            &node_of(turn.wave, self.lane(parent).node).kind
        else {
            panic!("a lane that waits for others stands at its fork");
        };
        for (no, _) in lanes {
            if self.lane(*no).is_going() && self.cancel(turn, *no) {
                self.join(parent).left -= 1;
            }
        }
    }

    /// Cancels a lane and all within it. Whether it has ended with that; otherwise it does when its
    /// replies are there.
    fn cancel(&mut self, turn: &mut Turn<'_>, no: LaneNo) -> bool {
        if self.lane(no).join.is_some() {
            self.cancel_within(turn, no);
        }
        let lane = self.lane(no);
        let left = lane.join.as_ref().map_or(0, |join| join.left);
        lane.cancel(turn, left)
    }

    /// The lane that forked goes on, when all its lanes have ended.
    fn join_if_over(&mut self, turn: &mut Turn<'_>, parent: LaneNo) -> Rest {
        if self.join(parent).left > 0 {
            return Rest::Waits;
        }
        let join = self.lane(parent).join.take().expect("it was just there");
        let (winner, verdict) = match join.verdict {
            Verdict::Open => (None, Ok(join.next)),
            Verdict::Fails(fault) | Verdict::Closed(Err(fault)) => (None, Err(fault)),
            Verdict::Closed(Ok(winner)) => (Some(winner), Ok(join.next)),
        };
        let last = winner.and_then(|winner| self.lane(winner).last.clone());
        turn.out.push(Effect::Merged { lane: parent, winner });
        self.lane(parent).joined(turn, verdict, last)
    }

    fn join(&mut self, parent: LaneNo) -> &mut Join {
        self.lane(parent).join.as_deref_mut().expect("a lane that began others waits for them")
    }
}
