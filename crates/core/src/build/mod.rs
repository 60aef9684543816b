//! Jobs built in Rust: the states of a machine and any graph between them.
//!
//! In: a [`Job`] with its [`Wave`]s, made of [`Step`]s. Out: the same [`Program`] that a job file
//! makes, or all errors at once. Invariants: what is built is a job file ([`Job::text`]) and goes
//! through the parser, so that nothing can be built that is not checked, a run keeps what it ran,
//! and `musec check`, `graph` and `replay` work on it. Absent: closures. A decision that is not in
//! the program could be neither recorded nor decided again; conditions and texts are the
//! expressions and templates of job files.
//!
//! Names that are used in more than one place are values: a [`State`], [`Var`], [`Loop`], [`Info`]
//! or [`Task`] that is misspelt does not compile.
//!
//! ```
//! use std::time::Duration;
//!
//! use musec_core::build::{Job, Loop, State, Var, Wave, done, goto, run, set};
//! use musec_core::steps;
//!
//! const ENCODE: State = State::named("encode");
//! const REPAIR: State = State::named("repair");
//! const TRIES: Var = Var::named("tries");
//!
//! let wave = Wave::new("video")
//!     .workers(4)
//!     .step(set([(TRIES, 0)]))
//!     .step(run("./encode --part {{ index }}").state(ENCODE).on_error(steps![
//!         set([(TRIES, format!("{TRIES} + 1"))]),
//!         goto(REPAIR).only_if(format!("{TRIES} < 3")),
//!     ]))
//!     .step(done())
//!     .step(run("./repair").state(REPAIR).timeout(Duration::from_secs(60)))
//!     .step(goto(ENCODE));
//! let program = Job::new("video").wave(wave).build()?;
//! assert_eq!(program.states.len(), 2);
//! # Ok::<(), musec_core::build::BuildError>(())
//! ```

mod actions;
mod error;
mod header;
mod names;
mod step;
mod text;
mod wave;

pub use actions::{
    await_task, barrier, break_if, choose, done, echo, fail, get, goto, list, parallel, print, put,
    repeat, run, run_argv, set, sleep, wait_info, while_true,
};
pub use error::BuildError;
pub use header::Job;
pub use names::{Info, Loop, State, Task, Var};
pub use step::{AnyStep, Bounded, Command, Step, Steps, kind};
pub use text::Value;
pub use wave::Wave;

/// Steps in a row, of any kinds: `steps![run("make"), put("out")]`.
#[macro_export]
macro_rules! steps {
    ($($step:expr),* $(,)?) => {
        $crate::build::Steps::new()$(.then($step))*
    };
}

#[cfg(doc)]
use crate::Program;
