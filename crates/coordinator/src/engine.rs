//! The loop: select what happened, let core decide, perform what it decided.
//!
//! Connections hand in what their peers say where they read it; all else comes through the loop.
//! Invariants: everything core is told and decides is recorded in that order; performing never
//! waits for a peer; work per message does not grow with the number of workers.

mod peers;
mod shared;

use std::collections::VecDeque;
use std::time::Duration;

use musec_core::fleet::{Closed, Fleet, Input, Output};
use musec_core::{Look, Seen};
use musec_protocol::{
    Answer, Command, FromWorker, LaunchId, Refusal, RunId, Ticket, ToWorker, VERSION, limits,
};
use musec_trace::journal::Journal;
use musec_trace::{CClock, CTime, Event, Joined, RunStatus, WaveId};
use tokio::sync::mpsc;

pub(crate) use self::peers::{Batch, Peers};
pub(crate) use self::shared::SharedEngine;
use crate::connection::ConnectionError;
use crate::identity::Identity;
use crate::launcher::{Launcher, LauncherEvent, Spawned};
use crate::listener::Knock;
use crate::recorder::{RecordFailure, Recorder};
use crate::signals::Signals;
use crate::store::Stores;

/// The longest that the loop sleeps: what connections had recorded meanwhile is flushed then.
const TURN_MAX: Duration = Journal::FLUSH_EVERY;

/// Interval of a worker's heartbeats: with the loop's own period that is at least one in
/// [`limits::HEARTBEAT`].
const PING_EVERY: Duration = limits::HEARTBEAT.saturating_sub(TURN_MAX);

/// Workers whose bytes are gathered before they are handed to the sockets.
const UNSENT_MAX: usize = 64;

const PING_EVERY_NS: u64 = 950_000_000;
const _: () = assert!(PING_EVERY.as_nanos() == PING_EVERY_NS as u128);

/// How long a look at a store may take: listing a million files takes seconds, and a disk that has
/// not answered for this long will not.
const LOOK_TIME_MAX: Duration = Duration::from_secs(600);

/// How late the loop may wake, in nanoseconds of C, before that counts as lag: timers tick in
/// milliseconds.
const LATE_NS: u64 = 10_000_000;

/// Everything a run needs while it runs.
pub(crate) struct Engine {
    pub(crate) clock: CClock,
    pub(crate) run: RunId,
    pub(crate) fleet: Fleet,
    pub(crate) recorder: Recorder,
    pub(crate) identity: Identity,
    pub(crate) addresses: Vec<String>,
    pub(crate) launcher: Launcher,
    pub(crate) launcher_events: mpsc::UnboundedSender<LauncherEvent>,
    pub(crate) stores: Stores,
    pub(crate) listings: mpsc::UnboundedSender<Input>,
    pub(crate) peers: Peers,
    pub(crate) batch: Batch,
    /// Whose encrypted bytes are still to be handed to their sockets.
    pub(crate) unsent: Vec<LaunchId>,
    pub(crate) pending: VecDeque<Input>,
    /// Whose heartbeat is due when, in this order.
    pub(crate) pings: VecDeque<(CTime, LaunchId)>,
    /// Until when the loop sleeps.
    pub(crate) asleep_until: CTime,
    pub(crate) finished: Option<RunStatus>,
    pub(crate) record_failure: Option<RecordFailure>,
}

/// Where the loop's inputs come from.
pub(crate) struct Sources {
    pub(crate) spawned: mpsc::UnboundedReceiver<Spawned>,
    pub(crate) launcher: mpsc::UnboundedReceiver<LauncherEvent>,
    pub(crate) listings: mpsc::UnboundedReceiver<Input>,
    pub(crate) signals: Signals,
    pub(crate) stops: mpsc::UnboundedReceiver<String>,
}

