//! Processes that carry an attempt's marker in their environment, whatever their group or session.
//!
//! Limit: a process that cleared its environment and left its group is not found.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

/// The variable that marks every process that an attempt has started.
pub(crate) const MARKER_VARIABLE: &str = "MUSEC_RUN";

/// The variable's value for what an attempt starts: its own marker after those of the runs that
/// this process is itself part of, so that a run within a run is found by both.
pub(crate) fn marker_value(marker: &OsStr) -> OsString {
    match std::env::var_os(MARKER_VARIABLE) {
        Some(mut outer) => {
            outer.push(" ");
            outer.push(marker);
            outer
        }
        None => marker.to_owned(),
    }
}

/// All living processes but this one that carry one of the markers.
pub(crate) fn marked(markers: &[&[u8]]) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let own = rustix::process::getpid();
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            (pid != own && is_marked(&entry.path(), markers)).then_some(pid)
        })
        .collect()
}

/// A dead process has no environment, and that of another user cannot be read.
fn is_marked(process: &Path, markers: &[&[u8]]) -> bool {
    let environ = fs::read(process.join("environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|variable| carries(variable, markers))
}

fn carries(variable: &[u8], markers: &[&[u8]]) -> bool {
    variable
        .strip_prefix(MARKER_VARIABLE.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"="))
        .is_some_and(|value| value.split(|byte| *byte == b' ').any(|word| markers.contains(&word)))
}

/// When a process started, in clock ticks since boot: with its number it says which process it is.
pub(super) fn start_ticks(pid: Pid) -> Option<u64> {
    let stat = fs::read(PathBuf::from(format!("/proc/{}/stat", pid.as_raw_nonzero()))).ok()?;
    // The name is in brackets and may hold anything, brackets among it; the rest are numbers.
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let numbers = std::str::from_utf8(&stat[after_name + 1..]).ok()?;
    numbers.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_a_whole_word_of_its_variable() {
        let markers: [&[u8]; 1] = [b"ab/1"];
        assert!(carries(b"MUSEC_RUN=ab/1", &markers));
        assert!(carries(b"MUSEC_RUN=00/7 ab/1", &markers));
        assert!(!carries(b"MUSEC_RUN=ab/12", &markers));
        assert!(!carries(b"XMUSEC_RUN=ab/1", &markers));
        assert!(!carries(b"MUSEC_RUN=", &markers));
    }

    #[test]
    fn this_process_started_after_the_first_one() {
        let start = |pid| start_ticks(pid).expect("it is there");
        assert!(start(rustix::process::getpid()) > start(Pid::INIT));
    }
}
