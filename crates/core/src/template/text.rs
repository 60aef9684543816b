//! Texts with `{{ }}` in them, and values that hold such texts.

use minijinja::Value;

use crate::limits::VALUE_BYTES_MAX;
use crate::template::{Bindings, CompileError, EvalError, Expr, Scope, scan, value};

/// What to do where braces were not meant for musec.
const LITERAL_BRACES: &str = "write `{{ '{{' }}` for the two characters themselves";

/// A compiled text.
#[derive(Debug)]
pub struct Template {
    source: String,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Expr(Expr),
}

/// A piece of a text, not yet compiled. Ranges are of the whole text.
struct RawExpr {
    /// From `{{` to after `}}`.
    outer: std::ops::Range<usize>,
    /// What stands between them, without the marks of `{{-` and `-}}`.
    inner: std::ops::Range<usize>,
    /// `{{-`: white space before it goes.
    trims_before: bool,
    /// `-}}`: white space after it goes.
    trims_after: bool,
}

/// Finds the next `{{ … }}` at or after `from`.
fn next_expression(text: &str, from: usize) -> Result<Option<RawExpr>, CompileError> {
    let rest = text.get(from..).unwrap_or_default();
    let Some(open) = rest.find("{{").map(|at| at + from) else {
        return Ok(None);
    };
    let mut start = open + 2;
    let trims_before = text.as_bytes().get(start) == Some(&b'-');
    if trims_before {
        start += 1;
    }
    let body = text.get(start..).unwrap_or_default();
    let Some(length) = scan::end_of_expression(body) else {
        return Err(CompileError {
            range: open..open + 2,
            message: "`{{` without its `}}`".to_owned(),
            cure: Some(LITERAL_BRACES.to_owned()),
            is_syntax: true,
        });
    };
    let mut end = start + length;
    let after = end + 2;
    let trims_after = length > 0 && text.as_bytes().get(end - 1) == Some(&b'-');
    if trims_after {
        end -= 1;
    }
    Ok(Some(RawExpr { outer: open..after, inner: start..end, trims_before, trims_after }))
}

/// The expression in a text that is wholly one `{{ }}` (white space around it aside), as a range.
pub(crate) fn whole_expression(text: &str) -> Option<std::ops::Range<usize>> {
    let trimmed = text.trim();
    let raw = next_expression(text, 0).ok()??;
    let whole = text.get(raw.outer.clone()) == Some(trimmed);
    whole.then_some(raw.inner)
}

/// Compiles the expression of a piece; what is wrong with it is told as ranges of the whole text.
fn expression(source: &str, raw: &RawExpr, scope: &Scope<'_>) -> Result<Expr, Vec<CompileError>> {
    let inner = source.get(raw.inner.clone()).unwrap_or_default();
    if inner.trim().is_empty() {
        return Err(vec![CompileError {
            range: raw.outer.clone(),
            message: "`{{ }}` without an expression".to_owned(),
            cure: Some(LITERAL_BRACES.to_owned()),
            is_syntax: true,
        }]);
    }
    Expr::compile(inner, scope).map_err(|mut errors| {
        for error in &mut errors {
            error.range = error.range.start + raw.inner.start..error.range.end + raw.inner.start;
            if error.is_syntax {
                error.cure.get_or_insert_with(|| LITERAL_BRACES.to_owned());
            }
        }
        errors
    })
}

impl Template {
    /// Compiles a text and checks the names in it. Tells all that is wrong at once.
    pub(crate) fn compile(source: &str, scope: &Scope<'_>) -> Result<Self, Vec<CompileError>> {
        let mut pieces = Vec::new();
        let mut errors = Vec::new();
        let mut at = 0;
        let mut trim_start = false;
        loop {
            let raw = match next_expression(source, at) {
                Ok(raw) => raw,
                Err(error) => {
                    errors.push(error);
                    break;
                }
            };
            let end = raw.as_ref().map_or(source.len(), |raw| raw.outer.start);
            let mut text = source.get(at..end).unwrap_or_default();
            if trim_start {
                text = text.trim_start();
            }
            if raw.as_ref().is_some_and(|raw| raw.trims_before) {
                text = text.trim_end();
            }
            if !text.is_empty() {
                pieces.push(Piece::Text(text.to_owned()));
            }
            let Some(raw) = raw else { break };
            match expression(source, &raw, scope) {
                Ok(expr) => pieces.push(Piece::Expr(expr)),
                Err(wrong) => errors.extend(wrong),
            }
            at = raw.outer.end;
            trim_start = raw.trims_after;
        }
        if errors.is_empty() { Ok(Self { source: source.to_owned(), pieces }) } else { Err(errors) }
    }

