//! One session: from the ticket to quit, or to the loss of the coordinator.
//!
//! In: messages of the coordinator. Out: replies through the writer. Invariants: whatever ends the
//! session, all that was started is killed and the scratch folder is gone before it returns; at
//! most [`OUTSTANDING_MAX`] commands wait.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use musec_protocol::limits::SILENCE_MAX;
use musec_protocol::{Action, Command, CommandId, FrameDecoder, Outcome, Ticket, ToWorker, WTime};
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::client::TlsStream;

use crate::clock::WClock;
use crate::connect::{Connected, READ_BYTES, connect_patiently};
use crate::error::WorkerError;
use crate::execute::{Begun, Context, execute};
use crate::guard::GuardLine;
use crate::lanes::Lanes;
use crate::notes::Notes;
use crate::processes::Processes;
use crate::scratch::Scratch;
use crate::stall::{StallWatch, TICK};
use crate::stop::{Reason, Stop};
use crate::store::Stores;
use crate::writer::{Say, Speaker, write_all};

/// Commands without a reply: far more than a pipelined list has, and it bounds the queue.
const OUTSTANDING_MAX: usize = 65_536;

/// How long the end of commands is waited for when the session ends; their processes are killed.
const END_TIME_MAX: Duration = Duration::from_millis(700);

/// How long the last bytes may take to leave.
const WRITE_TIME_MAX: Duration = Duration::from_secs(2);

/// Joins the run that the ticket names, does what it is told, and returns after `quit`.
///
/// # Errors
/// If it could not join, or the session ended in another way.
pub fn run_worker(ticket_text: &str) -> Result<(), WorkerError> {
    let clock = WClock::start();
    let ticket = Ticket::from_text(ticket_text).map_err(WorkerError::Ticket)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(WorkerError::Runtime)?;
    let result = tokio::task::LocalSet::new().block_on(&runtime, join(&ticket, clock));
    runtime.shutdown_background();
    result
}

async fn join(ticket: &Ticket, clock: WClock) -> Result<(), WorkerError> {
    let signalled = signalled()?;
    tokio::pin!(signalled);
    let connected = tokio::select! {
        connected = connect_patiently(ticket, clock) => connected?,
        name = &mut signalled => return Err(WorkerError::Signal(name)),
    };
    let session = Session::begin(ticket, clock, connected).await?;
    session.run(signalled).await
}

/// The name of the first signal that asks this process to end.
fn signalled() -> Result<impl Future<Output = &'static str>, WorkerError> {
    let listen = |kind| signal(kind).map_err(WorkerError::Runtime);
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    // A write beyond the limit of a file's size is an error of that write, and does not kill.
    drop(listen(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            _ = hangup.recv() => "SIGHUP",
        }
    })
}

struct Session {
    context: Rc<Context>,
    reader: ReadHalf<TlsStream<TcpStream>>,
    decoder: FrameDecoder,
    lanes: Rc<Lanes>,
    stops: Rc<RefCell<BTreeMap<CommandId, Rc<Stop>>>>,
    speaker: Speaker,
    writer: tokio::task::JoinHandle<std::io::Result<()>>,
    ticker: tokio::task::JoinHandle<()>,
    /// What hands on what user code tells, where anybody hears it.
    forwarding: Option<tokio::task::AbortHandle>,
}

impl Session {
    async fn begin(
        ticket: &Ticket,
        clock: WClock,
        connected: Connected,
    ) -> Result<Self, WorkerError> {
        let Connected { stream, decoder, welcome } = connected;
        let deadline = welcome.timeout_ms.map(|limit_ms| {
            WTime::from_ns(clock.now().ns.saturating_add(limit_ms.saturating_mul(1_000_000)))
        });
        let root = match ticket.scratch_root.as_slice() {
            [] => std::env::temp_dir().join("musec"),
            path => PathBuf::from(OsString::from_vec(path.to_vec())),
        };
        let name = format!("w{}.{}", welcome.worker, welcome.attempt);
        let scratch = Scratch::create(&root, &name)
            .map_err(|source| WorkerError::Scratch { path: root.join(&name), source })?;
        let marker = OsString::from(format!("{}/{}", ticket.run, ticket.launch));
        let guard = GuardLine::connect(&ticket.guard_socket, &marker, scratch.path()).await;
        if welcome.keep_scratch {
            guard.keep();
        }
        let notes = match welcome.hears_notes.then(|| Notes::create(&scratch, clock)).transpose() {
            Ok(notes) => notes.map(Rc::new),
            Err(error) => {
                drop(scratch.remove());
                return Err(WorkerError::Notes(error));
            }
        };
        let stores = Stores::new(&welcome);
        let processes = Processes::new();
        let context =
            Context { clock, welcome, deadline, scratch, marker, processes, guard, stores, notes };
        let (reader, writer) = tokio::io::split(stream);
        let (speaker, queue) = Speaker::channel();
        let forwarding = context.notes.as_ref().map(|notes| {
            tokio::task::spawn_local(Rc::clone(notes).forward(speaker.clone())).abort_handle()
        });
        let stalls = Rc::new(StallWatch::new(clock.now()));
        let writer = write_all(writer, queue, clock, Rc::clone(&stalls));
        Ok(Self {
            context: Rc::new(context),
            reader,
            decoder,
            lanes: Rc::default(),
            stops: Rc::default(),
            writer: tokio::task::spawn_local(writer),
            ticker: tokio::task::spawn_local(tick(stalls, clock, speaker.clone())),
            forwarding,
            speaker,
        })
    }

