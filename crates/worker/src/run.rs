//! `run`: one process in a group of its own, watched until nothing of the group is left.
//!
//! In: what to run. Out: how it ended, what it used and the ends of its outputs. What a process
//! leaves behind in its group dies with it, so that nobody holds its output pipes open. The group
//! is signalled only while its leader is not reaped.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use musec_protocol::{Outcome, PhaseKind, Put, Run, Ticket, Usage, Which};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;
use wait4::Wait4;

use crate::execute::Context;
use crate::failure::{Failure, kind_of};
use crate::guard::{MARKER_VARIABLE, marker_value};
use crate::output::{Collected, collect};
use crate::progress::Progress;
use crate::scratch::show;
use crate::stop::Stop;
use crate::transfer::{self, Marks};

/// From TERM to KILL when the command names no grace.
const GRACE: Duration = Duration::from_secs(5);

/// How long outputs are read after all of the group is dead: a process that left the group may
/// still hold them.
const DRAIN: Duration = Duration::from_millis(200);

/// A program that is still open for writing somewhere is tried again this often, a moment apart.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Runs a process; `None` if it was stopped before it ended by itself.
pub(crate) async fn run(
    run: &Run,
    context: &Context,
    stop: &Stop,
    progress: &Progress,
) -> Option<Result<Outcome, Failure>> {
    if run.fresh
        && let Err(error) = context.scratch.freshen().await
    {
        return Some(Err(Failure::io("cannot empty the scratch folder", &error)));
    }
    let mut command = match prepare(run, context) {
        Ok(command) => command,
        Err(failure) => return Some(Err(failure)),
    };
    let mut child = match spawn(&mut command).await {
        Ok(child) => child,
        Err(error) => return Some(Err(explain(run, &error))),
    };
    let leader = Pid::from_child(&child);
    progress.enter(PhaseKind::User);
    context.processes.begin(leader);
    context.guard.run(leader);
    let whole = run.stdout_key.as_ref().map(|_| context.scratch.path());
    let stdout = child.stdout.take().map(|pipe| collect(OwnedFd::from(pipe), whole));
    let stderr = child.stderr.take().map(|pipe| collect(OwnedFd::from(pipe), None));
    let collected = stdout.as_ref().map(|(collected, _)| collected.clone());
    let grace = if run.grace_ms == 0 { GRACE } else { Duration::from_millis(run.grace_ms) };
    let stopped = until_exit(leader, stop, grace).await;
    progress.leave();
    kill(leader, Signal::KILL);
    gather(stdout, stderr, progress).await;
    let reaped = child.wait4();
    context.processes.end(leader);
    context.guard.end(leader);
    if let (Some(key), Some(collected)) = (&run.stdout_key, collected)
        && let Err(failure) = put_whole(key, &collected, context, progress).await
    {
        return Some(Err(failure));
    }
    match (reaped, stopped) {
        (Ok(used), stopped) => {
            progress.note(|done| done.usage = Some(usage(&used)));
            let status = used.status;
            let outcome = status
                .code()
                .map_or_else(|| Outcome::Signalled(status.signal().unwrap_or(0)), Outcome::Exited);
            (!stopped).then_some(Ok(outcome))
        }
        (Err(error), false) => Some(Err(Failure::io("cannot learn how the process ended", &error))),
        (Err(_), true) => None,
    }
}

/// Puts all of an output that is longer than its tail into the store.
async fn put_whole(
    key: &str,
    collected: &Collected,
    context: &Context,
    progress: &Progress,
) -> Result<(), Failure> {
    let kept = collected.whole();
    let kept = kept.map_err(|error| Failure::io("cannot keep standard output", &error))?;
    let Some(name) = kept.as_ref().and_then(|kept| kept.path()?.file_name()) else {
        return Ok(());
    };
    let put = Put {
        file: name.as_bytes().to_vec(),
        key: key.to_owned(),
        which: Which::One,
        concurrency: 1,
        deliver: None,
    };
    transfer::put(&put, context, &Marks::Stamps(progress)).await.map(drop)
}

fn prepare(run: &Run, context: &Context) -> Result<Command, Failure> {
    let scratch = &context.scratch;
    let (program, arguments) = run
        .argv
        .split_first()
        .ok_or_else(|| Failure::new(musec_protocol::ErrorKind::Invalid, "nothing to run"))?;
    let path = search_path(run, context);
    let mut command = Command::new(found(OsStr::from_bytes(program), &path));
    command.arg0(OsStr::from_bytes(program));
    command.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    command.current_dir(match &run.cwd {
        Some(folder) => scratch.existing(folder)?,
        None => scratch.path().to_owned(),
    });
    command.stdin(match &run.stdin {
        Some(file) => open(file, &scratch.file(file)?)?.into(),
        None => Stdio::null(),
    });
    command.stdout(match &run.stdout {
        Some(file) => create(file, &scratch.new_file(file)?)?.into(),
        None => Stdio::piped(),
    });
    command.stderr(Stdio::piped());
    command.process_group(0);
    command.env_remove(Ticket::VARIABLE);
    command.env("MUSEC_WORKER", context.welcome.worker.to_string());
    command.env("MUSEC_ATTEMPT", context.welcome.attempt.to_string());
    if let Some(notes) = &context.notes {
        command.env(musec_protocol::note::VARIABLE, notes.socket());
    }
    for (name, value) in &run.env {
        command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
    }
    command.env("PATH", path);
    command.env(MARKER_VARIABLE, marker_value(&context.marker));
    Ok(command)
}

