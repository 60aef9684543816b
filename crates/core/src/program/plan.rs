//! A wave's plan: how many workers, which items, how many at a time, once these can be known.
//!
//! In: a program, the machine's cores, what was seen in a store, what earlier waves put. Out:
//! numbers within the limits, or an error that says what the job asked for. What to look at is said
//! by [`Program::look`].

use std::collections::BTreeMap;
use std::sync::Arc;

use musec_protocol::Place;
use serde_json::Value as Json;
use thiserror::Error;

use crate::limits::ITEMS_MAX;
use crate::map::{ByteItems, encode};
use crate::program::{Count, Items, Look, Program, Seen, Wave, WaveId, table};
use crate::template::{Expr, Planning, Value, value};

/// What a wave will do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How many workers, at least 1 and at most the wave's `max_workers`; never more than items. 0
    /// where each item of a wave with `each` has its own.
    pub workers: u32,
    /// The items, if the wave has any; those of a wave with `each` come later.
    pub items: Option<ItemList>,
    /// Whether the workers take items from one queue (the job gives both); otherwise worker i has
    /// item i.
    pub queue: bool,
    /// Attempts alive at a time, if the job says it; at least 1.
    pub at_once: Option<u32>,
}

impl Plan {
    /// Attempts alive at a time, at least 1: what the job says; else all workers where it says how
    /// many, and as many as `cores` where each item has a worker of its own.
    #[must_use]
    pub fn alive_at_once(&self, cores: u32) -> u32 {
        let each_item_has_one = self.items.is_some() && !self.queue;
        let default = if each_item_has_one || self.workers == 0 { cores } else { self.workers };
        self.at_once.unwrap_or(default).max(1)
    }
}

/// Items of a wave.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemList {
    /// The numbers from 0 up to, without, this one.
    Range(u64),
    /// These.
    Values(Vec<Json>),
    /// These bytes.
    Bytes(Arc<ByteItems>),
}

impl ItemList {
    /// How many.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(end) => *end,
            Self::Values(values) => values.len() as u64,
            Self::Bytes(items) => items.len() as u64,
        }
    }

    /// Whether there are none; a plan never has such a list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item with this number. Bytes are text, with `%` and two digits for what is none.
    #[must_use]
    pub fn item(&self, number: u64) -> Option<Json> {
        match self {
            Self::Range(end) => (number < *end).then(|| Json::from(number)),
            Self::Values(values) => values.get(usize::try_from(number).ok()?).cloned(),
            Self::Bytes(items) => {
                items.item(usize::try_from(number).ok()?).map(encode).map(Json::from)
            }
        }
    }
}

/// Why a wave cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The program has no such wave.
    #[error("no wave {0}")]
    NoWave(u32),
    /// An expression could not be evaluated.
    #[error("`{what} = \"{source_text}\"` of wave `{wave}`: {why}")]
    Expression {
        /// Which wave.
        wave: String,
        /// Which key.
        what: &'static str,
        /// The expression.
        source_text: String,
        /// Why.
        why: String,
    },
    /// A number is not within its bounds.
    #[error("`{what}` of wave `{wave}` is {value}, allowed are 1 to {max}")]
    OutOfBounds {
        /// Which wave.
        wave: String,
        /// Which key.
        what: &'static str,
        /// What it came to.
        value: String,
        /// The largest allowed value.
        max: u64,
    },
    /// A glob that cannot be read as one.
    #[error("`{pattern}` is not a glob: {why}")]
    Glob {
        /// The glob.
        pattern: String,
        /// Why.
        why: String,
    },
    /// Nothing matches.
    #[error("no item for wave `{wave}`: nothing matches `{pattern}`")]
    NothingMatches {
        /// Which wave.
        wave: String,
        /// The glob, with its `in:`.
        pattern: String,
    },
    /// A file without items.
    #[error("no item for wave `{wave}`: `{file}` has none")]
    Empty {
        /// Which wave.
        wave: String,
        /// The file, with its `in:`.
        file: String,
    },
    /// A file that is not what it should be.
    #[error("`{file}`: {why}")]
    Unreadable {
        /// The file, with its `in:`.
        file: String,
        /// Why.
        why: String,
    },
    /// The plan depends on what waves before it put.
    #[error("wave `{0}` is planned when the waves before it are over")]
    AtRunTime(String),
    /// The keys that a glob needs were not given.
    #[error("wave `{wave}` needs a listing of `{pattern}`")]
    NotListed {
        /// Which wave.
        wave: String,
        /// The glob, with its `in:`.
        pattern: String,
    },
}

