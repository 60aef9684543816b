//! What is said of a wave's workers.
//!
//! What `[job]` says of workers is the default of all waves. A wave that says its own `workers`
//! does not take over the job's `items`: otherwise no wave could do without them.

use std::ops::Range;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use crate::job::Options;
use crate::job::context::{Context, Spot, entries, integer};
use crate::job::keys::Place as Keys;
use crate::limits::{CONNECT_TIMEOUT, ITEMS_MAX, WORKERS_MAX};
use crate::program::node::place_of;
use crate::program::{Count, Items, Program};
use crate::template::{
    Binding, Columns, ItemNames, Planning, Scope, Template, Value, whole_expression,
};

/// Values that are said of workers, not yet read.
#[derive(Clone, Copy, Default)]
pub(super) struct WorkerKeys<'v, 't> {
    workers: Option<&'v Spot<'t>>,
    items: Option<&'v Spot<'t>>,
    at_once: Option<&'v Spot<'t>>,
    timeout: Option<&'v Spot<'t>>,
    connect_timeout: Option<&'v Spot<'t>>,
    max_workers: Option<&'v Spot<'t>>,
    only: Option<&'v Spot<'t>>,
    keep: Option<&'v Spot<'t>>,
    group_size: Option<&'v Spot<'t>>,
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
            max_workers: table.get("max_workers"),
            only: table.get("only"),
            keep: table.get("keep"),
            group_size: table.get("group_size"),
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
            max_workers: self.max_workers.or(job.max_workers),
            only: self.only.or(job.only),
            keep: self.keep.or(job.keep),
            group_size: self.group_size.or(job.group_size),
        }
    }

    /// Where workers or items are said: errors of planning point there.
    pub(super) fn span(&self) -> Option<Range<usize>> {
        self.items.or(self.workers).map(Spot::span)
    }

    /// Where it says which workers are launched.
    pub(super) fn only_span(&self) -> Option<Range<usize>> {
        self.only.map(Spot::span)
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
    pub max_workers: u32,
    pub only: Option<Vec<u32>>,
    pub keep: bool,
    /// How many workers a group has.
    pub group_size: Option<u32>,
    pub names: ItemNames,
    /// The columns of the table whose rows are the items, if that has been read.
    pub columns: Option<Vec<String>>,
}

/// What a wave's numbers and items may depend on.
pub(super) struct Known<'a> {
    /// Names of parameters.
    pub params: &'a Scope<'a>,
    /// Values of parameters.
    pub values: &'a [Value],
    /// Waves that come before it.
    pub before: &'a [String],
    pub options: &'a Options,
}

impl Workers {
    /// The columns of its table, as far as they are known.
    pub(super) fn columns(&self) -> Columns<'_> {
        match (self.names, &self.columns) {
            (ItemNames::Row, Some(columns)) => Columns::Known(columns),
            (ItemNames::Row, None) => Columns::AtRunTime,
            (ItemNames::None | ItemNames::Item | ItemNames::Text, _) => Columns::None,
        }
    }

    pub(super) fn read<'t>(
        cx: &mut Context<'t>,
        keys: &WorkerKeys<'_, 't>,
        known: &Known<'_>,
    ) -> Self {
        let Known { params, options, .. } = *known;
        let planning = params.clone().planning(known.before);
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
            (Some(Items::Csv { .. }), _) => ItemNames::Row,
            (
                Some(
                    Items::List(_)
                    | Items::Bytes(_)
                    | Items::Values(_)
                    | Items::Glob { .. }
                    | Items::Lines { .. },
                ),
                _,
            ) => ItemNames::Text,
            // Items that could not be read: no further errors about their names.
            (None, Some(_)) => ItemNames::Text,
            (None, None) => ItemNames::None,
        };
        let columns = items.as_ref().and_then(|items| columns(cx, items, keys.items?, known));
        let max_workers = keys.max_workers.and_then(|value| number(cx, "max_workers", value));
        let only = keys.only.and_then(|value| only(cx, value));
        let keep = keys.keep.and_then(|value| cx.boolean("keep", value));
        let group_size = keys.group_size.and_then(|value| number(cx, "group_size", value));
        Self {
            workers,
            items,
            at_once: options.at_once.map(Count::Number).or(at_once),
            timeout: options.timeout.or(timeout),
            connect_timeout: connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            max_workers: max_workers.unwrap_or(WORKERS_MAX),
            only: options.only.clone().or(only),
            keep: keep.unwrap_or(false),
            group_size,
            names,
            columns,
        }
    }
}