/// Where a program is found: looked up here, as std keeps its fast way to spawn only for paths.
/// One that is not found is left as it is, for the system's own error.
fn found(program: &OsStr, path: &OsStr) -> OsString {
    if program.as_bytes().contains(&b'/') {
        return program.to_owned();
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
        .map_or_else(|| program.to_owned(), Into::into)
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The PATH that the command names, else the folders of shipped files and then the worker's own.
fn search_path(run: &Run, context: &Context) -> OsString {
    if let Some((_, path)) = run.env.iter().rev().find(|(name, _)| name == b"PATH") {
        return OsStr::from_bytes(path).to_owned();
    }
    let mut path = OsString::new();
    for folder in &context.welcome.path_dirs {
        path.push(OsStr::from_bytes(folder));
        path.push(":");
    }
    if let Some(notes) = &context.notes {
        path.push(notes.folder());
        path.push(":");
    }
    path.push(std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()));
    path
}

fn open(name: &[u8], path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| Failure::io(&format!("cannot read {}", show(name)), &error))
}

fn create(name: &[u8], path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure::io(&format!("cannot write {}", show(name)), &error))
}

async fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut tries = 0;
    loop {
        match command.spawn() {
            Err(error) if is_busy(&error) && tries < BUSY_TRIES => tries += 1,
            spawned => return spawned,
        }
        tokio::time::sleep(BUSY_PAUSE).await;
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::TXTBSY.raw_os_error())
}

fn explain(run: &Run, error: &io::Error) -> Failure {
    let program = run.argv.first().map_or_else(String::new, |program| show(program));
    let kind = match kind_of(error) {
        musec_protocol::ErrorKind::Full => musec_protocol::ErrorKind::Full,
        _ => musec_protocol::ErrorKind::Spawn,
    };
    let cure = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => {
            "; ship it (or its interpreter) with `files`, or install it on the worker's machine"
        }
        Some(Errno::ACCESS) => "; make it executable",
        Some(Errno::AGAIN) => "; raise the limit of processes (ulimit -u), or lower -j",
        Some(Errno::NOMEM) => "; there is no memory for it: lower -j",
        Some(Errno::MFILE | Errno::NFILE) => "; raise the limit of open files (ulimit -n)",
        Some(Errno::TOOBIG) => "; its arguments and environment are too long: pass a file",
        _ => "",
    };
    Failure::new(kind, format!("cannot start {program}: {error}{cure}"))
}

/// Waits for the leader's exit, which stays unreaped; true if it was asked to end before.
async fn until_exit(leader: Pid, stop: &Stop, grace: Duration) -> bool {
    let exited = exit_of(leader);
    tokio::pin!(exited);
    tokio::select! {
        biased;
        () = &mut exited => return false,
        () = stop.asked() => {}
    }
    kill(leader, Signal::TERM);
    tokio::select! {
        () = &mut exited => return true,
        () = stop.at_once() => {}
        () = tokio::time::sleep(grace) => {}
    }
    kill(leader, Signal::KILL);
    // It may have moved itself to another group.
    let _ = kill_process(leader, Signal::KILL);
    exited.await;
    true
}

/// A descriptor of the process becomes readable when it exits; where there is none to be had, a
/// thread waits.
async fn exit_of(leader: Pid) {
    if let Ok(pidfd) = pidfd_open(leader, PidfdFlags::NONBLOCK)
        && let Ok(pidfd) = watch(pidfd)
        && pidfd.readable().await.is_ok()
    {
        return;
    }
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let wait = move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = waitid(WaitId::Pid(leader), options);
        Ok(())
    };
    drop(crate::execute::blocking(wait).await);
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that change their descriptor; an \
              OwnedFd keeps the one that it owns"
)]
fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}

fn kill(leader: Pid, signal: Signal) {
    // A group that is gone is what is wanted.
    let _ = kill_process_group(leader, signal);
}

async fn gather(
    stdout: Option<(Collected, JoinHandle<()>)>,
    stderr: Option<(Collected, JoinHandle<()>)>,
    progress: &Progress,
) {
    let both = [stdout, stderr].map(|pipe| pipe.unzip());
    let [(out, out_task), (err, err_task)] = both;
    let all = async {
        for task in [out_task, err_task].into_iter().flatten() {
            drop(task.await);
        }
    };
    drop(tokio::time::timeout(DRAIN, all).await);
    progress.note(|done| {
        done.stdout = out.map(|collected| collected.tail()).unwrap_or_default();
        done.stderr = err.map(|collected| collected.tail()).unwrap_or_default();
    });
}

fn usage(used: &wait4::ResUse) -> Usage {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Usage {
        user_ns: ns(used.rusage.utime),
        system_ns: ns(used.rusage.stime),
        peak_rss_bytes: used.rusage.maxrss,
    }
}