impl Program {
    /// Plans a wave on a machine with `cores`. `seen` is what [`Self::look`] asks for.
    ///
    /// # Errors
    /// When an expression fails, a number is out of bounds, there are no items, or the plan depends
    /// on what waves before it put.
    pub fn plan(&self, wave: WaveId, cores: u32, seen: Option<&Seen>) -> Result<Plan, PlanError> {
        self.plan_after(wave, cores, seen, None)
    }

    /// The same when the waves before it are over, with the keys that they put, by their names.
    pub(crate) fn plan_after(
        &self,
        wave: WaveId,
        cores: u32,
        seen: Option<&Seen>,
        outputs: Option<BTreeMap<String, Vec<String>>>,
    ) -> Result<Plan, PlanError> {
        let def = self.wave(wave).ok_or(PlanError::NoWave(wave.0))?;
        if outputs.is_none() && def.uses_outputs() {
            return Err(PlanError::AtRunTime(def.name.clone()));
        }
        let planner = Planner {
            program: self,
            id: wave,
            wave: def,
            known: Planning::new(&self.param_values, cores, outputs),
        };
        planner.plan(seen)
    }
}

/// Plans one wave.
struct Planner<'a> {
    program: &'a Program,
    id: WaveId,
    wave: &'a Wave,
    known: Planning<'a>,
}

