//! Background commands: sub-lanes of the lane that began them, of one command each.
//!
//! In: the beginning, the reply, the `await`. Out: what becomes of the lane. Invariants: one is out
//! at most once at a time; a lane ends only when those that it began have, except that those of
//! `setup` go on from item to item. A failure counts where it is awaited, and nowhere else.

use musec_protocol::Reply;
use musec_trace::{Cause, StateId};

use crate::machine::bindings::Last;
use crate::machine::lane::{Fault, Lane, Phase, Rest};
use crate::machine::position::Position;
use crate::machine::{Effect, Token, Turn};
use crate::program::LaneNo;

/// A background command of a lane.
#[derive(Clone, Debug)]
pub(super) struct Background {
    /// Its own sub-lane.
    no: LaneNo,
    position: Position,
    run: Run,
    /// Whether it belongs to the whole attempt: it was begun by `setup`.
    of_setup: bool,
}

/// How far it is.
#[derive(Clone, Debug)]
enum Run {
    /// Not begun, or awaited.
    Idle,
    Out,
    /// Not yet awaited.
    Ended(Result<(), Fault>, Option<Last>),
}

impl Lane {
    /// Begins one: its sub-lane enters its state. Which visit of that this is.
    pub(super) fn begin_background(
        &mut self,
        turn: &mut Turn<'_>,
        no: LaneNo,
        state: StateId,
    ) -> Result<u32, String> {
        let of_setup = turn.is_setup;
        let at = self.backgrounds.iter().position(|background| background.no == no);
        let at = at.unwrap_or_else(|| {
            let position = Position::default();
            self.backgrounds.push(Background { no, position, run: Run::Idle, of_setup });
            self.backgrounds.len() - 1
        });
        let background = self.backgrounds.get_mut(at).expect("it is there");
        if matches!(background.run, Run::Out) {
            return Err("it is still running: `await` it before it begins again".to_owned());
        }
        background.run = Run::Out;
        background.of_setup = of_setup;
        turn.out.push(Effect::Begun { lane: self.no, background: no });
        background.position.change(no, Some(state), Cause::Start, turn.out);
        Ok(background.position.visit())
    }

    /// The reply to one: kept until it is awaited.
    pub(super) fn background_replied(
        &mut self,
        turn: &mut Turn<'_>,
        no: LaneNo,
        token: Token,
        reply: &Reply,
    ) -> Rest {
        // The lane's own last reply is another one.
        let own = self.last.take();
        let verdict = self.judge(turn, token, reply).map(|_| ());
        let last = std::mem::replace(&mut self.last, own);
        let is_unwanted = matches!(self.phase, Phase::Stopping(_) | Phase::Closing);
        let cause = match &verdict {
            _ if is_unwanted => Cause::Cancelled,
            Ok(()) => Cause::Done,
            Err(_) => Cause::Failed,
        };
        let background = self.background(no).expect("one that is out");
        background.position.change(no, None, cause, turn.out);
        background.run = if is_unwanted { Run::Idle } else { Run::Ended(verdict, last) };
        match self.phase {
            Phase::Stopping(owed) => self.stop_if_over(turn, owed - 1),
            Phase::Closing => self.close_if_over(turn),
            Phase::Awaiting(awaited) if awaited == no => {
                turn.cause = Cause::Done;
                let verdict = self.take_awaited(turn, no).unwrap_or(Ok(()));
                let next = verdict.map(|()| self.after_await(turn));
                self.go_on(turn, next)
            }
            Phase::Ready
            | Phase::Waiting
            | Phase::Listing
            | Phase::Draining
            | Phase::Joining
            | Phase::Awaiting(_)
            | Phase::Informed(_)
            | Phase::AtBarrier(_)
            | Phase::Ended => Rest::Waits,
        }
    }

    /// What came of one that is awaited; `None` while it is out. One that never began is no matter.
    pub(super) fn take_awaited(
        &mut self,
        turn: &mut Turn<'_>,
        no: LaneNo,
    ) -> Option<Result<(), Fault>> {
        let Some(background) = self.background(no) else { return Some(Ok(())) };
        match std::mem::replace(&mut background.run, Run::Idle) {
            Run::Idle => Some(Ok(())),
            Run::Out => {
                background.run = Run::Out;
                None
            }
            Run::Ended(verdict, last) => {
                self.last = last;
                turn.out.push(Effect::Awaited { lane: self.no, background: no });
                Some(verdict)
            }
        }
    }

    /// Those that are out and have to end with the lane. (Those of `setup` stay until the attempt's
    /// end.)
    fn ending_backgrounds(&self, turn: &Turn<'_>) -> impl Iterator<Item = LaneNo> {
        let (is_main, is_setup) = (self.no == LaneNo::MAIN, turn.is_setup);
        let stays = move |background: &Background| is_main && (background.of_setup || is_setup);
        let out = self.backgrounds.iter().filter(|background| matches!(background.run, Run::Out));
        out.filter(move |background| !stays(background)).map(|background| background.no)
    }

    /// Cancels those that have to end with the lane: how many.
    pub(super) fn cancel_backgrounds(&self, turn: &mut Turn<'_>) -> u32 {
        let ending: Vec<LaneNo> = self.ending_backgrounds(turn).collect();
        turn.out.extend(ending.iter().copied().map(Effect::Cancel));
        u32::try_from(ending.len()).unwrap_or(u32::MAX)
    }

    /// The lane has come to its end, or failed: what it began in the background ends first.
    pub(super) fn close(&mut self, turn: &mut Turn<'_>, fault: Option<Fault>) -> Rest {
        self.ending = fault.map(Box::new);
        self.phase = Phase::Closing;
        self.cancel_backgrounds(turn);
        self.close_if_over(turn)
    }

    fn close_if_over(&mut self, turn: &mut Turn<'_>) -> Rest {
        if self.ending_backgrounds(turn).next().is_some() {
            return Rest::Waits;
        }
        match self.ending.take() {
            None => {
                self.end(Cause::Done, turn.out);
                Rest::Done
            }
            Some(fault) => {
                self.end(Cause::Failed, turn.out);
                Rest::Failed(*fault)
            }
        }
    }

    /// Those that are out leave their states, because all ends from outside.
    pub(super) fn end_backgrounds(&mut self, cause: Cause, out: &mut Vec<Effect>) {
        for background in &mut self.backgrounds {
            if background.position.state().is_some() {
                background.position.change(background.no, None, cause, out);
            }
            background.run = Run::Idle;
        }
    }

    fn background(&mut self, no: LaneNo) -> Option<&mut Background> {
        self.backgrounds.iter_mut().find(|background| background.no == no)
    }
}
