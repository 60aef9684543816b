//! The loop: select what happened, let core decide, perform what it decided.
//!
//! Invariants: everything core is told and decides is recorded in that order; performing never
//! waits for a peer; work per message does not grow with the number of workers.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use musec_core::fleet::{Closed, Fleet, Input, Output};
use musec_core::{Look, Seen};
use musec_protocol::{
    Answer, Command, FromWorker, LaunchId, Refusal, RunId, Ticket, ToWorker, VERSION, limits,
};
use musec_trace::{CClock, CTime, Event, Joined, RunStatus, WaveId};
use rustls::pki_types::CertificateDer;
use tokio::sync::mpsc;

use crate::connection::{Connection, Counts};
use crate::identity::Identity;
use crate::launcher::{LauncherEvent, Local, Spawned};
use crate::listener::{Knock, Message};
use crate::recorder::{RecordFailure, Recorder, Traffic};
use crate::signals::Signals;
use crate::store::Stores;

/// Messages of connections that wait for the loop; their senders wait when it is full.
pub(crate) const MESSAGES_MAX: usize = 1024;

/// Messages handled between two looks at everything else.
const BATCH_MAX: usize = 256;

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
    pub(crate) launcher: Local,
    pub(crate) launcher_events: mpsc::UnboundedSender<LauncherEvent>,
    pub(crate) stores: Stores,
    pub(crate) listings: mpsc::UnboundedSender<Input>,
    pub(crate) peers: Peers,
    pub(crate) pending: VecDeque<Input>,
    pub(crate) next_ping: CTime,
    pub(crate) finished: Option<RunStatus>,
    pub(crate) record_failure: Option<RecordFailure>,
}

/// Where the loop's inputs come from.
pub(crate) struct Sources {
    pub(crate) messages: mpsc::Receiver<Message>,
    pub(crate) spawned: mpsc::UnboundedReceiver<Spawned>,
    pub(crate) launcher: mpsc::UnboundedReceiver<LauncherEvent>,
    pub(crate) listings: mpsc::UnboundedReceiver<Input>,
    pub(crate) signals: Signals,
    pub(crate) stops: mpsc::UnboundedReceiver<String>,
}

/// What is known of each attempt's connection, by launch.
#[derive(Default)]
pub(crate) struct Peers(Vec<Peer>, Traffic);

#[derive(Default)]
struct Peer {
    certificate: Option<CertificateDer<'static>>,
    connection: Option<Rc<Connection>>,
    /// The heartbeat under way, with its t0.
    ping: Option<(u64, CTime)>,
    pings: u64,
}

impl Peers {
    fn entry(&mut self, launch: LaunchId) -> &mut Peer {
        let index = usize::try_from(launch.0).unwrap_or(usize::MAX);
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Peer::default);
        }
        &mut self.0[index]
    }

    fn known(&mut self, launch: LaunchId) -> Option<&mut Peer> {
        self.0.get_mut(usize::try_from(launch.0).ok()?)
    }

    /// All connections, those that are gone included in the bytes.
    fn traffic(&self) -> Traffic {
        let connections = self.0.iter().filter_map(|peer| peer.connection.as_ref());
        connections.fold(self.1, |sum, connection| sum.with(connection.counts(), 1))
    }
}

impl Traffic {
    fn with(self, counts: &Counts, connections: u32) -> Self {
        Self {
            connections: self.connections + connections,
            bytes_in: self.bytes_in + counts.bytes_in.get(),
            bytes_out: self.bytes_out + counts.bytes_out.get(),
        }
    }
}

impl Engine {
    /// Runs until the fleet says that the run is over, and closes the journal.
    ///
    /// # Errors
    /// If the journal could not be written to its end.
    pub(crate) async fn run(mut self, mut sources: Sources) -> Result<RunStatus, RecordFailure> {
        let status = self.run_loop(&mut sources).await;
        self.close().await?;
        Ok(status)
    }