    async fn run(
        mut self,
        signalled: impl Future<Output = &'static str> + Unpin,
    ) -> Result<(), WorkerError> {
        let ended = tokio::select! {
            ended = self.obey() => ended,
            name = signalled => Err(WorkerError::Signal(name)),
        };
        let quit = match ended {
            Ok(quit) => quit,
            Err(error) => {
                self.clean_up().await;
                return Err(error);
            }
        };
        let (id, received) = quit;
        let begun = Begun::new(id, received, &self.context);
        self.clean_up().await;
        self.speaker.say(Say::Reply(Box::new(begun.finish(Outcome::Ok, &self.context))));
        // The writer ends when nobody can speak any more.
        if let Some(forwarding) = &self.forwarding {
            forwarding.abort();
        }
        self.ticker.abort();
        drop(self.ticker.await);
        drop(self.speaker);
        // The reply is on its way or the connection is gone; either way this is the end.
        drop(tokio::time::timeout(WRITE_TIME_MAX, self.writer).await);
        Ok(())
    }

    /// Does what comes until `quit`, and returns its number and its stamp a.
    async fn obey(&mut self) -> Result<(CommandId, WTime), WorkerError> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            while let Some(frame) = self.decoder.next_frame()? {
                let message = ToWorker::decode(frame)?;
                let received = self.context.clock.now();
                match message {
                    ToWorker::Ping(seq) => self.speaker.say(Say::Pong { seq, received }),
                    ToWorker::Welcome(_) => {
                        return Err(WorkerError::Unexpected("a second welcome"));
                    }
                    ToWorker::Command(command) if command.action == Action::Quit => {
                        return Ok((command.id, received));
                    }
                    ToWorker::Command(command) => self.begin_command(command, received)?,
                }
            }
            let read = tokio::time::timeout(SILENCE_MAX, self.reader.read(&mut buffer)).await;
            match read {
                Err(_) => return Err(WorkerError::Silent(SILENCE_MAX)),
                Ok(Ok(0)) => {
                    return Err(WorkerError::Lost(std::io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(Ok(bytes)) => self.decoder.push(&buffer[..bytes]),
                Ok(Err(error)) => return Err(WorkerError::Lost(error)),
            }
        }
    }

    fn begin_command(&self, command: Command, received: WTime) -> Result<(), WorkerError> {
        if let Action::Cancel(target) = command.action {
            let begun = Begun::new(command.id, received, &self.context);
            if let Some(stop) = self.stops.borrow().get(&target) {
                stop.ask(Reason::Cancelled);
            }
            self.speaker.say(Say::Reply(Box::new(begun.finish(Outcome::Ok, &self.context))));
            return Ok(());
        }
        if self.stops.borrow().len() >= OUTSTANDING_MAX {
            return Err(WorkerError::Flooded(OUTSTANDING_MAX));
        }
        let (id, lane, background) = (command.id, command.lane.clone(), command.background);
        let stop = Rc::new(Stop::default());
        self.stops.borrow_mut().insert(id, Rc::clone(&stop));
        let (context, stops) = (Rc::clone(&self.context), Rc::clone(&self.stops));
        let speaker = self.speaker.clone();
        let job = Box::pin(async move {
            let reply = execute(command, received, &context, &stop).await;
            if let Some(notes) = &context.notes {
                notes.drain(&speaker);
            }
            stops.borrow_mut().remove(&id);
            speaker.say(Say::Reply(Box::new(reply)));
        });
        if background {
            tokio::task::spawn_local(job);
        } else {
            self.lanes.push(lane, job);
        }
        Ok(())
    }

    /// Ends all commands, kills all processes and removes the scratch folder.
    async fn clean_up(&self) {
        for stop in self.stops.borrow().values() {
            stop.end();
        }
        let all_ended = async {
            while !self.stops.borrow().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        drop(tokio::time::timeout(END_TIME_MAX, all_ended).await);
        self.context.processes.kill_all(self.context.marker.as_bytes());
        if !self.context.welcome.keep_scratch
            && let Err(error) = self.context.scratch.remove()
        {
            tracing::warn!("cannot remove {}: {error}", self.context.scratch.path().display());
        }
        if let Some(notes) = &self.context.notes {
            notes.remove();
        }
        self.context.guard.bye();
    }
}

/// Looks at the clock often, so that a gap shows.
async fn tick(stalls: Rc<StallWatch>, clock: WClock, speaker: Speaker) {
    loop {
        tokio::time::sleep(TICK).await;
        if let Some(stall) = stalls.look(clock.now()) {
            speaker.say(Say::Stall(stall));
        }
    }
}
