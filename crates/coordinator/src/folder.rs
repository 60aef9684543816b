//! A run's folder: `.musec/runs/<id>/` with its manifest, journal, job file and objects.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use musec_protocol::RunId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::cure::cure;

/// Paths within a run's folder.
#[derive(Clone, Debug)]
pub struct RunFolder {
    root: PathBuf,
}

/// `run.json`: what can be told of a run without reading its journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this file's schema.
    pub schema: u32,
    /// The run's id.
    pub run: String,
    /// The job's name.
    pub job: String,
    /// The launcher's name.
    pub launcher: String,
    /// Wall time of its creation, in nanoseconds since 1970.
    pub created_wall_ns: u64,
    /// Version of the program that made it.
    pub version: String,
}

/// A run's folder could not be made or filled.
#[derive(Debug, Error)]
pub enum FolderError {
    /// A folder or file of the run could not be made.
    #[error("cannot write {path}{}; --runs names another place", cure(.source))]
    Write {
        /// The path.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// A file to be shipped could not be read.
    #[error("cannot read {path}, which the job ships with `files`")]
    Ship {
        /// The path.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
}

impl RunFolder {
    /// The folder at `root`, which need not exist.
    #[must_use]
    pub const fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Makes the folder of a new run in `runs`.
    pub(crate) fn create(runs: &Path, run: RunId) -> Result<Self, FolderError> {
        let folder = Self { root: absolute(runs)?.join(run.to_string()) };
        for path in [folder.root.clone(), folder.objects()] {
            std::fs::create_dir_all(&path)
                .map_err(|source| FolderError::Write { path: path.clone(), source })?;
        }
        Ok(folder)
    }

    /// Removes it: nothing was launched, so nothing is to be told.
    pub(crate) fn remove(&self) {
        if let Err(error) = std::fs::remove_dir_all(&self.root) {
            tracing::warn!("cannot remove {}: {error}", self.root.display());
        }
    }

    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
        std::fs::write(path, bytes)
            .map_err(|source| FolderError::Write { path: path.to_owned(), source })
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.root.join("run.json")
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.musec")
    }

    /// What commands printed, in the journal's format.
    #[must_use]
    pub fn outputs(&self) -> PathBuf {
        self.root.join("outputs.musec")
    }

    /// The job file as given.
    #[must_use]
    pub fn job(&self) -> PathBuf {
        self.root.join("job.toml")
    }

    /// The objects of the run's own store.
    #[must_use]
    pub fn objects(&self) -> PathBuf {
        self.root.join("out")
    }

    /// What local workers wrote to their own standard error.
    #[must_use]
    pub fn worker_log(&self) -> PathBuf {
        self.root.join("workers.log")
    }

    /// Copies the files that a job ships, each into a folder named by its hash, read-only and
    /// executable, and returns those folders, without repetition, in the order of the files.
    pub(crate) fn ship(&self, files: &[PathBuf]) -> Result<Vec<PathBuf>, FolderError> {
        let mut folders = Vec::new();
        for path in files {
            let ship = |source| FolderError::Ship { path: path.clone(), source };
            let bytes = std::fs::read(path).map_err(ship)?;
            let hash = Sha256::digest(&bytes);
            let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            let folder = self.root.join("files").join(hash);
            let name = path.file_name().ok_or_else(|| ship(io::ErrorKind::IsADirectory.into()))?;
            let copy = folder.join(name);
            let write = |source| FolderError::Write { path: copy.clone(), source };
            if !copy.exists() {
                std::fs::create_dir_all(&folder).map_err(write)?;
                std::fs::write(&copy, &bytes).map_err(write)?;
                std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o555)).map_err(write)?;
            }
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        Ok(folders)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, FolderError> {
    std::path::absolute(path).map_err(|source| FolderError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shipped_file_is_stored_once_and_can_be_run_but_not_written() {
        let place = tempfile::tempdir().expect("temporary folder");
        let program = place.path().join("program");
        std::fs::write(&program, "#!/bin/sh\n").expect("written");
        let folder = RunFolder::create(&place.path().join("runs"), RunId([1; 16])).expect("made");
        let files = [program.clone(), program];
        let folders = folder.ship(&files).expect("shipped");
        assert_eq!(folders.len(), 1);
        let copy = folders[0].join("program");
        let mode = std::fs::metadata(&copy).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o555);
        let missing = folder.ship(&[place.path().join("none")]).expect_err("missing");
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
