//! One module a command: it finds what it needs, has it computed, and shows it.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod dry_run;
pub(crate) mod graph;
pub(crate) mod hidden;
pub(crate) mod housekeeping;
pub(crate) mod info;
pub(crate) mod job;
pub(crate) mod logs;
pub(crate) mod map;
pub(crate) mod paths;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod show;
