//! Scripted workers: many in one process, which speak the real protocol over real TLS and compute
//! nothing. For benches and tests of the coordinator.
//!
//! In: join tickets, a line each. Out: replies, by this script: `echo` is answered at once, `sleep`
//! when its time is over, `run = ["together"]` when every worker of this process has come to it;
//! everything else at once. Commands of one worker run one after another, whatever their lane.
//! Invariant: all stamps are taken as a real worker takes them. Absent: processes, files, stores.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::io::{BufRead, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use musec_protocol::{
    Action, Command, CommandId, FrameDecoder, FromWorker, Outcome, Pong, Reply, Ticket, ToWorker,
    WTime, begin_frame, end_frame,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use tokio_rustls::client::TlsStream;

use crate::clock::{WClock, clock_gap_ns};
use crate::connect::{Connected, READ_BYTES, connect};
use crate::error::WorkerError;

/// The word that a scripted worker's `run` begins with, to wait for all others.
pub const TOGETHER: &str = "together";

/// Handshakes under way at a time: fewer than a coordinator takes strangers, enough to keep it
/// busy.
const JOINING_MAX: usize = 64;

/// After the coming together of all workers: what the last ones have caused is over by then.
const SETTLE: Duration = Duration::from_millis(300);

/// How long they then do nothing before they go on: long enough for a heartbeat of each.
const IDLE: Duration = Duration::from_secs(2);

/// What a process of scripted workers tells of its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// All tickets are here; nobody has connected yet.
    Joining,
    /// All workers have come to their n-th `together`, from 0.
    Gathered(u32),
    /// A moment has passed since.
    Settled(u32),
    /// Some time has passed in which nothing was done; they are about to be answered, and go on.
    GoOn(u32),
}

/// Runs as many workers as `workers`, of the tickets that `lines` holds, until all were told to
/// quit.
///
/// # Errors
/// If a ticket is bad, a worker could not join, or its connection broke.
pub fn run_scripted(
    lines: impl BufRead,
    workers: usize,
    tell: impl Fn(Told) + 'static,
) -> Result<(), WorkerError> {
    let mut tickets = Vec::with_capacity(workers);
    for line in lines.lines().take(workers) {
        tickets.push(
            Ticket::from_text(&line.map_err(WorkerError::Lost)?).map_err(WorkerError::Ticket)?,
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(WorkerError::Runtime)?;
    tell(Told::Joining);
    let all = Rc::new(All {
        workers: tickets.len(),
        gathered: Cell::new(0),
        rounds: Cell::new(0),
        go_on: Notify::new(),
        joining: Semaphore::new(JOINING_MAX),
        tell: Box::new(tell),
    });
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let workers: Vec<_> = tickets
            .into_iter()
            .map(|ticket| tokio::task::spawn_local(scripted(ticket, Rc::clone(&all))))
            .collect();
        for worker in workers {
            worker.await.map_err(|error| WorkerError::Lost(std::io::Error::other(error)))??;
        }
        Ok(())
    })
}

/// Ends when a command's time is over.
type Wait = Pin<Box<dyn Future<Output = ()>>>;

/// What the workers of one process share.
struct All {
    workers: usize,
    gathered: Cell<usize>,
    rounds: Cell<u32>,
    go_on: Notify,
    joining: Semaphore,
    tell: Box<dyn Fn(Told)>,
}

impl All {
    /// Returns when every worker has called this once more.
    async fn together(&self) {
        let go_on = self.go_on.notified();
        self.gathered.set(self.gathered.get() + 1);
        if self.gathered.get() < self.workers {
            go_on.await;
            return;
        }
        self.gathered.set(0);
        let round = self.rounds.get();
        self.rounds.set(round + 1);
        (self.tell)(Told::Gathered(round));
        tokio::time::sleep(SETTLE).await;
        (self.tell)(Told::Settled(round));
        tokio::time::sleep(IDLE).await;
        (self.tell)(Told::GoOn(round));
        self.go_on.notify_waiters();
    }
}

async fn scripted(ticket: Ticket, all: Rc<All>) -> Result<(), WorkerError> {
    let clock = WClock::start();
    let place = all.joining.acquire().await;
    let Connected { stream, decoder, .. } = Box::pin(connect(&ticket, clock)).await?;
    drop(place);
    let (said, queue) = (Vec::new(), VecDeque::new());
    let session = Session { stream, decoder, clock, all, said, queue, now: None };
    session.obey().await
}

