//! `musec bench launch`: what it costs to have local workers: real ones, launched, connected over
//! TLS, each running `/bin/true`; and the floor beside it: `/bin/true` started and awaited by this
//! process.
//!
//! In one run all workers are wanted at once: its figures are the wall time and the curve. In
//! others, with the floor measured before and after each, there is one worker at a time on an
//! otherwise idle machine: their figures are those of one worker and one command. All times are
//! read from the runs' journals.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use musec_analysis::{Launches, Quantiles, Share, format_ns, round_trips};
use musec_coordinator::{LaunchBy, Run, RunSetup};
use musec_core::job::{Options, parse};
use musec_trace::RunStatus;
use serde::Serialize;

use super::process::{Scratch, median};
use crate::args::{BenchLaunchArgs, Format};
use crate::error::CliError;
use crate::output::{print, print_json};
use crate::runs::{ReadRun, find};

/// What is run, by workers and by the floor.
const TRUE: &str = "/bin/true";

/// Runs with one worker at a time, the most workers of each, and commands of each worker: medians
/// are steady, and it is over in some seconds.
const ALONE_RUNS: usize = 4;
const ALONE_WORKERS_MAX: u32 = 5;
const ALONE_COMMANDS: u32 = 20;

/// Times that the floor is measured before and after each of these runs: a machine's mood changes.
const FLOOR_TIMES: usize = 80;

/// What came of it.
#[derive(Debug, Serialize)]
struct Figures {
    schema: u32,
    workers: u32,
    /// All workers at once: from the run's creation to its end.
    wall_ns: u64,
    /// One worker at a time, medians: from the request for the process, before it is made, to its
    /// hello's having been read. It holds exec to hello, the making of the process and the hello's
    /// way.
    exec_to_hello_ns: u128,
    /// The median of each run's.
    exec_to_hello_p99_ns: u128,
    /// The part of it that the worker measures: from its first own instruction to its hello.
    start_to_hello_ns: u128,
    /// The same as `exec_to_hello_ns` while all workers are wanted at once.
    loaded_exec_to_hello_ns: u128,
    loaded_exec_to_hello_p99_ns: u128,
    /// Resident memory of a worker that runs a command, and the most that it ever was.
    worker_rss_bytes: u64,
    worker_peak_rss_bytes: u64,
    /// One worker at a time: from sending `run` of `/bin/true` to having read its reply.
    run_true_ns: u128,
    run_true_p99_ns: u128,
    /// The same of `run` in the background.
    background_run_true_ns: u128,
    /// `/bin/true` started by posix_spawn and awaited by this process.
    floor_run_true_ns: u64,
    /// `run_true_ns / floor_run_true_ns`, in thousandths.
    ratio_thousandths: u128,
    /// All workers at once, in nanoseconds since the first request.
    curve: Vec<Share>,
}

pub(super) fn launch(args: &BenchLaunchArgs) -> Result<ExitCode, CliError> {
    let (mut floors, mut alone) = (floor()?, Vec::new());
    for _ in 0..ALONE_RUNS {
        alone.push(run(&alone_job(args.workers.min(ALONE_WORKERS_MAX)))?.0);
        floors.extend(floor()?);
    }
    let (together, wall) = run(&together_job(args.workers))?;
    let missing = |what: &'static str| CliError::Bench {
        what,
        source: std::io::Error::other("the run's journal does not tell it"),
    };
    let launches = |run: &ReadRun| {
        Launches::of(&run.trace).ok_or_else(|| missing("measuring how workers come"))
    };
    let ones: Vec<Launches> = alone.iter().map(launches).collect::<Result<_, _>>()?;
    let all = launches(&together)?;
    let of = |figure: fn(&Launches) -> u128| {
        median(&ones.iter().map(figure).collect::<Vec<_>>()).unwrap_or_default()
    };
    let trips = |is_background| -> Result<Quantiles, CliError> {
        let traces = alone.iter().map(|run| &run.trace);
        round_trips(traces, "run", is_background).ok_or_else(|| missing("measuring `run`"))
    };
    let (trips, background) = (trips(false)?, trips(true)?);
    let [worker_rss_bytes, worker_peak_rss_bytes] =
        memory(&alone).ok_or_else(|| missing("measuring memory"))?;
    let floor_run_true_ns = median(&floors).unwrap_or_default();
    let figures = Figures {
        schema: 1,
        workers: args.workers,
        wall_ns: nanoseconds(wall),
        exec_to_hello_ns: of(|run| run.request_to_hello.p50_ns),
        exec_to_hello_p99_ns: of(|run| run.request_to_hello.p99_ns),
        start_to_hello_ns: of(|run| run.start_to_hello.p50_ns),
        loaded_exec_to_hello_ns: all.request_to_hello.p50_ns,
        loaded_exec_to_hello_p99_ns: all.request_to_hello.p99_ns,
        worker_rss_bytes,
        worker_peak_rss_bytes,
        run_true_ns: trips.p50_ns,
        run_true_p99_ns: trips.p99_ns,
        background_run_true_ns: background.p50_ns,
        floor_run_true_ns,
        ratio_thousandths: trips.p50_ns * 1000 / u128::from(floor_run_true_ns.max(1)),
        curve: all.curve,
    };
    match args.format {
        Format::Json => print_json(&figures)?,
        Format::Human => print(in_words(&figures))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(figures: &Figures) -> String {
    let mib = |bytes: u64| format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20);
    let mut out = format!(
        "launch: {} local workers, each runs {TRUE}\n\
         \x20 all at once, wall time      {:>10}\n\
         \x20 one at a time, medians\n\
         \x20   exec to hello             {:>10}  (p99 {})\n\
         \x20     of which the worker's   {:>10}\n\
         \x20   run {TRUE}             {:>10}  (p99 {})\n\
         \x20     in the background       {:>10}\n\
         \x20   floor: spawn and wait     {:>10}\n\
         \x20   ratio                     {:>7}.{:02}\n\
         \x20 memory of a worker          {:>10}  (at most {})\n\
         \x20 all at once, exec to hello  {:>10}  (p99 {})\n\
         \x20 workers        requested       hello       ended\n",
        figures.workers,
        format_ns(figures.wall_ns.into()),
        format_ns(figures.exec_to_hello_ns),
        format_ns(figures.exec_to_hello_p99_ns),
        format_ns(figures.start_to_hello_ns),
        format_ns(figures.run_true_ns),
        format_ns(figures.run_true_p99_ns),
        format_ns(figures.background_run_true_ns),
        format_ns(figures.floor_run_true_ns.into()),
        figures.ratio_thousandths / 1000,
        figures.ratio_thousandths % 1000 / 10,
        mib(figures.worker_rss_bytes),
        mib(figures.worker_peak_rss_bytes),
        format_ns(figures.loaded_exec_to_hello_ns),
        format_ns(figures.loaded_exec_to_hello_p99_ns),
    );
    for share in &figures.curve {
        out.push_str(&format!(
            "  {:>6} %  {:>14}  {:>10}  {:>10}\n",
            share.percent,
            format_ns(share.requested_ns.into()),
            format_ns(share.hello_ns.into()),
            format_ns(share.ended_ns.into()),
        ));
    }
    out
}

