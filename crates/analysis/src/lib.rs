//! What is learnt from a musec trace: who spent which nanosecond on what, and how sure that is.
//!
//! In: records, one by one, live or from a journal. Out: the fold's present state, accounts of
//! every attempt, reports ready to be printed or serialised. Invariants: no clock is read and
//! nothing is opened; the same records give the same answers; times are integer nanoseconds; what
//! is attributed sums to the whole exactly, whatever the records are. Nothing here can panic on a
//! journal's content.
//!
//! The way: [`Trace::apply`] folds records, [`Account::of`] splits every attempt's life,
//! [`Account::check_conservation`] proves the sums, [`report()`] and [`show`] arrange them.

pub mod breakdown;
pub mod clocks;
pub mod fold;
mod format;
mod launches;
pub mod paths;
mod quantile;
pub mod report;

pub use breakdown::{Account, AttemptAccount, Category, ConservationError};
pub use fold::Trace;
pub use format::{format_ns, format_seconds};
pub use launches::{Launches, Share, round_trips};
pub use quantile::{Quantiles, nearest_rank};
pub use report::{Report, RunLiveness, RunRow, Show, report, run_row, show};
