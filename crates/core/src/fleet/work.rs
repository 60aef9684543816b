//! Work: welcoming a worker, giving it items, moving its machine, telling it to quit.

use std::sync::Arc;

use musec_protocol::{Action, Command, CommandId, LaunchId, Outcome, Reply, Tail, Welcome, limits};
use musec_trace::{AttemptOutcome, CTime, Event, Failure, Queued, StepCategory, Timer, WaitReason};

use super::attempt::{AttemptState, Outstanding, Purpose, Puts};
use super::io::Output;
use super::{Fleet, QUIT_TIME_MAX};
use crate::machine::{
    Advance, Effect, Facts, Machine, Moved, NextCommand, Progress, StepFailure, Token,
};

use crate::program::LaneNo;

impl Fleet {
    pub(super) fn welcome(&mut self, now: CTime, launch: LaunchId) {
        let timeout = self.timeout_of(launch);
        if let Some(timeout) = timeout {
            self.set_deadline(now.after(timeout), launch, Timer::Attempt);
        }
        let Some(attempt) = self.attempt(launch) else {
            return;
        };
        let welcome = Welcome {
            worker: attempt.worker,
            attempt: attempt.no,
            heartbeat_ms: u32::try_from(limits::HEARTBEAT.as_millis()).unwrap_or(u32::MAX),
            timeout_ms: timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            store_url: self.options.store_url.clone(),
            inputs_url: self.options.inputs_url.clone(),
            path_dirs: self.options.path_dirs.clone(),
            keep_scratch: self.program.keep_scratch,
        };
        self.outputs.push_back(Output::Welcome(launch, Box::new(welcome)));
        self.give_work(now, launch);
    }

    /// Gives a worker its item, or the next one of its queue; without any it is told to quit.
    pub(super) fn give_work(&mut self, now: CTime, launch: LaunchId) {
        let Some(attempt) = self.attempt(launch) else {
            return;
        };
        let (wave, index, no) = (attempt.wave, attempt.index, attempt.no);
        let is_new = attempt.machine.is_none();
        let program = Arc::clone(&self.program);
        let has_setup = program.wave(wave).is_some_and(|wave| wave.setup.is_some());
        let run = self.wave_mut(wave);
        let (workers, is_queue) = (run.workers, run.is_queue);
        let has_more = run.items.as_ref().is_some_and(|items| run.next_item < items.len());
        let is_setup = is_queue && is_new && has_setup && (has_more || run.is_open());
        let item = if is_setup {
            None
        } else if is_queue {
            run.take_item()
        } else {
            let number = u64::from(index);
            run.items.as_ref().and_then(|items| items.item(number)).map(|item| (number, item))
        };
        if is_queue && !is_setup && item.is_none() {
            if !self.waits_for_item(now, wave, launch) {
                self.quit_at_end(now, launch);
            }
            return;
        }
        if let Some((number, value)) = &item {
            let value_json = value.to_string();
            self.record(now, Event::ItemGiven { launch, item: *number, value_json });
        }
        let number = item.as_ref().map(|(number, _)| *number);
        let item = item.map(|(_, value)| value);
        let used = self.attempt_mut(launch).and_then(|attempt| {
            attempt.item_commands = 0;
            attempt.machine.take()
        });
        let mut machine = match (used, item) {
            (Some(mut machine), Some(item)) => {
                machine.take_item(&program, &item);
                machine
            }
            (_, item) => {
                let facts = Facts { index, workers, attempt: no, item };
                Box::new(Machine::new(&program, wave, facts))
            }
        };
        machine.number_item(number.unwrap_or_default());
        self.move_machine(now, launch, machine, Advance::Start);
    }

    /// Tells a worker that has nothing left to do to quit.
    fn quit_at_end(&mut self, now: CTime, launch: LaunchId) {
        let failed = self.attempt(launch).is_some_and(|attempt| attempt.has_failed);
        let outcome = if failed { AttemptOutcome::Failed } else { AttemptOutcome::Done };
        self.quit(now, launch, outcome);
    }

