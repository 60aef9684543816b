//! `[job]`: what is said of the run as a whole. What it says of workers is the default of waves.

use toml::de::{DeTable, DeValue};

use crate::job::context::{Context, Spot, entries};
use crate::job::keys::Place;
use crate::job::wave::WorkerKeys;
use crate::program::{Glob, ResultRule};
use crate::template::{Planning, Scope, Template, Value};

/// What `[job]` says.
#[derive(Default)]
pub(super) struct Header<'v, 't> {
    pub name: Option<String>,
    pub files: Vec<String>,
    pub inputs: Option<String>,
    pub store: Option<String>,
    pub results: Vec<ResultRule>,
    pub keep_scratch: bool,
    pub workers: WorkerKeys<'v, 't>,
}

/// Parameters: all that texts of `[job]` may name.
pub(super) struct Params<'a> {
    pub scope: &'a Scope<'a>,
    pub values: &'a [Value],
}

impl<'v, 't> Header<'v, 't> {
    pub(super) fn read(cx: &mut Context<'t>, table: &'v DeTable<'t>, params: &Params<'_>) -> Self {
        let mut header = Self::default();
        for entry in cx.entries(table, Place::Job) {
            let (key, value) = (entry.key, entry.value);
            match key {
                "name" => header.name = cx.name(key, value).map(str::to_owned),
                "inputs" => header.inputs = rendered(cx, key, value, params),
                "store" => header.store = store(cx, value, params),
                "files" => header.files = files(cx, value, params),
                "results" => header.results = results(cx, value, params),
                "keep_scratch" => header.keep_scratch = cx.boolean(key, value).unwrap_or(false),
                _ => {}
            }
        }
        header.workers = WorkerKeys::of(table);
        header
    }
}

/// A text over parameters, rendered; never empty.
fn rendered(
    cx: &mut Context<'_>,
    key: &str,
    value: &Spot<'_>,
    params: &Params<'_>,
) -> Option<String> {
    let template: Template = cx.template(key, value, params.scope)?;
    match template.text(&Planning::of(params.values)) {
        Ok(text) if text.is_empty() => {
            cx.error(value.span(), format!("`{key}` is empty"), None);
            None
        }
        Ok(text) => Some(text),
        Err(error) => {
            cx.error(value.span(), error.to_string(), None);
            None
        }
    }
}

/// A folder, or a URL of one.
fn store(cx: &mut Context<'_>, value: &Spot<'_>, params: &Params<'_>) -> Option<String> {
    let store = rendered(cx, "store", value, params)?;
    match store.split_once(':') {
        Some((scheme, rest)) if rest.starts_with("//") || scheme == "coordinator" => {
            if scheme != "file" {
                let message = format!("a store at `{scheme}:` is not yet supported");
                let cure = "write a folder, or a file:// URL".to_owned();
                cx.error(value.span(), message, Some(cure));
                return None;
            }
            if !store.starts_with("file:///") {
                let message = format!("`{store}` is not the URL of a folder");
                cx.error(value.span(), message, Some("write file:///folder".to_owned()));
                return None;
            }
        }
        Some(_) | None => {}
    }
    Some(store)
}

fn files(cx: &mut Context<'_>, value: &Spot<'_>, params: &Params<'_>) -> Vec<String> {
    match value.get_ref() {
        DeValue::String(_) => rendered(cx, "files", value, params).into_iter().collect(),
        DeValue::Array(values) => {
            values.iter().filter_map(|value| rendered(cx, "files", value, params)).collect()
        }
        _ => {
            cx.wrong_type("files", value, "a list of paths");
            Vec::new()
        }
    }
}

/// A folder for all, a rule, or a list of these.
fn results<'t>(cx: &mut Context<'t>, value: &Spot<'t>, params: &Params<'_>) -> Vec<ResultRule> {
    match value.get_ref() {
        DeValue::Array(values) => {
            values.iter().filter_map(|value| result(cx, value, params)).collect()
        }
        _ => result(cx, value, params).into_iter().collect(),
    }
}

fn result<'t>(cx: &mut Context<'t>, value: &Spot<'t>, params: &Params<'_>) -> Option<ResultRule> {
    let DeValue::Table(table) = value.get_ref() else {
        if !value.get_ref().is_str() {
            cx.wrong_type("results", value, "a folder, or { from = \"…\", to = \"…\" }");
            return None;
        }
        let to = rendered(cx, "results", value, params)?;
        return Some(ResultRule { from: "**".to_owned(), to });
    };
    cx.unknown_keys(table, Place::Results);
    let mut from = Some("**".to_owned());
    let mut to = None;
    for entry in entries(table) {
        match entry.key {
            "from" => {
                from = rendered(cx, "from", entry.value, params);
                check_glob(cx, entry.value, from.as_deref());
            }
            "to" => to = Some(rendered(cx, "to", entry.value, params)),
            _ => {}
        }
    }
    if to.is_none() {
        let cure = "write { from = \"…\", to = \"folder/\" }".to_owned();
        cx.error(value.span(), "`results` without `to`".to_owned(), Some(cure));
    }
    Some(ResultRule { from: from?, to: to?? })
}

/// Notes a glob that is none, and one that looks into the inputs.
fn check_glob(cx: &mut Context<'_>, value: &Spot<'_>, pattern: Option<&str>) {
    let Some(pattern) = pattern else { return };
    if pattern.starts_with("in:") {
        let message = "results come from the store, not from the inputs".to_owned();
        cx.error(value.span(), message, None);
    }
    if let Err(error) = Glob::new(musec_protocol::Place::Store, pattern) {
        cx.error(value.span(), error.to_string(), None);
    }
}
