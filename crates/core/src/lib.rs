//! What is decided: job file → program, each worker's machine, the fleet.
//!
//! In: a job file's text; then events with their times. Out: commands, records, deadlines.
//! Invariants: no clock is read and no I/O is done, so that a run can be decided again from its
//! journal, byte for byte; nothing has an order that is not told.

pub mod build;
mod byte_range;
pub mod duration;
pub mod fleet;
pub mod job;
pub mod limits;
mod machine;
mod map;
mod program;
pub mod replay;
mod template;

pub use job::{JobError, JobErrors};
pub use machine::{
    Advance, Blame, Effect, Facts, Machine, Moved, NextCommand, Progress, StepFailure, Token,
};
pub use map::{ByteItems, Map, MapError, stdout_key};
pub use program::{
    Count, Glob, ItemList, Items, LaneNo, Look, Outline, OutlineLane, OutlineStep, OutlineWave,
    Plan, PlanError, Program, ResultRule, Seen, StateDef, StateId, StepCategory, Wave, WaveId,
    csv_header,
};
pub use template::{EvalError, Expr, Template};
