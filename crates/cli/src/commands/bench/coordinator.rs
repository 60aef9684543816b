//! `musec bench coordinator`: a whole run, recorded and over TLS, whose workers are scripted ones
//! of another process; and the floor beside it, round for round.
//!
//! CPU and memory are this process's alone. The workers come together before the first command and
//! after the last, and what is between is what a command costs; what is before is the handshake.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use musec_coordinator::{LaunchBy, Run, RunSetup};
use musec_core::job::{Options, parse};
use musec_trace::RunStatus;
use musec_worker::{TOGETHER, Told, run_scripted};
use serde::Serialize;

use super::process::{Scratch, again, cpu, median, open_files, per, resident_bytes};
use crate::args::{BenchCoordinatorArgs, Format};
use crate::error::CliError;
use crate::output::{print, print_json};

/// Commands of the innermost loop: the template engine makes lists of limited length.
const INNER_LOOP: u64 = 1000;

/// What came of it. Times in nanoseconds of CPU of the coordinator's process, but for `wall_ns`.
#[derive(Debug, Serialize)]
struct Figures {
    schema: u32,
    workers: u32,
    busy: u32,
    pipelined: bool,
    traced: bool,
    rounds: u32,
    /// Commands of a round.
    commands: u64,
    /// From the first command to the last reply, C.
    wall_ns: u64,
    cpu_ns_per_command: u64,
    floor_cpu_ns_per_command: u64,
    /// `cpu_ns_per_command / floor_cpu_ns_per_command`, in thousandths.
    ratio_thousandths: u64,
    /// With all workers connected and nothing to do: heartbeats. Not in the figure per command, for
    /// the share of workers that are idle.
    idle_cpu_ns_per_s: u64,
    /// For each worker: accept, TLS, hello, welcome, its first command.
    handshake_cpu_ns: u64,
    /// What the process grew by until all workers were connected, for each of them.
    rss_bytes_per_worker: u64,
}

/// The instants of a round at which this process was looked at.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    cpu: Duration,
    resident_bytes: u64,
}

impl Look {
    fn now() -> Self {
        Self { at: Instant::now(), cpu: cpu(), resident_bytes: resident_bytes() }
    }
}

#[derive(Clone, Copy, Debug)]
struct Round {
    start: Look,
    joining: Look,
    gathered: Look,
    settled: Look,
    first: Look,
    last: Look,
}

impl Round {
    /// CPU of an idle second with all workers connected: heartbeats, and the loop's own.
    fn idle_cpu_a_second(&self) -> Duration {
        let idle = self.first.at - self.settled.at;
        (self.first.cpu - self.settled.cpu).div_f64(idle.as_secs_f64())
    }

    /// CPU of all commands, without that of the workers that are idle meanwhile: that is by the
    /// second, however many commands there are.
    fn commands_cpu(&self, idle_share: f64) -> Duration {
        let wall = (self.last.at - self.first.at).as_secs_f64();
        let idle = self.idle_cpu_a_second().mul_f64(wall * idle_share);
        (self.last.cpu - self.first.cpu).saturating_sub(idle)
    }
}

