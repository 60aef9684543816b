//! What the figures were measured on.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines of the chapter's head: what, and its value. What the system does not tell is left out.
pub(super) fn facts(root: &Path) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map(|cores| cores.to_string()).ok();
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kib| format!("{} GiB", kib.div_ceil(1 << 20)));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    let facts = [
        ("date", said("date", &["-u", "+%Y-%m-%d"], root)),
        ("musec", said("git", &["describe", "--always", "--dirty", "--abbrev=12"], root)),
        ("compiler", said("rustc", &["--version"], root)),
        ("cores", cores),
        ("processor", field("/proc/cpuinfo", "model name")),
        ("memory", memory),
        ("kernel", kernel.map(|text| text.trim().to_owned())),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The first value of this name in a file of `name: value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn said(program: &str, words: &[&str], root: &Path) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(words).current_dir(root).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
