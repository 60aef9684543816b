//! Waves: their names and order, and what is said of their workers.
//!
//! What `[job]` says of workers is the default of all waves. A wave that says its own `workers`
//! does not take over the job's `items`: otherwise no wave could do without them.

use std::ops::Range;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use crate::job::Options;
use crate::job::context::{Context, Spot, entries, integer, listed};
use crate::job::keys::ITEMS;
use crate::job::nearest;
use crate::limits::{CONNECT_TIMEOUT, ITEMS_MAX, WORKERS_MAX};
use crate::program::node::place_of;
use crate::program::{Count, Items, WaveId};
use crate::template::{ItemNames, Scope, Template, whole_expression};

/// Values that are said of workers, not yet read.
#[derive(Clone, Copy, Default)]
pub(super) struct WorkerKeys<'v, 't> {
    workers: Option<&'v Spot<'t>>,
    items: Option<&'v Spot<'t>>,
    at_once: Option<&'v Spot<'t>>,
    timeout: Option<&'v Spot<'t>>,
    connect_timeout: Option<&'v Spot<'t>>,
}

impl<'v, 't> WorkerKeys<'v, 't> {
    /// Those of a table.
    pub(super) fn of(table: &'v DeTable<'t>) -> Self {
        Self {
            workers: table.get("workers"),
            items: table.get("items"),
            at_once: table.get("at_once"),
            timeout: table.get("timeout"),
            connect_timeout: table.get("connect_timeout"),
        }
    }

    /// A wave's, with the job's as defaults.
    pub(super) fn or(self, job: Self) -> Self {
        let items = match self.workers {
            Some(_) => self.items,
            None => self.items.or(job.items),
        };
        Self {
            workers: self.workers.or(job.workers),
            items,
            at_once: self.at_once.or(job.at_once),
            timeout: self.timeout.or(job.timeout),
            connect_timeout: self.connect_timeout.or(job.connect_timeout),
        }
    }

    /// Where workers or items are said: errors of planning point there.
    pub(super) fn span(&self) -> Option<Range<usize>> {
        self.items.or(self.workers).map(Spot::span)
    }

    /// Whether it says how many workers there are.
    pub(super) const fn is_complete(&self) -> bool {
        self.workers.is_some() || self.items.is_some()
    }
}

/// What is said of a wave's workers.
pub(super) struct Workers {
    pub workers: Option<Count>,
    pub items: Option<Items>,
    pub at_once: Option<Count>,
    pub timeout: Option<Duration>,
    pub connect_timeout: Duration,
    pub names: ItemNames,
}

impl Workers {
    pub(super) fn read<'t>(
        cx: &mut Context<'t>,
        keys: &WorkerKeys<'_, 't>,
        params: &Scope<'_>,
        options: &Options,
    ) -> Self {
        let planning = params.clone().planning();
        let mut count = |key, value: Option<&Spot<'t>>| {
            value.and_then(|value| count(cx, key, value, &planning))
        };
        let workers = count("workers", keys.workers);
        let at_once = count("at_once", keys.at_once);
        let timeout = keys.timeout.and_then(|value| cx.duration("timeout", value));
        let connect_timeout =
            keys.connect_timeout.and_then(|value| cx.duration("connect_timeout", value));
        let items = keys.items.and_then(|value| items(cx, value, params, &planning));
        let names = match (&items, keys.items) {
            (Some(Items::List(values)), _) if !values.iter().all(serde_json::Value::is_string) => {
                ItemNames::Item
            }
            (Some(Items::Range(_)), _) => ItemNames::Item,
            (Some(Items::List(_) | Items::Values(_) | Items::Glob { .. }), _) => ItemNames::Text,
            // Items that could not be read: no further errors about their names.
            (None, Some(_)) => ItemNames::Text,
            (None, None) => ItemNames::None,
        };
        Self {
            workers,
            items,
            at_once: options.at_once.map(Count::Number).or(at_once),
            timeout: options.timeout.or(timeout),
            connect_timeout: connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            names,
        }
    }
}

