//! One expression: compiled once against a scope, evaluated with the values of the names it uses.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::{Environment, ErrorKind, Expression, State, UndefinedBehavior, Value};

use crate::job::nearest;
use crate::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_FUEL};
use crate::template::scan::{self, Use};
use crate::template::{Binding, Bindings, CompileError, EvalError, Scope};

/// A compiled expression.
pub struct Expr {
    source: String,
    /// What is evaluated: the expression itself if it is cheap whatever its names are bound to;
    /// else a list of it and of what it cost.
    compiled: Expression<'static, 'static>,
    is_metered: bool,
    names: Vec<(Arc<str>, Binding)>,
    /// Attributes of `vars` that it reads.
    vars: Vec<String>,
    /// Whether it reads `vars` as a whole.
    reads_all_vars: bool,
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
        engine.add_filter("md5", md5);
        engine.add_function(SPENT, spent);
        engine
    })
}

/// A function that job files cannot name: what the evaluation that calls it has cost so far.
const SPENT: &str = "__spent";

/// Of [`SPENT`].
fn spent(state: &State<'_, '_>) -> u64 {
    state.fuel_levels().map_or(EXPRESSION_FUEL, |(spent, _)| spent)
}

/// The engine's filters, for cures; what counts is whether the engine knows one.
#[rustfmt::skip]
const FILTERS: &[&str] = &[
    "abs", "attr", "batch", "bool", "capitalize", "chain", "count", "default", "dictsort", "first",
    "float", "format", "groupby", "indent", "int", "items", "join", "last", "length", "lines",
    "list", "lower", "map", "max", "md5", "min", "pprint", "reject", "rejectattr", "replace", "reverse",
    "round", "select", "selectattr", "slice", "sort", "split", "string", "sum", "title", "trim",
    "unique", "upper", "zip",
];

/// The engine's tests, likewise.
#[rustfmt::skip]
const TESTS: &[&str] = &[
    "boolean", "defined", "divisibleby", "endingwith", "eq", "even", "false", "float", "ge", "gt",
    "in", "integer", "iterable", "le", "lower", "lt", "mapping", "ne", "none", "number", "odd",
    "sequence", "startingwith", "string", "true", "undefined", "upper",
];

impl Expr {
    /// Compiles `source` and checks its names. Tells all names that are wrong at once.
    pub(crate) fn compile(source: &str, scope: &Scope<'_>) -> Result<Self, Vec<CompileError>> {
        if source.len() > EXPRESSION_BYTES_MAX {
            return Err(vec![CompileError {
                range: 0..source.len(),
                message: format!("an expression of more than {EXPRESSION_BYTES_MAX} bytes"),
                cure: Some("give parts of it names with `set`".to_owned()),
                is_syntax: false,
            }]);
        }
        let compiled = engine()
            .compile_expression_owned(source.to_owned())
            .map_err(|error| vec![syntax_error(source, &error)])?;
        let mut errors = Vec::new();
        let mut names: Vec<(Arc<str>, Binding)> = Vec::new();
        let mut undeclared: Vec<String> =
            compiled.undeclared_variables(false).into_iter().collect();
        undeclared.sort_unstable();
        for name in undeclared {
            if let Some(binding) = scope.binding(&name) {
                names.push((name.as_str().into(), binding));
            } else if name == SPENT || !engine().globals().any(|(global, _)| global == name) {
                let (message, cure) = scope.unbound(&name);
                errors.push(CompileError {
                    range: scan::find_name(source, &name),
                    message,
                    cure,
                    is_syntax: false,
                });
            }
        }
        let mut paths: Vec<String> = compiled.undeclared_variables(true).into_iter().collect();
        paths.sort_unstable();
        errors.extend(paths.iter().filter_map(|path| scope.wrong_path(source, path)));
        errors.extend(unknown_filters_and_tests(source));
        errors.extend(wrong_waves(source, scope));
        if !errors.is_empty() {
            return Err(errors);
        }
        let reads_output = names.iter().any(|(_, binding)| *binding == Binding::Last)
            && paths.iter().any(|path| path == "last" || path.starts_with("last.output"));
        let reads_all_vars = paths.iter().any(|path| path == "vars");
        let vars = paths
            .iter()
            .filter_map(|path| path.strip_prefix("vars."))
            .map(|path| path.split('.').next().unwrap_or_default().to_owned())
            .collect();
        let is_metered = !is_cheap(source);
        let compiled = if is_metered {
            engine()
                .compile_expression_owned(format!("[({source}), {SPENT}()]"))
                .map_err(|error| vec![syntax_error(source, &error)])?
        } else {
            compiled
        };
        let source = source.to_owned();
        Ok(Self { source, compiled, is_metered, names, vars, reads_all_vars, reads_output })
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
            let value = bindings.value(name, *binding);
            if *binding == Binding::Column && value.is_undefined() {
                return Err(
                    self.failed(format!("`{name}` is not bound, and no column of the table"))
                );
            }
            context.insert(Arc::clone(name), value);
        }
        let without =
            |why: &str| self.failed(self.without_value(bindings).unwrap_or_else(|| why.to_owned()));
        if !bindings.may_go_on() {
            return Err(self.failed(TOO_COSTLY.to_owned()));
        }
        match self.evaluate(context, bindings) {
            Ok(value) if value.is_undefined() => Err(without("it has no value")),
            Ok(value) => Ok(value),
            Err(error) if error.kind() == ErrorKind::UndefinedError => {
                Err(without("it uses a value that does not exist"))
            }
            Err(error) => Err(self.failed(in_words(&error))),
        }
    }

    /// Evaluates it, and has its cost noted: all that it may cost, where it fails.
    fn evaluate(
        &self,
        context: BTreeMap<Arc<str>, Value>,
        bindings: &dyn Bindings,
    ) -> Result<Value, minijinja::Error> {
        let value = self.compiled.eval(context);
        if !self.is_metered {
            return value;
        }
        let pair = value.inspect_err(|_| bindings.spend(EXPRESSION_FUEL))?;
        let cost = pair.get_item_by_index(1)?.as_usize();
        bindings.spend(cost.and_then(|cost| cost.try_into().ok()).unwrap_or(EXPRESSION_FUEL));
        pair.get_item_by_index(0)
    }

    /// Names the first thing that it reads and that has no value.
    fn without_value(&self, bindings: &dyn Bindings) -> Option<String> {
        self.names.iter().find_map(|(name, binding)| {
            let value = bindings.value(name, *binding);
            let has_none =
                |var: &&String| value.get_attr(var).is_ok_and(|value| value.is_undefined());
            match binding {
                Binding::Last if value.is_undefined() => {
                    Some("`last` has no value before the first reply".to_owned())
                }
                Binding::Vars => {
                    let var = self.vars.iter().find(has_none)?;
                    Some(format!("`vars.{var}` has no value yet"))
                }
                _ => value.is_undefined().then(|| format!("`{name}` has no value here")),
            }
        })
    }

    /// An error of this expression.
    pub(crate) fn failed(&self, why: String) -> EvalError {
        EvalError { expression: self.source.trim().to_owned(), why }
    }

    /// What its names are bound to.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = Binding> {
        self.names.iter().map(|(_, binding)| *binding)
    }

    /// The waves whose outputs it reads.
    pub(crate) fn waves_read(&self) -> Vec<&str> {
        scan::calls(&self.source, "outputs_of").into_iter().filter_map(|(_, wave)| wave).collect()
    }

    /// The variables that it reads; `None` if that may be any.
    pub(crate) fn vars_read(&self) -> Option<&[String]> {
        (!self.reads_all_vars).then_some(self.vars.as_slice())
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

/// Why nothing more is evaluated before the next command.
const TOO_COSTLY: &str = "the steps since the last command have cost more than they may";

/// Whether an expression costs next to nothing, whatever its names are bound to: names, attributes
/// and numbers alone.
fn is_cheap(source: &str) -> bool {
    source.trim().chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
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
    } else if source.contains(" = ") {
        Some("write `==` to compare".to_owned())
    } else {
        None
    };
    CompileError {
        range,
        message: format!("not an expression: {}", detail(error)),
        cure,
        is_syntax: true,
    }
}