impl Engine {
    /// Does what is due, and says how long nothing will be.
    fn turn(&mut self) -> Duration {
        let now = self.clock.now();
        self.ping_due(now);
        if self.fleet.next_deadline().is_some_and(|due| due <= now) {
            self.fleet.tick(now);
        }
        self.perform();
        if self.record_failure.is_none()
            && let Some(failed) = self.recorder.take_failure()
        {
            let RecordFailure { path, failure } = &failed;
            let cause = format!("{} cannot be written: {failure}", path.display());
            self.tell(Input::Cancel { cause });
            self.record_failure = Some(failed);
            self.perform();
        }
        if self.recorder.is_sample_due(now) {
            self.recorder.sample(now, self.peers.traffic());
        }
        self.flush();
        let due = self.recorder.tick(now).min(now.after(TURN_MAX));
        let due = self.fleet.next_deadline().map_or(due, |deadline| deadline.min(due));
        self.asleep_until = due;
        Duration::from_nanos(due.since(now))
    }

    /// Whether the loop sleeps for too long, now that something was handled.
    fn must_rouse(&self) -> bool {
        let is_due = |due| due < self.asleep_until;
        self.finished.is_some() || self.fleet.next_deadline().is_some_and(is_due)
    }

    /// A coordinator that was stopped, or starved of CPU, sees no message wait: its own deadlines
    /// tell that it was late.
    fn note_lateness(&mut self) {
        let late_ns = self.clock.now().since(self.asleep_until);
        if late_ns > LATE_NS {
            self.recorder.lag.add(late_ns);
        }
        let late = Duration::from_nanos(late_ns);
        if late > limits::FROZEN_AFTER {
            tracing::warn!(
                "this process itself stood still for {} s (suspended, or without a processor); \
                 workers end when they have not heard of it for {} s",
                late.as_secs(),
                limits::SILENCE_MAX.as_secs(),
            );
        }
    }

    /// Ends the launcher, then the journal, so that a run is over when its journal's lock is free.
    pub(crate) async fn close(mut self) -> Result<(), RecordFailure> {
        self.recorder.sample(self.clock.now(), self.peers.traffic());
        self.launcher.finish().await;
        let failure = self.record_failure.take().or_else(|| self.recorder.take_failure());
        let closed = self.recorder.close();
        failure.map_or(closed, Err)
    }

    fn tell(&mut self, input: Input) {
        self.fleet.handle(self.clock.now(), input);
    }

    fn spawned(&mut self, spawned: Spawned) {
        let events = &self.launcher_events;
        if let Some(event) = self.launcher.spawned(spawned, self.clock, events) {
            self.launcher_event(event);
        }
    }

    fn launcher_event(&mut self, event: LauncherEvent) {
        let input = match event {
            LauncherEvent::Accepted { launch, at, engine_id } => {
                Input::Accepted { launch, at, engine_id }
            }
            LauncherEvent::NotLaunched { launch, error } => Input::NotLaunched { launch, error },
            LauncherEvent::Exited { launch, at } => {
                Input::Exited { launch, at, status: self.launcher.reap(launch) }
            }
            LauncherEvent::GuardGone => return self.launcher.restart_guard(),
        };
        self.tell(input);
    }

    /// Tells core what a worker said; nothing is performed yet.
    fn frame(&mut self, launch: LaunchId, t3: CTime, message: FromWorker) {
        let input = match message {
            FromWorker::Reply(reply) => {
                self.peers.entry(launch).heard = t3;
                Input::Replied { launch, t3, reply: Box::new(reply) }
            }
            FromWorker::Stall(stall) => {
                if self.peers.has_time_to_stall(launch, t3) {
                    Input::Stalled { launch, t3, stall }
                } else {
                    self.broken(launch, t3, "it reported more stalls than time has passed")
                }
            }
            FromWorker::Note(note) => Input::Noted { launch, t3, note: note.into() },
            FromWorker::Pong(pong) => {
                let peer = self.peers.entry(launch);
                match peer.ping.take_if(|(seq, _)| *seq == pong.seq) {
                    Some((_, t0)) => Input::Pulsed { launch, t0, t3, pong },
                    None => self.broken(launch, t3, "it answered a heartbeat that was not sent"),
                }
            }
            FromWorker::Hello(_) => self.broken(launch, t3, "it said hello twice"),
        };
        self.tell(input);
    }

    fn broken(&mut self, launch: LaunchId, at: CTime, why: &str) -> Input {
        self.forget(launch);
        Input::Closed { launch, at, why: Closed::Protocol(why.into()) }
    }

