//! From an action's templates to the action that a worker is told.

use musec_protocol::{Action, Get, Place, Put, Run};

use crate::duration;
use crate::limits::VALUE_BYTES_MAX;
use crate::program::node::{ActionTemplate, RunTemplate, Sleep, place_of};
use crate::template::{Bindings, EvalError, Template};

/// Evaluates the texts of an action. Says in words what is wrong with them.
pub(super) fn build(template: &ActionTemplate, bindings: &dyn Bindings) -> Result<Action, String> {
    let text = |template: &Template| template.text(bindings).map_err(in_words);
    let action = match template {
        ActionTemplate::Run(run) => Action::Run(self::run(run, bindings)?),
        ActionTemplate::Get { key, file } => {
            let key = text(key)?;
            let (place, key) = place_of(&key);
            let key = some("key", key)?;
            let file = match file {
                Some(file) => text(file)?,
                None => key.rsplit('/').next().unwrap_or_default().to_owned(),
            };
            Action::Get(Get { place, key: key.to_owned(), file: some("file", &file)?.into() })
        }
        ActionTemplate::Put { file, key } => {
            let file = text(file)?;
            let key = match key {
                Some(key) => text(key)?,
                None => file.clone(),
            };
            if place_of(&key).0 == Place::Inputs {
                return Err(format!("`{key}`: inputs are only read, `put` goes to the store"));
            }
            Action::Put(Put {
                file: some("file", &file)?.into(),
                key: some("key", &key)?.to_owned(),
            })
        }
        ActionTemplate::Echo(echo) => Action::Echo(text(echo)?.into_bytes()),
        ActionTemplate::Sleep(Sleep::For(time)) => sleep(*time),
        ActionTemplate::Sleep(Sleep::Template(time)) => {
            let value = time.value(bindings).map_err(in_words)?;
            sleep(duration::parse(&value.to_string())?)
        }
        ActionTemplate::Print(file) => Action::Print { file: some("file", &text(file)?)?.into() },
    };
    let bytes: usize = action.arguments().iter().map(Vec::len).sum();
    if bytes > VALUE_BYTES_MAX {
        return Err(format!(
            "its arguments have {bytes} bytes, at most {VALUE_BYTES_MAX} can be sent"
        ));
    }
    Ok(action)
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