    pub(super) fn replied(&mut self, now: CTime, launch: LaunchId, t3: CTime, reply: Reply) {
        self.sign_of_life(now, launch, t3);
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        let quitting = match &attempt.state {
            AttemptState::Working => false,
            AttemptState::Quitting { .. } => true,
            AttemptState::Requested | AttemptState::Vanished { .. } | AttemptState::Ended => return,
        };
        let overtaken = attempt.overtaken_by(reply.id);
        let awaited = attempt.outstanding.remove(reply.id);
        let (Some(command), None) = (awaited, overtaken) else {
            self.answered_wrongly(now, launch, reply.id, overtaken);
            return;
        };
        if quitting {
            self.keep_reply(now, launch, t3, reply, false);
            return;
        }
        match &command.purpose {
            Purpose::Step { token, keeps_output, prints, puts } => {
                let answered = Answered { t3, keeps_output: *keeps_output, prints: *prints };
                self.step_replied(now, launch, *token, puts, answered, reply);
            }
            Purpose::Clean => {
                let failed = cleaning_failure(launch, &command, &reply);
                self.keep_reply(now, launch, t3, reply, false);
                match failed {
                    None => self.give_work(now, launch),
                    Some(failure) => {
                        self.record(now, Event::Failure(Box::new(failure)));
                        self.quit(now, launch, AttemptOutcome::Failed);
                    }
                }
            }
            Purpose::Cancel | Purpose::Quit => self.keep_reply(now, launch, t3, reply, false),
        }
    }

