//! Every command by one mechanism: stamps, time limit, cancel, and what was done.
//!
//! In: a decoded command and its stamp a. Out: one reply, whatever happened, with s, f and what
//! the action told of itself; b is the writer's. Actions know nothing of this.

use std::any::Any;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;

use musec_protocol::limits::OUTPUT_TAIL_BYTES_MAX;
use musec_protocol::{
    Action, Command, CommandId, ErrorKind, Outcome, PhaseKind, Put, Reply, Tail, WTime, Welcome,
    Which,
};

use crate::clock::WClock;
use crate::deliver;
use crate::failure::Failure;
use crate::guard::GuardLine;
use crate::notes::Notes;
use crate::progress::{Done, Progress};
use crate::run;
use crate::scratch::{Scratch, show};
use crate::several;
use crate::stop::{Reason, Stop};
use crate::store::Stores;
use crate::transfer::{self, Marks};

/// What the commands of a session share.
pub(crate) struct Context {
    pub(crate) clock: WClock,
    pub(crate) welcome: Welcome,
    /// The attempt's deadline, W.
    pub(crate) deadline: Option<WTime>,
    pub(crate) scratch: Scratch,
    /// What marks processes as started by this attempt.
    pub(crate) marker: OsString,
    pub(crate) processes: crate::processes::Processes,
    pub(crate) guard: GuardLine,
    pub(crate) stores: Stores,
    /// What user code tells, if that is wanted.
    pub(crate) notes: Option<Rc<Notes>>,
}

impl Context {
    /// Milliseconds from `now` until the deadline, rounded down; negative when it is over.
    fn remaining_ms(&self, now: WTime) -> Option<i64> {
        let left_ns = i128::from(self.deadline?.ns) - i128::from(now.ns);
        Some(i64::try_from(left_ns.div_euclid(1_000_000)).unwrap_or(i64::MAX))
    }
}

/// A command whose execution began.
pub(crate) struct Begun {
    id: CommandId,
    received: WTime,
    started: WTime,
    progress: Progress,
}

impl Begun {
    /// Takes the stamp s.
    pub(crate) fn new(id: CommandId, received: WTime, context: &Context) -> Self {
        let clock = context.clock;
        Self { id, received, started: clock.now(), progress: Progress::new(clock) }
    }

    /// Takes the stamp f.
    pub(crate) fn finish(self, outcome: Outcome, context: &Context) -> Reply {
        let finished = context.clock.now();
        let Done { phases, usage, stdout, stderr, bytes, objects } = self.progress.finish(finished);
        Reply {
            id: self.id,
            received: self.received,
            started: self.started,
            finished,
            encoded: finished,
            clock_gap_ns: 0,
            remaining_started_ms: context.remaining_ms(self.started),
            remaining_finished_ms: context.remaining_ms(finished),
            outcome,
            phases: phases.into_vec(),
            usage,
            stdout,
            stderr,
            bytes,
            objects,
        }
    }
}

/// Does one command; its turn has come.
pub(crate) async fn execute(
    command: Command,
    received: WTime,
    context: &Context,
    stop: &Stop,
) -> Reply {
    let begun = Begun::new(command.id, received, context);
    let limit = command.timeout_ms.map(Duration::from_millis);
    let result = if stop.reason().is_some() {
        None
    } else {
        let action = perform(&command.action, context, stop, &begun.progress);
        let action = AssertUnwindSafe(Box::pin(action)).catch_unwind();
        tokio::select! {
            biased;
            result = action => result.unwrap_or_else(|panic| Some(Err(in_panic(&*panic)))),
            () = time_limit(limit, stop) => None,
        }
    };
    let outcome = match result {
        Some(Ok(outcome)) => outcome,
        Some(Err(failure)) => failure.into(),
        None => stop.reason().unwrap_or(Reason::Cancelled).into(),
    };
    begun.finish(outcome, context)
}

