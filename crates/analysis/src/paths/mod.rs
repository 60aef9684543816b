//! Paths: what workers did, whatever the order was in which independent things happened.
//!
//! In: a trace. Out: executions in canonical form ([`Canonical`]), and workers grouped by what
//! their executions look like ([`paths`]). Invariants: two executions are equal if and only if they
//! differ by swaps of independent letters; grouping forgets how often loops went round and how far
//! a cancelled lane came, and nothing else of letters. Absent: times, but for the stamps that go
//! along.

mod canonical;
mod fold_loops;
mod groups;
mod letter;
mod render;
mod word;

pub use canonical::{Canonical, Stamped};
pub use groups::{Difference, PathGroup, Paths, path_of, paths};
pub use letter::{Act, Class, Letter, Track};
pub use word::word;