pub(super) fn coordinator(args: &BenchCoordinatorArgs) -> Result<ExitCode, CliError> {
    let busy = args.busy.unwrap_or(args.workers).min(args.workers);
    open_files(u64::from(args.workers) + 512)?;
    let (mut rounds, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        floors.push(floor(args, busy)?);
        rounds.push(round(args, busy)?);
    }
    let commands = u64::from(busy) * args.commands;
    let of = |figure: &dyn Fn(&Round) -> Duration, count| {
        let figures: Vec<_> = rounds.iter().map(|round| per(figure(round), count)).collect();
        median(&figures).unwrap_or_default()
    };
    let idle_share = f64::from(args.workers - busy) / f64::from(args.workers);
    let cpu_ns_per_command = of(&|round| round.commands_cpu(idle_share), commands);
    let floor_cpu_ns_per_command = median(&floors).unwrap_or_default();
    // Memory that a process was given once it keeps: only the first round shows it grow.
    let grown = rounds.first().map_or(0, |round| {
        round.gathered.resident_bytes.saturating_sub(round.start.resident_bytes)
    });
    let figures = Figures {
        schema: 1,
        workers: args.workers,
        busy,
        pipelined: args.pipelined,
        traced: !args.no_trace,
        rounds: args.rounds,
        commands,
        wall_ns: of(&|round| round.last.at - round.first.at, 1),
        cpu_ns_per_command,
        floor_cpu_ns_per_command,
        ratio_thousandths: cpu_ns_per_command * 1000 / floor_cpu_ns_per_command.max(1),
        idle_cpu_ns_per_s: of(&Round::idle_cpu_a_second, 1),
        handshake_cpu_ns: of(
            &|round| round.gathered.cpu - round.joining.cpu,
            u64::from(args.workers),
        ),
        rss_bytes_per_worker: grown / u64::from(args.workers),
    };
    match args.format {
        Format::Json => print_json(&figures)?,
        Format::Human => print(in_words(&figures))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(figures: &Figures) -> String {
    let us = |ns: u64| format!("{}.{:02} µs", ns / 1000, ns % 1000 / 10);
    format!(
        "coordinator: {} workers, {} busy, {} commands{}{}\n\
         \x20 CPU a command       {:>12}\n\
         \x20 plain-socket floor  {:>12}\n\
         \x20 ratio               {:>9}.{:02}\n\
         \x20 CPU an idle second  {:>9} ms\n\
         \x20 CPU a handshake     {:>12}\n\
         \x20 memory a worker     {:>10} B\n\
         \x20 wall time           {:>9} ms\n",
        figures.workers,
        figures.busy,
        figures.commands,
        if figures.pipelined { ", pipelined" } else { "" },
        if figures.traced { "" } else { ", not recorded" },
        us(figures.cpu_ns_per_command),
        us(figures.floor_cpu_ns_per_command),
        figures.ratio_thousandths / 1000,
        figures.ratio_thousandths % 1000 / 10,
        figures.idle_cpu_ns_per_s / 1_000_000,
        us(figures.handshake_cpu_ns),
        figures.rss_bytes_per_worker,
        figures.wall_ns / 1_000_000,
    )
}

/// CPU nanoseconds that a plain server needs for each message.
fn floor(args: &BenchCoordinatorArgs, busy: u32) -> Result<u64, CliError> {
    let (workers, commands, busy) =
        (args.workers.to_string(), args.commands.to_string(), busy.to_string());
    let mut server = again(&["floor-server", &workers, &commands, &busy])?;
    let failed = |source| CliError::Bench { what: "the plain-socket floor", source };
    let missing = || failed(std::io::ErrorKind::UnexpectedEof.into());
    let mut said = BufReader::new(server.stdout.take().ok_or_else(missing)?);
    let mut address = String::new();
    said.read_line(&mut address).map_err(failed)?;
    let mut load = again(&["floor-load", address.trim(), &workers])?;
    let mut figures = String::new();
    said.read_to_string(&mut figures).map_err(failed)?;
    end(&mut server, "the plain-socket floor")?;
    end(&mut load, "the load of the plain-socket floor")?;
    let cpu_ns = figures.split_whitespace().next().and_then(|figure| figure.parse().ok());
    cpu_ns.ok_or_else(missing)
}

fn end(process: &mut Child, what: &'static str) -> Result<(), CliError> {
    let status = process.wait().map_err(|source| CliError::Bench { what, source })?;
    if status.success() {
        return Ok(());
    }
    Err(CliError::Bench { what, source: std::io::Error::other(status.to_string()) })
}

/// One run of the coordinator in this process.
fn round(args: &BenchCoordinatorArgs, busy: u32) -> Result<Round, CliError> {
    const WHAT: &str = "the scripted workers";
    let failed = |source| CliError::Bench { what: WHAT, source };
    let missing = || failed(std::io::ErrorKind::UnexpectedEof.into());
    let scratch = Scratch::create("coordinator")?;
    let mut load = again(&["scripted", &args.workers.to_string()])?;
    let tickets = OwnedFd::from(load.stdin.take().ok_or_else(missing)?);
    let told = load.stdout.take().ok_or_else(missing)?;
    let run = Run::create(setup(args, busy, scratch.path(), File::from(tickets))?)?;
    let stopper = run.stopper();
    let start = Look::now();
    let executed = std::thread::Builder::new()
        .name("coordinator".into())
        .spawn(move || run.execute())
        .map_err(failed)?;
    let mut looks = Vec::new();
    for line in BufReader::new(told).lines() {
        drop(line.map_err(failed)?);
        looks.push(Look::now());
    }
    let ended = end(&mut load, WHAT);
    if ended.is_err() {
        stopper.stop("the scripted workers have failed");
    }
    let finished = executed.join().map_err(|_| CliError::Panicked)??;
    ended?;
    let [joining, gathered, settled, first, last, ..] = looks[..] else { return Err(missing()) };
    if finished.status != RunStatus::Done {
        return Err(failed(std::io::Error::other("the run did not end well")));
    }
    Ok(Round { start, joining, gathered, settled, first, last })
}

fn setup(
    args: &BenchCoordinatorArgs,
    busy: u32,
    folder: &Path,
    tickets: File,
) -> Result<RunSetup, CliError> {
    let text = job(args, busy);
    let program = parse(&text, &Options::default()).map_err(|errors| CliError::Job {
        path: "bench".into(),
        text: text.clone(),
        errors,
    })?;
    Ok(RunSetup {
        program: Arc::new(program),
        job_text: text.into_bytes(),
        job_folder: folder.to_owned(),
        runs: folder.join("runs"),
        worker_program: std::env::current_exe().map_err(CliError::NoProgram)?,
        launch_by: LaunchBy::Tickets(Arc::new(tickets)),
        is_recorded: !args.no_trace,
        listen: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
        options_json: "{}".into(),
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// Workers come together, `busy` of them do their commands, they come together again.
fn job(args: &BenchCoordinatorArgs, busy: u32) -> String {
    let pipelined = if args.pipelined { "pipelined = true\n" } else { "" };
    let (rounds, rest) = (args.commands / INNER_LOOP, args.commands % INNER_LOOP);
    let together = format!("[[step]]\nrun = [\"{TOGETHER}\"]\nstate = ");
    let list =
        |count| format!("{{ for = {{ k = \"range({count})\" }}, do = [{{ echo = \"\" }}] }}");
    format!(
        "[job]\nname = \"bench\"\nworkers = {workers}\nconnect_timeout = \"10m\"\n\
         {together}\"gather\"\n\
         [[step]]\nstate = \"busy\"\nif = \"index < {busy}\"\n\
         for = {{ i = \"range({rounds})\" }}\n{pipelined}do = [{inner}]\n\
         [[step]]\nstate = \"busy\"\nif = \"index < {busy}\"\n{pipelined}do = [{last}]\n\
         {together}\"end\"\n",
        workers = args.workers,
        inner = list(INNER_LOOP),
        last = list(rest),
    )
}

/// The scripted workers' process: tickets on standard input, progress on standard output.
pub(super) fn scripted(workers: u32) -> Result<ExitCode, CliError> {
    open_files(u64::from(workers) + 64)?;
    let tell = |told| {
        // Whoever listens may be gone; the workers then lose their connections too.
        drop(print(match told {
            Told::Joining => "joining\n".to_owned(),
            Told::Gathered(round) => format!("gathered {round}\n"),
            Told::Settled(round) => format!("settled {round}\n"),
            Told::GoOn(round) => format!("go on {round}\n"),
        }));
    };
    let workers = usize::try_from(workers).unwrap_or(usize::MAX);
    run_scripted(std::io::stdin().lock(), workers, tell)
        .map_err(|error| CliError::Bench {
            what: "a scripted worker",
            source: std::io::Error::other(error),
        })
        .map(|()| ExitCode::SUCCESS)
}
