//! Reading one job file: its text, the errors so far, and values read as what they should be.
//!
//! Every reader returns `None` after it has noted what is wrong, so that reading goes on and all
//! errors come at once.

use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::duration;
use crate::job::keys::Place;
use crate::job::{JobError, JobErrors, nearest};
use crate::limits::{EXPRESSIONS_MAX, JOB_ERRORS_MAX};
use crate::template::{CompileError, Expr, Literal, Scope, Template, value, whole_expression};

/// A value with its place.
pub(super) type Spot<'t> = Spanned<DeValue<'t>>;

/// A key of a table, with its place, and its value.
pub(super) struct Entry<'v, 't> {
    pub key: &'v str,
    pub key_span: Range<usize>,
    pub value: &'v Spot<'t>,
}

/// The text and what was found to be wrong with it.
pub(super) struct Context<'t> {
    text: &'t str,
    errors: Vec<JobError>,
    /// Keys that were probably meant by unknown ones.
    meant: Vec<&'static str>,
    /// Expressions so far.
    expressions: usize,
}

impl<'t> Context<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, errors: Vec::new(), meant: Vec::new(), expressions: 0 }
    }

    /// Notes an error.
    pub(super) fn error(&mut self, span: Range<usize>, message: String, cure: Option<String>) {
        let boundary = |mut at: usize| {
            at = at.min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = boundary(span.start);
        let span = start..boundary(span.end).max(start);
        // Line and column are counted at the end, for those errors only that are told.
        self.errors.push(JobError { line: 0, column: 0, span, message, cure });
    }

    /// Whether an unknown key probably meant this one.
    pub(super) fn is_meant(&self, key: &str) -> bool {
        self.meant.contains(&key)
    }

    /// How many errors were noted so far.
    pub(super) const fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// The errors in the order of the text, each once, at most [`JOB_ERRORS_MAX`]; `None` if there
    /// are none.
    pub(super) fn into_errors(mut self) -> Option<JobErrors> {
        self.errors.sort_by_key(|error| (error.span.start, error.span.end));
        self.errors.dedup();
        self.errors.truncate(JOB_ERRORS_MAX);
        for error in &mut self.errors {
            let before = self.text.get(..error.span.start).unwrap_or_default();
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            error.line = before.matches('\n').count() + 1;
            error.column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        }
        (!self.errors.is_empty()).then_some(JobErrors(self.errors))
    }

    /// The entries of a table in the order of the text; keys that do not belong there are noted.
    pub(super) fn entries<'v>(
        &mut self,
        table: &'v DeTable<'t>,
        place: Place,
    ) -> Vec<Entry<'v, 't>> {
        let entries = entries(table);
        for entry in &entries {
            self.check_key(entry, place);
        }
        entries
    }

    /// Notes keys that do not belong in a table.
    pub(super) fn unknown_keys(&mut self, table: &DeTable<'t>, place: Place) {
        self.entries(table, place);
    }

    fn check_key(&mut self, entry: &Entry<'_, '_>, place: Place) {
        let key = entry.key;
        if place.key(key).is_some() {
            return;
        }
        if place.comes_later(key) {
            let message = format!("`{key}` is not yet supported");
            self.error(entry.key_span.clone(), message, None);
            return;
        }
        let cure = match nearest(key, place.names()) {
            Some(near) => {
                self.meant.push(near);
                format!("did you mean `{near}`?")
            }
            None => format!("known are {}", listed(&place.names().collect::<Vec<_>>())),
        };
        let message = format!("unknown key `{key}` in {}", place.name());
        self.error(entry.key_span.clone(), message, Some(cure));
    }

    /// Notes that a value is not what `key` wants.
    pub(super) fn wrong_type(&mut self, key: &str, value: &Spot<'_>, wanted: &str) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("`{key}` is {found}, it should be {wanted}");
        self.error(value.span(), message, None);
    }

    /// A text.
    pub(super) fn text<'v>(&mut self, key: &str, value: &'v Spot<'_>) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => {
                self.wrong_type(key, value, "a text");
                None
            }
        }
    }

    /// A text that is not empty.
    pub(super) fn some_text<'v>(&mut self, key: &str, value: &'v Spot<'_>) -> Option<&'v str> {
        let text = self.text(key, value)?;
        if text.is_empty() {
            self.error(value.span(), format!("`{key}` is empty"), None);
            return None;
        }
        Some(text)
    }

    /// A name: a text that is not empty and no template.
    pub(super) fn name<'v>(&mut self, key: &str, value: &'v Spot<'_>) -> Option<&'v str> {
        let text = self.some_text(key, value)?;
        if text.contains("{{") {
            let message =
                format!("`{key}` is the same for all workers, it cannot hold `{{{{ }}}}`");
            self.error(value.span(), message, None);
            return None;
        }
        Some(text)
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, key: &str, value: &Spot<'_>) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(boolean) => Some(*boolean),
            _ => {
                self.wrong_type(key, value, "true or false");
                None
            }
        }
    }

    /// A duration above zero.
    pub(super) fn duration(&mut self, key: &str, value: &Spot<'_>) -> Option<Duration> {
        let text = match value.get_ref() {
            DeValue::String(text) => text,
            DeValue::Integer(number) => {
                let message = format!("`{key}` has no unit");
                let cure = format!("write \"{}s\" for seconds", number.as_str());
                self.error(value.span(), message, Some(cure));
                return None;
            }
            _ => {
                self.wrong_type(key, value, "a duration like \"90s\"");
                return None;
            }
        };
        match duration::parse(text) {
            Ok(duration) if duration.is_zero() => {
                self.error(value.span(), format!("`{key}` is zero"), None);
                None
            }
            Ok(duration) => Some(duration),
            Err(why) => {
                self.error(value.span(), why, None);
                None
            }
        }
    }

    /// The values of a list.
    pub(super) fn list<'v>(&mut self, key: &str, value: &'v Spot<'t>) -> Option<&'v [Spot<'t>]> {
        match value.get_ref() {
            DeValue::Array(values) => Some(values),
            _ => {
                self.wrong_type(key, value, "a list");
                None
            }
        }
    }

    /// A table.
    pub(super) fn table<'v>(&mut self, key: &str, value: &'v Spot<'t>) -> Option<&'v DeTable<'t>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.wrong_type(key, value, "a table");
                None
            }
        }
    }

    /// Tables in a list, as `[[key]]` makes them; a single table counts as one.
    pub(super) fn tables<'v>(&mut self, key: &str, value: &'v Spot<'t>) -> Vec<&'v Spot<'t>> {
        let values = match value.get_ref() {
            DeValue::Array(values) => values.iter().collect(),
            DeValue::Table(_) => vec![value],
            _ => {
                self.wrong_type(key, value, "a list of tables");
                return Vec::new();
            }
        };
        let mut tables = Vec::new();
        for value in values {
            if self.table(key, value).is_some() {
                tables.push(value);
            }
        }
        tables
    }

    /// A text compiled as a template.
    pub(super) fn template(
        &mut self,
        key: &str,
        value: &Spot<'_>,
        scope: &Scope<'_>,
    ) -> Option<Template> {
        let text = self.text(key, value)?;
        self.count_expressions(text.matches("{{").count(), value)?;
        self.compile(text, 0, value, |text| Template::compile(text, scope))
    }

    /// A text compiled as a template without its first `skip` bytes.
    pub(super) fn template_from(
        &mut self,
        value: &Spot<'_>,
        skip: usize,
        scope: &Scope<'_>,
    ) -> Option<Template> {
        let text = value.get_ref().as_str()?.get(skip..)?;
        self.count_expressions(text.matches("{{").count(), value)?;
        self.compile(text, skip, value, |text| Template::compile(text, scope))
    }

    /// A text compiled as an expression. One that is wholly one `{{ }}` is what stands within.
    pub(super) fn expression(
        &mut self,
        key: &str,
        value: &Spot<'_>,
        scope: &Scope<'_>,
    ) -> Option<Expr> {
        if !value.get_ref().is_str() {
            self.wrong_type(key, value, "an expression in quotes");
            return None;
        }
        let text = self.some_text(key, value)?;
        let inner = whole_expression(text).unwrap_or(0..text.len());
        let offset = inner.start;
        let text = text.get(inner).unwrap_or_default();
        self.count_expressions(1, value)?;
        self.compile(text, offset, value, |text| Expr::compile(text, scope))
    }

    /// A value whose texts are expressions at the top, templates further down.
    pub(super) fn literal(
        &mut self,
        key: &str,
        value: &Spot<'_>,
        scope: &Scope<'_>,
    ) -> Option<Literal> {
        match value.get_ref() {
            DeValue::String(_) => self.expression(key, value, scope).map(Literal::Expr),
            _ => self.nested_literal(key, value, scope),
        }
    }

    fn nested_literal(
        &mut self,
        key: &str,
        value: &Spot<'_>,
        scope: &Scope<'_>,
    ) -> Option<Literal> {
        match value.get_ref() {
            DeValue::String(text) if text.contains("{{") => {
                self.template(key, value, scope).map(Literal::Template)
            }
            DeValue::Array(values) => {
                let values: Vec<_> =
                    values.iter().map(|value| self.nested_literal(key, value, scope)).collect();
                values.into_iter().collect::<Option<_>>().map(Literal::List)
            }
            DeValue::Table(table) => {
                let values: Vec<_> = entries(table)
                    .into_iter()
                    .map(|entry| {
                        let value = self.nested_literal(key, entry.value, scope)?;
                        Some((entry.key.to_owned(), value))
                    })
                    .collect();
                values.into_iter().collect::<Option<_>>().map(Literal::Table)
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {
                self.json(key, value).map(|json| Literal::Value(value::from_json(&json)))
            }
        }
    }

    /// A value as JSON; dates become texts.
    pub(super) fn json(&mut self, key: &str, value: &Spot<'_>) -> Option<serde_json::Value> {
        match to_json(value) {
            Ok(json) => Some(json),
            Err((span, why)) => {
                self.error(span, format!("`{key}`: {why}"), None);
                None
            }
        }
    }

    /// Counts expressions before they are compiled; `None` where they are too many, which is told
    /// where the first one too many stands.
    fn count_expressions(&mut self, count: usize, value: &Spot<'_>) -> Option<()> {
        let before = self.expressions;
        self.expressions += count;
        if self.expressions <= EXPRESSIONS_MAX {
            return Some(());
        }
        if before <= EXPRESSIONS_MAX {
            let message = format!("the job has more than {EXPRESSIONS_MAX} expressions");
            let cure = "make one step do for many with `for`, or with items".to_owned();
            self.error(value.span(), message, Some(cure));
        }
        None
    }

    /// Compiles a part of a text value and notes errors where they are within it.
    fn compile<T>(
        &mut self,
        text: &str,
        offset: usize,
        value: &Spot<'_>,
        compile: impl FnOnce(&str) -> Result<T, Vec<CompileError>>,
    ) -> Option<T> {
        match compile(text) {
            Ok(compiled) => Some(compiled),
            Err(errors) => {
                for error in errors {
                    let inner = error.range.start + offset..error.range.end + offset;
                    let span = self.span_within(value, inner);
                    self.error(span, error.message, error.cure);
                }
                None
            }
        }
    }

    /// A range of a text value as a range of the file: exact where the text has no escapes, else
    /// the whole value.
    pub(super) fn span_within(&self, value: &Spot<'_>, inner: Range<usize>) -> Range<usize> {
        let whole = value.span();
        let raw = self.text.get(whole.clone()).unwrap_or_default();
        let DeValue::String(text) = value.get_ref() else {
            return whole;
        };
        let text: &str = text;
        let quotes = if raw.starts_with("\"\"\"") || raw.starts_with("'''") { 3 } else { 1 };
        let Some(body) = raw.get(quotes..raw.len().saturating_sub(quotes)) else {
            return whole;
        };
        let Some(skipped) = body.strip_suffix(text).map(str::len) else {
            return whole;
        };
        let start = whole.start + quotes + skipped;
        start + inner.start..start + inner.end
    }
}