    /// Decides on a peer that has a certificate of this run; whether it may stay.
    fn knock(&mut self, knock: Knock) -> bool {
        let launch = knock.preamble.launch;
        let answer = |refusal| Answer { version: VERSION, refusal }.to_bytes();
        if let Err(refusal) = self.admit(&knock) {
            self.recorder.refuse(refusal.reason());
            // The peer may be gone already, which is as good.
            drop(knock.connection.send(&answer(Some(refusal))));
            knock.connection.close();
            return false;
        }
        let at = knock.t3;
        let joined = Joined { launch, tcp: knock.tcp, tls: knock.tls, t3: at, hello: knock.hello };
        let sent = knock.connection.send(&answer(None));
        let peer = self.peers.entry(launch);
        peer.connection = Some(knock.connection);
        peer.joined = at;
        self.pings.push_back((self.clock.now().after(PING_EVERY), launch));
        self.tell(Input::Joined(Box::new(joined)));
        if let Err(error) = sent {
            self.pending.push_back(lost(launch, at, &error.to_string()));
        }
        self.perform();
        true
    }

    fn admit(&mut self, knock: &Knock) -> Result<(), Refusal> {
        let preamble = knock.preamble;
        if !preamble.is_spoken() {
            return Err(Refusal::Version);
        }
        if preamble.run != self.run {
            return Err(Refusal::Run);
        }
        let issued = self.peers.known(preamble.launch).and_then(|peer| peer.certificate.as_ref());
        if issued.is_none() || issued != knock.connection.peer_certificate().as_ref() {
            return Err(Refusal::Certificate);
        }
        self.fleet.may_join(preamble.launch)
    }

    /// Performs what the fleet decided, and what came of performing it.
    fn perform(&mut self) {
        loop {
            while let Some(output) = self.fleet.poll_output() {
                self.perform_one(output);
            }
            self.send_batch();
            let Some(input) = self.pending.pop_front() else { return };
            self.tell(input);
        }
    }

    fn perform_one(&mut self, output: Output) {
        match output {
            Output::Record(at, event) => self.recorder.record(at, event),
            Output::KeepOutput { launch, id, stdout, stderr } => {
                self.recorder.keep_output(self.clock.now(), launch, id, [stdout, stderr]);
            }
            Output::Launch(launch) => self.launch(launch),
            Output::Welcome(launch, welcome) => {
                self.send(launch, &ToWorker::Welcome(*welcome));
            }
            Output::Send(launch, command) => self.send_command(launch, *command),
            Output::Hangup(launch) => {
                self.send_batch();
                self.flush();
                self.forget(launch);
            }
            Output::Stop(launch) => self.launcher.stop(launch),
            Output::Look { wave, look } => self.look(wave, look),
            Output::Sync => self.recorder.sync(),
            Output::Finished(status) => self.finished = Some(status),
        }
    }

    fn launch(&mut self, launch: LaunchId) {
        let launched = self.identity.issue(launch).map_err(|error| error.to_string());
        let launched = launched.and_then(|identity| {
            let ticket = Ticket {
                run: self.run,
                launch,
                addresses: self.addresses.clone(),
                ca_der: self.identity.authority_der().to_vec(),
                certificate_der: identity.certificate.to_vec(),
                key_pkcs8: identity.key_pkcs8,
                scratch_root: bytes_of(self.launcher.scratch_root()),
                guard_socket: bytes_of(&self.launcher.guard_socket()),
            };
            self.peers.entry(launch).certificate = Some(identity.certificate);
            self.launcher.launch(launch, &ticket, self.clock, &self.launcher_events)
        });
        if let Err(error) = launched {
            self.pending.push_back(Input::NotLaunched { launch, error });
        }
    }

    fn send_command(&mut self, launch: LaunchId, command: Command) {
        let id = command.id;
        if let Some(t0) = self.send(launch, &ToWorker::Command(command)) {
            self.recorder.record_on(Event::Sent { launch, id, t0 });
        }
    }

