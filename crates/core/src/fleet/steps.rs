//! What machines want: their commands sent and cancelled, their moves recorded, their ends acted
//! upon.

use musec_protocol::{Action, Command, CommandId, LaunchId, Reply, Tail};
use musec_trace::{AttemptOutcome, CTime, Event, Failure, Queued, StepCategory, WaitReason};

use super::Fleet;
use super::attempt::{Outstanding, Purpose, Puts};
use super::io::Output;
use crate::machine::{Advance, Effect, Machine, Moved, NextCommand, Progress, StepFailure, Token};
use crate::program::LaneNo;

impl Fleet {
    /// The reply to a command of the program: recorded, then what the machine makes of it.
    pub(super) fn step_replied(
        &mut self,
        now: CTime,
        launch: LaunchId,
        token: Token,
        puts: &Puts,
        answered: Answered,
        reply: Reply,
    ) {
        let machine = self.attempt_mut(launch).and_then(|attempt| attempt.machine.take());
        let mut machine = machine.expect("a step's command has a machine");
        let mut effects = std::mem::take(&mut self.effects);
        let advance = Advance::Replied(token, &reply);
        let progress = machine.advance(&self.program, now, advance, &mut effects);
        let is_success = reply.outcome.is_success();
        let printed = (answered.prints && is_success).then(|| reply.stdout.clone());
        let keys = if is_success { puts.keys(&reply) } else { Vec::new() };
        self.keep_reply(now, launch, answered.t3, reply, answered.keeps_output);
        self.put_by(now, launch, &keys);
        if let Some(Tail { text, total_bytes }) = printed {
            self.record(now, Event::Printed { launch, text, total_bytes });
        }
        self.perform(now, launch, machine, effects, progress);
    }

    /// Moves a machine up to where it waits, or its end.
    pub(super) fn move_machine(
        &mut self,
        now: CTime,
        launch: LaunchId,
        mut machine: Box<Machine>,
        advance: Advance<'_>,
    ) {
        let mut effects = std::mem::take(&mut self.effects);
        let progress = machine.advance(&self.program, now, advance, &mut effects);
        self.perform(now, launch, machine, effects, progress);
    }

    /// The deadline of a machine has come.
    pub(super) fn machine_time(&mut self, now: CTime, launch: LaunchId) {
        let attempt = self.attempt_mut(launch);
        if let Some(machine) = attempt.and_then(|attempt| attempt.machine.take()) {
            self.move_machine(now, launch, machine, Advance::Time);
        }
    }

