//! `musec fetch`, `musec rm`, `musec gc`: objects out of a run's store, and runs out of the way.
//!
//! Invariants: a run that is under way is never removed; a fetched file appears whole or not at
//! all; what was done is said on standard error.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use musec_analysis::RunLiveness;
use musec_core::Glob;
use musec_protocol::Place;

use crate::args::{FetchArgs, GcArgs, Places, RmArgs};
use crate::commands::runs::size;
use crate::error::CliError;
use crate::output::complain;
use crate::runs::{Follower, FoundRun, find, list};
use crate::terminal::figures::{bytes, short_id};
use crate::terminal::page::counted;

/// Copies objects of a run's own store into a folder.
pub(crate) fn fetch(places: &Places, args: &FetchArgs) -> Result<ExitCode, CliError> {
    let run = find(&places.runs, &args.run)?;
    let glob =
        Glob::new(Place::Store, &args.glob).map_err(|error| CliError::Usage(error.to_string()))?;
    let store = run.folder.objects();
    let mut keys = Vec::new();
    walk(&store, Path::new(""), &mut keys)?;
    keys.retain(|key| glob.matches_path(key));
    keys.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    if keys.is_empty() {
        let id = short_id(&run.manifest.run).to_owned();
        return Err(CliError::Usage(format!("no object of run {id} matches {:?}", args.glob)));
    }
    let mut total = 0_u64;
    for key in &keys {
        total += copy(&store.join(key), &args.output.join(key))?;
    }
    let count = u64::try_from(keys.len()).unwrap_or(u64::MAX);
    let (count, size) = (counted(count, "object"), bytes(total.into()));
    complain(&format!("{count}, {size}, to {}", args.output.display()));
    Ok(ExitCode::SUCCESS)
}

/// All files below a folder, by their paths from `root`.
fn walk(root: &Path, below: &Path, keys: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let folder = root.join(below);
    let read_error = |source| CliError::Read { path: folder.clone(), source };
    for entry in std::fs::read_dir(&folder).map_err(read_error)? {
        let entry = entry.map_err(read_error)?;
        let key = below.join(entry.file_name());
        if entry.file_type().map_err(read_error)?.is_dir() {
            walk(root, &key, keys)?;
        } else {
            keys.push(key);
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<u64, CliError> {
    let write_error = |source| CliError::Write { path: to.to_owned(), source };
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(write_error)?;
    }
    let mut partial = to.as_os_str().to_owned();
    partial.push(".part");
    let partial = PathBuf::from(partial);
    let copied = std::fs::copy(from, &partial).map_err(write_error)?;
    std::fs::rename(&partial, to).map_err(write_error)?;
    Ok(copied)
}

/// Removes runs, all or none of them.
pub(crate) fn rm(places: &Places, args: &RmArgs) -> Result<ExitCode, CliError> {
    let mut found: Vec<FoundRun> = Vec::new();
    for name in &args.names {
        let run = find(&places.runs, name)?;
        if is_running(&run) {
            return Err(CliError::Running(run.manifest.run));
        }
        if !found.iter().any(|other| other.folder.root() == run.folder.root()) {
            found.push(run);
        }
    }
    remove(&found)
}

/// Removes all runs but the newest.
pub(crate) fn gc(places: &Places, args: &GcArgs) -> Result<ExitCode, CliError> {
    let old = list(&places.runs)?.into_iter().skip(args.keep);
    let old: Vec<FoundRun> = old.filter(|run| !is_running(run)).collect();
    remove(&old)
}

fn remove(runs: &[FoundRun]) -> Result<ExitCode, CliError> {
    let mut freed = 0_u64;
    for run in runs {
        let root = run.folder.root();
        let bytes = size(root);
        std::fs::remove_dir_all(root)
            .map_err(|source| CliError::Write { path: root.to_owned(), source })?;
        freed = freed.saturating_add(bytes);
    }
    let count = u64::try_from(runs.len()).unwrap_or(u64::MAX);
    complain(&format!("removed {}, freed {}", counted(count, "run"), bytes(freed.into())));
    Ok(ExitCode::SUCCESS)
}

/// Whether a coordinator holds its journal. One without a journal never began, or is beginning: it
/// is left alone for a while.
fn is_running(run: &FoundRun) -> bool {
    match Follower::open(&run.folder) {
        Ok(follower) => follower.liveness() == RunLiveness::Running,
        Err(_) => {
            let age = std::fs::metadata(run.folder.manifest()).and_then(|about| about.modified());
            age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() < 60))
        }
    }
}
