//! Finding runs, and reading their journals.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use musec_analysis::{RunLiveness, Trace};
use musec_coordinator::{Manifest, RunFolder};
use musec_trace::journal::{JournalReader, Next};

use crate::error::{CliError, NoRun};

/// A run that was found.
pub(crate) struct FoundRun {
    pub(crate) folder: RunFolder,
    pub(crate) manifest: Manifest,
}

/// A run as far as its journal tells.
pub(crate) struct ReadRun {
    pub(crate) trace: Trace,
    pub(crate) liveness: RunLiveness,
    /// Bytes that the last write left unfinished.
    pub(crate) torn_bytes: u64,
}

/// All runs in a folder, the newest first. Folders that are no runs are passed over.
pub(crate) fn list(runs: &Path) -> Result<Vec<FoundRun>, NoRun> {
    let unreadable = |source| NoRun::Unreadable { path: runs.to_owned(), source };
    let entries = match std::fs::read_dir(runs) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        found.extend(open(&entry.map_err(unreadable)?.path()));
    }
    found.sort_by_key(|run| std::cmp::Reverse(run.manifest.created_wall_ns));
    Ok(found)
}

fn open(path: &Path) -> Option<FoundRun> {
    let folder = RunFolder::at(path.to_owned());
    let mut text = Vec::new();
    open_regular(&folder.manifest()).ok()?.read_to_end(&mut text).ok()?;
    let manifest = serde_json::from_slice(&text).ok()?;
    Some(FoundRun { folder, manifest })
}

/// Opens a file; a pipe, which would be waited for without an end, is refused.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    File::open(path)
}

/// The run that `name` means: an id, a unique prefix of one, a path, or `latest`.
pub(crate) fn find(runs: &Path, name: &str) -> Result<FoundRun, NoRun> {
    if name != "latest"
        && let Some(run) = open(Path::new(name))
    {
        return Ok(run);
    }
    let mut all = list(runs)?;
    if name == "latest" {
        if all.is_empty() {
            return Err(NoRun::None(runs.to_owned()));
        }
        return Ok(all.swap_remove(0));
    }
    all.retain(|run| run.manifest.run.starts_with(name));
    match all.len() {
        0 => Err(NoRun::Unknown { name: name.to_owned(), runs: runs.to_owned() }),
        1 => Ok(all.swap_remove(0)),
        count => Err(NoRun::Ambiguous { name: name.to_owned(), count }),
    }
}

impl FoundRun {
    /// Reads the whole journal, as far as it is written.
    pub(crate) fn read(&self) -> Result<ReadRun, CliError> {
        let (read, damage) = self.read_to_damage()?;
        damage.map_or(Ok(read), Err)
    }

    /// Reads the journal up to its end or to where it is damaged, which is told too. If nothing
    /// could be read before it, the damage is the error.
    pub(crate) fn read_to_damage(&self) -> Result<(ReadRun, Option<CliError>), CliError> {
        let mut follower = Follower::open(&self.folder)?;
        let liveness = follower.liveness();
        let (torn_bytes, damage) = match follower.advance() {
            Ok(torn_bytes) => (torn_bytes, None),
            Err(error) if follower.trace.run().is_none() => return Err(error),
            Err(error) => (0, Some(error)),
        };
        Ok((ReadRun { trace: follower.trace, liveness, torn_bytes }, damage))
    }
}

/// Folds a journal while it is being written.
pub(crate) struct Follower {
    path: PathBuf,
    lock: File,
    reader: JournalReader<File>,
    pub(crate) trace: Trace,
}

impl Follower {
    pub(crate) fn open(folder: &RunFolder) -> Result<Self, CliError> {
        let path = folder.journal();
        let open = || open_regular(&path);
        let (reader, lock) = open()
            .and_then(|reader| Ok((reader, open()?)))
            .map_err(|source| CliError::Read { path: path.clone(), source })?;
        Ok(Self { path, lock, reader: JournalReader::new(reader), trace: Trace::default() })
    }

    /// Folds what has been written since, and tells how many bytes of an unfinished entry follow.
    pub(crate) fn advance(&mut self) -> Result<u64, CliError> {
        loop {
            match self.reader.read_next() {
                Ok(Next::Record(record)) => self.trace.apply(&record),
                Ok(Next::End { torn_bytes }) => return Ok(torn_bytes),
                Err(source) => return Err(CliError::Journal { path: self.path.clone(), source }),
            }
        }
    }

    /// Whether a coordinator holds the journal's lock.
    pub(crate) fn liveness(&self) -> RunLiveness {
        match self.lock.try_lock_shared() {
            Ok(()) => {
                // The lock is only asked for to learn who has it.
                drop(self.lock.unlock());
                RunLiveness::NotRunning
            }
            Err(_) => RunLiveness::Running,
        }
    }
}
