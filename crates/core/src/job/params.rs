//! `[params]`, and the overrides of the command line.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

use crate::job::context::{Context, entries, listed};
use crate::job::nearest;
use crate::template::RESERVED;

/// The parameters, overrides applied.
pub(super) fn read(
    cx: &mut Context<'_>,
    table: Option<(&DeTable<'_>, Range<usize>)>,
    overrides: &BTreeMap<String, String>,
) -> BTreeMap<String, Json> {
    let mut params = BTreeMap::new();
    let (entries, header) = match table {
        Some((table, header)) => (entries(table), header),
        None => (Vec::new(), 0..0),
    };
    for entry in &entries {
        if let Some((message, cure)) = bad_name(entry.key) {
            cx.error(entry.key_span.clone(), message, Some(cure));
            continue;
        }
        let Some(default) = cx.json(entry.key, entry.value) else {
            continue;
        };
        let value = match overrides.get(entry.key) {
            None => default,
            Some(text) => match typed_like(&default, text) {
                Ok(value) => value,
                Err(why) => {
                    let message = format!("`--param {}={text}`: {why}", entry.key);
                    cx.error(entry.value.span(), message, None);
                    // Bound all the same, so that its uses are no mistakes too.
                    default
                }
            },
        };
        params.insert(entry.key.to_owned(), value);
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry.key).collect();
    for name in overrides.keys() {
        if names.contains(&name.as_str()) {
            continue;
        }
        let cure = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "the job has no `[params]`".to_owned(),
            None => format!("the job's parameters are {}", listed(&names)),
        };
        let message = format!("`--param {name}`: the job has no such parameter");
        cx.error(header.clone(), message, Some(cure));
    }
    params
}

/// What is wrong with the name of a parameter, loop or variable: message and cure.
pub(super) fn bad_name(name: &str) -> Option<(String, String)> {
    if !is_identifier(name) {
        return Some((
            format!("`{name}` cannot be used in an expression"),
            "use letters, digits and `_`, not a digit first".to_owned(),
        ));
    }
    RESERVED
        .contains(&name)
        .then(|| (format!("`{name}` is a name of musec's own"), "choose another name".to_owned()))
}

/// Whether a column of a table cannot be called so: what musec or the engine bind wins over
/// columns. Rows are no texts, so that names of texts are free.
pub(crate) fn is_reserved_for_columns(name: &str) -> bool {
    RESERVED.contains(&name) && !["name", "stem", "ext"].contains(&name)
}

/// Whether an expression can name it.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A text of the command line as the type of the default.
fn typed_like(default: &Json, text: &str) -> Result<Json, String> {
    match default {
        Json::String(_) => Ok(Json::from(text)),
        Json::Bool(_) => text
            .parse::<bool>()
            .map(Json::from)
            .map_err(|_| "it should be true or false".to_owned()),
        Json::Number(number) if number.is_f64() => text
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Json::Number)
            .ok_or_else(|| "it should be a number".to_owned()),
        Json::Number(_) => text
            .parse::<i64>()
            .map(Json::from)
            .map_err(|_| "it should be a whole number".to_owned()),
        Json::Array(_) | Json::Object(_) | Json::Null => {
            let wanted = if default.is_array() {
                "a list as TOML writes it"
            } else {
                "a table as TOML writes it"
            };
            let wrong = || format!("it should be {wanted}");
            let value = DeValue::parse(text).map_err(|_| wrong())?;
            let json = Context::new(text).json("value", &value).ok_or_else(wrong)?;
            let same = json.is_array() == default.is_array();
            let compound = json.is_array() || json.is_object();
            if same && compound { Ok(json) } else { Err(wrong()) }
        }
    }
}