/// Filters and tests are looked up by minijinja only when they are reached; this finds those that
/// do not exist before anything is launched.
fn unknown_filters_and_tests(source: &str) -> Vec<CompileError> {
    let mut errors = Vec::new();
    for (usage, range) in scan::filters_and_tests(source) {
        let name = source.get(range.clone()).unwrap_or_default();
        let (question, kind, names) = match usage {
            Use::Filter => (format!("'{name}' is filter"), "filter", FILTERS),
            Use::Test => (format!("'{name}' is test"), "test", TESTS),
        };
        let known = engine()
            .compile_expression_owned(question)
            .and_then(|question| question.eval(()))
            .is_ok_and(|known| known.is_true());
        if name == "url" && usage == Use::Filter {
            errors.push(CompileError {
                message: "`url` is not yet supported".to_owned(),
                range,
                cure: None,
                is_syntax: false,
            });
        } else if !known {
            errors.push(CompileError {
                message: format!("no {kind} is called `{name}`"),
                range,
                cure: Some(match nearest(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", names.join(", ")),
                }),
                is_syntax: false,
            });
        }
    }
    errors
}

/// `outputs_of` of what is no wave before this one.
fn wrong_waves(source: &str, scope: &Scope<'_>) -> Vec<CompileError> {
    let mut errors = Vec::new();
    if scope.before().is_empty() {
        return errors;
    }
    let names: Vec<&str> = scope.before().iter().map(String::as_str).collect();
    for (range, wave) in scan::calls(source, "outputs_of") {
        let error = match wave {
            Some(wave) if names.contains(&wave) => continue,
            Some(wave) => {
                let cure = match nearest(wave, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("add it to `after`; before this one are {}", names.join(", ")),
                };
                (format!("no wave `{wave}` comes before this one"), cure)
            }
            None => {
                let message = "`outputs_of` takes the name of a wave in quotes".to_owned();
                (message, format!("write outputs_of('{}')", names.join("') or outputs_of('")))
            }
        };
        let (message, cure) = error;
        errors.push(CompileError { range, message, cure: Some(cure), is_syntax: false });
    }
    errors
}

/// The filter `md5`: the hash of a text, in hexadecimal digits.
#[expect(clippy::needless_pass_by_value, reason = "filters take their arguments so")]
fn md5(value: Value) -> String {
    use md5::{Digest, Md5};
    Md5::digest(value.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A run-time error of the engine in words, without its names of templates and lines.
fn in_words(error: &minijinja::Error) -> String {
    let mut words = match error.kind() {
        ErrorKind::OutOfFuel => "it costs more than an expression may".to_owned(),
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
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_knows_every_filter_and_test_that_a_cure_may_name() {
        let filters = FILTERS.iter().map(|name| format!("x|{name}"));
        let tests = TESTS.iter().map(|name| format!("x is {name}"));
        for source in filters.chain(tests) {
            assert!(unknown_filters_and_tests(&source).is_empty(), "{source}");
        }
        assert_eq!(unknown_filters_and_tests("x|lenght is eevn").len(), 2);
    }

    #[test]
    fn compiled_expressions_can_be_shared_between_threads() {
        const fn shared<T: Send + Sync>() {}
        shared::<Expr>();
    }
}