    /// Adds a message to those that go to its worker together, and returns t0, C: before its first
    /// byte went to TLS. Nothing is sent to a worker without a connection.
    fn send(&mut self, launch: LaunchId, message: &ToWorker) -> Option<CTime> {
        if !self.batch.is_for(launch) {
            self.send_batch();
        }
        let t0 = self.clock.now();
        let peer = self.peers.known(launch)?;
        peer.connection.as_ref()?;
        peer.sent = t0;
        let added = self.batch.add(launch, message);
        if let Err(error) = added {
            self.broken_off(launch, &error.into());
            return None;
        }
        Some(t0)
    }

    /// Encrypts what was gathered for one worker; it leaves with [`Self::flush`].
    fn send_batch(&mut self) {
        let Some(launch) = self.batch.launch() else { return };
        let connection = self.peers.known(launch).and_then(|peer| peer.connection.as_ref());
        let sent = connection.map_or(Ok(()), |connection| self.batch.encrypt(connection));
        self.batch.clear();
        match sent {
            Ok(()) => self.unsent.push(launch),
            Err(error) => self.broken_off(launch, &error),
        }
        if self.unsent.len() >= UNSENT_MAX {
            self.flush();
        }
    }

    /// Hands all that is encrypted to the sockets: many in a row, for the kernel's code and ours
    /// drive each other out of the processor's caches.
    fn flush(&mut self) {
        while let Some(launch) = self.unsent.pop() {
            let connection = self.peers.known(launch).and_then(|peer| peer.connection.as_ref());
            if let Some(Err(error)) = connection.map(|connection| connection.flush()) {
                self.broken_off(launch, &error);
            }
        }
    }

    fn broken_off(&mut self, launch: LaunchId, error: &ConnectionError) {
        self.forget(launch);
        self.pending.push_back(lost(launch, self.clock.now(), &error.to_string()));
    }

    /// Sends the heartbeats that are due, to workers that have answered the one before and have
    /// not just answered a command.
    fn ping_due(&mut self, now: CTime) {
        while let Some((_, launch)) = self.pings.pop_front_if(|(due, _)| *due <= now) {
            let Some(peer) = self.peers.known(launch) else { continue };
            if peer.connection.is_none() {
                continue;
            }
            self.pings.push_back((now.after(PING_EVERY), launch));
            let before = CTime::from_ns(now.ns.saturating_sub(PING_EVERY_NS));
            if peer.ping.is_some() || peer.has_exchanged_since(before) {
                continue;
            }
            let seq = peer.pings;
            peer.pings += 1;
            if let Some(t0) = self.send(launch, &ToWorker::Ping(seq)) {
                self.peers.entry(launch).ping = Some((seq, t0));
            }
        }
        self.send_batch();
    }

    /// Closes an attempt's connection; its place cannot be taken again.
    fn forget(&mut self, launch: LaunchId) {
        self.peers.forget(launch);
    }

    fn look(&self, wave: WaveId, look: Box<Look>) {
        let (stores, listings) = (self.stores.clone(), self.listings.clone());
        let looking = tokio::task::spawn_local(async move {
            let seen = match *look {
                Look::Keys(glob) => stores.list(&glob).await.map(Seen::Keys),
                Look::Text { place, key } => stores.read(place, &key).await.map(Seen::Text),
            };
            seen.map_err(|error| in_words(&error))
        });
        // Whatever becomes of the look, there is an answer: the wave waits for nothing else.
        tokio::task::spawn_local(async move {
            let seen = match tokio::time::timeout(LOOK_TIME_MAX, looking).await {
                Ok(Ok(seen)) => seen,
                Ok(Err(error)) => Err(format!("its items could not be looked up: {error}")),
                Err(_) => Err(format!("its items were looked up for {LOOK_TIME_MAX:?} in vain")),
            };
            drop(listings.send(Input::Seen { wave, seen }));
        });
    }
}

/// An error with what caused it.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        words = format!("{words}: {inner}");
        source = inner.source();
    }
    words
}

fn lost(launch: LaunchId, at: CTime, why: &str) -> Input {
    Input::Closed { launch, at, why: Closed::Lost(why.into()) }
}

pub(crate) fn bytes_of(path: &std::path::Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}
