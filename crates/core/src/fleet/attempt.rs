//! Attempts: how each begins and ends, whatever happens to it in whatever order.

use std::time::Duration;

use musec_protocol::limits::FROZEN_AFTER;
use musec_protocol::{Action, AttemptNo, LaunchId, Pong, Reply, Which, WorkerId};
use musec_trace::{
    AttemptOutcome, CTime, EndCause, Event, Failure, Joined, StateId, Timer, WaveId,
};

use super::io::{Closed, Output};
use super::outstanding::OutstandingCommands;
use super::{EXIT_STATUS_WAIT, FROZEN_TIME_MAX, Fleet};
use crate::machine::{Machine, Token};
use crate::program::LaneNo;

/// One launch of a worker.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) wave: WaveId,
    pub(super) worker: WorkerId,
    /// The worker's number within its wave.
    pub(super) index: u32,
    pub(super) no: AttemptNo,
    pub(super) state: AttemptState,
    /// The launcher's engine's name for it, once it was taken.
    pub(super) engine_id: Option<String>,
    pub(super) machine: Option<Box<Machine>>,
    pub(super) next_command: u64,
    /// Commands of the present item.
    pub(super) item_commands: u64,
    /// What was sent and has no reply yet.
    pub(super) outstanding: OutstandingCommands,
    /// Whether no barrier waits for it any more.
    pub(super) is_beyond_barriers: bool,
    /// The number of its next command when it was last recorded as waiting.
    pub(super) waits_since_command: Option<u64>,
    /// Bytes that its user code has told so far.
    pub(super) told_bytes: u64,
    /// When its machine wants to be asked, C; an entry of the fleet's deadlines.
    pub(super) machine_due: Option<CTime>,
    /// Whether an item failed; the attempt then counts as failed, and goes on with the others.
    pub(super) has_failed: bool,
    pub(super) last_sign: CTime,
    pub(super) is_frozen: bool,
    /// When and how its process ended, C, while its connection still stands.
    pub(super) exit: Option<(CTime, String)>,
    /// Its entries in the fleet's deadlines.
    pub(super) deadlines: Vec<(CTime, Timer)>,
}

/// See the diagram in the parent module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptState {
    Requested,
    Working,
    Quitting { outcome: AttemptOutcome },
    Vanished { at: CTime, why: String },
    Ended,
}

/// A command without a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outstanding {
    pub(super) name: &'static str,
    pub(super) state: Option<StateId>,
    pub(super) purpose: Purpose,
    pub(super) lane: LaneNo,
    pub(super) background: bool,
    /// Whether its worker was told to cancel it.
    pub(super) is_cancelled: bool,
}

/// What a command is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A step of the program.
    Step { token: Token, keeps_output: bool, prints: bool, puts: Puts },
    /// Making the scratch folder ready for the next item.
    Clean,
    /// Cancelling another one.
    Cancel,
    /// Ending the worker.
    Quit,
}

/// What a command puts into the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Puts {
    Nothing,
    One(String),
    /// The reply says what.
    Several,
}

impl Puts {
    pub(super) fn of(action: &Action) -> Self {
        match action {
            Action::Put(put) if put.which == Which::One => Self::One(put.key.clone()),
            Action::Put(_) => Self::Several,
            Action::Run(_)
            | Action::Get(_)
            | Action::Echo(_)
            | Action::Sleep { .. }
            | Action::Cancel(_)
            | Action::Print { .. }
            | Action::Clean
            | Action::Mark
            | Action::Quit => Self::Nothing,
        }
    }

    /// The keys, once it has succeeded.
    pub(super) fn keys(&self, reply: &Reply) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::One(key) => vec![key.clone()],
            Self::Several => reply.objects.iter().map(|object| object.key.clone()).collect(),
        }
    }
}

impl Attempt {
    pub(super) const fn new(
        wave: WaveId,
        worker: WorkerId,
        index: u32,
        no: AttemptNo,
        now: CTime,
    ) -> Self {
        Self {
            wave,
            worker,
            index,
            no,
            state: AttemptState::Requested,
            engine_id: None,
            machine: None,
            next_command: 0,
            item_commands: 0,
            outstanding: OutstandingCommands::new(),
            is_beyond_barriers: false,
            waits_since_command: None,
            told_bytes: 0,
            machine_due: None,
            has_failed: false,
            last_sign: now,
            is_frozen: false,
            exit: None,
            deadlines: Vec::new(),
        }
    }

    /// When its silence will be too long, C, if it stays silent.
    fn silent_at(&self) -> CTime {
        self.last_sign.after(if self.is_frozen { FROZEN_TIME_MAX } else { FROZEN_AFTER })
    }
}

