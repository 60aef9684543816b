//! What is executed: the worker's side of a session, its processes and transfers, and the guard
//! that cleans up after workers that were killed.
//!
//! In: a join ticket, then commands of the coordinator. Out: replies that say how each command
//! ended and when, by this process's own clock W. Invariants: whatever ends the session, nothing
//! that was started is left running and nothing outside the scratch folder was touched, but for the
//! files that `musec map --put` has delivered where its user said; memory is bounded whatever
//! commands and objects hold. Absent: decisions (the coordinator's) and the
//! knowledge of what is computed.

mod clock;
mod connect;
mod deliver;
mod error;
mod execute;
mod facts;
mod failure;
mod guard;
mod lanes;
mod listing;
mod notes;
mod output;
mod processes;
mod progress;
mod run;
mod scratch;
mod scripted;
mod session;
mod several;
mod stall;
mod stop;
mod store;
mod transfer;
mod writer;

pub use error::{GuardError, WorkerError};
pub use guard::run_guard;
pub use notes::tell;
pub use scripted::{TOGETHER, Told, run_scripted};
pub use session::run_worker;
