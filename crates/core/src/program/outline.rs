//! A program as a list that people and scripts can read: what `check` shows.

use serde::Serialize;

use crate::program::{Count, Items, Program};
use crate::template::{Binding, Template};

/// A whole program, for `check`. Durations are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outline {
    /// The job's name.
    pub job: String,
    /// Parameters, overrides applied.
    pub params: std::collections::BTreeMap<String, serde_json::Value>,
    /// Files that are shipped.
    pub files: Vec<String>,
    /// Waves, in the order of the job file.
    pub waves: Vec<OutlineWave>,
}

/// A wave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutlineWave {
    /// Its name.
    pub name: String,
    /// Names of the waves before it.
    pub after: Vec<String>,
    /// How many workers, as written; absent when each item has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<String>,
    /// What they work on, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<String>,
    /// Whether its number of workers is known only at run time: it depends on what waves before it
    /// put.
    pub workers_at_run_time: bool,
    /// Whether its items are known only at run time: they stand in the store, which waves before it
    /// fill.
    pub items_at_run_time: bool,
    /// Whether it takes items as they come.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
    /// How many at a time, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<String>,
    /// Time of each attempt, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Time from launch to hello, in milliseconds.
    pub connect_timeout_ms: u64,
    /// Its states, in the order of the job file.
    pub states: Vec<String>,
    /// The steps that a worker does once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<OutlineStep>,
    /// Its steps.
    pub steps: Vec<OutlineStep>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutlineStep {
    /// Its action: `run`, `for`, ….
    pub action: &'static str,
    /// What it is given, as written and on one line.
    pub text: String,
    /// Its state.
    pub state: String,
    /// Whether its commands are sent without awaiting replies.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pipelined: bool,
    /// Whether its lane goes on without it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Its `if`, as written.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The steps within, of `do` and `for`, or when its `if` holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Self>,
    /// The lanes of `parallel`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<OutlineLane>,
    /// The steps when its `if` does not hold.
    #[serde(rename = "else", skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<Self>,
    /// The steps when it fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_error: Vec<Self>,
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutlineLane {
    /// Its name.
    pub name: String,
    /// Its steps.
    pub steps: Vec<OutlineStep>,
}

impl Program {
    /// Lists the program.
    #[must_use]
    pub fn outline(&self) -> Outline {
        let waves = self.waves().map(|(id, wave)| OutlineWave {
            name: wave.name.clone(),
            after: wave
                .after
                .iter()
                .filter_map(|id| self.wave(*id))
                .map(|wave| wave.name.clone())
                .collect(),
            workers: wave.workers.as_ref().map(Count::as_written),
            items: wave.items.as_ref().map(Items::in_words),
            workers_at_run_time: wave.workers.as_ref().is_some_and(Count::is_known_at_run_time),
            items_at_run_time: wave.items.as_ref().is_some_and(Items::are_known_at_run_time),
            each: wave.each,
            at_once: wave.at_once.as_ref().map(Count::as_written),
            timeout_ms: wave.timeout.map(milliseconds),
            connect_timeout_ms: milliseconds(wave.connect_timeout),
            states: self
                .states
                .iter()
                .filter(|state| state.wave == id)
                .map(|state| state.name.clone())
                .collect(),
            setup: wave.setup_outline.clone(),
            steps: wave.outline.clone(),
        });
        Outline {
            job: self.job.clone(),
            params: self.params.clone(),
            files: self.files.clone(),
            waves: waves.collect(),
        }
    }
}

impl Count {
    fn is_known_at_run_time(&self) -> bool {
        self.expression().is_some_and(|expr| expr.uses(Binding::OutputsOf))
    }

    fn as_written(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Expr(expr) => expr.source().to_owned(),
        }
    }
}

impl Items {
    fn are_known_at_run_time(&self) -> bool {
        let is_stored =
            |key: &Template| key.source().contains("{{") || !key.source().starts_with("in:");
        match self {
            Self::Glob { place, .. } => *place == musec_protocol::Place::Store,
            Self::Lines { key } | Self::Csv { key } => is_stored(key),
            Self::Range(expr) | Self::Values(expr) => expr.uses(Binding::OutputsOf),
            Self::List(_) | Self::Bytes(_) => false,
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::List(values) => format!("{} listed", values.len()),
            Self::Bytes(items) => format!("{} listed", items.len()),
            Self::Values(list) => list.source().trim().to_owned(),
            Self::Lines { key } => format!("lines of {}", key.source()),
            Self::Csv { key } => format!("rows of {}", key.source()),
            Self::Range(end) => format!("0 to {}, without it", end.source()),
            Self::Glob { place, pattern } => {
                let prefix = match place {
                    musec_protocol::Place::Inputs => "in:",
                    musec_protocol::Place::Store => "",
                };
                format!("{prefix}{}", pattern.source())
            }
        }
    }
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
