//! A program: what a job file says, as an immutable graph that all workers of a run share.
//!
//! In: a checked job ([`crate::job::parse`]). Out: waves, states and nodes for [`crate::Machine`],
//! and each wave's plan: how many workers, which items. Invariants: every id of a program points
//! into it, waves come `after` one another without cycles, every expression is compiled and names
//! only what is bound. No text is copied per worker.

mod look;
pub(crate) mod node;
mod outline;
mod plan;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub use look::{Glob, Look, Seen};
pub use musec_trace::{StateId, StepCategory, WaveId};
pub use outline::{Outline, OutlineLane, OutlineStep, OutlineWave};
pub use plan::{ItemList, Plan, PlanError};
pub use table::header as csv_header;

use crate::map::ByteItems;
pub use crate::program::node::LaneNo;
use crate::program::node::{LaneDef, Node, NodeId};
use crate::template::{Binding, Expr, Template, Value};

/// A whole job.
#[derive(Debug)]
pub struct Program {
    /// The job's name.
    pub job: String,
    /// Parameters, overrides applied.
    pub params: BTreeMap<String, serde_json::Value>,
    /// All states; a [`StateId`] is an index into them.
    pub states: Vec<StateDef>,
    /// All waves; a [`WaveId`] is an index into them.
    pub waves: Vec<Wave>,
    /// Files to ship to every host, as written (relative ones start at the job file's folder).
    pub files: Vec<String>,
    /// Where `in:` keys are read, as written; the job file's folder by default.
    pub inputs: Option<String>,
    /// Where workers get and put objects, as written: a folder, or a `file://` URL; a folder of the
    /// run by default.
    pub store: Option<String>,
    /// Which objects come back at the end, and where to.
    pub results: Vec<ResultRule>,
    /// Whether scratch folders stay at the end.
    pub keep_scratch: bool,
    /// The parameters as expressions see them, in the order of `params`.
    pub(crate) param_values: Vec<Value>,
}

/// A state: a name within a wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDef {
    /// Its wave.
    pub wave: WaveId,
    /// Its name.
    pub name: String,
}

/// Objects of the store that come back at the end of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRule {
    /// Glob over the store's keys; [`Glob::new`] compiles it. `**` for all.
    pub from: String,
    /// Folder that takes them, as written (a relative one starts at the job file's folder).
    pub to: String,
}

/// A set of workers started together.
#[derive(Debug)]
pub struct Wave {
    /// Its name, unique in the job.
    pub name: String,
    /// Waves that must have ended well before it starts; without any it starts at once.
    pub after: Vec<WaveId>,
    /// Whether it starts with the waves in `after` instead, and takes what they put as items.
    pub each: bool,
    /// The most workers that it may come to.
    pub max_workers: u32,
    /// Numbers of the workers that are launched, sorted; `None` for all.
    pub only: Option<Vec<u32>>,
    /// Whether scratch folders stay as they are between items.
    pub keep: bool,
    /// How many workers, if the job says it.
    pub workers: Option<Count>,
    /// What they work on, if the job says it. Without `workers` each item has a worker; with them
    /// that many workers take items from one queue. One of both is always there.
    pub items: Option<Items>,
    /// Attempts alive at a time, if the job says it.
    pub at_once: Option<Count>,
    /// Time of each attempt, from its hello.
    pub timeout: Option<Duration>,
    /// Time from an attempt's launch to its hello.
    pub connect_timeout: Duration,
    /// The graph.
    pub(crate) nodes: Vec<Node>,
    /// The lanes of its program; the first is the program itself.
    pub(crate) lanes: Vec<LaneDef>,
    /// Where a machine begins.
    pub(crate) entry: NodeId,
    /// Where the steps begin that a worker does once, if there are any.
    pub(crate) setup: Option<NodeId>,
    /// How many loop names a machine of this wave holds at most.
    pub(crate) slots: u32,
    /// Names of variables that `set` steps give values, sorted.
    pub(crate) vars: Vec<String>,
    /// How many workers a group has, if the job says it.
    pub(crate) group_size: Option<u32>,
    /// The barriers of its steps, sorted by their names.
    pub(crate) barriers: Vec<BarrierDef>,
    /// Keys of infos that steps wait for, sorted.
    pub(crate) infos: Vec<String>,
    /// Whether an expression other than `expect` reads `last.output`.
    pub(crate) reads_output: bool,
    /// The steps as a tree, for [`Outline`].
    pub(crate) outline: Vec<OutlineStep>,
    /// The same of those that a worker does once.
    pub(crate) setup_outline: Vec<OutlineStep>,
}

