//! One record into the fold.

use musec_trace::{
    CTime, CommandId, Event, Failure, Joined, LaunchId, Queued, Record, Reply, RunStarted,
    RunStatus, Sample, StateId, WaitReason, WaveId, WorkerId,
};

use super::live::status;
use super::{
    Attempt, Awaited, Ended, Given, Move, Print, Pulse, QueuedFacts, ReplyFacts, SamplePoint,
    State, Trace, Wait, Wave,
};

/// Commands among which those of an `await` are looked for, from the last one back: it bounds what
/// one record costs.
const AWAIT_SEARCH_MAX: usize = 4096;

impl Trace {
    /// Folds one record. Any record is accepted in any order.
    pub fn apply(&mut self, record: &Record) {
        let at = record.at;
        self.last = self.last.max(at);
        match &record.event {
            Event::RunStarted(run) => self.start(at, run),
            Event::StateNamed { state, wave, name } => self.name_state(*state, *wave, name),
            Event::WaveStarted { wave, name, first_worker, workers, items } => {
                self.start_wave(at, (*wave, name), *first_worker, *workers, *items);
            }
            Event::WaveEnded { wave } => {
                let wave = self.waves.entry(*wave).or_default();
                wave.ended.get_or_insert(at);
            }
            Event::WaveSkipped { wave, name, reason } => {
                let wave = self.wave(*wave, name);
                wave.skipped.get_or_insert_with(|| reason.clone());
                wave.skipped_at.get_or_insert(at);
            }
            Event::Printed { launch, text, total_bytes } => {
                self.print(at, *launch, text, *total_bytes);
            }
            Event::Failure(failure) => self.fail(at, failure),
            Event::Sample(sample) => self.sample(at, sample),
            Event::Cancelled { cause } => {
                self.cancelled.get_or_insert_with(|| (at, cause.clone()));
            }
            Event::RunEnded { status } => self.end(at, *status),
            Event::LaneNamed { wave, path, name } => self.name_lane(*wave, path, name),
            // What the program says, not the run.
            Event::Given { .. } | Event::Released { .. } => {}
            // Inputs of decisions; what follows from them is told by other records.
            Event::Listed { .. }
            | Event::Read { .. }
            | Event::TimerFired { .. }
            | Event::Closed { .. }
            | Event::Exited { .. }
            | Event::Output { .. } => {}
            Event::Requested { launch, worker, attempt, wave } => {
                self.request(Attempt::new(at, *launch, *worker, *attempt, *wave));
            }
            Event::Accepted { launch, .. }
            | Event::NotLaunched { launch, .. }
            | Event::Transition { launch, .. } => {
                self.change(*launch, |attempt| attempt.hear(at, &record.event));
            }
            Event::Joined(joined) => self.change(joined.launch, |attempt| attempt.join(joined)),
            Event::Ended { launch, .. } => {
                self.change(*launch, |attempt| attempt.hear(at, &record.event));
                self.forget_outstanding(*launch);
            }
            Event::Queued(queued) => self.note(queued.launch, |attempt| attempt.queue(at, queued)),
            Event::Sent { launch, id, t0 } => self.sent(*launch, *id, *t0),
            Event::Replied { launch, t3, reply } => self.replied(*launch, *t3, reply),
            Event::ItemGiven { launch, .. }
            | Event::Pulse { launch, .. }
            | Event::Stalled { launch, .. }
            | Event::Frozen { launch, .. }
            | Event::Forked { launch, .. }
            | Event::Merged { launch, .. }
            | Event::Arrived { launch, .. }
            | Event::Info { launch, .. }
            | Event::Garbled { launch, .. }
            | Event::WrongReply { launch, .. }
            | Event::Begun { launch, .. }
            | Event::Awaited { launch, .. }
            | Event::Waiting { launch, .. } => {
                self.note(*launch, |attempt| attempt.hear(at, &record.event));
            }
        }
    }

    fn end(&mut self, at: CTime, status: RunStatus) {
        self.ended.get_or_insert((at, status));
    }

    fn name_state(&mut self, state: StateId, wave: WaveId, name: &str) {
        self.states.entry(state).or_insert_with(|| State { wave, name: name.to_owned() });
    }

    fn name_lane(&mut self, wave: WaveId, path: &[u32], name: &str) {
        self.lanes.entry((wave, path.to_vec())).or_insert_with(|| name.to_owned());
    }

    fn start_wave(
        &mut self,
        at: CTime,
        (wave, name): (WaveId, &str),
        first_worker: WorkerId,
        workers: u32,
        items: u64,
    ) {
        let wave = self.wave(wave, name);
        if wave.started.is_none() {
            wave.started = Some(at);
            wave.first_worker = first_worker;
            wave.workers = workers;
            wave.items = items;
        }
    }

    fn print(&mut self, at: CTime, launch: LaunchId, text: &[u8], total_bytes: u64) {
        let cut_bytes = total_bytes.saturating_sub(text.len() as u64);
        self.prints.push(Print { at, launch, text: text.to_vec(), cut_bytes });
    }

