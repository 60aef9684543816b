//! The command line, with its help texts.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::address::address;

/// Runs one computation on many short-lived workers, and knows where every microsecond of every
/// worker went.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Example:\n  musec run jobs/mandelbrot/job.toml"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) places: Places,
    /// Say more on standard error: -v for what is done, -vv for every detail. MUSEC_LOG takes
    /// filters like `musec_coordinator=debug`
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// Where runs are, if nobody says otherwise.
const RUNS: &str = ".musec/runs";

/// An empty variable says as little as none.
fn runs_folder(value: OsString) -> PathBuf {
    if value.is_empty() { RUNS.into() } else { value.into() }
}

/// Where runs are.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Places {
    /// Folder of all runs
    #[arg(
        long,
        global = true,
        env = "MUSEC_RUNS",
        hide_env_values = true,
        default_value = RUNS,
        value_parser = OsStringValueParser::new().map(runs_folder),
        value_name = "DIR"
    )]
    pub(crate) runs: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a job file on local workers, and ends with its report
    Run(RunArgs),
    /// Runs a command for each of many items, on local workers
    Map(MapArgs),
    /// Checks a job file, and lists what it would do
    Check(CheckArgs),
    /// Draws a job file's machine: waves, states, branches, loops
    Graph(GraphArgs),
    /// Lists runs with their size and status
    Runs(RunsArgs),
    /// Tells where the time of a run went
    Report(ReportArgs),
    /// Shows one worker's commands with their times and bounds
    Show(ShowArgs),
    /// Groups workers by what they did, and says what differs
    Paths(PathsArgs),
    /// Decides a run again from its journal, and compares
    Replay(ReplayArgs),
    /// Prints what commands wrote to standard output and standard error
    Logs(LogsArgs),
    /// Tells a value to the job, from within a command of it (`wait_info`)
    Info(InfoArgs),
    /// Copies objects of a run's store into a folder
    Fetch(FetchArgs),
    /// Removes runs
    Rm(RmArgs),
    /// Removes all runs but the newest
    Gc(GcArgs),
    /// Measures what musec costs on this machine, beside the floor that the machine sets
    Bench(BenchArgs),
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Human,
    /// For programs: one JSON value on standard output
    Json,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  musec run jobs/mandelbrot/job.toml\n  musec run job.toml --param frames=12 -j 8\n  musec run job.toml --format json > report.json"
)]
pub(crate) struct RunArgs {
    /// The job file
    pub(crate) job: PathBuf,
    /// Sets a parameter of the job file; may be given several times
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    /// Workers alive at a time
    #[arg(short = 'j', long = "at-once", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at_once: Option<u32>,
    /// Time limit of each attempt, like 90s or 3m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Folder where `in:` keys are read
    #[arg(long, value_name = "DIR")]
    pub(crate) inputs: Option<PathBuf>,
    /// Address to listen on for workers; port 0 for any
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Only the workers with these numbers, like 3,17
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) only: Vec<u32>,
    /// Say what would be launched, and launch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show neither progress nor report, only failures and what the job prints
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// How to print the report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Placeholders: {in} the item, {name} its last part, {stem} and {ext} of that, {index} from 0,\n{out} a file that --put delivers. Without any the item is the last argument. One word with\na shell's characters goes to /bin/sh, with every item quoted.\n\nExamples:\n  musec map -i 'in/*.png' --put 'out/{stem}.gray.png' -- convert {in} -colorspace gray {out}\n  find \"$PWD\" -name '*.log' -print0 | musec map -0 - -- 'gzip -c {in} | wc -c'"
)]
pub(crate) struct MapArgs {
    /// Items are the files of the current folder that match; may be given several times
    #[arg(short = 'i', value_name = "GLOB")]
    pub(crate) globs: Vec<OsString>,
    /// Items are the lines of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) items: Option<PathBuf>,
    /// Items end with a zero byte, not with their line
    #[arg(short = '0', long = "null")]
    pub(crate) zero: bool,
    /// `-`: items are the lines of standard input
    #[arg(value_name = "-", allow_hyphen_values = false)]
    pub(crate) stdin: Vec<OsString>,
    /// Where each item's {out} goes: a path from the current folder, with placeholders
    #[arg(long, value_name = "PATH")]
    pub(crate) put: Option<OsString>,
    /// Workers alive at a time; as many as cores by default
    #[arg(short = 'j', long = "at-once", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) at_once: Option<u32>,
    /// Time limit of each item's command, like 90s or 3m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Address to listen on for workers; port 0 for any
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Show neither progress nor report, only failures and what commands print
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// How to write the report, which goes to standard error
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  musec check jobs/mandelbrot/job.toml --param width=300")]
pub(crate) struct CheckArgs {
    /// The job file
    pub(crate) job: PathBuf,
    /// Sets a parameter of the job file; may be given several times
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  musec runs")]
pub(crate) struct RunsArgs {
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  musec report\n  musec report 3f --format json")]
pub(crate) struct ReportArgs {
    /// The run: an id, a unique prefix of one, a folder, or `latest`
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  musec show latest 3")]
pub(crate) struct ShowArgs {
    /// The run: an id, a unique prefix of one, a folder, or `latest`
    pub(crate) run: String,
    /// The worker's number
    pub(crate) worker: u32,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A path is what a worker did, whatever the order was in which its lanes were: states, and in\nparentheses their commands. `(…)×n` is a loop, `[a: … | b: …]` are lanes, `&[a: …]` runs in the\nbackground, `✗` is a failure; a cancelled lane is `a…cancelled`.\n\nExamples:\n  musec paths\n  musec paths 3f --format json"
)]
pub(crate) struct PathsArgs {
    /// The run: an id, a unique prefix of one, a folder, or `latest`
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit code 4 if a decision differs from the journal's; the first that does is shown.\n\nExamples:\n  musec replay\n  musec replay 3f --format json"
)]
pub(crate) struct ReplayArgs {
    /// The run: an id, a unique prefix of one, a folder, or `latest`
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  musec logs\n  musec logs latest 3")]
pub(crate) struct LogsArgs {
    /// The run: an id, a unique prefix of one, a folder, or `latest`
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// Only this worker's
    pub(crate) worker: Option<u32>,
    /// Go on until the run is over
    #[arg(short, long, conflicts_with = "format")]
    pub(crate) follow: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  musec graph jobs/mandelbrot/job.toml --format dot | dot -Tsvg > job.svg"
)]
pub(crate) struct GraphArgs {
    /// The job file
    pub(crate) job: PathBuf,
    /// Sets a parameter of the job file; may be given several times
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    /// In which language
    #[arg(long, value_enum, default_value_t = GraphFormat::Mermaid)]
    pub(crate) format: GraphFormat,
}

/// In which language to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// For Markdown pages
    Mermaid,
    /// For Graphviz
    Dot,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  musec fetch latest 'tiles/*' -o tiles")]
pub(crate) struct FetchArgs {
    /// The run: an id, a unique prefix of one, a folder, or `latest`
    pub(crate) run: String,
    /// Which objects; `**` for all
    #[arg(default_value = "**")]
    pub(crate) glob: String,
    /// Folder that takes them, with their keys as paths
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  musec rm 3f latest")]
pub(crate) struct RmArgs {
    /// The runs: ids, unique prefixes, folders, or `latest`
    #[arg(required = true, value_name = "RUN")]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  musec gc --keep 10")]
pub(crate) struct GcArgs {
    /// How many of the newest runs stay; those that are under way always do
    #[arg(long, value_name = "N")]
    pub(crate) keep: usize,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it as KEY=VALUE".into()),
    }
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    musec_core::duration::parse(text)
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  musec bench coordinator --workers 1000 --commands 100\n\nDebug builds say nothing about speed: measure with `cargo build --release`."
)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example, within a `run` of a job that waits for `port`:\n  musec info port 8080"
)]
pub(crate) struct InfoArgs {
    /// What the job waits for: its step says `wait_info = "KEY"`
    pub(crate) key: String,
    /// The value; the job reads it as `info.KEY`
    pub(crate) value: OsString,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// CPU and memory of the coordinator, with scripted workers in another process
    Coordinator(BenchCoordinatorArgs),
    /// Time and memory that local workers take, and a command of theirs
    Launch(BenchLaunchArgs),
    /// CPU that recording an event takes
    Record(BenchRecordArgs),
    /// CPU and memory of many workers' decisions and their fold, without sockets and processes
    Simulate(BenchSimulateArgs),
    /// Scripted workers, for `bench coordinator`: tickets on standard input
    #[command(hide = true)]
    Scripted { workers: u32 },
    /// The plain-socket floor's server, for `bench coordinator`
    #[command(hide = true)]
    FloorServer { workers: u32, commands: u64, busy: u32 },
    /// The plain-socket floor's load, for `bench coordinator`
    #[command(hide = true)]
    FloorLoad { address: SocketAddr, workers: u32 },
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  musec bench coordinator --workers 1000 --commands 100\n  musec bench coordinator --workers 10000 --busy 1 --commands 20000 --format json"
)]
pub(crate) struct BenchCoordinatorArgs {
    /// Workers that are connected
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub(crate) workers: u32,
    /// Commands of each busy worker
    #[arg(long, value_name = "K", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) commands: u64,
    /// Workers that get commands; the others are idle. All by default
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) busy: Option<u32>,
    /// Send the commands without waiting for replies. The floor waits all the same
    #[arg(long)]
    pub(crate) pipelined: bool,
    /// Keep no journal
    #[arg(long)]
    pub(crate) no_trace: bool,
    /// Measure this many times, the floor each time too; figures are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  musec bench record --events 1000000 --rounds 9")]
pub(crate) struct BenchRecordArgs {
    /// Events of each round; a command has four
    #[arg(long, value_name = "N", default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) events: u64,
    /// Measure this many times; figures are medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  musec bench simulate --workers 100000 --format json")]
pub(crate) struct BenchSimulateArgs {
    /// Fake workers; with more than 1000, a run with 1000 is measured beside it
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) workers: u32,
    /// Commands of each worker
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) commands: u32,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exec to hello is measured from outside: from the request for the process, before it is made,\nto the coordinator's having read the hello. `run` is measured from sending the command to having\nread its reply; its floor is /bin/true started and awaited with nothing else done.\n\nExample:\n  musec bench launch --workers 1000 --format json"
)]
pub(crate) struct BenchLaunchArgs {
    /// Workers that are wanted at once; figures of one worker come from a run with one at a time
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) workers: u32,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}
