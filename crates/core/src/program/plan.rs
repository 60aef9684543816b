//! A wave's plan: how many workers, which items, how many at a time, once these can be known.
//!
//! In: a program, the machine's cores, the keys that a store listed. Out: numbers within the
//! limits, or an error that says what the job asked for. What to list is said by [`Program::glob`].

use globset::{GlobBuilder, GlobMatcher};
use musec_protocol::Place;
use serde_json::Value as Json;
use thiserror::Error;

use crate::limits::{ITEMS_MAX, WORKERS_MAX};
use crate::program::node::place_of;
use crate::program::{Count, Items, Program, Wave, WaveId};
use crate::template::{Expr, Planning, Value, value};

/// What a wave will do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How many workers, at least 1 and at most [`WORKERS_MAX`]; never more than items.
    pub workers: u32,
    /// The items, if the wave has any.
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
        let default = if each_item_has_one { cores } else { self.workers };
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
}

impl ItemList {
    /// How many.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(end) => *end,
            Self::Values(values) => values.len() as u64,
        }
    }

    /// Whether there are none; a plan never has such a list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item with this number.
    #[must_use]
    pub fn item(&self, number: u64) -> Option<Json> {
        match self {
            Self::Range(end) => (number < *end).then(|| Json::from(number)),
            Self::Values(values) => values.get(usize::try_from(number).ok()?).cloned(),
        }
    }
}

/// Keys to be looked for.
#[derive(Clone, Debug)]
pub struct Glob {
    /// Where.
    pub place: Place,
    /// The pattern, without `in:`.
    pub pattern: String,
    /// The folder that holds all that can match, without a slash at its end; empty for all. Nothing
    /// outside of it needs to be listed.
    pub folder: String,
    matcher: GlobMatcher,
}