/// A number from 1, or an expression.
fn count<'t>(
    cx: &mut Context<'t>,
    key: &'static str,
    value: &Spot<'t>,
    scope: &Scope<'_>,
) -> Option<Count> {
    match value.get_ref() {
        DeValue::Integer(_) => {
            let number = integer(value)
                .filter(|number| (1..=i64::from(WORKERS_MAX)).contains(number))
                .and_then(|number| u32::try_from(number).ok());
            if number.is_none() {
                let message = format!("`{key}` must be from 1 to {WORKERS_MAX}");
                cx.error(value.span(), message, None);
            }
            number.map(Count::Number)
        }
        DeValue::String(_) => cx.expression(key, value, scope).map(Count::Expr),
        _ => {
            cx.wrong_type(key, value, "a number, an expression or \"cores\"");
            None
        }
    }
}

/// A glob as a text, or a table with one of `list`, `range`, `glob`.
fn items<'t>(
    cx: &mut Context<'t>,
    value: &Spot<'t>,
    params: &Scope<'_>,
    planning: &Scope<'_>,
) -> Option<Items> {
    match value.get_ref() {
        DeValue::String(_) => glob(cx, "items", value, params, planning),
        DeValue::Table(table) => {
            cx.unknown_keys(table, &ITEMS);
            let known: Vec<_> = entries(table)
                .into_iter()
                .filter(|entry| ITEMS.known.contains(&entry.key))
                .collect();
            match known.as_slice() {
                [one] if one.key == "list" => list(cx, one.value),
                [one] if one.key == "range" => range(cx, one.value, planning),
                [one] => glob(cx, "glob", one.value, params, planning),
                [] if !table.is_empty() => None,
                _ => {
                    let message = "`items` has one of `list`, `range` and `glob`".to_owned();
                    cx.error(value.span(), message, None);
                    None
                }
            }
        }
        DeValue::Array(_) => {
            let cure = Some("write { list = […] }".to_owned());
            cx.error(value.span(), "`items` is a bare list".to_owned(), cure);
            None
        }
        _ => {
            cx.wrong_type("items", value, "a glob, or a table with `list`, `range` or `glob`");
            None
        }
    }
}

fn list<'t>(cx: &mut Context<'t>, value: &Spot<'t>) -> Option<Items> {
    let values = cx.list("list", value)?;
    if values.is_empty() {
        cx.error(value.span(), "`items` has an empty list".to_owned(), None);
        return None;
    }
    let values: Vec<_> = values.iter().map(|value| cx.json("list", value)).collect();
    values.into_iter().collect::<Option<_>>().map(Items::List)
}

fn range<'t>(cx: &mut Context<'t>, value: &Spot<'t>, planning: &Scope<'_>) -> Option<Items> {
    match value.get_ref() {
        DeValue::Integer(number) => {
            let fits = integer(value)
                .and_then(|number| u64::try_from(number).ok())
                .is_some_and(|number| (1..=ITEMS_MAX).contains(&number));
            if !fits {
                let message = format!("`range` must be from 1 to {ITEMS_MAX}");
                cx.error(value.span(), message, None);
                return None;
            }
            let digits =
                integer(value).map_or_else(|| number.as_str().to_owned(), |n| n.to_string());
            crate::template::Expr::compile(&digits, planning).ok().map(Items::Range)
        }
        DeValue::String(_) => cx.expression("range", value, planning).map(Items::Range),
        _ => {
            cx.wrong_type("range", value, "a number or an expression");
            None
        }
    }
}

fn glob(
    cx: &mut Context<'_>,
    key: &str,
    value: &Spot<'_>,
    params: &Scope<'_>,
    planning: &Scope<'_>,
) -> Option<Items> {
    let text = cx.some_text(key, value)?;
    if whole_expression(text).is_some() {
        return cx.expression(key, value, planning).map(Items::Values);
    }
    let (place, rest) = place_of(text);
    let template: Template = cx.template_from(value, text.len() - rest.len(), params)?;
    Some(Items::Glob { place, pattern: template })
}

