//! Work: welcoming a worker, giving it items, moving its machine, telling it to quit.

use std::sync::Arc;

use musec_protocol::{Action, LaunchId, Outcome, Reply, Tail, Welcome, limits};
use musec_trace::{AttemptOutcome, CTime, EndCause, Event, Failure, Timer, WaitReason};

use super::attempt::{AttemptState, Outstanding, Purpose};
use super::io::Output;
use super::steps::Answered;
use super::{Fleet, QUIT_TIME_MAX};
use crate::machine::{Advance, Facts, Machine};
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
            hears_notes: self.hears_notes(launch),
        };
        self.outputs.push_back(Output::Welcome(launch, Box::new(welcome)));
        self.give_work(now, launch);
    }

    /// Whether an attempt's program waits for what user code tells.
    fn hears_notes(&self, launch: LaunchId) -> bool {
        let wave = self.attempt(launch).and_then(|attempt| self.program.wave(attempt.wave));
        wave.is_some_and(|wave| !wave.infos.is_empty())
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
        if is_queue && item.is_some() && !self.wave(wave).wants_launch() {
            // Workers that would have been launched for it will not come.
            self.touch_barriers(wave, launch);
        }
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
        let command = match attempt.take_answered(&reply) {
            Ok(command) => command,
            Err(error) => {
                let (id, outcome) = (reply.id, AttemptOutcome::Failed);
                let objects = u32::try_from(reply.objects.len()).unwrap_or(u32::MAX);
                self.record(now, Event::WrongReply { launch, t3, id, objects });
                self.give_up(now, launch, EndCause::Protocol, outcome, error);
                return;
            }
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

    /// Records a reply; its outputs go beside the journal, and into it only when they are needed.
    pub(super) fn keep_reply(
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

    /// An error with the item that it befell, where each item is a word of the command line.
    pub(super) fn of_item(&self, launch: LaunchId, error: String) -> String {
        let machine = self.attempt(launch).and_then(|attempt| attempt.machine.as_ref());
        match machine.and_then(|machine| machine.item_in_words(&self.program)) {
            Some(item) => format!("{item}: {error}"),
            None => error,
        }
    }

    /// The steps of `setup` are over: on to the first item. What they left stays.
    pub(super) fn setup_is_over(&mut self, now: CTime, launch: LaunchId) {
        if self.keeps_scratch(launch) {
            self.between_items(now, launch, Action::Echo(Vec::new()));
        } else {
            self.between_items(now, launch, Action::Mark);
        }
    }

    /// An item, or the worker's whole program, is over: on to the next item, or quit.
    pub(super) fn item_is_over(&mut self, now: CTime, launch: LaunchId) {
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
    pub(super) fn put_by(&mut self, now: CTime, launch: LaunchId, keys: &[String]) {
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
