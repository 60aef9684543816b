//! A watchdog for runs in tests: one that makes no progress fails its test, with what was seen.
//!
//! Progress is what a journal tells but for heartbeats and samples, which a run that hangs has too.
//! In: the program that was started, and its folder. Out: how it ended; or a panic that shows the
//! last records, the processes and what was printed, with everything killed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Output};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use musec_trace::journal::{JournalReader, Next};
use musec_trace::{Event, Record};

use super::Place;

/// Without progress for so long a run hangs: the longest command of a test takes 5 s, and the
/// machine may be busy with other tests.
pub(crate) const NO_PROGRESS_MAX: Duration = Duration::from_secs(60);

/// Time between two looks at the journals.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Records that are shown of a run that hangs.
const LAST_RECORDS: usize = 12;

/// The program, watched.
pub(crate) struct Watched<'a> {
    place: &'a Place,
    child: Child,
    outputs: Vec<(&'static str, Receiver<Vec<u8>>)>,
    /// What it has ended with.
    status: Option<ExitStatus>,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(place: &'a Place, mut child: Child) -> Self {
        let mut outputs = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            outputs.push(("stdout", read(pipe)));
        }
        if let Some(pipe) = child.stderr.take() {
            outputs.push(("stderr", read(pipe)));
        }
        Self { place, child, outputs, status: None }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().expect("a pipe")
    }

    /// Waits for its end, for as long as it makes progress.
    pub(crate) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.wait_within(NO_PROGRESS_MAX)
    }

    pub(crate) fn wait_within(&mut self, limit: Duration) -> std::io::Result<ExitStatus> {
        let mut progress = Progress::default();
        let (mut since, mut looked) = (Instant::now(), Instant::now());
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.status = Some(status);
                return Ok(status);
            }
            if looked.elapsed() > LOOK_EVERY {
                looked = Instant::now();
                if progress.look(self.place) {
                    since = looked;
                } else if since.elapsed() > limit {
                    self.give_up(&progress, limit);
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its end, with what it printed to pipes.
    pub(crate) fn output(mut self) -> Output {
        let status = self.wait().expect("it can be waited for");
        let mut take = |name| {
            let at = self.outputs.iter().position(|(pipe, _)| *pipe == name);
            at.map(|at| self.outputs.swap_remove(at).1)
        };
        let [stdout, stderr] = ["stdout", "stderr"].map(&mut take).map(|pipe| {
            let Some(pipe) = pipe else { return Vec::new() };
            // A process that was left behind may hold the pipe.
            pipe.recv_timeout(NO_PROGRESS_MAX).expect("its output ends when it has")
        });
        Output { status, stdout, stderr }
    }

    /// Kills everything and says what was seen.
    fn give_up(&mut self, progress: &Progress, limit: Duration) -> ! {
        let tree = self.place.tree();
        self.place.kill_all();
        // It may be dead already.
        drop(self.child.kill());
        drop(self.child.wait());
        let mut said = String::new();
        for (name, pipe) in &self.outputs {
            let bytes = pipe.recv_timeout(Duration::from_secs(5)).unwrap_or_default();
            said.push_str(&format!("\n-- {name}\n{}", String::from_utf8_lossy(&bytes)));
        }
        let log = self.place.log();
        progress.complain(limit, &format!("{tree}{said}\n-- musec.log\n{log}"));
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if self.status.is_none() {
            // A failed test ends what it started; the place kills the rest.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Does something that runs a job in this process, on a thread of its own, watched.
pub(crate) fn watch_thread<T: Send + 'static>(
    place: &Place,
    run: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (sender, ended) = channel();
    let thread = std::thread::spawn(move || drop(sender.send(run())));
    let (mut progress, mut since) = (Progress::default(), Instant::now());
    loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Ok(()) => unreachable!("it sends before it ends"),
                Err(panic) => std::panic::resume_unwind(panic),
            },
            Err(RecvTimeoutError::Timeout) if progress.look(place) => since = Instant::now(),
            Err(RecvTimeoutError::Timeout) if since.elapsed() > NO_PROGRESS_MAX => {
                let tree = place.tree();
                place.kill_all();
                progress.complain(NO_PROGRESS_MAX, &tree);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Reads a pipe to its end, so that nobody waits for it to have room.
fn read(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what there is.
        drop(pipe.read_to_end(&mut bytes));
        drop(sender.send(bytes));
    });
    receiver
}

/// What all journals of a folder tell, read on as they grow.
#[derive(Default)]
struct Progress {
    readers: BTreeMap<PathBuf, JournalReader<File>>,
    records: u64,
    last: VecDeque<String>,
}

impl Progress {
    /// Reads what is new; whether that is progress.
    fn look(&mut self, place: &Place) -> bool {
        let before = self.records;
        for path in journals(place.path("")) {
            let reader = match self.readers.entry(path) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => match File::open(new.key()) {
                    Ok(file) => new.insert(JournalReader::new(file)),
                    Err(_) => continue,
                },
            };
            while let Ok(Next::Record(Record { at, event })) = reader.read_next() {
                if !matches!(event, Event::Sample(_) | Event::Pulse { .. }) {
                    self.records += 1;
                }
                self.last.push_back(format!("{:>12} ns  {event:?}", at.ns));
                if self.last.len() > LAST_RECORDS {
                    self.last.pop_front();
                }
            }
        }
        self.records > before
    }

    fn complain(&self, limit: Duration, seen: &str) -> ! {
        let last: Vec<_> = self.last.iter().map(String::as_str).collect();
        let (records, last) = (self.records, last.join("\n"));
        panic!(
            "no progress for {limit:?} after {records} records; the last of them:\n{last}\n\
             -- processes\n{seen}"
        );
    }
}

/// Journals of runs within a test's folder: in `.musec/runs`, or where `--runs` had them.
pub(super) fn journals(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(folder, 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.file_name().is_some_and(|name| name == "journal.musec") {
                found.push(path);
            } else if depth < 3 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push((path, depth + 1));
            }
        }
    }
    found.sort();
    found
}