/// The columns of the table that items are made of, if it has been read.
fn columns(
    cx: &mut Context<'_>,
    items: &Items,
    value: &Spot<'_>,
    known: &Known<'_>,
) -> Option<Vec<String>> {
    let Items::Csv { key } = items else { return None };
    let key = key.text(&Planning::of(known.values)).ok()?;
    match known.options.csv_headers.get(&key)? {
        Ok(columns) => Some(columns.clone()),
        Err(why) => {
            cx.error(value.span(), format!("`{key}`: {why}"), None);
            None
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
        DeValue::Integer(_) => number(cx, key, value).map(Count::Number),
        DeValue::String(_) => cx.expression(key, value, scope).map(Count::Expr),
        _ => {
            cx.wrong_type(key, value, "a number, an expression or \"cores\"");
            None
        }
    }
}

/// A number from 1.
pub(super) fn number(cx: &mut Context<'_>, key: &str, value: &Spot<'_>) -> Option<u32> {
    if !value.get_ref().is_integer() {
        cx.wrong_type(key, value, "a number");
        return None;
    }
    let number = integer(value)
        .filter(|number| (1..=i64::from(WORKERS_MAX)).contains(number))
        .and_then(|number| u32::try_from(number).ok());
    if number.is_none() {
        let message = format!("`{key}` must be from 1 to {WORKERS_MAX}");
        cx.error(value.span(), message, None);
    }
    number
}

/// Numbers of workers, sorted.
fn only<'t>(cx: &mut Context<'t>, value: &Spot<'t>) -> Option<Vec<u32>> {
    let values = cx.list("only", value)?;
    if values.is_empty() {
        cx.error(value.span(), "`only` names no worker".to_owned(), None);
        return None;
    }
    let mut numbers = Vec::new();
    for value in values {
        match integer(value).and_then(|number| u32::try_from(number).ok()) {
            Some(number) if number < WORKERS_MAX => numbers.push(number),
            Some(_) | None => {
                let message = "`only` lists numbers of workers, from 0".to_owned();
                cx.error(value.span(), message, None);
            }
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Notes what does not go with `each`.
pub(super) fn check_each(
    cx: &mut Context<'_>,
    each: &Spot<'_>,
    after: &[&str],
    items: Option<&Items>,
) {
    if after.is_empty() {
        let cure = "name the waves that put its items in `after`".to_owned();
        cx.error(each.span(), "`each` in a wave without `after`".to_owned(), Some(cure));
    }
    let is_put_by_waves = match items {
        Some(Items::Glob { place, .. }) => *place == musec_protocol::Place::Store,
        Some(Items::Values(expr)) => {
            expr.source().trim().starts_with("outputs_of(")
                && expr.source().trim().ends_with(')')
                && expr.bindings().all(|binding| binding == Binding::OutputsOf)
        }
        Some(
            Items::List(_)
            | Items::Bytes(_)
            | Items::Range(_)
            | Items::Lines { .. }
            | Items::Csv { .. },
        )
        | None => false,
    };
    let named = match items {
        Some(Items::Values(expr)) => expr.waves_read(),
        _ => Vec::new(),
    };
    if let Some(far) = named.into_iter().find(|name| !after.is_empty() && !after.contains(name)) {
        let message = format!("`each` takes what `{far}` puts, which is not in `after` itself");
        cx.error(each.span(), message, Some(format!("add \"{far}\" to `after`")));
    }
    if !is_put_by_waves {
        let message = "`each` needs `items` that other waves put".to_owned();
        let cure = "write items = \"parts/*\", or items = \"{{ outputs_of('wave') }}\"".to_owned();
        cx.error(each.span(), message, Some(cure));
    }
}

/// Notes `only` whose numbers no wave has, as far as that is known.
pub(super) fn check_only(cx: &mut Context<'_>, program: &Program, span: &Range<usize>) {
    let mut most = 0;
    let mut asked: Vec<u32> = Vec::new();
    for (id, wave) in program.waves() {
        let Some(only) = &wave.only else { return };
        match program.plan(id, 1, None) {
            Ok(plan) if !wave.uses_cores() && !wave.each => most = most.max(plan.workers),
            Ok(_) | Err(_) => return,
        }
        asked.extend(only);
    }
    if let Some(none) = asked.into_iter().find(|number| *number >= most) {
        let message = format!("`only` asks for worker {none}, the last one is {}", most - 1);
        cx.error(span.clone(), message, None);
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
            cx.unknown_keys(table, Keys::Items);
            let known: Vec<_> = entries(table)
                .into_iter()
                .filter(|entry| Keys::Items.key(entry.key).is_some())
                .collect();
            match known.as_slice() {
                [one] if one.key == "list" => list(cx, one.value),
                [one] if one.key == "range" => range(cx, one.value, planning),
                [one] if one.key == "lines" => {
                    file(cx, "lines", one.value, params).map(|key| Items::Lines { key })
                }
                [one] if one.key == "csv" => {
                    file(cx, "csv", one.value, params).map(|key| Items::Csv { key })
                }
                [one] => glob(cx, "glob", one.value, params, planning),
                [] if !table.is_empty() => None,
                _ => {
                    let message =
                        "`items` has one of `list`, `range`, `glob`, `lines` and `csv`".to_owned();
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
            cx.wrong_type(
                "items",
                value,
                "a glob, or a table with `list`, `range`, `glob`, `lines` or `csv`",
            );
            None
        }
    }
}

/// The key of a file.
fn file(cx: &mut Context<'_>, key: &str, value: &Spot<'_>, params: &Scope<'_>) -> Option<Template> {
    cx.some_text(key, value)?;
    cx.template(key, value, params)
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