    fn start(&mut self, at: CTime, run: &RunStarted) {
        if self.run.is_none() {
            self.run = Some((at, Box::new(run.clone())));
        }
    }

    fn wave(&mut self, wave: WaveId, name: &str) -> &mut Wave {
        let wave = self.waves.entry(wave).or_default();
        if wave.name.is_empty() {
            name.clone_into(&mut wave.name);
        }
        wave
    }

    fn sample(&mut self, at: CTime, sample: &Sample) {
        self.samples.push(SamplePoint {
            at,
            cpu_ns: sample.cpu_ns,
            lag_p99_ns: sample.lag_p99_ns,
            lag_max_ns: sample.lag_max_ns,
            clock_gap_ns: sample.clock_gap_ns,
        });
        self.last_sample = Some(Box::new(sample.clone()));
    }

    fn request(&mut self, attempt: Attempt) {
        let (launch, worker, number) = (attempt.launch, attempt.worker, attempt.number);
        if self.attempts.contains_key(&launch) {
            return;
        }
        self.attempts.insert(launch, attempt);
        let attempts = &self.attempts;
        let launches = &mut self.workers.entry(worker).or_default().attempts;
        let place = launches.partition_point(|other| {
            attempts.get(other).is_some_and(|other| (other.number, other.launch) < (number, launch))
        });
        launches.insert(place, launch);
        self.refresh(worker);
    }

    /// Changes an attempt, and what its worker counts as.
    fn change(&mut self, launch: LaunchId, change: impl FnOnce(&mut Attempt)) {
        let Some(attempt) = self.attempts.get_mut(&launch) else {
            self.strays = self.strays.saturating_add(1);
            return;
        };
        change(attempt);
        let worker = attempt.worker;
        let now = (attempt.wave, status(attempt));
        match self.workers.get_mut(&worker) {
            // Its only attempt is the one by which it counts: nothing more to look up.
            Some(known) if known.attempts == [launch] => known.count(&mut self.live, now),
            Some(_) | None => self.refresh(worker),
        }
    }

    /// Changes an attempt where that cannot change what its worker counts as.
    fn note(&mut self, launch: LaunchId, change: impl FnOnce(&mut Attempt)) {
        match self.attempts.get_mut(&launch) {
            Some(attempt) => change(attempt),
            None => self.strays = self.strays.saturating_add(1),
        }
    }

    fn sent(&mut self, launch: LaunchId, id: CommandId, t0: CTime) {
        let mut sent = false;
        self.note(launch, |attempt| sent = attempt.send(id, t0));
        if sent {
            self.live.begin(t0, launch, id);
        }
    }

    fn fail(&mut self, at: CTime, failure: &Failure) {
        let attempt = self.attempts.get(&failure.launch);
        let command = |id| attempt.and_then(|attempt| attempt.commands.get(&id));
        if let Some(id) = failure.command
            && command(id).is_some_and(|command| command.reply.is_none())
        {
            self.unheard.insert((failure.launch, id), self.failures.len());
        }
        self.failures.push((at, failure.clone()));
    }

    fn replied(&mut self, launch: LaunchId, t3: CTime, reply: &Reply) {
        // Whose time was over replies when it was killed: its last lines come after the failure.
        if let Some(place) = self.unheard.remove(&(launch, reply.id))
            && let Some((_, failure)) = self.failures.get_mut(place)
        {
            failure.output = reply.last_output();
        }
        let mut began = None;
        self.note(launch, |attempt| began = attempt.reply(t3, reply));
        if let Some(t0) = began {
            self.live.finish(t0, launch, reply.id);
        }
    }

    fn forget_outstanding(&mut self, launch: LaunchId) {
        let Some(attempt) = self.attempts.get_mut(&launch) else {
            return;
        };
        for id in std::mem::take(&mut attempt.outstanding) {
            let t0 = attempt.commands.get(&id).and_then(|command| command.t0);
            self.live.finish(t0.unwrap_or_default(), launch, id);
        }
    }
}