impl Wave {
    /// The group and the place within it of worker `index` of `workers`.
    pub(crate) fn group_of(&self, index: u32, workers: u32) -> (u32, u32) {
        let groups = self.groups(workers);
        (index % groups, index / groups)
    }

    /// How many groups `workers` are; at least one.
    pub(crate) fn groups(&self, workers: u32) -> u32 {
        workers.div_ceil(self.group_size.unwrap_or(u32::MAX).max(1)).max(1)
    }

    /// Where a lane is: for each lane around it, and itself, its number within the one around.
    #[must_use]
    pub fn lane_path(&self, lane: LaneNo) -> &[u32] {
        self.lane(lane).map_or(&[], |lane| lane.path.as_slice())
    }

    /// Paths and names of all lanes but the program itself, in the order of the job file.
    pub fn lanes(&self) -> impl Iterator<Item = (&[u32], &str)> {
        self.lanes.iter().skip(1).map(|lane| (lane.path.as_slice(), lane.name.as_str()))
    }

    pub(crate) fn lane(&self, lane: LaneNo) -> Option<&LaneDef> {
        self.lanes.get(usize::try_from(lane.0).ok()?)
    }

    /// Whether its plan depends on how many cores there are.
    pub(crate) fn uses_cores(&self) -> bool {
        self.expressions().any(|expr| expr.uses(Binding::Cores))
    }

    /// Whether its plan depends on what waves before it put.
    pub(crate) fn uses_outputs(&self) -> bool {
        self.expressions().any(|expr| expr.uses(Binding::OutputsOf))
    }

    /// The expressions that its plan evaluates.
    fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let counts = [&self.workers, &self.at_once];
        let counts = counts.into_iter().flatten().filter_map(Count::expression);
        let items = match &self.items {
            Some(Items::Range(expr) | Items::Values(expr)) => Some(expr),
            Some(
                Items::List(_)
                | Items::Bytes(_)
                | Items::Glob { .. }
                | Items::Lines { .. }
                | Items::Csv { .. },
            )
            | None => None,
        };
        counts.chain(items)
    }
}

/// A barrier of a wave's steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BarrierDef {
    pub name: String,
    /// Whether each group meets by itself.
    pub by_group: bool,
}

/// A number of workers: given, or to be evaluated.
#[derive(Debug)]
pub enum Count {
    /// Given; at least 1.
    Number(u32),
    /// An expression over parameters and `cores`; `"cores"` is the simplest.
    Expr(Expr),
}

impl Count {
    /// The expression, if it is one.
    pub(crate) const fn expression(&self) -> Option<&Expr> {
        match self {
            Self::Number(_) => None,
            Self::Expr(expr) => Some(expr),
        }
    }
}

/// What a wave's workers work on.
#[derive(Debug)]
pub enum Items {
    /// These values; never empty.
    List(Vec<serde_json::Value>),
    /// These bytes.
    Bytes(Arc<ByteItems>),
    /// The numbers from 0 up to, without, this one.
    Range(Expr),
    /// The values of a list that an expression gives.
    Values(Expr),
    /// The keys that match, sorted by bytes.
    Glob {
        /// Where they are looked for, unless the pattern turns out to begin with `in:`.
        place: musec_protocol::Place,
        /// The glob without `in:`, a template over parameters.
        pattern: Template,
    },
    /// The lines of a file.
    Lines {
        /// Its key, with its `in:`: a template over parameters.
        key: Template,
    },
    /// The rows of a table.
    Csv {
        /// Its key, with its `in:`: a template over parameters.
        key: Template,
    },
}

impl Program {
    /// The wave with this number, if there is one.
    #[must_use]
    pub fn wave(&self, wave: WaveId) -> Option<&Wave> {
        self.waves.get(usize::try_from(wave.0).ok()?)
    }

    /// The state with this number, if there is one.
    #[must_use]
    pub fn state(&self, state: StateId) -> Option<&StateDef> {
        self.states.get(usize::try_from(state.0).ok()?)
    }

    /// All waves that come before this one, however far.
    pub(crate) fn before(&self, wave: &Wave) -> BTreeSet<WaveId> {
        let mut before = BTreeSet::new();
        let mut todo = wave.after.clone();
        while let Some(id) = todo.pop() {
            if before.insert(id) {
                todo.extend(self.wave(id).into_iter().flat_map(|wave| &wave.after));
            }
        }
        before
    }

    /// Waves with their numbers, in the order of the job file.
    pub fn waves(&self) -> impl Iterator<Item = (WaveId, &Wave)> {
        (0..).map(WaveId).zip(&self.waves)
    }
}
