//! What chores need from the machine: found, or installed.
//!
//! Each need is named and is only installed where it is not there, so that a second call installs
//! nothing. What is done is printed before it is done.

use std::process::{Command, Stdio};

use crate::tree;

/// Something that a chore needs from the machine.
pub(crate) struct Need {
    pub(crate) name: &'static str,
    /// Whether it is there; a line that says what was found.
    pub(crate) find: fn() -> Option<String>,
    /// How it is installed.
    pub(crate) install: fn() -> Result<(), String>,
}

/// Compiles libFuzzer, which is C++.
pub(crate) const CXX: Need =
    Need { name: "a C++ compiler, for libFuzzer", find: find_cxx, install: install_cxx };

/// Finds what is needed, or installs it.
pub(crate) fn provide(need: &Need) -> Result<(), String> {
    if let Some(found) = (need.find)() {
        println!("xtask: {}: {found}", need.name);
        return Ok(());
    }
    println!("xtask: {}: not there, installing it", need.name);
    (need.install)()?;
    let found = (need.find)();
    let found = found.ok_or_else(|| format!("{} was installed, but is not there", need.name))?;
    println!("xtask: {}: {found}", need.name);
    Ok(())
}

/// `rustc` as the tree's toolchain file chooses it.
pub(crate) fn find_toolchain() -> Option<String> {
    let root = tree::root().ok()?;
    let wanted = tree::read_toml(&root.join("rust-toolchain.toml")).ok()?;
    let wanted = wanted.get("toolchain")?.get("channel")?.as_str()?.to_owned();
    let mut rustc = Command::new("rustc");
    let output = rustc.arg("--version").current_dir(root).stdin(Stdio::null()).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && version.contains(&format!(" {wanted} "))).then_some(version)
}

pub(crate) fn install_toolchain() -> Result<(), String> {
    // Without a name, rustup reads the toolchain file of the current folder.
    perform(Command::new("rustup").args(["toolchain", "install"]))
        .map_err(|error| format!("{error}; see rustup.rs for how to get it"))
}

/// A bash that knows `EPOCHREALTIME`.
pub(crate) fn find_bash() -> Option<String> {
    let mut bash = Command::new("bash");
    let output = bash.args(["-c", "echo ${EPOCHREALTIME:+$BASH_VERSION}"]).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!version.is_empty()).then_some(version)
}

pub(crate) fn install_bash() -> Result<(), String> {
    apt_install(&["bash"])
}

/// Both programs; the version of the first.
pub(crate) fn find_ffmpeg() -> Option<String> {
    let version = |program: &str| {
        let output = Command::new(program).arg("-version").stdin(Stdio::null()).output().ok()?;
        let line = String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned();
        output.status.success().then_some(line)
    };
    version("ffprobe")?;
    let line = version("ffmpeg")?;
    Some(line.split(" Copyright").next().unwrap_or(&line).to_owned())
}

pub(crate) fn install_ffmpeg() -> Result<(), String> {
    apt_install(&["ffmpeg"])
}

fn find_cxx() -> Option<String> {
    let output = Command::new("c++").arg("--version").stdin(Stdio::null()).output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned();
    output.status.success().then_some(line)
}

fn install_cxx() -> Result<(), String> {
    apt_install(&["g++"])
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

pub(crate) fn cargo(words: &[&str]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    perform(Command::new(cargo).args(words))
}

/// Runs a command in the tree's root, without stdin, its output passed through.
pub(crate) fn perform(command: &mut Command) -> Result<(), String> {
    let words = format!("{command:?}").replace('"', "");
    println!("xtask: {words}");
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
