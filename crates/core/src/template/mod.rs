//! Expressions and templates: minijinja, with only `{{ }}` special.
//!
//! In: texts of a job file, compiled once; values of bound names. Out: values and texts. A text is
//! split at `{{ }}` here and minijinja sees expressions only, so that blocks, comments and control
//! characters of shell text pass unharmed, trailing newlines stay, and an expression that evaluates
//! to undefined is an error. Invariants: a compiled expression names only what its [`Scope`] binds;
//! an evaluation costs at most [`crate::limits::EXPRESSION_FUEL`]. No clock, no environment, no
//! files can be reached from an expression.

mod engine;
mod planning;
mod scan;
mod scope;
mod text;
pub(crate) mod value;

use thiserror::Error;

pub use engine::Expr;
pub(crate) use minijinja::Value;
pub(crate) use minijinja::value::ValueKind;
pub(crate) use planning::{Planning, param_value};
pub(crate) use scope::{Binding, Bindings, Columns, ItemNames, RESERVED, Scope};
pub use text::Template;
pub(crate) use text::{Literal, whole_expression};

/// Why a text cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub(crate) struct CompileError {
    /// Where in the text, in bytes.
    pub range: std::ops::Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub cure: Option<String>,
    /// Whether it is no expression at all: perhaps its braces were not meant for musec.
    pub is_syntax: bool,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{{{{ {expression} }}}}`: {why}")]
pub struct EvalError {
    /// The expression.
    pub expression: String,
    /// Why.
    pub why: String,
}