/// A panic as a command's failure: the coordinator waits for an answer. The one known cause is that
/// the system gives no thread for what would hold up the loop.
fn in_panic(panic: &(dyn Any + Send)) -> Failure {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    if words.contains("spawn worker thread") {
        let cure = "raise the limit of processes (ulimit -u), or lower -j";
        return Failure::new(ErrorKind::Full, format!("cannot start a thread: {words}; {cure}"));
    }
    Failure::new(ErrorKind::Io, format!("the worker panicked, which is a bug of musec: {words}"))
}

/// Asks the command to end when its time is over; never returns.
async fn time_limit(limit: Option<Duration>, stop: &Stop) {
    if let Some(limit) = limit {
        tokio::time::sleep(limit).await;
        stop.ask(Reason::TimeLimit(limit));
    }
    std::future::pending::<()>().await;
}

/// The action's result; `None` if it was stopped.
async fn perform(
    action: &Action,
    context: &Context,
    stop: &Stop,
    progress: &Progress,
) -> Option<Result<Outcome, Failure>> {
    let other = async {
        match action {
            Action::Sleep { duration_ns } => {
                progress.enter(PhaseKind::Sleep);
                tokio::time::sleep(Duration::from_nanos(*duration_ns)).await;
                progress.leave();
                Ok(Outcome::Ok)
            }
            Action::Echo(_) => Ok(Outcome::Ok),
            Action::Print { file } => print(file, context, progress).await,
            Action::Clean => clean(context).await,
            Action::Mark => mark(context).await,
            Action::Get(get) if get.which == Which::One => {
                transfer::get(get, context, &Marks::Phases(progress)).await
            }
            Action::Get(get) => several::get(get, context, progress).await,
            Action::Put(Put { deliver: Some(path), file, .. }) => {
                deliver::deliver(file, path, context, progress).await
            }
            Action::Put(put) if put.which == Which::One => {
                transfer::put(put, context, &Marks::Phases(progress)).await
            }
            Action::Put(put) => several::put(put, context, progress).await,
            // The session itself does these.
            Action::Run(_) | Action::Cancel(_) | Action::Quit => {
                Err(Failure::new(ErrorKind::Invalid, "not a command of a lane"))
            }
        }
    };
    match action {
        Action::Run(run) => run::run(run, context, stop, progress).await,
        _ => tokio::select! {
            biased;
            result = other => Some(result),
            () = stop.asked() => None,
        },
    }
}

async fn print(name: &[u8], context: &Context, progress: &Progress) -> Result<Outcome, Failure> {
    let path = context.scratch.file(name)?;
    let tail = blocking(move || tail_of(&path)).await;
    let tail = tail.map_err(|error| Failure::io(&format!("cannot read {}", show(name)), &error))?;
    progress.note(|done| done.stdout = tail);
    Ok(Outcome::Ok)
}

fn tail_of(path: &Path) -> io::Result<Tail> {
    let mut file = File::open(path)?;
    let total_bytes = file.metadata()?.len();
    let from = total_bytes.saturating_sub(OUTPUT_TAIL_BYTES_MAX as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut text = Vec::new();
    file.take(OUTPUT_TAIL_BYTES_MAX as u64).read_to_end(&mut text)?;
    Ok(Tail { text, total_bytes })
}

async fn clean(context: &Context) -> Result<Outcome, Failure> {
    let scratch = context.scratch.clone();
    let cleaned = blocking(move || scratch.clean()).await;
    cleaned.map_err(|error| Failure::io("cannot empty the scratch folder", &error))?;
    Ok(Outcome::Ok)
}

async fn mark(context: &Context) -> Result<Outcome, Failure> {
    let scratch = context.scratch.clone();
    let marked = blocking(move || scratch.mark()).await;
    marked.map_err(|error| Failure::io("cannot remember the scratch folder", &error))?;
    Ok(Outcome::Ok)
}

/// Does what would hold up the loop on another thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
