//! One expression: compiled once against a scope, evaluated with the values of the names it uses.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::{Environment, ErrorKind, Expression, UndefinedBehavior, Value};

use crate::limits::EXPRESSION_FUEL;
use crate::template::scan::{self, Use};
use crate::template::{Binding, Bindings, CompileError, EvalError, Scope};

/// A compiled expression.
pub struct Expr {
    source: String,
    compiled: Expression<'static, 'static>,
    names: Vec<(Arc<str>, Binding)>,
    reads_output: bool,
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.source).finish()
    }
}

/// The one engine: its settings never change.
pub(super) fn engine() -> &'static Environment<'static> {
    static ENGINE: OnceLock<Environment<'static>> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut engine = Environment::new();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        engine.set_fuel(Some(EXPRESSION_FUEL));
        engine.set_debug(true);
        // Debugging aids that print the engine's own insides.
        engine.remove_global("debug");
        engine.remove_global("namespace");
        engine
    })
}

impl Expr {
    /// Compiles `source` and checks its names.
    pub(crate) fn compile(source: &str, scope: &Scope<'_>) -> Result<Self, CompileError> {
        let compiled = engine()
            .compile_expression_owned(source.to_owned())
            .map_err(|error| syntax_error(source, &error))?;
        let mut names: Vec<(Arc<str>, Binding)> = Vec::new();
        let mut undeclared: Vec<String> =
            compiled.undeclared_variables(false).into_iter().collect();
        undeclared.sort_unstable();
        for name in undeclared {
            if let Some(binding) = scope.binding(&name) {
                names.push((name.as_str().into(), binding));
            } else if !engine().globals().any(|(global, _)| global == name) {
                let (message, cure) = scope.unbound(&name);
                return Err(CompileError {
                    range: scan::find_name(source, &name),
                    message,
                    cure,
                });
            }
        }
        let mut paths: Vec<String> = compiled.undeclared_variables(true).into_iter().collect();
        paths.sort_unstable();
        for path in &paths {
            scope.check_path(source, path)?;
        }
        check_filters_and_tests(source)?;
        let reads_output = names.iter().any(|(_, binding)| *binding == Binding::Last)
            && paths
                .iter()
                .any(|path| path == "last" || path.starts_with("last.output"));
        Ok(Self {
            source: source.to_owned(),
            compiled,
            names,
            reads_output,
        })
    }

    /// The expression as written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it reads `last.output`.
    pub(crate) const fn reads_output(&self) -> bool {
        self.reads_output
    }

    /// Its value, never undefined.
    pub(crate) fn value(&self, bindings: &dyn Bindings) -> Result<Value, EvalError> {
        let mut context = BTreeMap::new();
        for (name, binding) in &self.names {
            context.insert(Arc::clone(name), bindings.value(*binding));
        }
        let value = self
            .compiled
            .eval(context)
            .map_err(|error| self.failed(in_words(&error)))?;
        if value.is_undefined() {
            return Err(self.failed("it has no value".to_owned()));
        }
        Ok(value)
    }

    /// An error of this expression.
    pub(crate) fn failed(&self, why: String) -> EvalError {
        EvalError {
            expression: self.source.trim().to_owned(),
            why,
        }
    }

    /// Whether it uses this binding.
    pub(crate) fn uses(&self, binding: Binding) -> bool {
        self.names.iter().any(|(_, used)| *used == binding)
    }

    /// Whether it holds.
    pub(crate) fn holds(&self, bindings: &dyn Bindings) -> Result<bool, EvalError> {
        self.value(bindings).map(|value| value.is_true())
    }
}

/// A syntax error, where it is, and a cure for the usual slips.
fn syntax_error(source: &str, error: &minijinja::Error) -> CompileError {
    let whole = 0..source.len();
    let range = error
        .range()
        .filter(|range| range.start < range.end && source.get(range.clone()).is_some())
        .unwrap_or(whole);
    let cure = if source.contains("{{") {
        Some("write the expression without `{{ }}`".to_owned())
    } else if source.contains("&&") || source.contains("||") || source.contains('!') {
        Some("write `and`, `or`, `not` for `&&`, `||`, `!`".to_owned())
    } else {
        None
    };
    CompileError {
        range,
        message: format!("not an expression: {}", detail(error)),
        cure,
    }
}

/// Filters and tests are looked up by minijinja only when they are reached; this finds those that
/// do not exist before anything is launched.
fn check_filters_and_tests(source: &str) -> Result<(), CompileError> {
    for (usage, range) in scan::filters_and_tests(source) {
        let name = source.get(range.clone()).unwrap_or_default();
        let (question, kind) = match usage {
            Use::Filter => (format!("'{name}' is filter"), "filter"),
            Use::Test => (format!("'{name}' is test"), "test"),
        };
        let known = engine()
            .compile_expression_owned(question)
            .and_then(|question| question.eval(()))
            .is_ok_and(|known| known.is_true());
        if !known {
            return Err(CompileError {
                message: format!("no {kind} is called `{name}`"),
                range,
                cure: Some(format!(
                    "minijinja's {kind}s are listed in its documentation"
                )),
            });
        }
    }
    Ok(())
}

/// A run-time error of the engine in words, without its names of templates and lines.
fn in_words(error: &minijinja::Error) -> String {
    let mut words = match error.kind() {
        ErrorKind::OutOfFuel => "it costs more than an expression may".to_owned(),
        ErrorKind::UndefinedError => error.detail().map_or_else(
            || "it uses a value that does not exist".to_owned(),
            |detail| format!("a value does not exist: {detail}"),
        ),
        _ => detail(error),
    };
    let mut source = error.source();
    while let Some(inner) = source {
        words = format!("{words}: {inner}");
        source = inner.source();
    }
    words
}

fn detail(error: &minijinja::Error) -> String {
    error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned)
}