impl Fleet {
    /// The one place where an attempt changes its state. Ending is recorded by [`Self::end`], which
    /// is the only caller that passes [`AttemptState::Ended`].
    fn become_(&mut self, launch: LaunchId, state: AttemptState) {
        let attempt = self.attempt_mut(launch).expect("only known attempts change");
        assert!(attempt.state != AttemptState::Ended, "an ended attempt stays so");
        attempt.state = state;
    }

    pub(super) fn not_launched(&mut self, now: CTime, launch: LaunchId, error: String) {
        if self.state_of(launch) != Some(AttemptState::Requested) {
            return;
        }
        self.record(now, Event::NotLaunched { launch, error: error.clone() });
        self.fail(now, launch, "launch", error);
        self.end(now, launch, now, EndCause::NotLaunched, AttemptOutcome::Failed);
    }

    pub(super) fn attempt_joined(&mut self, now: CTime, joined: Joined) {
        let (launch, t3) = (joined.launch, joined.t3);
        if self.may_join(launch).is_err() {
            self.outputs.push_back(Output::Hangup(launch));
            return;
        }
        self.record(now, Event::Joined(Box::new(joined)));
        self.become_(launch, AttemptState::Working);
        self.joined.insert(launch);
        self.has_started(now, launch);
        self.clear_deadlines(launch);
        self.sign_of_life(now, launch, t3);
        self.sweep_by(launch);
        self.welcome(now, launch);
    }

    pub(super) fn pulsed(
        &mut self,
        now: CTime,
        launch: LaunchId,
        t0: CTime,
        t3: CTime,
        pong: Pong,
    ) {
        if !self.joined.contains(&launch) {
            return;
        }
        self.sign_of_life(now, launch, t3);
        let Pong { seq, received, encoded, clock_gap_ns } = pong;
        let pulse = Event::Pulse { launch, seq, t0, t3, received, encoded, clock_gap_ns };
        self.record(now, pulse);
    }

    /// Notes that an attempt is alive at `at`, C. After its connection is gone that counts no more.
    pub(super) fn sign_of_life(&mut self, now: CTime, launch: LaunchId, at: CTime) {
        let is_joined = self.joined.contains(&launch);
        let Some(attempt) = self.attempt_mut(launch).filter(|_| is_joined) else {
            return;
        };
        let since = attempt.last_sign;
        attempt.last_sign = since.max(at);
        if std::mem::replace(&mut attempt.is_frozen, false) {
            self.record(now, Event::Frozen { launch, since, thawed: true });
            self.sweep_by(launch);
        }
    }

    /// Has the sweep not come later than when this attempt may be silent for too long.
    fn sweep_by(&mut self, launch: LaunchId) {
        let due = self.attempt(launch).map(Attempt::silent_at);
        self.next_sweep = self.next_sweep.into_iter().chain(due).min();
    }

    pub(super) fn closed(&mut self, now: CTime, launch: LaunchId, at: CTime, why: Closed) {
        if !self.is_alive(launch) {
            return;
        }
        let (words, broke_protocol) = match &why {
            Closed::Lost(words) => (words.clone(), false),
            Closed::Protocol(words) => (words.clone(), true),
        };
        self.record(now, Event::Closed { launch, closed: at, why: words, broke_protocol });
        let exit = self.attempt_mut(launch).and_then(|attempt| attempt.exit.take());
        let at = exit.as_ref().map_or(at, |(exited, _)| at.min(*exited));
        match (self.state_of(launch), why) {
            (Some(AttemptState::Working), Closed::Protocol(error)) => {
                let error = format!("the worker broke the protocol: {error}");
                self.give_up(now, launch, EndCause::Protocol, AttemptOutcome::Failed, error);
            }
            (Some(AttemptState::Working), Closed::Lost(why)) => match exit {
                Some((_, status)) => self.lose(now, launch, at, EndCause::Exited, &status),
                None => {
                    self.become_(launch, AttemptState::Vanished { at, why });
                    self.joined.remove(&launch);
                    self.set_deadline(now.after(EXIT_STATUS_WAIT), launch, Timer::Quit);
                }
            },
            (Some(AttemptState::Quitting { outcome }), _) => {
                let cause = if exit.is_some() { EndCause::Exited } else { EndCause::Closed };
                self.end(now, launch, at, cause, outcome);
            }
            (
                Some(AttemptState::Requested | AttemptState::Vanished { .. } | AttemptState::Ended)
                | None,
                _,
            ) => {}
        }
    }