impl Planner<'_> {
    fn plan(&self, seen: Option<&Seen>) -> Result<Plan, PlanError> {
        let def = self.wave;
        let count = |what, count: Option<&Count>, max| {
            count.map(|count| self.count(what, count, max)).transpose()
        };
        let workers = count("workers", def.workers.as_ref(), def.max_workers)?;
        let at_once = count("at_once", def.at_once.as_ref(), u32::MAX)?;
        if def.each {
            let queue = workers.is_some();
            return Ok(Plan { workers: workers.unwrap_or(0), items: None, queue, at_once });
        }
        let items = self.items(seen)?;
        let per_item = items.as_ref().map(|items| u32::try_from(items.len()).unwrap_or(u32::MAX));
        let queue = workers.is_some() && items.is_some();
        let workers = match (workers, per_item) {
            (Some(workers), Some(items)) => workers.min(items),
            (Some(workers), None) => workers,
            (None, items) => {
                self.bounded("items", items.unwrap_or(0).into(), def.max_workers.into())?
            }
        };
        Ok(Plan { workers, items, queue, at_once })
    }

    fn count(&self, what: &'static str, count: &Count, max: u32) -> Result<u32, PlanError> {
        match count {
            Count::Number(number) => self.bounded(what, i128::from(*number), max.into()),
            Count::Expr(expr) => self.bounded(what, self.number(what, expr)?, max.into()),
        }
    }

    /// A whole number out of an expression.
    fn number(&self, what: &'static str, expr: &Expr) -> Result<i128, PlanError> {
        let failed = |why: String| self.failed(what, expr, why);
        let value = expr.value(&self.known).map_err(|error| failed(error.why))?;
        whole_number(&value)
            .ok_or_else(|| failed(format!("{} is not a whole number", in_short(&value))))
    }

    fn failed(&self, what: &'static str, expr: &Expr, why: String) -> PlanError {
        PlanError::Expression {
            wave: self.wave.name.clone(),
            what,
            source_text: expr.source().trim().to_owned(),
            why,
        }
    }

    fn items(&self, seen: Option<&Seen>) -> Result<Option<ItemList>, PlanError> {
        let items = match &self.wave.items {
            None => return Ok(None),
            Some(Items::List(values)) => ItemList::Values(values.clone()),
            Some(Items::Bytes(items)) => ItemList::Bytes(Arc::clone(items)),
            Some(Items::Range(end)) => {
                ItemList::Range(self.bounded("range", self.number("range", end)?, ITEMS_MAX)?)
            }
            Some(Items::Values(list)) => self.values(list)?,
            Some(Items::Glob { .. } | Items::Lines { .. } | Items::Csv { .. }) => {
                self.seen(seen)?
            }
        };
        self.bounded::<u64>("items", items.len().into(), ITEMS_MAX)?;
        Ok(Some(items))
    }

    /// The values of a list that an expression gives.
    fn values(&self, list: &Expr) -> Result<ItemList, PlanError> {
        let failed = |why: String| self.failed("items", list, why);
        let value = list.value(&self.known).map_err(|error| failed(error.why))?;
        // Lists may be lazy: one that is too long is never made.
        let count = u64::try_from(value.len().unwrap_or(0)).unwrap_or(u64::MAX);
        if count > ITEMS_MAX {
            self.bounded::<u64>("items", count.into(), ITEMS_MAX)?;
        }
        let value = value::freeze_list(&value).map_err(|why| failed(list.failed(why).why))?;
        match value::to_json(&value) {
            Some(Json::Array(values)) => Ok(ItemList::Values(values)),
            Some(_) | None => Err(failed(format!("a {} is not a list", value.kind()))),
        }
    }

    /// Items out of what was looked at.
    fn seen(&self, seen: Option<&Seen>) -> Result<ItemList, PlanError> {
        let Some(look) = self.program.look(self.id)? else {
            return Err(PlanError::NoWave(self.id.0));
        };
        let wave = self.wave.name.clone();
        let (place, name) = match &look {
            Look::Keys(glob) => (glob.place, &glob.pattern),
            Look::Text { place, key } => (*place, key),
        };
        let prefix = match place {
            Place::Inputs => "in:",
            Place::Store => "",
        };
        let pattern = format!("{prefix}{name}");
        let values: Vec<Json> = match (&look, seen) {
            (Look::Keys(glob), Some(Seen::Keys(keys))) => {
                let keys = glob.select(keys.iter().cloned());
                keys.iter().map(|key| Json::from(format!("{prefix}{key}"))).collect()
            }
            (Look::Text { .. }, Some(Seen::Text(text))) => self
                .read(text)
                .map_err(|why| PlanError::Unreadable { file: pattern.clone(), why })?,
            (Look::Keys(_) | Look::Text { .. }, _) => {
                return Err(PlanError::NotListed { wave, pattern });
            }
        };
        if values.is_empty() {
            return Err(match look {
                Look::Keys(_) => PlanError::NothingMatches { wave, pattern },
                Look::Text { .. } => PlanError::Empty { wave, file: pattern },
            });
        }
        Ok(ItemList::Values(values))
    }

    /// Items out of a file.
    fn read(&self, text: &[u8]) -> Result<Vec<Json>, String> {
        match &self.wave.items {
            Some(Items::Csv { .. }) => {
                let params: Vec<&str> = self.program.params.keys().map(String::as_str).collect();
                table::rows(text, &params)
            }
            Some(
                Items::Lines { .. }
                | Items::List(_)
                | Items::Bytes(_)
                | Items::Range(_)
                | Items::Values(_)
                | Items::Glob { .. },
            )
            | None => table::lines(text),
        }
    }

    fn bounded<N: TryFrom<i128>>(
        &self,
        what: &'static str,
        value: i128,
        max: u64,
    ) -> Result<N, PlanError> {
        let wave = || self.wave.name.clone();
        let out = || PlanError::OutOfBounds { wave: wave(), what, value: value.to_string(), max };
        if value < 1 || value > i128::from(max) {
            return Err(out());
        }
        N::try_from(value).map_err(|_| out())
    }
}

/// An integer, or a float without a fraction.
pub(crate) fn whole_number(value: &Value) -> Option<i128> {
    if value.is_number() { i128::try_from(value.clone()).ok() } else { None }
}
/// Characters of a text that errors repeat.
const SHORT_CHARS_MAX: usize = 60;

/// A value as errors repeat it: of a text the beginning, of a list or table only what it is.
fn in_short(value: &Value) -> String {
    use crate::template::ValueKind;
    match (value.as_str(), value.kind()) {
        (Some(text), _) if text.chars().nth(SHORT_CHARS_MAX).is_some() => {
            text.chars().take(SHORT_CHARS_MAX).chain(['…']).collect()
        }
        (None, ValueKind::Seq | ValueKind::Iterable) => "a list".into(),
        (None, ValueKind::Map) => "a table".into(),
        (Some(_) | None, _) => value.to_string(),
    }
}
