//! Values: from JSON, and made plain and small enough to be kept.

use std::collections::BTreeMap;

use minijinja::Value;
use minijinja::value::ValueKind;
use serde_json::Value as Json;

use crate::limits::{ITEMS_BYTES_MAX, VALUE_BYTES_MAX};

/// Depth of lists within lists; it bounds the recursion of whatever walks a value.
const DEPTH_MAX: u32 = 32;

/// What one value costs beside its text, in bytes.
const SLOT_BYTES: usize = 24;

/// A value of the job file as expressions see it.
pub(crate) fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(values) => values.iter().map(from_json).collect(),
        Json::Object(entries) => {
            let entries: BTreeMap<String, Value> =
                entries.iter().map(|(key, value)| (key.clone(), from_json(value))).collect();
            Value::from(entries)
        }
    }
}

/// A frozen value as JSON; `None` of what JSON cannot say (bytes, NaN, keys that are no texts).
pub(crate) fn to_json(value: &Value) -> Option<Json> {
    serde_json::to_value(value).ok()
}

/// The same value without anything lazy in it, at most [`VALUE_BYTES_MAX`] large: what may be kept
/// and shown. Says why if it is larger, or no data (a function, say).
pub(crate) fn freeze(value: &Value) -> Result<Value, String> {
    freeze_to(value, VALUE_BYTES_MAX)
}

/// The same of a list of items, at most [`ITEMS_BYTES_MAX`] large.
pub(crate) fn freeze_list(value: &Value) -> Result<Value, String> {
    freeze_to(value, ITEMS_BYTES_MAX)
}

fn freeze_to(value: &Value, max: usize) -> Result<Value, String> {
    let mut budget = max;
    freeze_within(value, DEPTH_MAX, &mut budget).map_err(|why| match why {
        Unfit::Large => format!("the value is larger than {max} bytes"),
        Unfit::Other(why) => why,
    })
}

/// Why a value cannot be kept.
enum Unfit {
    Large,
    Other(String),
}

impl From<String> for Unfit {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

fn freeze_within(value: &Value, depth: u32, budget: &mut usize) -> Result<Value, Unfit> {
    let text_bytes = value.as_str().map(str::len).or_else(|| value.as_bytes().map(<[u8]>::len));
    *budget = budget.checked_sub(SLOT_BYTES + text_bytes.unwrap_or(0)).ok_or(Unfit::Large)?;
    match value.kind() {
        ValueKind::Bool
        | ValueKind::Number
        | ValueKind::String
        | ValueKind::Bytes
        | ValueKind::None => Ok(value.clone()),
        ValueKind::Seq | ValueKind::Iterable => {
            let depth = deeper(depth)?;
            // A lazy list that is too long is not even begun.
            if value.len().is_some_and(|len| len.saturating_mul(SLOT_BYTES) > *budget) {
                return Err(Unfit::Large);
            }
            let mut values = Vec::new();
            for inner in value.try_iter().map_err(|error| error.to_string())?.checked() {
                let inner = inner.map_err(|error| error.to_string())?;
                values.push(freeze_within(&inner, depth, budget)?);
            }
            Ok(Value::from(values))
        }
        ValueKind::Map => {
            let depth = deeper(depth)?;
            let mut entries = BTreeMap::new();
            for key in value.try_iter().map_err(|error| error.to_string())?.checked() {
                let key = key.map_err(|error| error.to_string())?;
                let inner = value.get_item(&key).map_err(|error| error.to_string())?;
                let key = freeze_within(&key, depth, budget)?;
                entries.insert(key, freeze_within(&inner, depth, budget)?);
            }
            Ok(Value::from(entries))
        }
        ValueKind::Undefined => Err("a part of it has no value".to_owned().into()),
        kind => Err(format!("a {kind} is not data").into()),
    }
}

fn deeper(depth: u32) -> Result<u32, String> {
    depth.checked_sub(1).ok_or_else(|| format!("its lists are nested more than {DEPTH_MAX} deep"))
}

/// Last part of an item's key, without `in:`.
pub(crate) fn name_of(key: &str) -> &str {
    let key = key.strip_prefix("in:").unwrap_or(key);
    let key = key.trim_end_matches('/');
    key.rsplit('/').next().unwrap_or(key)
}

/// A name as (stem, extension): split at its last dot, unless that is its first character.
pub(crate) fn split_name(name: &str) -> (&str, &str) {
    match name.rsplit_once('.') {
        Some((stem, ext)) if !stem.is_empty() => (stem, ext),
        Some(_) | None => (name, ""),
    }
}