    /// The text as written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether an expression in it reads `last.output`.
    pub(crate) fn reads_output(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Text(_) => false,
            Piece::Expr(expr) => expr.reads_output(),
        })
    }

    /// Whether its text outside of expressions has the characters of a glob.
    pub(crate) fn is_pattern(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Text(text) => text.contains(['*', '?', '[', '{']),
            Piece::Expr(_) => false,
        })
    }

    /// The text as a glob: what expressions give stands for itself.
    pub(crate) fn pattern(&self, bindings: &dyn Bindings) -> Result<String, EvalError> {
        self.render(bindings, globset::escape)
    }

    /// The text, expressions replaced by their values.
    pub(crate) fn text(&self, bindings: &dyn Bindings) -> Result<String, EvalError> {
        self.render(bindings, str::to_owned)
    }

    fn render(
        &self,
        bindings: &dyn Bindings,
        shown: fn(&str) -> String,
    ) -> Result<String, EvalError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Expr(expr) => {
                    let value = expr.value(bindings)?;
                    let value = value::freeze(&value).map_err(|why| expr.failed(why))?;
                    text.push_str(&shown(&value.to_string()));
                }
            }
            if text.len() > VALUE_BYTES_MAX {
                return Err(EvalError {
                    expression: self.source.chars().take(40).collect(),
                    why: format!("the text is longer than {VALUE_BYTES_MAX} bytes"),
                });
            }
        }
        Ok(text)
    }

    /// The value of its expression if it is wholly one, else the text.
    pub(crate) fn value(&self, bindings: &dyn Bindings) -> Result<Value, EvalError> {
        match self.pieces.as_slice() {
            [Piece::Expr(expr)] => expr.value(bindings),
            _ => self.text(bindings).map(Value::from),
        }
    }
}

/// A value of a job file that may hold expressions: TOML's types are kept.
#[derive(Debug)]
pub(crate) enum Literal {
    /// Neither expression nor template within.
    Value(Value),
    /// To be evaluated.
    Expr(Expr),
    /// To be rendered (or evaluated, if it is wholly one `{{ }}`).
    Template(Template),
    /// A list with such values.
    List(Vec<Self>),
    /// A table with such values.
    Table(Vec<(String, Self)>),
}

impl Literal {
    /// The value, within the limits of [`value::freeze`].
    pub(crate) fn value(&self, bindings: &dyn Bindings) -> Result<Value, EvalError> {
        let value = self.raw_value(bindings)?;
        value::freeze(&value).map_err(|why| EvalError { expression: self.source(), why })
    }

    fn raw_value(&self, bindings: &dyn Bindings) -> Result<Value, EvalError> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Expr(expr) => expr.value(bindings),
            Self::Template(template) => template.value(bindings),
            Self::List(values) => values
                .iter()
                .map(|value| value.raw_value(bindings))
                .collect::<Result<Vec<Value>, _>>()
                .map(Value::from),
            Self::Table(entries) => entries
                .iter()
                .map(|(key, value)| Ok((key.clone(), value.raw_value(bindings)?)))
                .collect::<Result<std::collections::BTreeMap<String, Value>, _>>()
                .map(Value::from),
        }
    }

    /// As written, or nearly.
    pub(crate) fn source(&self) -> String {
        match self {
            Self::Value(value) => value.to_string(),
            Self::Expr(expr) => expr.source().to_owned(),
            Self::Template(template) => template.source().to_owned(),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(Self::source).collect();
                format!("[{}]", values.join(", "))
            }
            Self::Table(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{key} = {}", value.source()))
                    .collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    /// Whether an expression in it reads `last.output`.
    pub(crate) fn reads_output(&self) -> bool {
        match self {
            Self::Value(_) => false,
            Self::Expr(expr) => expr.reads_output(),
            Self::Template(template) => template.reads_output(),
            Self::List(values) => values.iter().any(Self::reads_output),
            Self::Table(entries) => entries.iter().any(|(_, value)| value.reads_output()),
        }
    }
}
