//! What is done: listener, TLS, connections, launchers, recording; the loop select → core →
//! perform. Also the façade for those who start runs: build a job ([`build`]), make its
//! [`RunSetup`], [`Run::create`] it and [`Run::execute`] it. `examples/roots.rs` does.
//!
//! In: a checked program and where things are. Out: a run's folder with its journal, whatever
//! happens. Invariants: decisions are core's alone; everything runs on one thread, so that nothing
//! is locked; no figure is computed here.

mod connection;
mod cure;
mod descriptors;
mod engine;
mod error;
mod folder;
mod identity;
mod lag;
mod launcher;
mod listener;
mod listing;
mod recorder;
mod results;
mod setup;
mod signals;
mod store;

pub use error::RunError;
pub use folder::{FolderError, Manifest, RunFolder};
pub use identity::IdentityError;
pub use musec_core::{build, steps};
pub use results::Results;
pub use setup::{Finished, LaunchBy, Run, RunSetup, Stopper};
pub use store::StoreError;
