//! `musec bench simulate`: what a run of many workers costs where nothing but decisions is made:
//! core's fleet and machines, the bytes of the journal, and the fold. No socket, no process, no
//! disk.
//!
//! In: sizes. Out: CPU for each event, beside that of a thousand workers in the same run, and what
//! a worker takes in memory. The workers are fake ones of this thread. Their commands take a second
//! of virtual time, and each worker answers a heartbeat a second, so that sweeps and deadlines come
//! as often as in a run. One batch of inputs after the other is decided, folded and encoded, so
//! that each of these is measured by itself; making the inputs counts as deciding.

mod world;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;

use self::world::{Spent, World};
use super::process::{per, resident_bytes};
use crate::args::{BenchSimulateArgs, Format};
use crate::error::CliError;
use crate::output::{print, print_json};

/// Workers beside which a larger number is measured.
const FEW: u32 = 1000;

/// The most runs of few workers: enough of them that their figure is steady.
const FEW_RUNS_MAX: u32 = 20;

/// What came of it.
#[derive(Debug, Serialize)]
struct Figures {
    schema: u32,
    workers: u32,
    /// Of each worker.
    commands: u32,
    /// Records of the run.
    events: u64,
    /// Of the run, from its start to its end.
    wall_ns: u64,
    ns_per_event: u64,
    deciding_ns_per_event: u64,
    encoding_ns_per_event: u64,
    folding_ns_per_event: u64,
    /// The same of a run with a thousand workers; absent when there are no more than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    ns_per_event_of_1000: Option<u64>,
    /// `ns_per_event / ns_per_event_of_1000`, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_thousandths: Option<u64>,
    /// Of the fleet with all its machines, when each worker has a command under way.
    bytes_per_worker: u64,
    /// Of the fold at the end of the run, which keeps all commands.
    fold_bytes_per_worker: u64,
}

pub(super) fn simulate(args: &BenchSimulateArgs) -> Result<ExitCode, CliError> {
    let BenchSimulateArgs { workers, commands, format } = *args;
    // What any run takes, however few its workers are, is there before memory is looked at.
    World::new(1, commands)?.run();
    let bytes = resident_bytes();
    // Stays until the end, so that what it took is not given to the fold.
    let mut gathered = World::new(workers, commands)?;
    gathered.gather();
    let fleet_bytes = resident_bytes().saturating_sub(bytes);
    let bytes = resident_bytes();
    let from = Instant::now();
    let mut world = World::new(workers, commands)?;
    world.run();
    let wall = from.elapsed();
    let both_bytes = resident_bytes().saturating_sub(bytes);
    let few = (workers > FEW).then(|| few(workers, commands)).transpose()?;
    drop(gathered);
    let events = world.events();
    let Spent { deciding, encoding, folding } = world.spent();
    let ns_per_event = per(deciding + encoding + folding, events);
    let figures = Figures {
        schema: 1,
        workers,
        commands,
        events,
        wall_ns: per(wall, 1),
        ns_per_event,
        deciding_ns_per_event: per(deciding, events),
        encoding_ns_per_event: per(encoding, events),
        folding_ns_per_event: per(folding, events),
        ns_per_event_of_1000: few,
        ratio_thousandths: few.map(|few| ns_per_event * 1000 / few.max(1)),
        bytes_per_worker: fleet_bytes / u64::from(workers),
        fold_bytes_per_worker: both_bytes.saturating_sub(fleet_bytes) / u64::from(workers),
    };
    match format {
        Format::Json => print_json(&figures)?,
        Format::Human => print(in_words(&figures))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// CPU for each event of runs with few workers, up to as many as come to the same number of events.
/// All stay until the end, so that they too are given memory that nobody has touched before: what
/// that costs goes by what a run keeps of its events, not by its workers.
fn few(workers: u32, commands: u32) -> Result<u64, CliError> {
    let (mut events, mut cpu, mut kept) = (0, Duration::ZERO, Vec::new());
    for _ in 0..(workers / FEW).clamp(1, FEW_RUNS_MAX) {
        let mut world = World::new(FEW, commands)?;
        world.run();
        let Spent { deciding, encoding, folding } = world.spent();
        events += world.events();
        cpu += deciding + encoding + folding;
        kept.push(world);
    }
    Ok(per(cpu, events))
}

fn in_words(figures: &Figures) -> String {
    let few = match (figures.ns_per_event_of_1000, figures.ratio_thousandths) {
        (Some(few), Some(ratio)) => format!(
            "\x20 with 1000 workers    {few:>8} ns, {}.{:03} x as much with {}\n",
            ratio / 1000,
            ratio % 1000,
            figures.workers
        ),
        _ => String::new(),
    };
    format!(
        "simulate: {} workers, {} commands each, {} events in {} ms\n\
         \x20 CPU an event         {:>8} ns\n\
         \x20   deciding           {:>8} ns\n\
         \x20   encoding           {:>8} ns\n\
         \x20   folding            {:>8} ns\n\
         {few}\
         \x20 memory of a worker   {:>8} B\n\
         \x20   in the fold        {:>8} B\n",
        figures.workers,
        figures.commands,
        figures.events,
        figures.wall_ns / 1_000_000,
        figures.ns_per_event,
        figures.deciding_ns_per_event,
        figures.encoding_ns_per_event,
        figures.folding_ns_per_event,
        figures.bytes_per_worker,
        figures.fold_bytes_per_worker,
    )
}
