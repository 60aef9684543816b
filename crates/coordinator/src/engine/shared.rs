//! The engine as the loop and the connections' tasks share it. All of them are on one thread, and
//! none holds it while it waits.

use std::cell::RefCell;
use std::rc::Rc;

use musec_core::fleet::{Closed, Input};
use musec_protocol::{FrameDecoder, FromWorker, LaunchId, ProtocolError};
use musec_trace::{CTime, RunStatus};
use tokio::sync::Notify;

use super::{Engine, Sources};
use crate::listener::Knock;
use crate::recorder::RecordFailure;

/// The engine; nothing once the run is over.
#[derive(Clone)]
pub(crate) struct SharedEngine(Rc<Shared>);

struct Shared {
    engine: RefCell<Option<Engine>>,
    /// Told when the loop sleeps for longer than it may.
    rouse: Notify,
    /// Told when there are bytes for sockets.
    flush: Notify,
}

impl SharedEngine {
    pub(crate) fn new(engine: Engine) -> Self {
        Self(Rc::new(Shared {
            engine: RefCell::new(Some(engine)),
            rouse: Notify::new(),
            flush: Notify::new(),
        }))
    }

    fn with<R>(&self, act: impl FnOnce(&mut Engine) -> R) -> Option<R> {
        let mut engine = self.0.engine.borrow_mut();
        let engine = engine.as_mut()?;
        let done = act(engine);
        if engine.must_rouse() {
            self.0.rouse.notify_one();
        }
        if !engine.unsent.is_empty() {
            self.0.flush.notify_one();
        }
        Some(done)
    }

    /// Hands bytes to sockets when those that were ready have been heard. For as long as it is
    /// polled.
    pub(crate) async fn flush_all(&self) {
        loop {
            self.0.flush.notified().await;
            self.with(|engine| {
                engine.flush();
                engine.perform();
            });
        }
    }

    /// A stranger was refused, for this reason.
    pub(crate) fn refused(&self, reason: &str) {
        self.with(|engine| engine.recorder.refuse(reason));
    }

    /// Decides on a peer that has a certificate of this run; whether it may stay.
    pub(crate) fn knock(&self, knock: Knock) -> bool {
        self.with(|engine| engine.knock(knock)).unwrap_or(false)
    }

    /// Handles the whole frames that a worker sent, the last byte of which was read at `t3`, C.
    ///
    /// # Errors
    /// If one is none; those before it have been handled.
    pub(crate) fn frames(
        &self,
        launch: LaunchId,
        t3: CTime,
        frames: &mut FrameDecoder,
    ) -> Result<(), ProtocolError> {
        let handle = |engine: &mut Engine| {
            let result = loop {
                match frames
                    .next_frame()
                    .and_then(|frame| frame.map(FromWorker::decode).transpose())
                {
                    Ok(Some(message)) => engine.frame(launch, t3, message),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            engine.perform();
            result
        };
        self.with(handle).unwrap_or(Ok(()))
    }

    /// The connection of a worker that had joined is gone.
    pub(crate) fn closed(&self, launch: LaunchId, at: CTime, why: Closed) {
        self.with(|engine| {
            engine.forget(launch);
            engine.tell(Input::Closed { launch, at, why });
            engine.perform();
        });
    }

    /// Runs until the fleet says that the run is over, and closes the journal.
    ///
    /// # Errors
    /// If the journal could not be written to its end.
    pub(crate) async fn run(&self, mut sources: Sources) -> Result<RunStatus, RecordFailure> {
        self.with(|engine| engine.tell(Input::Start));
        let status = self.run_loop(&mut sources).await;
        let engine = self.0.engine.borrow_mut().take();
        if let Some(engine) = engine {
            engine.close().await?;
        }
        Ok(status)
    }

    async fn run_loop(&self, sources: &mut Sources) -> RunStatus {
        loop {
            let turn = |engine: &mut Engine| (engine.turn(), engine.finished);
            let Some((wait, finished)) = self.with(turn) else { return RunStatus::Interrupted };
            if let Some(status) = finished {
                return status;
            }
            let tell = |input| self.with(|engine| engine.tell(input));
            tokio::select! {
                biased;
                cause = sources.signals.next() => drop(tell(Input::Cancel { cause })),
                Some(cause) = sources.stops.recv() => drop(tell(Input::Cancel { cause })),
                Some(spawned) = sources.spawned.recv() => {
                    self.with(|engine| engine.spawned(spawned));
                }
                Some(event) = sources.launcher.recv() => {
                    self.with(|engine| engine.launcher_event(event));
                }
                Some(input) = sources.listings.recv() => drop(tell(input)),
                () = self.0.rouse.notified() => {}
                () = tokio::time::sleep(wait) => {
                    self.with(Engine::note_lateness);
                    self.note_lag().await;
                }
            }
        }
    }

    /// Measures how long what is ready waits for its turn.
    async fn note_lag(&self) {
        let Some(from) = self.with(|engine| engine.clock.now()) else { return };
        tokio::task::yield_now().await;
        self.with(|engine| engine.recorder.lag.add(engine.clock.now().since(from)));
    }
}