    /// A process that is gone has left its last words in its connection: while that stands, they
    /// are awaited, and its closing.
    pub(super) fn exited(&mut self, now: CTime, launch: LaunchId, at: CTime, status: &str) {
        if !self.is_alive(launch) {
            return;
        }
        self.record(now, Event::Exited { launch, exited: at, status: status.to_owned() });
        match self.state_of(launch) {
            Some(AttemptState::Requested) => {
                let error = format!("its process ended before it connected: {status}");
                self.fail(now, launch, "start", error);
                let outcome = AttemptOutcome::NeverConnected;
                self.end(now, launch, at, EndCause::Exited, outcome);
            }
            Some(AttemptState::Working | AttemptState::Quitting { .. }) => {
                if let Some(attempt) = self.attempt_mut(launch) {
                    attempt.exit = Some((at, status.to_owned()));
                }
                self.set_deadline(now.after(EXIT_STATUS_WAIT), launch, Timer::Quit);
            }
            Some(AttemptState::Vanished { at: closed, .. }) => {
                self.lose(now, launch, closed.min(at), EndCause::Closed, status);
            }
            Some(AttemptState::Ended) | None => {}
        }
    }

    fn lose(&mut self, now: CTime, launch: LaunchId, at: CTime, cause: EndCause, why: &str) {
        self.fail(now, launch, "worker", format!("the worker vanished: {why}"));
        self.outputs.push_back(Output::Hangup(launch));
        self.end(now, launch, at, cause, AttemptOutcome::Lost);
    }

    /// Ends an attempt that is at fault, by force.
    pub(super) fn give_up(
        &mut self,
        now: CTime,
        launch: LaunchId,
        cause: EndCause,
        outcome: AttemptOutcome,
        error: String,
    ) {
        self.fail(now, launch, "worker", error);
        self.outputs.push_back(Output::Hangup(launch));
        self.outputs.push_back(Output::Stop(launch));
        self.end(now, launch, now, cause, outcome);
    }

    pub(super) fn timer(&mut self, now: CTime, launch: LaunchId, timer: Timer) {
        let Some(state) = self.state_of(launch) else {
            return;
        };
        match (timer, state) {
            (Timer::Connect, AttemptState::Requested) => {
                self.fired(now, launch, timer);
                let error = self.why_not_connected(launch);
                self.fail(now, launch, "connect", error);
                self.outputs.push_back(Output::Stop(launch));
                let outcome = AttemptOutcome::NeverConnected;
                self.end(now, launch, now, EndCause::NeverConnected, outcome);
            }
            (Timer::Attempt, AttemptState::Working) => {
                self.fired(now, launch, timer);
                let limit = self.timeout_of(launch).unwrap_or_default();
                self.fail(now, launch, "timeout", format!("its timeout of {limit:?} is over"));
                self.quit(now, launch, AttemptOutcome::Failed);
            }
            (Timer::Quit, AttemptState::Vanished { at, why }) => {
                self.fired(now, launch, timer);
                self.outputs.push_back(Output::Stop(launch));
                self.lose(now, launch, at, EndCause::Closed, &why);
            }
            (Timer::Quit, AttemptState::Working) => {
                let exit = self.attempt_mut(launch).and_then(|attempt| attempt.exit.take());
                if let Some((at, status)) = exit {
                    self.fired(now, launch, timer);
                    self.lose(now, launch, at, EndCause::Exited, &status);
                }
            }
            (Timer::Quit, AttemptState::Quitting { outcome }) => {
                let exit = self.attempt_mut(launch).and_then(|attempt| attempt.exit.take());
                self.fired(now, launch, timer);
                self.outputs.push_back(Output::Hangup(launch));
                self.outputs.push_back(Output::Stop(launch));
                let end = exit.map_or(now, |(at, _)| at);
                self.end(now, launch, end, EndCause::Stopped, outcome);
            }
            (Timer::Step, AttemptState::Working) => {
                self.fired(now, launch, timer);
                self.machine_time(now, launch);
            }
            // The deadline of a state that the attempt has left.
            (
                Timer::Connect
                | Timer::Attempt
                | Timer::Quit
                | Timer::Frozen
                | Timer::Run
                | Timer::Step
                | Timer::Start,
                _,
            ) => {}
        }
    }

    fn fired(&mut self, now: CTime, launch: LaunchId, timer: Timer) {
        self.record(now, Event::TimerFired { timer, launch: Some(launch) });
    }