    /// Does what a machine wants, and goes on with what comes after its end.
    fn perform(
        &mut self,
        now: CTime,
        launch: LaunchId,
        machine: Box<Machine>,
        mut effects: Vec<Effect>,
        progress: Progress,
    ) {
        let (is_setup, due) = (machine.is_setup(), machine.deadline());
        let wait = machine.wait_reason().filter(|_| progress == Progress::Waits);
        if let Some(attempt) = self.attempt_mut(launch) {
            attempt.machine = Some(machine);
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Moved(moved) => self.record_move(now, launch, moved),
                Effect::Send(next) => self.send_step(now, launch, next),
                Effect::Cancel(lane) => self.cancel_lane(now, launch, lane),
                Effect::Arrived { lane, barrier } => {
                    let lane = self.lane(launch, lane);
                    self.arrived(now, launch, lane, barrier);
                }
                Effect::Left { barrier } => self.left_barrier(launch, barrier),
                Effect::Forked { lane, lanes, first } => {
                    let lanes = lanes.iter().map(|lane| self.last_of_lane(launch, *lane));
                    let (lane, lanes) = (self.lane(launch, lane), lanes.collect());
                    self.record(now, Event::Forked { launch, lane, lanes, first });
                }
                Effect::Begun { lane, background } => {
                    let background = self.last_of_lane(launch, background);
                    let lane = self.lane(launch, lane);
                    self.record(now, Event::Begun { launch, lane, background });
                }
                Effect::Awaited { lane, background } => {
                    let background = self.last_of_lane(launch, background);
                    let lane = self.lane(launch, lane);
                    self.record(now, Event::Awaited { launch, lane, background });
                }
                Effect::Merged { lane, winner } => {
                    let winner = winner.map(|winner| self.last_of_lane(launch, winner));
                    let lane = self.lane(launch, lane);
                    self.record(now, Event::Merged { launch, lane, winner });
                }
            }
        }
        self.effects = effects;
        self.set_machine_deadline(launch, due);
        if let Some(reason) = wait {
            self.note_wait(now, launch, reason);
        }
        match progress {
            Progress::Waits => {}
            Progress::Done if is_setup => self.setup_is_over(now, launch),
            Progress::Done => self.item_is_over(now, launch),
            Progress::Failed(failure) => {
                self.step_failed(now, launch, failure);
                if is_setup {
                    self.quit(now, launch, AttemptOutcome::Failed);
                } else {
                    self.item_is_over(now, launch);
                }
            }
        }
    }

    /// Records that the program itself waits, when it begins to: no command is out.
    fn note_wait(&mut self, now: CTime, launch: LaunchId, reason: WaitReason) {
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        let is_new = attempt.waits_since_command != Some(attempt.next_command);
        if is_new && attempt.outstanding.is_empty() {
            attempt.waits_since_command = Some(attempt.next_command);
            self.record(now, Event::Waiting { launch, reason });
        }
    }

    fn record_move(&mut self, now: CTime, launch: LaunchId, moved: Moved) {
        let Moved { lane, from, to, cause } = moved;
        let lane = self.lane(launch, lane);
        self.record(now, Event::Transition { launch, lane, from, to, cause });
    }

    /// The path of a lane of an attempt's program.
    fn lane(&self, launch: LaunchId, lane: LaneNo) -> Vec<u32> {
        if lane == LaneNo::MAIN {
            return Vec::new();
        }
        let wave = self.attempt(launch).and_then(|attempt| self.program.wave(attempt.wave));
        wave.map_or_else(Vec::new, |wave| wave.lane_path(lane).to_vec())
    }

    /// A lane's number within the one around.
    fn last_of_lane(&self, launch: LaunchId, lane: LaneNo) -> u32 {
        self.lane(launch, lane).last().copied().unwrap_or_default()
    }

    /// Cancels the commands of a lane that have no reply yet. Each has one nevertheless.
    fn cancel_lane(&mut self, now: CTime, launch: LaunchId, lane: LaneNo) {
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        let is_meant = |command: &Outstanding| {
            command.lane == lane
                && !command.is_cancelled
                && matches!(command.purpose, Purpose::Step { .. })
        };
        let mut targets = Vec::new();
        for (id, command) in attempt.outstanding.iter_mut().filter(|(_, command)| is_meant(command))
        {
            command.is_cancelled = true;
            targets.push(*id);
        }
        for target in targets {
            self.send_other(now, launch, Action::Cancel(target), Purpose::Cancel, lane);
        }
    }

    /// Takes an attempt's machine out of its state, if it is in one.
    pub(super) fn stop_machine(&mut self, now: CTime, launch: LaunchId) {
        let mut effects = std::mem::take(&mut self.effects);
        if let Some(mut machine) = self.attempt_mut(launch).and_then(|a| a.machine.take()) {
            machine.stop(&mut effects);
        }
        for effect in effects.drain(..) {
            if let Effect::Moved(moved) = effect {
                self.record_move(now, launch, moved);
            }
        }
        self.effects = effects;
        self.set_machine_deadline(launch, None);
    }

    fn send_step(&mut self, now: CTime, launch: LaunchId, next: NextCommand) {
        let puts = Puts::of(&next.action);
        let NextCommand { token, lane, state, visit, name, action, timeout_ms, .. } = next;
        let NextCommand { pipelined, background, keeps_output, prints, category, .. } = next;
        let purpose = Purpose::Step { token, keeps_output, prints, puts };
        if let Some(attempt) = self.attempt_mut(launch) {
            attempt.item_commands += 1;
        }
        let (state, is_cancelled) = (Some(state), false);
        let outstanding = Outstanding { name, state, purpose, lane, background, is_cancelled };
        let how = How { visit, timeout_ms, pipelined, category, step: token.step() };
        self.send(now, launch, action, outstanding, how);
    }

    fn step_failed(&mut self, now: CTime, launch: LaunchId, failure: StepFailure) {
        if let Some(attempt) = self.attempt_mut(launch) {
            attempt.has_failed = true;
        }
        // A step that failed before it was sent must not be laid at its predecessor's door.
        let (command, output) = match failure.blamed {
            Some(blamed) => (Some(blamed.command), blamed.output),
            None => (None, Vec::new()),
        };
        let error = self.of_item(launch, failure.error);
        let StepFailure { state, name, .. } = failure;
        let failure = Failure { launch, state, command, name, error, output };
        self.record(now, Event::Failure(Box::new(failure)));
    }

    /// Sends a command that is no step of the program.
    pub(super) fn send_other(
        &mut self,
        now: CTime,
        launch: LaunchId,
        action: Action,
        purpose: Purpose,
        lane: LaneNo,
    ) {
        let (name, state) = (action.name(), None);
        let (background, is_cancelled) = (false, false);
        let outstanding = Outstanding { name, state, purpose, lane, background, is_cancelled };
        self.send(now, launch, action, outstanding, How::default());
    }

    /// Numbers, records and sends a command.
    fn send(
        &mut self,
        now: CTime,
        launch: LaunchId,
        action: Action,
        outstanding: Outstanding,
        how: How,
    ) {
        let lane = self.lane(launch, outstanding.lane);
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        let id = CommandId(attempt.next_command);
        attempt.next_command += 1;
        let background = outstanding.background;
        let How { visit, timeout_ms, pipelined, category, step } = how;
        let queued = Queued {
            launch,
            id,
            lane: lane.clone(),
            state: outstanding.state,
            visit,
            name: outstanding.name.into(),
            arguments: action.arguments(),
            pipelined,
            background,
            category,
            step,
        };
        attempt.outstanding.push(id, outstanding);
        self.record(now, Event::Queued(Box::new(queued)));
        let command = Command { id, lane, background, timeout_ms, action };
        self.outputs.push_back(Output::Send(launch, Box::new(command)));
    }
}

/// How a command is sent.
#[derive(Clone, Copy, Debug, Default)]
struct How {
    visit: u32,
    timeout_ms: Option<u64>,
    pipelined: bool,
    category: Option<StepCategory>,
    step: u32,
}

/// What is done with the reply to a step's command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// C.
    pub(super) t3: CTime,
    pub(super) keeps_output: bool,
    pub(super) prints: bool,
}
