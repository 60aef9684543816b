//! Figures of a process, and the helpers that benches start as processes of this same program.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error::CliError;

/// CPU time of this process so far, all threads, user and system.
pub(super) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Bytes of this process that are in memory; 0 where the system does not tell.
pub(super) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// This program again, with these words after `bench`; it ends with its standard input at the
/// latest, for that is this process's.
pub(super) fn again(words: &[&str]) -> Result<Child, CliError> {
    let program = std::env::current_exe().map_err(CliError::NoProgram)?;
    Command::new(program)
        .arg("bench")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(CliError::NoProgram)
}

/// Raises the limit of open files to what is needed.
pub(super) fn open_files(needed: u64) -> Result<(), CliError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        CliError::Usage(format!(
            "this bench needs {needed} open files; raise the limit (ulimit -Hn), or lower --workers"
        ))
    })
}

/// A folder of this process's own for what a bench writes; gone when this value is.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn create(name: &str) -> Result<Self, CliError> {
        let path = std::env::temp_dir().join(format!("musec-bench-{}-{name}", std::process::id()));
        let made = std::fs::create_dir(&path);
        made.map_err(|source| CliError::Write { path: path.clone(), source })?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// The middle of several figures; of an even number the lower one.
pub(super) fn median<T: Ord + Copy>(figures: &[T]) -> Option<T> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// Nanoseconds for each of `count`.
pub(super) fn per(total: Duration, count: u64) -> u64 {
    u64::try_from(total.as_nanos() / u128::from(count.max(1))).unwrap_or(u64::MAX)
}
