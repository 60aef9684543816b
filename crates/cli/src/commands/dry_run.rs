//! `musec run --dry-run`: what would be launched. Nothing is made, not even a run's folder.
//!
//! Inputs are looked at as they are now; what depends on what waves put is known at run time.

use std::path::Path;
use std::process::ExitCode;

use musec_core::{ItemList, Look as Wanted, PlanError, Program, Seen, WaveId};
use musec_protocol::Place;
use serde::Serialize;

use crate::args::Format;
use crate::commands::job::Job;
use crate::error::CliError;
use crate::output::{print, print_json};
use crate::terminal::figures::bytes;
use crate::terminal::look::Look;
use crate::terminal::page::{Page, clean, counted};

/// What would be launched, as JSON.
#[derive(Serialize)]
struct DryRun {
    schema: u32,
    job: String,
    files: Vec<Shipped>,
    waves: Vec<Planned>,
}

#[derive(Serialize)]
struct Shipped {
    file: String,
    bytes: u64,
}

/// A wave; a figure that is known at run time only is absent.
#[derive(Serialize)]
struct Planned {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_once: Option<u32>,
    known_at_run_time: bool,
}

/// Tells what a run of this job would launch.
pub(crate) fn dry_run(job: &Job, format: Format) -> Result<ExitCode, CliError> {
    let files = job.program.files.iter().map(|file| shipped(&job.folder, file));
    let waves = job.program.waves().map(|(id, _)| planned(job, id));
    let dry = DryRun {
        schema: 1,
        job: job.program.job.clone(),
        files: files.collect::<Result<_, _>>()?,
        waves: waves.collect::<Result<_, _>>()?,
    };
    match format {
        Format::Json => print_json(&dry)?,
        Format::Human => print(render(&dry))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn shipped(folder: &Path, file: &str) -> Result<Shipped, CliError> {
    let path = folder.join(file);
    let about = std::fs::metadata(&path).map_err(|source| CliError::Read { path, source })?;
    Ok(Shipped { file: file.to_owned(), bytes: about.len() })
}

fn planned(job: &Job, id: WaveId) -> Result<Planned, CliError> {
    let program = &job.program;
    let usage = |error: PlanError| CliError::Usage(error.to_string());
    let name = program.wave(id).map_or_else(String::new, |wave| wave.name.clone());
    let unknown = Planned {
        name: name.clone(),
        workers: None,
        items: None,
        at_once: None,
        known_at_run_time: true,
    };
    let seen = match program.look(id).map_err(usage)? {
        None => None,
        Some(wanted) => match see(program, &job.folder, &wanted)? {
            Some(seen) => Some(seen),
            None => return Ok(unknown),
        },
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    match program.plan(id, cores, seen.as_ref()) {
        Err(PlanError::AtRunTime(_)) => Ok(unknown),
        Err(error) => Err(usage(error)),
        Ok(plan) => {
            let only = program.wave(id).and_then(|wave| wave.only.as_ref());
            let chosen = only.map(|only| only.iter().filter(|one| **one < plan.workers).count());
            let chosen = chosen.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            let workers = chosen.unwrap_or(plan.workers);
            let items = plan.items.as_ref().map(ItemList::len);
            let default = if items.is_some() { cores } else { workers };
            let at_once = plan.at_once.unwrap_or(default).min(workers);
            let is_open = program.wave(id).is_some_and(|wave| wave.each);
            if is_open {
                return Ok(unknown);
            }
            Ok(Planned {
                name,
                workers: Some(workers),
                items,
                at_once: Some(at_once),
                known_at_run_time: false,
            })
        }
    }
}

/// Looks at inputs; the store is filled at run time, and not looked at.
fn see(program: &Program, folder: &Path, wanted: &Wanted) -> Result<Option<Seen>, CliError> {
    let inputs = folder.join(program.inputs.as_deref().unwrap_or("."));
    match wanted {
        Wanted::Keys(glob) if glob.place == Place::Inputs => {
            let mut keys = Vec::new();
            let root = inputs.join(&glob.folder);
            if root.is_dir() {
                list(&root, &glob.folder, &mut keys)?;
            }
            Ok(Some(Seen::Keys(keys)))
        }
        Wanted::Text { place: Place::Inputs, key } => {
            let path = inputs.join(key);
            let text = std::fs::read(&path).map_err(|source| CliError::Read { path, source })?;
            Ok(Some(Seen::Text(text)))
        }
        Wanted::Keys(_) | Wanted::Text { .. } => Ok(None),
    }
}

/// All keys below a folder; names that are no text are no keys.
fn list(folder: &Path, prefix: &str, keys: &mut Vec<String>) -> Result<(), CliError> {
    let read_error = |source| CliError::Read { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(read_error)? {
        let entry = entry.map_err(read_error)?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let key = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if entry.file_type().map_err(read_error)?.is_dir() {
            list(&entry.path(), &key, keys)?;
        } else {
            keys.push(key);
        }
    }
    Ok(())
}

fn render(dry: &DryRun) -> String {
    let look = Look::of_stdout();
    let mut page = Page::new(&look);
    page.line(&format!("job {}: nothing was launched; a run would launch", clean(&dry.job)));
    for wave in &dry.waves {
        let mut about = Vec::new();
        about.extend(wave.workers.map(|count| counted(count.into(), "worker")));
        about.extend(wave.items.map(|count| format!("for {}", counted(count, "item"))));
        about.extend(wave.at_once.map(|count| format!("{count} at a time")));
        if wave.known_at_run_time {
            about.push("workers and items known at run time".to_owned());
        }
        page.flow(&format!("  {}  ", clean(&wave.name)), &about);
    }
    for file in &dry.files {
        page.line(&format!("  ships {}, {}", clean(&file.file), bytes(file.bytes.into())));
    }
    page.into_text()
}