/// A wave's name and the names that it comes after, with their places.
pub(super) struct Order<'v, 't> {
    pub name: String,
    pub name_span: Range<usize>,
    pub after: Vec<(&'v str, &'v Spot<'t>)>,
}

/// The names in `after`.
pub(super) fn after<'v, 't>(
    cx: &mut Context<'t>,
    value: Option<&'v Spot<'t>>,
) -> Vec<(&'v str, &'v Spot<'t>)> {
    let Some(value) = value else {
        return Vec::new();
    };
    let values: Vec<&'v Spot<'t>> = match value.get_ref() {
        DeValue::String(_) => vec![value],
        DeValue::Array(values) => values.iter().collect(),
        _ => {
            cx.wrong_type("after", value, "a list of waves' names");
            return Vec::new();
        }
    };
    values.into_iter().filter_map(|value| Some((cx.text("after", value)?, value))).collect()
}

/// Turns names into numbers; notes names that are given twice or to no wave, and waves that wait
/// for themselves.
pub(super) fn resolve(cx: &mut Context<'_>, waves: &[Order<'_, '_>]) -> Vec<Vec<WaveId>> {
    let names: Vec<&str> = waves.iter().map(|wave| wave.name.as_str()).collect();
    let ids = |name: &str| (0..).map(WaveId).zip(&names).find(|(_, known)| **known == name);
    let mut resolved = Vec::new();
    for (number, wave) in waves.iter().enumerate() {
        let first = names.iter().position(|name| *name == wave.name);
        if first != Some(number) {
            let message = format!("there are two waves `{}`", wave.name);
            let cure = Some("give one of them another name".to_owned());
            cx.error(wave.name_span.clone(), message, cure);
        }
        let mut after = Vec::new();
        for (name, spot) in &wave.after {
            match ids(name) {
                Some((id, _)) if after.contains(&id) => {}
                Some((id, _)) => after.push(id),
                None => {
                    let cure = match nearest(name, names.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("the waves are {}", listed(&names)),
                    };
                    cx.error(spot.span(), format!("no wave is called `{name}`"), Some(cure));
                }
            }
        }
        resolved.push(after);
    }
    for cycle in cycles(&resolved) {
        let Some(first) = cycle.first().and_then(|id| waves.get(*id)) else {
            continue;
        };
        let path: Vec<&str> =
            cycle.iter().chain(cycle.first()).filter_map(|id| names.get(*id).copied()).collect();
        let message = format!("these waves wait for each other: {}", path.join(" → "));
        let span = first.after.first().map_or(0..0, |(_, spot)| spot.span());
        cx.error(span, message, Some("take one out of its `after`".to_owned()));
    }
    resolved
}

/// Cycles among waves, each told once, from its first wave on.
fn cycles(after: &[Vec<WaveId>]) -> Vec<Vec<usize>> {
    let next = |wave: usize| {
        after.get(wave).into_iter().flatten().filter_map(|id| usize::try_from(id.0).ok())
    };
    let mut done = vec![false; after.len()];
    let mut cycles: Vec<Vec<usize>> = Vec::new();
    for start in 0..after.len() {
        if done.get(start) == Some(&true) {
            continue;
        }
        // A path from `start` on, with what is left to be tried at each of its waves.
        let mut path: Vec<(usize, Vec<usize>)> = vec![(start, next(start).collect())];
        while let Some((wave, rest)) = path.last_mut() {
            let wave = *wave;
            let Some(step) = rest.pop() else {
                if let Some(done) = done.get_mut(wave) {
                    *done = true;
                }
                path.pop();
                continue;
            };
            if let Some(at) = path.iter().position(|(known, _)| *known == step) {
                let cycle: Vec<usize> = path.iter().skip(at).map(|(wave, _)| *wave).collect();
                cycles.push(cycle);
            } else if done.get(step) == Some(&false) {
                path.push((step, next(step).collect()));
            }
        }
    }
    cycles
}
