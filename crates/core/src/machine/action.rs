//! From an action's templates to the action that a worker is told.

use musec_protocol::{Action, Get, Place, Put, Run, Which};

use crate::byte_range;
use crate::duration;
use crate::limits::VALUE_BYTES_MAX;
use crate::machine::bindings::View;
use crate::program::Glob;
use crate::program::node::{
    ActionTemplate, GetTemplate, PutTemplate, RunTemplate, Sleep, place_of,
};
use crate::template::{Bindings, EvalError, Template};

/// Evaluates the texts of an action, and tells how many bytes its arguments have. Says in words
/// what is wrong with them.
pub(super) fn build(template: &ActionTemplate, view: &View<'_>) -> Result<(Action, u32), String> {
    let bindings: &dyn Bindings = view;
    let text = |template: &Template| template.text(bindings).map_err(in_words);
    let action = match template {
        ActionTemplate::Run(run) => Action::Run(self::run(run, bindings)?),
        ActionTemplate::Get(get) => Action::Get(self::get(get, bindings)?),
        ActionTemplate::Put(put) => Action::Put(self::put(put, bindings)?),
        ActionTemplate::Echo(echo) => Action::Echo(text(echo)?.into_bytes()),
        ActionTemplate::Sleep(Sleep::For(time)) => sleep(*time),
        ActionTemplate::Sleep(Sleep::Template(time)) => {
            let value = time.value(bindings).map_err(in_words)?;
            sleep(duration::parse(&value.to_string())?)
        }
        ActionTemplate::Print(file) => Action::Print { file: some("file", &text(file)?)?.into() },
        ActionTemplate::Map(map) => {
            let (number, item) = view.item_bytes();
            map.action(&item, number)
        }
        ActionTemplate::Deliver(target) => {
            let (number, item) = view.item_bytes();
            target.action(&item, number)
        }
    };
    let bytes = action.arguments_bytes();
    if bytes > VALUE_BYTES_MAX {
        return Err(format!(
            "its arguments have {bytes} bytes, at most {VALUE_BYTES_MAX} can be sent"
        ));
    }
    Ok((action, u32::try_from(bytes).unwrap_or(u32::MAX)))
}

fn get(template: &GetTemplate, bindings: &dyn Bindings) -> Result<Get, String> {
    let text = |template: &Template| template.text(bindings).map_err(in_words);
    let (which, key) = named(&template.key, bindings)?;
    let (place, key) = place_of(&key);
    let key = some("key", key)?;
    let file = match (&template.file, which) {
        (Some(file), _) => text(file)?,
        (None, Which::One) => key.rsplit('/').next().unwrap_or_default().to_owned(),
        (None, Which::Folder) => last_folder(key).to_owned(),
        (None, Which::Glob) => ".".to_owned(),
    };
    let range = match &template.range {
        Some(_) if which != Which::One => return Err("`range` goes with one object".to_owned()),
        Some(range) => Some(byte_range::parse(&text(range)?)?),
        None => None,
    };
    Ok(Get {
        place,
        key: key.to_owned(),
        file: some("file", &file)?.into(),
        which,
        range,
        concurrency: template.concurrency,
    })
}

fn put(template: &PutTemplate, bindings: &dyn Bindings) -> Result<Put, String> {
    let (which, file) = named(&template.file, bindings)?;
    let file = some("file", &file)?;
    let key = template.key.as_ref().map(|key| key.text(bindings).map_err(in_words)).transpose()?;
    let key = match (key, which) {
        (Some(key), Which::One) => some("key", &key)?.to_owned(),
        (Some(key), Which::Folder | Which::Glob) if key.is_empty() || key.ends_with('/') => key,
        (Some(key), Which::Folder | Which::Glob) => format!("{key}/"),
        (None, Which::One | Which::Folder) => file.to_owned(),
        (None, Which::Glob) => folder_of_pattern(file).to_owned(),
    };
    if place_of(&key).0 == Place::Inputs {
        return Err(format!("`{key}`: inputs are only read, `put` goes to the store"));
    }
    Ok(Put { file: file.into(), key, which, concurrency: template.concurrency, deliver: None })
}

/// What a text names: one object, a folder, or all that match.
fn named(template: &Template, bindings: &dyn Bindings) -> Result<(Which, String), String> {
    if template.is_pattern() {
        let pattern = template.pattern(bindings).map_err(in_words)?;
        let (place, glob) = place_of(&pattern);
        Glob::new(place, glob).map_err(|error| error.to_string())?;
        return Ok((Which::Glob, pattern));
    }
    let text = template.text(bindings).map_err(in_words)?;
    let which = if text.ends_with('/') { Which::Folder } else { Which::One };
    Ok((which, text))
}

/// The last part of a folder's key.
fn last_folder(key: &str) -> &str {
    let key = key.trim_end_matches('/');
    key.rsplit('/').next().unwrap_or(key)
}

/// The folder that holds all that can match, with its slash.
fn folder_of_pattern(pattern: &str) -> &str {
    let special = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let literal = pattern.get(..special).unwrap_or_default();
    literal.rfind('/').and_then(|at| literal.get(..=at)).unwrap_or_default()
}

fn run(template: &RunTemplate, bindings: &dyn Bindings) -> Result<Run, String> {
    let bytes =
        |template: &Template| template.text(bindings).map(String::into_bytes).map_err(in_words);
    let optional = |template: &Option<Template>| template.as_ref().map(bytes).transpose();
    let mut env = Vec::new();
    let mut env_bytes = 0;
    for (name, value) in &template.env {
        let value = bytes(value)?;
        env_bytes += name.len() + value.len();
        env.push((name.clone().into_bytes(), value));
    }
    if env_bytes > VALUE_BYTES_MAX {
        return Err(format!(
            "its `env` has {env_bytes} bytes, at most {VALUE_BYTES_MAX} can be sent"
        ));
    }
    let argv: Vec<Vec<u8>> = template.argv.iter().map(bytes).collect::<Result<_, _>>()?;
    if argv.first().is_none_or(Vec::is_empty) {
        return Err("the program's name is empty".to_owned());
    }
    Ok(Run {
        argv,
        env,
        cwd: optional(&template.cwd)?,
        stdin: optional(&template.stdin)?,
        stdout: optional(&template.stdout)?,
        grace_ms: u64::try_from(template.grace.as_millis()).unwrap_or(u64::MAX),
        fresh: false,
        stdout_key: None,
    })
}

fn sleep(time: std::time::Duration) -> Action {
    Action::Sleep { duration_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) }
}

fn some<'a>(what: &str, text: &'a str) -> Result<&'a str, String> {
    if text.is_empty() { Err(format!("the {what} is empty")) } else { Ok(text) }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn in_words(error: EvalError) -> String {
    error.to_string()
}
