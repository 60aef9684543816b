//! Strangers and hostile peers against the real coordinator, over real TLS. Each test is named
//! after what must come of it; docs/threat-model.md lists them.
//!
//! In every case honest workers do the same small commands before the attack and under it. Asserted
//! each time: who attacks is refused or failed by name and counted, takes no slot and bounded
//! memory; the honest ones are done, and neither their round trips nor their services have moved.

#![expect(clippy::print_stdout, reason = "figures are shown with --nocapture")]

#[path = "../support/mod.rs"]
mod support;

mod claims;
mod doors;
mod floods;
mod measure;
mod peer;
mod secrets;
mod silence;
mod stage;
