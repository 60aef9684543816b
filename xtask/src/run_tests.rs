//! `cargo xtask test`: installs what the tests need, and passes them.
//!
//! Each need is named and is only installed where it is not there, so that a second call installs
//! nothing. What is done is printed before it is done, and each part's time after it.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::tree;

/// Something that the tests need from the machine.
struct Need {
    name: &'static str,
    /// Whether it is there; a line that says what was found.
    find: fn() -> Option<String>,
    /// How it is installed.
    install: fn() -> Result<(), String>,
}

/// In the order in which they are installed. Services for the end-to-end scenarios join here.
const NEEDS: [Need; 3] = [
    Need {
        name: "the Rust toolchain of rust-toolchain.toml",
        find: find_toolchain,
        install: install_toolchain,
    },
    Need { name: "bash 5, for jobs that read its clock", find: find_bash, install: install_bash },
    Need {
        name: "ffmpeg and ffprobe, for jobs with films and pictures",
        find: find_ffmpeg,
        install: install_ffmpeg,
    },
];

/// Installs, builds and runs; `extra` goes to `cargo test`.
pub(crate) fn run(extra: &[&str]) -> Result<(), String> {
    let started = Instant::now();
    for need in &NEEDS {
        provide(need)?;
    }
    let mut times = vec![("install", started.elapsed())];
    for (part, args) in [("build", vec!["--no-run"]), ("test", extra.to_vec())] {
        let started = Instant::now();
        let mut words = vec!["test", "--workspace", "--locked"];
        words.extend(args);
        cargo(&words)?;
        times.push((part, started.elapsed()));
    }
    for (part, time) in times {
        println!("test: {part} {:.1} s", time.as_secs_f64());
    }
    println!("test: all passed");
    Ok(())
}

fn provide(need: &Need) -> Result<(), String> {
    if let Some(found) = (need.find)() {
        println!("test: {}: {found}", need.name);
        return Ok(());
    }
    println!("test: {}: not there, installing it", need.name);
    (need.install)()?;
    let found = (need.find)();
    let found = found.ok_or_else(|| format!("{} was installed, but is not there", need.name))?;
    println!("test: {}: {found}", need.name);
    Ok(())
}

/// `rustc` as the tree's toolchain file chooses it.
fn find_toolchain() -> Option<String> {
    let root = tree::root().ok()?;
    let wanted = tree::read_toml(&root.join("rust-toolchain.toml")).ok()?;
    let wanted = wanted.get("toolchain")?.get("channel")?.as_str()?.to_owned();
    let mut rustc = Command::new("rustc");
    let output = rustc.arg("--version").current_dir(root).stdin(Stdio::null()).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && version.contains(&format!(" {wanted} "))).then_some(version)
}

fn install_toolchain() -> Result<(), String> {
    // Without a name, rustup reads the toolchain file of the current folder.
    perform(Command::new("rustup").args(["toolchain", "install"]))
        .map_err(|error| format!("{error}; see rustup.rs for how to get it"))
}

/// A bash that knows `EPOCHREALTIME`.
fn find_bash() -> Option<String> {
    let mut bash = Command::new("bash");
    let output = bash.args(["-c", "echo ${EPOCHREALTIME:+$BASH_VERSION}"]).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!version.is_empty()).then_some(version)
}

fn install_bash() -> Result<(), String> {
    apt_install(&["bash"])
}

/// Both programs; the version of the first.
fn find_ffmpeg() -> Option<String> {
    let version = |program: &str| {
        let output = Command::new(program).arg("-version").stdin(Stdio::null()).output().ok()?;
        let line = String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned();
        output.status.success().then_some(line)
    };
    version("ffprobe")?;
    let line = version("ffmpeg")?;
    Some(line.split(" Copyright").next().unwrap_or(&line).to_owned())
}

fn install_ffmpeg() -> Result<(), String> {
    apt_install(&["ffmpeg"])
}

/// Installs packages of Debian and its kin; elsewhere, and without the right to, names them.
///
/// The lists of packages may be missing or old: they are fetched if it does not go without.
fn apt_install(packages: &[&str]) -> Result<(), String> {
    let install = || {
        let words = ["install", "--yes", "--no-install-recommends"];
        perform(apt_get().args(words).args(packages))
    };
    install()
        .or_else(|_| perform(apt_get().arg("update")).and_then(|()| install()))
        .map_err(|error| format!("{error}; install {} yourself", packages.join(" ")))
}

fn apt_get() -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

fn cargo(words: &[&str]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    perform(Command::new(cargo).args(words))
}

/// Runs a command in the tree's root, without stdin, its output passed through.
fn perform(command: &mut Command) -> Result<(), String> {
    let words = format!("{command:?}").replace('"', "");
    println!("test: {words}");
    let status = command.current_dir(tree::root()?).stdin(Stdio::null()).status();
    let status = status.map_err(|error| format!("cannot run `{words}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{words}` ended with {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere() -> Option<String> {
        None
    }

    fn here() -> Option<String> {
        Some("version 1".to_owned())
    }

    fn installs() -> Result<(), String> {
        Ok(())
    }

    fn cannot_install() -> Result<(), String> {
        Err("no network".to_owned())
    }

    #[test]
    fn what_is_there_is_not_installed() {
        let need = Need { name: "a", find: here, install: cannot_install };
        assert_eq!(provide(&need), Ok(()));
    }

    #[test]
    fn what_cannot_be_installed_is_an_error() {
        let need = Need { name: "a", find: nowhere, install: cannot_install };
        assert_eq!(provide(&need), Err("no network".to_owned()));
    }

    #[test]
    fn an_install_that_brings_nothing_is_an_error() {
        let need = Need { name: "a", find: nowhere, install: installs };
        assert_eq!(provide(&need), Err("a was installed, but is not there".to_owned()));
    }

    #[test]
    fn a_command_that_fails_is_named() {
        let error = perform(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(perform(&mut Command::new("no-such-program")).unwrap_err().contains("cannot run"));
    }
}
