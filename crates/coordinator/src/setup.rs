//! From a program to a run: everything that can fail does so before a worker is launched.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use musec_core::Program;
use musec_core::build::{BuildError, Job};
use musec_core::fleet::{Fleet, FleetOptions};
use musec_core::replay::given;
use musec_protocol::RunId;
use musec_trace::{CClock, CTime, Event, RunStarted, RunStatus};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::descriptors::{TooMany, make_room};
use crate::engine::{Batch, Engine, Peers, SharedEngine, Sources};
use crate::error::RunError;
use crate::folder::{FolderError, Manifest, RunFolder};
use crate::identity::{Identity, IdentityError, random};
use crate::launcher::{Launcher, LauncherEvent, Local, LocalSetup, Spawned, Tickets};
use crate::listener::accept_all;
use crate::recorder::Recorder;
use crate::results::{Results, bring};
use crate::signals::Signals;
use crate::store::{Place, StoreError, Stores};

/// Bound of |dW/dC − 1| for workers that do not share the coordinator's clock, in ppm (time.md §1:
/// 200 for CLOCK_MONOTONIC_RAW).
const RATE_BOUND_PPM: u32 = 200;

/// Local workers that may be on their way to their hello at a time, for each processor: enough to
/// keep it busy while one waits, and no more.
const STARTING_PER_CORE: u32 = 2;

/// Connections that the system holds until they are accepted; it may allow fewer. With the usual
/// 128, a wave that starts at once, or a burst of strangers, makes workers wait for the second try
/// of TCP, a second later.
const WAITING_CONNECTIONS_MAX: i32 = 4096;

/// Folder of all runs of those who name none.
const RUNS: &str = ".musec/runs";

/// What a run needs to know.
#[derive(Clone, Debug)]
pub struct RunSetup {
    /// The checked program.
    pub program: Arc<Program>,
    /// The job file as given.
    pub job_text: Vec<u8>,
    /// Folder where relative paths of the job start.
    pub job_folder: PathBuf,
    /// Folder of all runs.
    pub runs: PathBuf,
    /// The binary that has the hidden `worker` and `guard` commands.
    pub worker_program: PathBuf,
    /// Who starts the workers.
    pub launch_by: LaunchBy,
    /// Whether there is to be a journal. Without one nothing can be known of the run afterwards:
    /// it shows what recording costs.
    pub is_recorded: bool,
    /// Address to listen on; port 0 for any.
    pub listen: SocketAddr,
    /// Options that were given beside the job file, for the journal: what `Options::to_json` of
    /// `musec_core::job` gives, so that the run can be decided again; `{}` for none.
    pub options_json: String,
    /// Version of the program, for the journal.
    pub version: String,
}