struct Session {
    stream: TlsStream<TcpStream>,
    decoder: FrameDecoder,
    clock: WClock,
    all: Rc<All>,
    /// Frames that are not sent yet.
    said: Vec<u8>,
    /// What waits for its turn.
    queue: VecDeque<(Command, WTime)>,
    /// What goes on now, for some time.
    now: Option<(Begun, Wait)>,
}

/// A command of which the first stamps are taken.
struct Begun {
    id: CommandId,
    received: WTime,
    started: WTime,
}

impl Session {
    async fn obey(mut self) -> Result<(), WorkerError> {
        let mut buffer = vec![0; READ_BYTES].into_boxed_slice();
        loop {
            self.take_frames()?;
            let is_over = self.perform()?;
            if !self.said.is_empty() {
                self.stream.write_all(&self.said).await.map_err(WorkerError::Lost)?;
                self.stream.flush().await.map_err(WorkerError::Lost)?;
                self.said.clear();
            }
            if is_over {
                return self.stream.shutdown().await.map_err(WorkerError::Lost);
            }
            let wait = async {
                match &mut self.now {
                    Some((_, wait)) => wait.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = self.stream.read(&mut buffer) => match read.map_err(WorkerError::Lost)? {
                    0 => return Err(WorkerError::Lost(ErrorKind::UnexpectedEof.into())),
                    bytes => self.decoder.push(&buffer[..bytes]),
                },
                () = wait => self.finish_now()?,
            }
        }
    }

    fn take_frames(&mut self) -> Result<(), WorkerError> {
        while let Some(frame) = self.decoder.next_frame()? {
            let message = ToWorker::decode(frame)?;
            let received = self.clock.now();
            match message {
                ToWorker::Ping(seq) => {
                    let clock_gap_ns = clock_gap_ns();
                    let encoded = self.clock.now();
                    let pong = Pong { seq, received, encoded, clock_gap_ns };
                    say(&mut self.said, &FromWorker::Pong(pong))?;
                }
                ToWorker::Command(command) => self.queue.push_back((command, received)),
                ToWorker::Welcome(_) => return Err(WorkerError::Unexpected("a second welcome")),
            }
        }
        Ok(())
    }

    /// Does what can be done now; whether it was told to quit.
    fn perform(&mut self) -> Result<bool, WorkerError> {
        while self.now.is_none()
            && let Some((command, received)) = self.queue.pop_front()
        {
            let is_last = command.action == Action::Quit;
            let started = self.clock.now();
            let begun = Begun { id: command.id, received, started };
            match self.wait_of(&command.action) {
                Some(wait) => self.now = Some((begun, wait)),
                None => self.finish(&begun)?,
            }
            if is_last {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a command waits for, by the script.
    fn wait_of(&self, action: &Action) -> Option<Wait> {
        match action {
            Action::Sleep { duration_ns } => {
                Some(Box::pin(tokio::time::sleep(Duration::from_nanos(*duration_ns))))
            }
            Action::Run(run)
                if run.argv.first().is_some_and(|word| word == TOGETHER.as_bytes()) =>
            {
                let all = Rc::clone(&self.all);
                Some(Box::pin(async move { all.together().await }))
            }
            Action::Run(_)
            | Action::Get(_)
            | Action::Put(_)
            | Action::Echo(_)
            | Action::Cancel(_)
            | Action::Print { .. }
            | Action::Clean
            | Action::Mark
            | Action::Quit => None,
        }
    }

    fn finish_now(&mut self) -> Result<(), WorkerError> {
        match self.now.take() {
            Some((begun, _)) => self.finish(&begun),
            None => Ok(()),
        }
    }

    fn finish(&mut self, begun: &Begun) -> Result<(), WorkerError> {
        let finished = self.clock.now();
        let reply = Reply {
            received: begun.received,
            started: begun.started,
            finished,
            clock_gap_ns: clock_gap_ns(),
            encoded: self.clock.now(),
            ..Reply::bare(begun.id, Outcome::Ok)
        };
        say(&mut self.said, &FromWorker::Reply(reply))
    }
}

fn say(said: &mut Vec<u8>, message: &FromWorker) -> Result<(), WorkerError> {
    let start = begin_frame(said);
    message.encode(said);
    end_frame(said, start).map_err(WorkerError::Protocol)
}