    /// The reply to a command of the program: recorded, then what the machine makes of it.
    fn step_replied(
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

    /// Records a reply; its outputs go beside the journal, and into it only when they are needed.
    fn keep_reply(
        &mut self,
        now: CTime,
        launch: LaunchId,
        t3: CTime,
        mut reply: Reply,
        keeps_output: bool,
    ) {
        let id = reply.id;
        let [stdout, stderr] = if keeps_output || !reply.outcome.is_success() {
            [reply.stdout.clone(), reply.stderr.clone()]
        } else {
            [&mut reply.stdout, &mut reply.stderr].map(without_text)
        };
        self.record(now, Event::Replied { launch, t3, reply: Box::new(reply) });
        if stdout.total_bytes + stderr.total_bytes > 0 {
            self.outputs.push_back(Output::KeepOutput { launch, id, stdout, stderr });
        }
    }

    /// Moves a machine up to where it waits, or its end.
    fn move_machine(
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
        if let Some(attempt) = self.attempt_mut(launch) {
            attempt.machine = Some(machine);
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Moved(moved) => self.record_move(now, launch, moved),
                Effect::Send(next) => self.send_step(now, launch, next),
                Effect::Cancel(lane) => self.cancel_lane(now, launch, lane),
                Effect::Forked { lane, lanes, first } => {
                    let lanes = lanes.iter().filter_map(|lane| self.lane(launch, *lane).pop());
                    let (lane, lanes) = (self.lane(launch, lane), lanes.collect());
                    self.record(now, Event::Forked { launch, lane, lanes, first });
                }
                Effect::Merged { lane, winner } => {
                    let winner = winner.and_then(|winner| self.lane(launch, winner).pop());
                    let lane = self.lane(launch, lane);
                    self.record(now, Event::Merged { launch, lane, winner });
                }
            }
        }
        self.effects = effects;
        self.set_machine_deadline(launch, due);
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
        let NextCommand { pipelined, keeps_output, prints, category, .. } = next;
        let purpose = Purpose::Step { token, keeps_output, prints, puts };
        if let Some(attempt) = self.attempt_mut(launch) {
            attempt.item_commands += 1;
        }
        let (state, is_cancelled) = (Some(state), false);
        let outstanding = Outstanding { name, state, purpose, lane, is_cancelled };
        let how = How { visit, timeout_ms, pipelined, category };
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

    /// An error with the item that it befell, where each item is a word of the command line.
    pub(super) fn of_item(&self, launch: LaunchId, error: String) -> String {
        let machine = self.attempt(launch).and_then(|attempt| attempt.machine.as_ref());
        match machine.and_then(|machine| machine.item_in_words(&self.program)) {
            Some(item) => format!("{item}: {error}"),
            None => error,
        }
    }

    /// The steps of `setup` are over: on to the first item. What they left stays.
    fn setup_is_over(&mut self, now: CTime, launch: LaunchId) {
        if self.keeps_scratch(launch) {
            self.between_items(now, launch, Action::Echo(Vec::new()));
        } else {
            self.between_items(now, launch, Action::Mark);
        }
    }

    /// An item, or the worker's whole program, is over: on to the next item, or quit.
    fn item_is_over(&mut self, now: CTime, launch: LaunchId) {
        let Some(attempt) = self.attempt(launch) else {
            return;
        };
        let (wave, commands) = (attempt.wave, attempt.item_commands);
        let run = self.wave(wave);
        let has_more = run.items.as_ref().is_some_and(|items| run.next_item < items.len());
        if !run.is_queue || self.cancelled || !(has_more || run.is_open()) {
            self.quit_at_end(now, launch);
        } else if !self.keeps_scratch(launch) {
            self.between_items(now, launch, Action::Clean);
        } else if commands > 0 {
            self.give_work(now, launch);
        } else {
            // Items without any command must not hold the loop that serves all workers.
            self.between_items(now, launch, Action::Echo(Vec::new()));
        }
    }

    /// Whether the scratch folder stays as it is between items.
    fn keeps_scratch(&self, launch: LaunchId) -> bool {
        let wave = self.attempt(launch).and_then(|attempt| self.program.wave(attempt.wave));
        wave.is_some_and(|wave| wave.keep)
    }

    fn between_items(&mut self, now: CTime, launch: LaunchId, action: Action) {
        self.send_other(now, launch, action, Purpose::Clean, LaneNo::MAIN);
    }

    /// Notes keys that a worker put.
    fn put_by(&mut self, now: CTime, launch: LaunchId, keys: &[String]) {
        if let Some(wave) = self.attempt(launch).map(|attempt| attempt.wave)
            && !keys.is_empty()
        {
            self.put(now, wave, keys);
        }
    }

    /// Tells a worker to end; what it still runs dies.
    pub(super) fn quit(&mut self, now: CTime, launch: LaunchId, outcome: AttemptOutcome) {
        if outcome == AttemptOutcome::Dismissed {
            self.record(now, Event::Waiting { launch, reason: WaitReason::Dismissal });
        }
        self.stop_machine(now, launch);
        self.send_other(now, launch, Action::Quit, Purpose::Quit, LaneNo::MAIN);
        self.start_quitting(launch, now.after(QUIT_TIME_MAX), outcome);
    }

    /// Sends a command that is no step of the program.
    fn send_other(
        &mut self,
        now: CTime,
        launch: LaunchId,
        action: Action,
        purpose: Purpose,
        lane: LaneNo,
    ) {
        let (name, state, is_cancelled) = (action.name(), None, false);
        let outstanding = Outstanding { name, state, purpose, lane, is_cancelled };
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
        let How { visit, timeout_ms, pipelined, category } = how;
        let queued = Queued {
            launch,
            id,
            lane: lane.clone(),
            state: outstanding.state,
            visit,
            name: outstanding.name.into(),
            arguments: action.arguments(),
            pipelined,
            background: false,
            category,
        };
        attempt.outstanding.push(id, outstanding);
        self.record(now, Event::Queued(Box::new(queued)));
        let command = Command { id, lane, background: false, timeout_ms, action };
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
}

/// What is done with the reply to a step's command.
#[derive(Clone, Copy, Debug)]
struct Answered {
    /// C.
    t3: CTime,
    keeps_output: bool,
    prints: bool,
}

/// Takes the text out of a tail and leaves how long it was.
fn without_text(tail: &mut Tail) -> Tail {
    let total_bytes = tail.total_bytes;
    Tail { text: std::mem::take(&mut tail.text), total_bytes }
}

fn cleaning_failure(launch: LaunchId, command: &Outstanding, reply: &Reply) -> Option<Failure> {
    let error = match &reply.outcome {
        Outcome::Ok => return None,
        Outcome::Failed { text, .. } => text.clone(),
        other => format!("the scratch folder could not be emptied: {other:?}"),
    };
    Some(Failure {
        launch,
        state: None,
        command: Some(reply.id),
        name: command.name.to_owned(),
        error,
        output: Vec::new(),
    })
}