impl RunSetup {
    /// A run of a job that was built in Rust, with local workers: recorded, in a folder of
    /// `.musec/runs`, on a free port of loopback; relative paths start at the present folder. All
    /// of that can be changed in what is returned. `worker_program` is a `musec`, or a
    /// `musec-worker`.
    ///
    /// # Errors
    /// With all that is wrong with the job.
    pub fn local(job: &Job, worker_program: impl Into<PathBuf>) -> Result<Self, BuildError> {
        Ok(Self {
            program: Arc::new(job.build()?),
            job_text: job.text().into_bytes(),
            job_folder: absolute(Path::new(".")),
            runs: PathBuf::from(RUNS),
            worker_program: worker_program.into(),
            launch_by: LaunchBy::Local,
            is_recorded: true,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            options_json: "{}".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

/// Who starts the workers of a run.
#[derive(Clone, Debug, Default)]
pub enum LaunchBy {
    /// This process, on this machine.
    #[default]
    Local,
    /// Whoever reads this file: each attempt's join ticket is written to it as a line. The reader
    /// must go on reading whatever the run does.
    Tickets(Arc<std::fs::File>),
}

impl LaunchBy {
    const fn name(&self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Tickets(_) => "tickets",
        }
    }

    /// Local workers that may be on their way to their hello at a time; 0 for any number.
    fn starting_max(&self) -> u32 {
        match self {
            Self::Local => cores().saturating_mul(STARTING_PER_CORE),
            Self::Tickets(_) => 0,
        }
    }

    /// Descriptors that an attempt takes: its connection, and for a process the process.
    const fn descriptors(&self) -> u64 {
        match self {
            Self::Local => 2,
            Self::Tickets(_) => 1,
        }
    }
}

/// A run that is about to start: its folder is there, its port is bound, its files are shipped.
pub struct Run {
    id: RunId,
    setup: RunSetup,
    folder: RunFolder,
    path_dirs: Vec<PathBuf>,
    stores: Stores,
    listener: StdListener,
    /// Connections that may be open without having proved who they are.
    strangers: usize,
    created_wall_ns: u64,
    stops: (mpsc::UnboundedSender<String>, mpsc::UnboundedReceiver<String>),
}

/// Asks a run to end.
#[derive(Clone, Debug)]
pub struct Stopper(mpsc::UnboundedSender<String>);

impl Stopper {
    /// Asks the run to end, as Ctrl-C does, for this reason. One that is over is not disturbed.
    pub fn stop(&self, cause: &str) {
        drop(self.0.send(cause.to_owned()));
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Finished {
    /// Its status.
    pub status: RunStatus,
    /// What came back; of interrupted runs nothing does.
    pub results: Results,
}

impl Run {
    /// Prepares a run: makes its folder, ships its files, binds its port.
    ///
    /// # Errors
    /// If any of that fails; nothing was launched then, and no folder is left.
    pub fn create(setup: RunSetup) -> Result<Self, RunError> {
        let strangers = make_room(&setup.program, cores(), setup.launch_by.descriptors()).map_err(
            |refused| {
                let TooMany { wave, at_once, possible, needed } = refused;
                RunError::TooMany { wave, at_once, possible, needed }
            },
        )?;
        crate::signals::survive_file_limits().map_err(RunError::Loop)?;
        let id = RunId(random()?);
        let listener = StdListener::bind(setup.listen)
            .map_err(|source| RunError::Listen { address: setup.listen, source })?;
        let folder = RunFolder::create(&setup.runs, id)?;
        let filled = Self::fill(id, setup, folder.clone(), listener, strangers);
        if filled.is_err() {
            folder.remove();
        }
        filled
    }

    fn fill(
        id: RunId,
        setup: RunSetup,
        folder: RunFolder,
        listener: StdListener,
        strangers: usize,
    ) -> Result<Self, RunError> {
        let created_wall_ns = wall_ns();
        let manifest = Manifest {
            schema: 1,
            run: id.to_string(),
            job: setup.program.job.clone(),
            launcher: setup.launch_by.name().into(),
            created_wall_ns,
            version: setup.version.clone(),
        };
        folder.write(&folder.job(), &setup.job_text)?;
        let files: Vec<_> =
            setup.program.files.iter().map(|file| setup.job_folder.join(file)).collect();
        let path_dirs = folder.ship(&files)?;
        let inputs = setup.program.inputs.as_deref().unwrap_or(".");
        let inputs = absolute(&setup.job_folder.join(inputs));
        let objects = match &setup.program.store {
            Some(store) => own_store(&setup.job_folder, store)?,
            None => folder.objects(),
        };
        let stores = Stores { store: Place::store(&objects)?, inputs: Place::inputs(&inputs)? };
        let json = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
        folder.write(&folder.manifest(), &json)?;
        // Unbounded, for it holds a few requests of the program's own.
        let stops = mpsc::unbounded_channel();
        Ok(Self {
            id,
            setup,
            folder,
            path_dirs,
            stores,
            listener,
            strangers,
            created_wall_ns,
            stops,
        })
    }

    /// The run's id.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.id
    }

    /// What asks this run to end while it is executed.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stops.0.clone())
    }

    /// The run's folder.
    #[must_use]
    pub const fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Runs to the end, on this thread, and brings the results.
    ///
    /// # Errors
    /// If it could not start, or its journal or results could not be written.
    pub fn execute(self) -> Result<Finished, RunError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(RunError::Loop)?;
        let folder = self.folder.clone();
        let finished = tokio::task::LocalSet::new().block_on(&runtime, self.execute_here());
        if finished.as_ref().is_err_and(RunError::is_before_launch) {
            folder.remove();
        }
        // A look at a store whose disk does not answer is not waited for.
        runtime.shutdown_background();
        finished
    }

    async fn execute_here(mut self) -> Result<Finished, RunError> {
        let signals = Signals::listen().map_err(RunError::Loop)?;
        let clock = CClock::start();
        let mut recorder = if self.setup.is_recorded {
            Recorder::create(&self.folder.journal(), &self.folder.outputs(), clock)
                .map_err(|(path, source)| FolderError::Write { path, source })?
        } else {
            Recorder::of_nothing(clock)
        };
        self.record_start(&mut recorder, clock)?;
        let identity = Identity::new(self.id)?;
        let config = Arc::new(identity.server_config()?);
        // No more can wait than there are attempts: each sends three of these at most, once each.
        let (spawned_sender, spawned) = mpsc::unbounded_channel();
        let (launcher_events, launcher_receiver) = mpsc::unbounded_channel();
        // One for each wave.
        let (listings, listed) = mpsc::unbounded_channel();
        let launcher = self.launcher(spawned_sender, launcher_events.clone())?;
        let options = self.fleet_options();
        let stops = self.take_stops();
        let (listener, address) = listen(self.listener, self.setup.listen)?;
        let program = Arc::clone(&self.setup.program);
        let engine = Engine {
            clock,
            run: self.id,
            fleet: Fleet::new(Arc::clone(&program), options),
            recorder,
            identity,
            addresses: vec![address.to_string()],
            launcher,
            launcher_events,
            stores: self.stores.clone(),
            listings,
            peers: Peers::default(),
            pending: VecDeque::new(),
            pings: VecDeque::new(),
            asleep_until: CTime::ZERO,
            batch: Batch::default(),
            unsent: Vec::new(),
            finished: None,
            record_failure: None,
        };
        let sources =
            Sources { spawned, launcher: launcher_receiver, listings: listed, signals, stops };
        let engine = SharedEngine::new(engine);
        let accepting = accept_all(listener, config, clock, engine.clone(), self.strangers);
        let accepting = tokio::task::spawn_local(accepting);
        let flushing = engine.clone();
        let flushing = tokio::task::spawn_local(async move { flushing.flush_all().await });
        let status = engine.run(sources).await;
        accepting.abort();
        flushing.abort();
        let status = status?;
        if status == RunStatus::Interrupted {
            return Ok(Finished { status, results: Results::default() });
        }
        let mut signals = Signals::listen().map_err(RunError::Loop)?;
        let bringing = bring(&self.stores.store, &program.results, &self.setup.job_folder);
        let results = tokio::select! {
            results = bringing => results.map_err(|source| {
                let objects = self.stores.store.path().to_owned();
                RunError::Results { objects, source: Box::new(source) }
            })?,
            _ = signals.next() => {
                let objects = self.stores.store.path().to_owned();
                return Err(RunError::ResultsInterrupted { objects });
            }
        };
        Ok(Finished { status, results })
    }

    /// Records what the run is, and is given, so that it can be decided again.
    fn record_start(&self, recorder: &mut Recorder, clock: CClock) -> Result<(), IdentityError> {
        let started = Event::RunStarted(Box::new(self.started(clock)?));
        let events = std::iter::once(started).chain(given(&self.setup.program));
        events.for_each(|event| recorder.record(CTime::ZERO, event));
        Ok(())
    }

    fn fleet_options(&self) -> FleetOptions {
        FleetOptions {
            cores: cores(),
            starting_max: Some(self.setup.launch_by.starting_max()).filter(|most| *most > 0),
            store_url: self.stores.store.url().to_owned(),
            inputs_url: self.stores.inputs.url().to_owned(),
            path_dirs: self.path_dirs.iter().map(|path| crate::engine::bytes_of(path)).collect(),
        }
    }

    fn launcher(
        &self,
        spawned: mpsc::UnboundedSender<Spawned>,
        events: mpsc::UnboundedSender<LauncherEvent>,
    ) -> Result<Launcher, RunError> {
        let local = match &self.setup.launch_by {
            LaunchBy::Local => LocalSetup {
                program: self.setup.worker_program.clone(),
                scratch_root: scratch_root(self.id),
                log: self.folder.worker_log(),
            },
            LaunchBy::Tickets(lines) => {
                return Ok(Launcher::Tickets(Tickets::new(Arc::clone(lines))));
            }
        };
        let scratch = local.scratch_root.clone();
        let started = Local::start(&local, spawned, events);
        started.map(Launcher::Local).map_err(|source| RunError::Launcher { scratch, source })
    }

    /// What asks the run to end; there is one taker.
    fn take_stops(&mut self) -> mpsc::UnboundedReceiver<String> {
        // Unbounded, for it is never written to.
        let (_, nobody) = mpsc::unbounded_channel();
        std::mem::replace(&mut self.stops.1, nobody)
    }

    fn started(&self, clock: CClock) -> Result<RunStarted, IdentityError> {
        Ok(RunStarted {
            run: self.id,
            job: self.setup.program.job.clone(),
            launcher: self.setup.launch_by.name().into(),
            wall_ns: self.created_wall_ns,
            boot_id: read_trimmed("/proc/sys/kernel/random/boot_id"),
            time_namespace: time_namespace(),
            clock: clock.kind(),
            rate_bound_ppm: RATE_BOUND_PPM,
            seed: u64::from_le_bytes(random()?),
            version: self.setup.version.clone(),
            job_text: self.setup.job_text.clone(),
            options_json: self.setup.options_json.clone(),
            clock_gap_ns: clock.gap_ns(),
            cores: cores(),
            starting_max: self.setup.launch_by.starting_max(),
        })
    }
}

fn listen(listener: StdListener, asked: SocketAddr) -> Result<(TcpListener, SocketAddr), RunError> {
    let lengthened = socket2::SockRef::from(&listener).listen(WAITING_CONNECTIONS_MAX);
    let listened = lengthened.and_then(|()| listener.set_nonblocking(true));
    let listened = listened.and_then(|()| TcpListener::from_std(listener));
    let listened = listened.and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    listened.map_err(|source| RunError::Listen { address: asked, source })
}

/// Processors that this process may use.
fn cores() -> u32 {
    std::thread::available_parallelism()
        .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// Short, for the socket inside has a path of at most 108 bytes.
fn scratch_root(run: RunId) -> PathBuf {
    let id = run.to_string();
    absolute(&std::env::temp_dir()).join(format!("musec-{}", &id[..16]))
}

/// The folder that a job names as its store; it is made if it is not there.
fn own_store(job_folder: &Path, store: &str) -> Result<PathBuf, StoreError> {
    let url = url::Url::parse(store).ok().filter(|url| url.scheme() == "file");
    let path = match url.map(|url| url.to_file_path()) {
        Some(Ok(path)) => path,
        Some(Err(())) => return Err(StoreError::NoUrl(PathBuf::from(store))),
        None => absolute(&job_folder.join(store)),
    };
    std::fs::create_dir_all(&path)
        .map_err(|source| StoreError::Write { path: path.clone(), source })?;
    Ok(path)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Empty where there is none: clocks are then taken for different ones.
fn read_trimmed(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn time_namespace() -> String {
    std::fs::read_link("/proc/self/ns/time")
        .map_or_else(|_| String::new(), |link| link.to_string_lossy().into_owned())
}