impl Glob {
    /// Compiles a glob. `*` and `?` stop at slashes, `**` does not.
    ///
    /// # Errors
    /// When it is not a glob.
    pub fn new(place: Place, pattern: &str) -> Result<Self, PlanError> {
        let matcher = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| PlanError::Glob {
                pattern: pattern.to_owned(),
                why: error.kind().to_string(),
            })?
            .compile_matcher();
        let literal = pattern
            .find(['*', '?', '[', '{', '\\'])
            .map_or(pattern, |at| pattern.get(..at).unwrap_or_default());
        let folder = literal.rfind('/').and_then(|at| literal.get(..at));
        Ok(Self {
            place,
            pattern: pattern.to_owned(),
            folder: folder.unwrap_or_default().to_owned(),
            matcher,
        })
    }

    /// Whether a key (without `in:`) matches.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        self.matcher.is_match(key)
    }

    /// The keys that match, sorted by bytes, each once.
    #[must_use]
    pub fn select<I: IntoIterator<Item = String>>(&self, keys: I) -> Vec<String> {
        let mut keys: Vec<String> = keys.into_iter().filter(|key| self.matches(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
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
    /// What has to be listed before this wave can be planned: keys that match a glob; `None` when
    /// it has no glob.
    ///
    /// # Errors
    /// When there is no such wave, or its glob is none.
    pub fn glob(&self, wave: WaveId) -> Result<Option<Glob>, PlanError> {
        let def = self.wave(wave).ok_or(PlanError::NoWave(wave.0))?;
        match &def.items {
            Some(Items::Glob { place, pattern }) => {
                let pattern = pattern.text(&Planning::new(self, 0)).map_err(|why| {
                    PlanError::Glob { pattern: pattern.source().to_owned(), why: why.to_string() }
                })?;
                let (place, pattern) = match place_of(&pattern) {
                    (Place::Inputs, rest) => (Place::Inputs, rest),
                    (Place::Store, pattern) => (*place, pattern),
                };
                Glob::new(place, pattern).map(Some)
            }
            Some(Items::List(_) | Items::Range(_) | Items::Values(_)) | None => Ok(None),
        }
    }

    /// Plans a wave on a machine with `cores`. `keys` are those that [`Self::glob`] asks for,
    /// without `in:`; those that do not match are passed over.
    ///
    /// # Errors
    /// When an expression fails, a number is out of bounds, or there are no items.
    pub fn plan(
        &self,
        wave: WaveId,
        cores: u32,
        keys: Option<&[String]>,
    ) -> Result<Plan, PlanError> {
        let def = self.wave(wave).ok_or(PlanError::NoWave(wave.0))?;
        let count = |what, count: Option<&Count>, max| {
            count.map(|count| self.count(def, what, count, cores, max)).transpose()
        };
        let workers = count("workers", def.workers.as_ref(), WORKERS_MAX)?;
        let at_once = count("at_once", def.at_once.as_ref(), u32::MAX)?;
        let items = self.items(wave, def, cores, keys)?;
        let per_item = items.as_ref().map(|items| u32::try_from(items.len()).unwrap_or(u32::MAX));
        let queue = workers.is_some() && items.is_some();
        let workers = match (workers, per_item) {
            (Some(workers), Some(items)) => workers.min(items),
            (Some(workers), None) => workers,
            (None, items) => bounded(def, "items", items.unwrap_or(0).into(), WORKERS_MAX.into())?,
        };
        Ok(Plan { workers, items, queue, at_once })
    }

    fn count(
        &self,
        wave: &Wave,
        what: &'static str,
        count: &Count,
        cores: u32,
        max: u32,
    ) -> Result<u32, PlanError> {
        match count {
            Count::Number(number) => bounded(wave, what, i128::from(*number), max.into()),
            Count::Expr(expr) => {
                let number = self.number(wave, what, expr, cores)?;
                bounded(wave, what, number, max.into())
            }
        }
    }

    /// A whole number out of an expression.
    fn number(
        &self,
        wave: &Wave,
        what: &'static str,
        expr: &Expr,
        cores: u32,
    ) -> Result<i128, PlanError> {
        let failed = |why: String| PlanError::Expression {
            wave: wave.name.clone(),
            what,
            source_text: expr.source().trim().to_owned(),
            why,
        };
        let value = expr.value(&Planning::new(self, cores)).map_err(|error| failed(error.why))?;
        whole_number(&value).ok_or_else(|| failed(format!("{value} is not a whole number")))
    }

    fn items(
        &self,
        id: WaveId,
        wave: &Wave,
        cores: u32,
        keys: Option<&[String]>,
    ) -> Result<Option<ItemList>, PlanError> {
        let items = match &wave.items {
            None => return Ok(None),
            Some(Items::List(values)) => ItemList::Values(values.clone()),
            Some(Items::Range(end)) => {
                let end = self.number(wave, "range", end, cores)?;
                ItemList::Range(bounded(wave, "range", end, ITEMS_MAX)?)
            }
            Some(Items::Values(list)) => self.values(wave, list, cores)?,
            Some(Items::Glob { .. }) => self.listed(id, wave, keys)?,
        };
        bounded::<u64>(wave, "items", items.len().into(), ITEMS_MAX)?;
        Ok(Some(items))
    }

    /// The values of a list that an expression gives.
    fn values(&self, wave: &Wave, list: &Expr, cores: u32) -> Result<ItemList, PlanError> {
        let failed = |why: String| PlanError::Expression {
            wave: wave.name.clone(),
            what: "items",
            source_text: list.source().trim().to_owned(),
            why,
        };
        let value = list
            .value(&Planning::new(self, cores))
            .and_then(|value| value::freeze(&value).map_err(|why| list.failed(why)))
            .map_err(|error| failed(error.why))?;
        match value::to_json(&value) {
            Some(Json::Array(values)) => Ok(ItemList::Values(values)),
            Some(_) | None => Err(failed(format!("a {} is not a list", value.kind()))),
        }
    }

    fn listed(
        &self,
        id: WaveId,
        wave: &Wave,
        keys: Option<&[String]>,
    ) -> Result<ItemList, PlanError> {
        let Some(glob) = self.glob(id)? else {
            return Err(PlanError::NoWave(id.0));
        };
        let prefix = match glob.place {
            Place::Inputs => "in:",
            Place::Store => "",
        };
        let wave = wave.name.clone();
        let pattern = format!("{prefix}{}", glob.pattern);
        let Some(keys) = keys else {
            return Err(PlanError::NotListed { wave, pattern });
        };
        let keys = glob.select(keys.iter().cloned());
        if keys.is_empty() {
            return Err(PlanError::NothingMatches { wave, pattern });
        }
        let values = keys.iter().map(|key| Json::from(format!("{prefix}{key}")));
        Ok(ItemList::Values(values.collect()))
    }
}

/// An integer, or a float without a fraction.
pub(crate) fn whole_number(value: &Value) -> Option<i128> {
    if value.is_number() { i128::try_from(value.clone()).ok() } else { None }
}

fn bounded<N: TryFrom<i128>>(
    wave: &Wave,
    what: &'static str,
    value: i128,
    max: u64,
) -> Result<N, PlanError> {
    let out =
        || PlanError::OutOfBounds { wave: wave.name.clone(), what, value: value.to_string(), max };
    if value < 1 || value > i128::from(max) {
        return Err(out());
    }
    N::try_from(value).map_err(|_| out())
}
