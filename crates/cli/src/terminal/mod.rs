//! Text for people: reports, tables, bars.
//!
//! In: what `analysis` arranged. Out: text as wide as the terminal, with colours if it has them.
//! Absent: arithmetic on times; every figure comes computed.

mod bar;
mod certainty;
pub(crate) mod failures;
pub(crate) mod figures;
pub(crate) mod look;
pub(crate) mod outline;
pub(crate) mod page;
pub(crate) mod paths;
pub(crate) mod report;
pub(crate) mod show;
mod show_lanes;
mod tables;
mod waves;
mod whole;

#[cfg(test)]
#[path = "../../tests/fixture/mod.rs"]
mod fixture;
#[cfg(test)]
mod tests;