    async fn run_loop(&mut self, sources: &mut Sources) -> RunStatus {
        self.tell(Input::Start);
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            self.perform();
            if let Some(status) = self.finished {
                return status;
            }
            let wait = self.sleep();
            let due = self.clock.now().after(wait);
            tokio::select! {
                biased;
                cause = sources.signals.next() => self.tell(Input::Cancel { cause }),
                Some(cause) = sources.stops.recv() => self.tell(Input::Cancel { cause }),
                Some(spawned) = sources.spawned.recv() => {
                    let event = self.launcher.spawned(spawned, self.clock, &self.launcher_events);
                    self.launcher_event(event);
                }
                Some(event) = sources.launcher.recv() => self.launcher_event(event),
                Some(input) = sources.listings.recv() => self.tell(input),
                _ = sources.messages.recv_many(&mut batch, BATCH_MAX) => {
                    for message in batch.drain(..) {
                        self.message(message);
                        self.perform();
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
            self.note_lateness(due);
        }
    }

    /// A coordinator that was stopped, or starved of CPU, sees no message wait: its own deadlines
    /// tell that it was late.
    fn note_lateness(&mut self, due: CTime) {
        let late_ns = self.clock.now().since(due);
        if late_ns > LATE_NS {
            self.recorder.lag.add(late_ns);
        }
    }

    /// Does what is due, and says how long nothing will be.
    fn sleep(&mut self) -> Duration {
        let now = self.clock.now();
        if self.next_ping <= now {
            self.ping_all();
            self.next_ping = now.after(limits::HEARTBEAT);
        }
        if self.fleet.next_deadline().is_some_and(|due| due <= now) {
            self.fleet.tick(now);
            self.perform();
        }
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
        let due = self.recorder.tick(now).min(self.next_ping);
        let due = self.fleet.next_deadline().map_or(due, |deadline| deadline.min(due));
        Duration::from_nanos(due.since(now))
    }

    /// Ends the launcher, then the journal, so that a run is over when its journal's lock is free.
    async fn close(mut self) -> Result<(), RecordFailure> {
        self.recorder.sample(self.clock.now(), self.peers.traffic());
        self.launcher.finish().await;
        let failure = self.record_failure.take().or_else(|| self.recorder.take_failure());
        let closed = self.recorder.close();
        failure.map_or(closed, Err)
    }

    fn tell(&mut self, input: Input) {
        self.fleet.handle(self.clock.now(), input);
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

    fn message(&mut self, message: Message) {
        let now = self.clock.now();
        match message {
            Message::Frame { launch, t3, message } => {
                self.recorder.lag.add(now.since(t3));
                self.frame(now, launch, t3, message);
            }
            Message::Knock(knock) => self.knock(*knock),
            Message::Closed { launch, at, why } => {
                self.forget(launch);
                self.fleet.handle(now, Input::Closed { launch, at, why });
            }
            Message::Refused(reason) => self.recorder.refuse(reason),
        }
    }

    fn frame(&mut self, now: CTime, launch: LaunchId, t3: CTime, message: FromWorker) {
        let input = match message {
            FromWorker::Reply(reply) => Input::Replied { launch, t3, reply: Box::new(reply) },
            FromWorker::Stall(stall) => Input::Stalled { launch, t3, stall },
            FromWorker::Pong(pong) => {
                let peer = self.peers.entry(launch);
                match peer.ping.take_if(|(seq, _)| *seq == pong.seq) {
                    Some((_, t0)) => Input::Pulsed { launch, t0, t3, pong },
                    None => self.broken(launch, t3, "it answered a heartbeat that was not sent"),
                }
            }
            FromWorker::Hello(_) => self.broken(launch, t3, "it said hello twice"),
        };
        self.fleet.handle(now, input);
    }

    fn broken(&mut self, launch: LaunchId, at: CTime, why: &str) -> Input {
        self.forget(launch);
        Input::Closed { launch, at, why: Closed::Protocol(why.into()) }
    }

    /// Decides on a peer that has a certificate of this run.
    fn knock(&mut self, knock: Knock) {
        let launch = knock.preamble.launch;
        let answer = |refusal| Answer { version: VERSION, refusal }.to_bytes();
        if let Err(refusal) = self.admit(&knock) {
            self.recorder.refuse(refusal.reason());
            // The peer may be gone already, which is as good.
            drop(knock.connection.send_bytes(&answer(Some(refusal))));
            knock.connection.close();
            return;
        }
        let at = knock.t3;
        let joined = Joined { launch, tcp: knock.tcp, tls: knock.tls, t3: at, hello: knock.hello };
        let sent = knock.connection.send_bytes(&answer(None));
        self.peers.entry(launch).connection = Some(knock.connection);
        self.tell(Input::Joined(Box::new(joined)));
        if let Err(error) = sent {
            self.pending.push_back(lost(launch, at, &error.to_string()));
        }
        if knock.let_in.send(launch).is_err() {
            self.pending.push_back(lost(launch, at, "connection closed"));
        }
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
                let welcome = ToWorker::Welcome(*welcome);
                self.send(launch, &welcome);
            }
            Output::Send(launch, command) => self.send_command(launch, *command),
            Output::Hangup(launch) => self.forget(launch),
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
            self.launcher.launch(launch, &ticket)
        });
        if let Err(error) = launched {
            self.pending.push_back(Input::NotLaunched { launch, error });
        }
    }

    fn send_command(&mut self, launch: LaunchId, command: Command) {
        let id = command.id;
        if let Some(t0) = self.send(launch, &ToWorker::Command(command)) {
            self.recorder.record(self.clock.now(), Event::Sent { launch, id, t0 });
        }
    }

    fn send(&mut self, launch: LaunchId, message: &ToWorker) -> Option<CTime> {
        let connection = self.peers.entry(launch).connection.clone()?;
        match connection.send(message) {
            Ok(t0) => Some(t0),
            Err(error) => {
                self.forget(launch);
                self.pending.push_back(lost(launch, self.clock.now(), &error.to_string()));
                None
            }
        }
    }

    /// Sends a heartbeat to each worker that has answered the one before.
    fn ping_all(&mut self) {
        let mut failed = Vec::new();
        for (launch, peer) in (0..).map(LaunchId).zip(&mut self.peers.0) {
            let Some(connection) = &peer.connection else { continue };
            if peer.ping.is_some() {
                continue;
            }
            let seq = peer.pings;
            match connection.send(&ToWorker::Ping(seq)) {
                Ok(t0) => {
                    peer.ping = Some((seq, t0));
                    peer.pings += 1;
                }
                Err(error) => failed.push((launch, error)),
            }
        }
        for (launch, error) in failed {
            self.forget(launch);
            self.pending.push_back(lost(launch, self.clock.now(), &error.to_string()));
        }
        self.perform();
    }

    /// Closes an attempt's connection; its place cannot be taken again.
    fn forget(&mut self, launch: LaunchId) {
        let Some(peer) = self.peers.known(launch) else { return };
        peer.certificate = None;
        peer.ping = None;
        let Some(connection) = peer.connection.take() else { return };
        connection.close();
        self.peers.1 = self.peers.1.with(connection.counts(), 0);
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
