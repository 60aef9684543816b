//! `cargo xtask tidy`: rules of the house that no lint of Rust knows.
//!
//! In: the source tree. Out: every breach, with its place, its rule and the limit. Each rule is a
//! function from text to findings, so that its test can breach it.

mod budget;
mod papers;
mod rooms;
mod style;

use std::fmt;

use crate::source::Source;
use crate::tree;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path within the tree, with a line where that makes sense.
    place: String,
    /// What is wrong, with the figures.
    what: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Applies all rules; breaches are printed, and are an error.
pub(crate) fn run() -> Result<(), String> {
    let root = tree::root()?;
    let mut findings = Vec::new();
    let sources = tree::files(&root, "rs")?;
    for path in &sources {
        let place = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        let source = Source::new(&tree::read(path)?);
        findings.extend(style::check(&place, &source));
        findings.extend(rooms::check_source(&place, &source));
    }
    findings.extend(rooms::check_manifests(&root)?);
    findings.extend(budget::check(&tree::read_toml(&root.join("Cargo.lock"))?));
    findings.extend(papers::check(&root)?);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} source files, nothing to complain of", sources.len());
        return Ok(());
    }
    Err(format!("{} breaches of the rules of the house", findings.len()))
}