/// One worker at a time: `/bin/true` some times, and then what the worker itself takes of memory,
/// which the system tells a child about its parent.
fn alone_job(workers: u32) -> String {
    format!(
        "[job]\nname = \"alone\"\nworkers = {workers}\nat_once = 1\n\
         [[step]]\nfor = {{ k = \"range({ALONE_COMMANDS})\" }}\ndo = [{{ run = [\"{TRUE}\"] }}]\n\
         [[step]]\nfor = {{ k = \"range({ALONE_COMMANDS})\" }}\n\
         do = [{{ run = [\"{TRUE}\"], background = true, name = \"true\" }}, {{ await = \"true\" }}]\n\
         [[step]]\nrun = \"grep -E 'VmRSS|VmHWM' /proc/$PPID/status > memory\"\n\
         [[step]]\nprint = \"memory\"\n"
    )
}

fn together_job(workers: u32) -> String {
    format!("[job]\nname = \"together\"\nworkers = {workers}\n[[step]]\nrun = [\"{TRUE}\"]\n")
}

/// Runs a job to its end, quietly, and reads its journal; its folder is then removed.
fn run(text: &str) -> Result<(ReadRun, Duration), CliError> {
    let scratch = Scratch::create("launch")?;
    let program = parse(text, &Options::default()).map_err(|errors| CliError::Job {
        path: "bench".into(),
        text: text.to_owned(),
        errors,
    })?;
    let started = Instant::now();
    let run = Run::create(RunSetup {
        program: Arc::new(program),
        job_text: text.as_bytes().to_vec(),
        job_folder: scratch.path().to_owned(),
        runs: scratch.path().join("runs"),
        worker_program: std::env::current_exe().map_err(CliError::NoProgram)?,
        launch_by: LaunchBy::Local,
        is_recorded: true,
        listen: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
        options_json: "{}".into(),
        version: env!("CARGO_PKG_VERSION").into(),
    })?;
    let id = run.id().to_string();
    let finished = run.execute()?;
    let wall = started.elapsed();
    if finished.status != RunStatus::Done {
        return Err(CliError::Bench {
            what: "a run of local workers",
            source: std::io::Error::other("it did not end well"),
        });
    }
    Ok((read(&scratch.path().join("runs"), &id)?, wall))
}

fn read(runs: &Path, id: &str) -> Result<ReadRun, CliError> {
    find(runs, id)?.read()
}

/// Medians of what workers said of their memory: resident, and the most that was.
fn memory(runs: &[ReadRun]) -> Option<[u64; 2]> {
    let figure = |name: &str| {
        let answers = runs.iter().flat_map(|run| run.trace.prints());
        let bytes = answers.filter_map(|answer| {
            let text = String::from_utf8_lossy(&answer.text).into_owned();
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
            Some(kib * 1024)
        });
        median(&bytes.collect::<Vec<_>>())
    };
    Some([figure("VmRSS")?, figure("VmHWM")?])
}

/// Nanoseconds of each `/bin/true` that this process starts and awaits, with nothing else done for
/// it: no pipes, no group, no folder.
fn floor() -> Result<Vec<u64>, CliError> {
    let mut command = Command::new(TRUE);
    let once = |_| {
        let started = Instant::now();
        match command.status() {
            Ok(status) if status.success() => Ok(nanoseconds(started.elapsed())),
            Ok(status) => Err(std::io::Error::other(status.to_string())),
            Err(error) => Err(error),
        }
        .map_err(|source| CliError::Bench { what: TRUE, source })
    };
    (0..FLOOR_TIMES).map(once).collect()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