/// The entries of a table in the order of the text.
pub(super) fn entries<'v, 't>(table: &'v DeTable<'t>) -> Vec<Entry<'v, 't>> {
    let mut entries: Vec<Entry<'v, 't>> = table
        .iter()
        .map(|(key, value)| Entry { key: key.get_ref(), key_span: key.span(), value })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    entries
}

/// Words in a row: `a`, `b`.
pub(super) fn listed<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_ref())).collect();
    words.join(", ")
}

/// A whole number of TOML, in any of its notations.
pub(super) fn integer(value: &Spot<'_>) -> Option<i64> {
    let integer = value.get_ref().as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

type Misfit = (Range<usize>, String);

fn to_json(value: &Spot<'_>) -> Result<serde_json::Value, Misfit> {
    use serde_json::Value as Json;
    let misfit = |why: String| (value.span(), why);
    Ok(match value.get_ref() {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Boolean(boolean) => Json::from(*boolean),
        DeValue::Datetime(date) => Json::from(date.to_string()),
        DeValue::Integer(number) => match integer(value) {
            Some(number) => Json::from(number),
            None => return Err(misfit(format!("{} is too large", number.as_str()))),
        },
        DeValue::Float(number) => {
            let float = number.as_str().parse::<f64>().ok();
            match float.and_then(serde_json::Number::from_f64) {
                Some(number) => Json::Number(number),
                None => {
                    let why = format!("{} is not a finite number", number.as_str());
                    return Err(misfit(why));
                }
            }
        }
        DeValue::Array(values) => values.iter().map(to_json).collect::<Result<_, _>>()?,
        DeValue::Table(table) => entries(table)
            .into_iter()
            .map(|entry| Ok((entry.key.to_owned(), to_json(entry.value)?)))
            .collect::<Result<serde_json::Map<_, _>, Misfit>>()
            .map(Json::Object)?,
    })
}