    /// Reports workers that stand still, and gives up those that do so for too long. Signs of life
    /// only put off when that is, so that nobody need be looked at before the next sweep.
    pub(super) fn sweep(&mut self, now: CTime) {
        self.next_sweep = None;
        let joined: Vec<LaunchId> = self.joined.iter().copied().collect();
        for launch in joined {
            let Some(attempt) = self.attempt_mut(launch) else {
                continue;
            };
            let since = attempt.last_sign;
            if since.after(FROZEN_TIME_MAX) <= now {
                self.fired(now, launch, Timer::Frozen);
                let error = format!("it gave no sign of life for {FROZEN_TIME_MAX:?}");
                self.give_up(now, launch, EndCause::Silent, AttemptOutcome::Lost, error);
                continue;
            }
            if since.after(FROZEN_AFTER) <= now && !attempt.is_frozen {
                attempt.is_frozen = true;
                self.record(now, Event::Frozen { launch, since, thawed: false });
            }
            self.sweep_by(launch);
        }
    }

    /// Ends an attempt in an orderly way, because the run is cancelled.
    pub(super) fn dismiss(&mut self, now: CTime, launch: LaunchId) {
        match self.state_of(launch) {
            Some(AttemptState::Requested) => self.abort(now, launch),
            Some(AttemptState::Working) => self.quit(now, launch, AttemptOutcome::Killed),
            Some(AttemptState::Vanished { at, why }) => {
                self.lose(now, launch, at, EndCause::Closed, &why);
            }
            Some(AttemptState::Quitting { .. } | AttemptState::Ended) | None => {}
        }
    }

    /// Ends an attempt at once.
    pub(super) fn abort(&mut self, now: CTime, launch: LaunchId) {
        let outcome = match self.state_of(launch) {
            Some(AttemptState::Requested | AttemptState::Working) => AttemptOutcome::Killed,
            Some(AttemptState::Quitting { outcome }) => outcome,
            Some(AttemptState::Vanished { .. }) => AttemptOutcome::Lost,
            Some(AttemptState::Ended) | None => return,
        };
        self.outputs.push_back(Output::Hangup(launch));
        self.outputs.push_back(Output::Stop(launch));
        self.end(now, launch, now, EndCause::Stopped, outcome);
    }

    pub(super) fn start_quitting(&mut self, launch: LaunchId, due: CTime, outcome: AttemptOutcome) {
        self.become_(launch, AttemptState::Quitting { outcome });
        self.goes_beyond_barriers(launch);
        self.set_deadline(due, launch, Timer::Quit);
    }

    /// Records why an attempt has no result, or an item of it: where it stands now is to blame.
    fn fail(&mut self, now: CTime, launch: LaunchId, what: &str, error: String) {
        let error = self.of_item(launch, error);
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        attempt.has_failed = true;
        let outstanding = attempt.outstanding.first();
        let failure = Failure {
            launch,
            // At a barrier, or waiting for an info, it has no command, and is in a state all the
            // same.
            state: outstanding.map_or_else(
                || attempt.machine.as_ref().and_then(|machine| machine.state()),
                |(_, command)| command.state,
            ),
            command: outstanding.map(|(id, _)| *id),
            name: outstanding.map_or(what, |(_, command)| command.name).to_owned(),
            error,
            output: Vec::new(),
        };
        self.record(now, Event::Failure(Box::new(failure)));
    }

    /// The one place where attempts end.
    fn end(
        &mut self,
        now: CTime,
        launch: LaunchId,
        end: CTime,
        cause: EndCause,
        outcome: AttemptOutcome,
    ) {
        self.stop_machine(now, launch);
        self.become_(launch, AttemptState::Ended);
        self.clear_deadlines(launch);
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        attempt.outstanding.clear();
        let (wave, last_sign) = (attempt.wave, attempt.last_sign.min(end));
        self.joined.remove(&launch);
        self.goes_beyond_barriers(launch);
        self.waits_no_more(wave, launch);
        self.record(now, Event::Ended { launch, end, last_sign, cause, outcome });
        self.has_started(now, launch);
        self.attempt_is_over(now, wave, outcome == AttemptOutcome::Done);
    }

    fn is_alive(&self, launch: LaunchId) -> bool {
        self.attempt(launch).is_some_and(|attempt| attempt.state != AttemptState::Ended)
    }

    pub(super) fn state_of(&self, launch: LaunchId) -> Option<AttemptState> {
        self.attempt(launch).map(|attempt| attempt.state.clone())
    }

    /// The time limit of an attempt, from its hello.
    pub(super) fn timeout_of(&self, launch: LaunchId) -> Option<Duration> {
        let wave = self.attempt(launch).and_then(|attempt| self.program.wave(attempt.wave));
        wave.and_then(|wave| wave.timeout)
    }
}
