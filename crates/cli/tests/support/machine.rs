//! The machine's limits, made small for one run: disks that are full, few processes, few open
//! files, little memory.
//!
//! Where the system lets a test mount (as root, or in a user namespace of its own), a full disk is
//! one: a small tmpfs that only the run sees. Where it does not (a container without rights), a
//! limit of a file's size stands in for it, which is refused at the same place in the same way. So
//! no test is skipped; what is left out there is only what the file system itself does.

use std::process::{Command, Output};
use std::sync::OnceLock;

use super::{MUSEC, Place};

/// A disk that is full after so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// A small disk.
    Disk,
    /// A limit of each file's size.
    File,
}

impl Full {
    /// What can be had here: the limit of a file's size always.
    pub(crate) fn all() -> Vec<Self> {
        if namespace().is_some() { vec![Self::Disk, Self::File] } else { vec![Self::File] }
    }

    /// What the system says.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Disk => "No space left on device",
            Self::File => "File too large",
        }
    }

    /// What is to be done about it.
    pub(crate) const fn cure(self) -> &'static str {
        match self {
            Self::Disk => "free space there",
            Self::File => "ulimit -f",
        }
    }

    /// `musec` where `folder` takes no more than `bytes`. Afterwards the folder's content is in
    /// `kept`, whatever became of the disk.
    pub(crate) fn musec(self, place: &Place, folder: &str, bytes: u64, words: &[&str]) -> Output {
        self.run(place, folder, bytes, &[&[MUSEC], words].concat())
    }

    /// The same with another program.
    pub(crate) fn run(self, place: &Place, folder: &str, bytes: u64, words: &[&str]) -> Output {
        std::fs::create_dir_all(place.path(folder)).expect("made");
        let limited = match self {
            Self::Disk => format!("mount -t tmpfs -o size={bytes} none {folder}; \"$@\""),
            // A command of a job may lift it for itself.
            Self::File => format!("prlimit --fsize={bytes}:unlimited \"$@\""),
        };
        let script = format!("{limited}; code=$?; cp -r {folder} kept; exit $code");
        let (program, flags) = match self {
            Self::Disk => ("unshare", namespace().expect("asked for before")),
            Self::File => ("env", &[][..]),
        };
        let mut command = place.command(program);
        command.args(flags).args(["sh", "-c", &script, "sh"]).args(words);
        place.output(&mut command)
    }
}

/// How `unshare` gives a namespace in which one can mount; `None` where it cannot.
pub(crate) fn namespace() -> Option<&'static [&'static str]> {
    static FLAGS: OnceLock<Option<&'static [&'static str]>> = OnceLock::new();
    *FLAGS.get_or_init(|| {
        let ways: [&[&str]; 2] = [&["--mount"], &["--mount", "--map-root-user"]];
        ways.into_iter().find(|flags| {
            let mut probe = Command::new("unshare");
            probe.args(*flags).args(["sh", "-c", "mount -t tmpfs -o size=4k none /mnt"]);
            probe.output().is_ok_and(|output| output.status.success())
        })
    })
}

/// Whether the tests run as root, for whom there is no limit of processes.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// `musec` as a user who may have this many processes and threads. Root becomes another user that
/// nobody is, and keeps the right to read this folder; another user gets a namespace of its own, in
/// which it has no process yet.
pub(crate) fn with_processes(place: &Place, most: u32, words: &[&str]) -> Output {
    let limit = format!("--nproc={most}");
    // A user for each call: the dead count until they are reaped.
    let user = 1_000_000 + std::process::id() % 100_000 * 100 + most;
    let user = format!("--reuid={user}");
    let nobody = [
        "setpriv",
        &user,
        "--clear-groups",
        "--inh-caps=-all,+dac_override",
        "--ambient-caps=-all,+dac_override",
    ];
    let mut command = if is_root() {
        let mut command = place.command("prlimit");
        command.arg(limit).args(nobody);
        command
    } else {
        let mut command = place.command("unshare");
        command.args(["--user", "prlimit"]).arg(limit);
        command
    };
    place.output(command.arg(MUSEC).args(words))
}

/// `musec` with a limit of `prlimit`.
pub(crate) fn with_limit(place: &Place, limit: &str, words: &[&str]) -> Output {
    place.output(place.command("prlimit").arg(limit).arg(MUSEC).args(words))
}

/// Sets a limit of a process that runs.
pub(crate) fn limit_process(pid: u32, limit: &str) {
    let set = Command::new("prlimit").args(["--pid", &pid.to_string(), limit]).output();
    let set = set.expect("prlimit, of util-linux, is there");
    assert!(set.status.success(), "{}", super::text(&set.stderr));
}

/// The port that a process of this machine listens on: one that it chose cannot be taken already.
pub(crate) fn listening_port(pid: u32) -> u16 {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").flatten();
    let links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let sockets: Vec<String> = links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.into()))
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("a table");
    let port = table.lines().skip(1).find_map(|line| {
        // Number, local address, remote address, state, …; the tenth is the socket.
        let facts: Vec<&str> = line.split_whitespace().collect();
        let listens = facts[3] == "0A" && sockets.iter().any(|socket| socket == facts[9]);
        let (_, port) = facts[1].split_once(':')?;
        listens.then(|| u16::from_str_radix(port, 16).expect("a port"))
    });
    port.expect("it listens")
}
