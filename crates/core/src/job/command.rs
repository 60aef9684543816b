//! Steps that send a command: their action's own keys.

use toml::de::{DeTable, DeValue};

use crate::byte_range;
use crate::duration;
use crate::job::context::{Spot, entries};
use crate::job::step::StepReader;
use crate::job::wave::number;
use crate::limits::{CONCURRENCY, GRACE};
use crate::program::node::{ActionTemplate, GetTemplate, PutTemplate, RunTemplate, Sleep};
use crate::template::{Scope, Template};

impl<'t> StepReader<'_, 't> {
    /// An action that a worker carries out, and what it is given in words.
    pub(super) fn command(
        &mut self,
        action: &str,
        table: &DeTable<'t>,
        scope: &Scope<'_>,
    ) -> Option<(ActionTemplate, String)> {
        let value = table.get(action)?;
        let also = |reader: &mut Self, key: &str| match table.get(key) {
            Some(value) => reader.some_template(key, value, scope).map(Some),
            None => Some(None),
        };
        Some(match action {
            "run" => {
                let run = self.run(value, table, scope)?;
                let words: Vec<&str> = run.argv.iter().map(Template::source).collect();
                let text = match value.get_ref() {
                    DeValue::String(text) => one_line(text),
                    _ => words.join(" "),
                };
                (ActionTemplate::Run(Box::new(run)), text)
            }
            "get" => {
                let key = self.some_template("get", value, scope);
                let file = also(self, "as")?;
                let range = match table.get("range") {
                    Some(range) => Some(self.range(range, key.as_ref(), scope)?),
                    None => None,
                };
                let concurrency = self.concurrency(table);
                let key = key?;
                let text = arrow(&key, file.as_ref());
                let get = GetTemplate { key, file, range, concurrency };
                (ActionTemplate::Get(Box::new(get)), text)
            }
            "put" => {
                let file = self.some_template("put", value, scope);
                self.refuse_inputs(table);
                let key = also(self, "as")?;
                let concurrency = self.concurrency(table);
                let file = file?;
                let text = arrow(&file, key.as_ref());
                (ActionTemplate::Put(Box::new(PutTemplate { file, key, concurrency })), text)
            }
            "echo" => {
                let text = self.template("echo", value, scope)?;
                let words = one_line(text.source());
                (ActionTemplate::Echo(text), words)
            }
            "print" => {
                let file = self.some_template("print", value, scope)?;
                let words = file.source().to_owned();
                (ActionTemplate::Print(file), words)
            }
            _ => {
                let text = value.get_ref().as_str().unwrap_or_default().to_owned();
                (ActionTemplate::Sleep(self.sleep(value, scope)?), text)
            }
        })
    }

    /// Bytes of one object.
    fn range(
        &mut self,
        value: &Spot<'t>,
        key: Option<&Template>,
        scope: &Scope<'_>,
    ) -> Option<Template> {
        let template = self.some_template("range", value, scope)?;
        if let Some(text) = value.get_ref().as_str().filter(|text| !text.contains("{{"))
            && let Err(why) = byte_range::parse(text)
        {
            self.cx.error(value.span(), why, None);
        }
        if key.is_some_and(|key| key.is_pattern() || key.source().ends_with('/')) {
            let message = "`range` goes with one object".to_owned();
            self.cx.error(value.span(), message, None);
        }
        Some(template)
    }

    fn concurrency(&mut self, table: &DeTable<'t>) -> u32 {
        let value = table.get("concurrency");
        value.and_then(|value| number(self.cx, "concurrency", value)).unwrap_or(CONCURRENCY)
    }

    /// `put … as` goes to the store.
    fn refuse_inputs(&mut self, table: &DeTable<'t>) {
        let Some(value) = table.get("as") else { return };
        if value.get_ref().as_str().is_some_and(|key| key.starts_with("in:")) {
            let message = "inputs are only read".to_owned();
            let cure = Some("leave out `in:`; `put` goes to the store".to_owned());
            self.cx.error(value.span(), message, cure);
        }
    }

    fn run(
        &mut self,
        value: &Spot<'t>,
        table: &DeTable<'t>,
        scope: &Scope<'_>,
    ) -> Option<RunTemplate> {
        let argv = match value.get_ref() {
            DeValue::String(_) => self.shell(value, table, scope),
            DeValue::Array(_) => {
                if let Some(shell) = table.get("shell") {
                    let message = "`shell` goes with a text, this `run` has a list".to_owned();
                    self.cx.error(shell.span(), message, None);
                }
                self.words(value, scope)
            }
            _ => {
                self.cx.wrong_type("run", value, "a shell's text, or a list of words");
                None
            }
        };
        let mut file =
            |key: &str| table.get(key).and_then(|value| self.some_template(key, value, scope));
        let (cwd, stdin, stdout) = (file("cwd"), file("stdin"), file("stdout"));
        let env = table.get("env").map_or_else(Vec::new, |value| self.env(value, scope));
        let grace = match table.get("grace") {
            Some(value) => self.cx.duration("grace", value),
            None => Some(GRACE),
        };
        Some(RunTemplate { argv: argv?, env, cwd, stdin, stdout, grace: grace? })
    }

    /// A text for a shell: `/bin/sh`, or another one by its name.
    fn shell(
        &mut self,
        value: &Spot<'t>,
        table: &DeTable<'t>,
        scope: &Scope<'_>,
    ) -> Option<Vec<Template>> {
        let text = self.some_template("run", value, scope);
        let shell = match table.get("shell") {
            Some(shell) => self.some_template("shell", shell, scope),
            None => Template::compile("/bin/sh", scope).ok(),
        };
        let flag = Template::compile("-c", scope).ok();
        Some(vec![shell?, flag?, text?])
    }

    /// A program and its arguments.
    fn words(&mut self, value: &Spot<'t>, scope: &Scope<'_>) -> Option<Vec<Template>> {
        let words = self.cx.list("run", value)?;
        if words.is_empty() {
            let message = "`run` has no program".to_owned();
            self.cx.error(value.span(), message, None);
            return None;
        }
        let words: Vec<_> = words.iter().map(|word| self.template("run", word, scope)).collect();
        words.into_iter().collect()
    }

    /// Variables of the environment; numbers and booleans as texts.
    fn env(&mut self, value: &Spot<'t>, scope: &Scope<'_>) -> Vec<(String, Template)> {
        let Some(table) = self.cx.table("env", value) else {
            return Vec::new();
        };
        let mut env = Vec::new();
        for entry in entries(table) {
            if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
                let message = format!("`{}` is no name of a variable", entry.key.escape_debug());
                self.cx.error(entry.key_span.clone(), message, None);
                continue;
            }
            let template = match entry.value.get_ref() {
                DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => self
                    .cx
                    .json(entry.key, entry.value)
                    .and_then(|json| Template::compile(&json.to_string(), scope).ok()),
                _ => self.template(entry.key, entry.value, scope),
            };
            if let Some(template) = template {
                env.push((entry.key.to_owned(), template));
            }
        }
        env
    }

    fn sleep(&mut self, value: &Spot<'t>, scope: &Scope<'_>) -> Option<Sleep> {
        let text = match value.get_ref() {
            DeValue::String(text) if text.contains("{{") => {
                return self.template("sleep", value, scope).map(Sleep::Template);
            }
            DeValue::String(text) => text,
            _ => {
                // Says what is wrong with it.
                self.cx.duration("sleep", value);
                return None;
            }
        };
        match duration::parse(text) {
            Ok(time) => Some(Sleep::For(time)),
            Err(why) => {
                self.cx.error(value.span(), why, None);
                None
            }
        }
    }

    fn template(&mut self, key: &str, value: &Spot<'t>, scope: &Scope<'_>) -> Option<Template> {
        let template = self.cx.template(key, value, scope)?;
        self.reads_output |= template.reads_output();
        Some(template)
    }

    pub(super) fn some_template(
        &mut self,
        key: &str,
        value: &Spot<'t>,
        scope: &Scope<'_>,
    ) -> Option<Template> {
        self.cx.some_text(key, value)?;
        self.template(key, value, scope)
    }
}

/// `a → b`, or only `a`.
fn arrow(from: &Template, to: Option<&Template>) -> String {
    match to {
        Some(to) => format!("{} → {}", from.source(), to.source()),
        None => from.source().to_owned(),
    }
}

/// A text on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