impl Attempt {
    /// What a record says of this attempt alone.
    fn hear(&mut self, at: CTime, event: &Event) {
        self.moves.extend(Move::of(at, event));
        match event {
            Event::Accepted { accepted, engine_id, .. } => {
                if self.accepted.is_none() {
                    self.accepted = Some(*accepted);
                    self.engine_id.clone_from(engine_id);
                }
            }
            Event::NotLaunched { error, .. } => {
                self.launch_error.get_or_insert_with(|| error.clone());
            }
            Event::Transition { lane, to, .. } => self.enter(lane, *to),
            &Event::Ended { end, last_sign, cause, outcome, .. } => {
                self.ended.get_or_insert(Ended { end, last_sign, cause, outcome });
            }
            Event::ItemGiven { item, value_json, .. } => {
                self.items.push(Given { at, item: *item, value_json: value_json.clone() });
            }
            &Event::Pulse { t0, t3, received, encoded, clock_gap_ns, .. } => {
                self.pulse(Pulse { t0, t3, received, encoded, clock_gap_ns });
            }
            Event::Stalled { from, to, .. } => {
                self.stalls.push((*from, *to));
                self.last_sign = self.last_sign.max(at);
            }
            Event::Frozen { since, thawed, .. } => {
                self.frozen = (!thawed).then_some(*since);
                self.freezes = self.freezes.saturating_add(u32::from(!thawed));
            }
            Event::Waiting { reason, .. } => self.wait(at, *reason),
            Event::Awaited { lane, background, .. } => self.awaited(at, lane, *background),
            Event::Info { .. } | Event::Garbled { .. } | Event::WrongReply { .. } => {
                self.last_sign = self.last_sign.max(at);
            }
            // These say more than one thing, or are of the run: see `Trace::apply`; or they are
            // moves and nothing else.
            Event::RunStarted(_)
            | Event::Forked { .. }
            | Event::Arrived { .. }
            | Event::Merged { .. }
            | Event::Begun { .. }
            | Event::StateNamed { .. }
            | Event::LaneNamed { .. }
            | Event::Released { .. }
            | Event::WaveStarted { .. }
            | Event::WaveEnded { .. }
            | Event::WaveSkipped { .. }
            | Event::Closed { .. }
            | Event::Exited { .. }
            | Event::Requested { .. }
            | Event::Joined(_)
            | Event::Queued(_)
            | Event::Sent { .. }
            | Event::Replied { .. }
            | Event::TimerFired { .. }
            | Event::Failure(_)
            | Event::Printed { .. }
            | Event::Listed { .. }
            | Event::Read { .. }
            | Event::Given { .. }
            | Event::Sample(_)
            | Event::Cancelled { .. }
            | Event::Output { .. }
            | Event::RunEnded { .. } => {}
        }
    }

    fn wait(&mut self, from: CTime, reason: WaitReason) {
        self.waits.push(Wait { from, to: None, reason });
    }

    fn join(&mut self, joined: &Joined) {
        if self.hello.is_some() {
            return;
        }
        self.tcp = Some(joined.tcp);
        self.tls = Some(joined.tls);
        self.hello_at = Some(joined.t3);
        self.hello = Some(Box::new(joined.hello.clone()));
        self.last_sign = self.last_sign.max(joined.t3);
    }

    fn enter(&mut self, lane: &[u32], to: Option<StateId>) {
        let Some(state) = to else {
            self.present.remove(lane);
            return;
        };
        self.present.insert(lane.to_vec(), state);
        let entered = self.entered.entry(state).or_default();
        *entered = entered.saturating_add(1);
    }

    fn awaited(&mut self, at: CTime, lane: &[u32], background: u32) {
        let path = [lane, &[background]].concat();
        // Its reply has just come, or a while ago: both are among the last commands.
        let last = || self.commands.values().rev().take(AWAIT_SEARCH_MAX);
        let sent = last().find(|command| command.lane() == path).and_then(|command| command.t0);
        let replies = last().filter(|command| command.lane() == lane);
        let replied = replies.filter_map(|command| Some(command.reply.as_ref()?.t3)).next();
        let from = sent.max(replied).unwrap_or(at).min(at);
        self.awaits.push(Awaited { from, to: at });
    }

    fn pulse(&mut self, pulse: Pulse) {
        self.last_sign = self.last_sign.max(pulse.t3);
        self.pulses.push(pulse);
    }

    fn queue(&mut self, at: CTime, queued: &Queued) {
        for wait in self.waits.iter_mut().rev() {
            if wait.to.is_some() {
                break;
            }
            wait.to = Some(at);
        }
        let command = self.commands.entry(queued.id).or_default();
        if command.queued.is_some() {
            return;
        }
        command.queued = Some(QueuedFacts::from((at, queued)));
        if queued.state.is_some() {
            self.moves.push(Move::Command(queued.id));
        }
        // A journal tells a command before it is sent; other orders give the same result.
        if command.is_quit()
            && let Some(t0) = command.t0
        {
            self.quit_sent.get_or_insert(t0);
        }
    }

    /// Whether it is a command that is now under way.
    fn send(&mut self, id: CommandId, t0: CTime) -> bool {
        let command = self.commands.entry(id).or_default();
        if command.t0.is_some() {
            return false;
        }
        command.t0 = Some(t0);
        if command.is_quit() {
            self.quit_sent.get_or_insert(t0);
        }
        let under_way = command.reply.is_none() && self.ended.is_none();
        under_way && self.outstanding.insert(id)
    }

    /// The t0 of the command that is no longer under way.
    fn reply(&mut self, t3: CTime, reply: &Reply) -> Option<CTime> {
        self.last_sign = self.last_sign.max(t3);
        let command = self.commands.entry(reply.id).or_default();
        if command.reply.is_some() {
            return None;
        }
        command.reply = Some(ReplyFacts::from((t3, reply)));
        let t0 = command.t0?;
        self.outstanding.remove(&reply.id).then_some(t0)
    }
}
