//! A wave: who works on what, and the steps.

use std::time::Duration;

use crate::build::step::{AnyStep, Steps, duration};
use crate::build::text::{Value, write_entry};

/// Workers that are started together, and their program.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a wave does nothing until it is in a job"]
pub struct Wave {
    keys: Vec<(&'static str, Value)>,
    setup: Vec<AnyStep>,
    steps: Vec<AnyStep>,
}

impl Wave {
    /// A wave that starts at once. It needs [`Self::workers`] or [`Self::items`], and steps.
    pub fn new(name: &str) -> Self {
        let keys = vec![("name", Value::from(name))];
        Self { keys, setup: Vec::new(), steps: Vec::new() }
    }

    fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.keys.retain(|(known, _)| *known != key);
        self.keys.push((key, value.into()));
        self
    }

    /// How many workers: a number, or an expression.
    pub fn workers(self, workers: impl Into<Value>) -> Self {
        self.with("workers", workers)
    }

    /// What they work on: a glob, or an expression that gives a list.
    pub fn items(self, items: impl Into<Value>) -> Self {
        self.with("items", items)
    }

    /// They work on these values.
    pub fn item_list<V: Into<Value>>(self, items: impl IntoIterator<Item = V>) -> Self {
        self.item_source("list", Value::List(items.into_iter().map(Into::into).collect()))
    }

    /// They work on the numbers from 0 up to, without, this one; a number, or an expression.
    pub fn item_range(self, end: impl Into<Value>) -> Self {
        self.item_source("range", end.into())
    }

    /// They work on the lines of a file.
    pub fn item_lines(self, key: impl Into<String>) -> Self {
        self.item_source("lines", Value::Text(key.into()))
    }

    /// They work on the rows of a table with a header.
    pub fn item_table(self, key: impl Into<String>) -> Self {
        self.item_source("csv", Value::Text(key.into()))
    }

    fn item_source(self, source: &str, value: Value) -> Self {
        self.with("items", Value::Table(vec![(source.to_owned(), value)]))
    }

    /// How many attempts may be alive at a time: a number, or an expression.
    pub fn at_once(self, attempts: impl Into<Value>) -> Self {
        self.with("at_once", attempts)
    }

    /// How many workers a group has: `group` and `place` are then bound.
    pub fn group_size(self, workers: u32) -> Self {
        self.with("group_size", workers)
    }

    /// The time of each attempt, from its hello.
    pub fn timeout(self, time: Duration) -> Self {
        self.with("timeout", duration(time))
    }

    /// The time from an attempt's launch to its hello.
    pub fn connect_timeout(self, time: Duration) -> Self {
        self.with("connect_timeout", duration(time))
    }

    /// Scratch folders stay as they are between items.
    pub fn keep(self) -> Self {
        self.with("keep", true)
    }

    /// Waves that must have ended well before it starts.
    pub fn after<const N: usize>(self, waves: [&str; N]) -> Self {
        self.with("after", waves)
    }

    /// It starts with those in [`Self::after`], and takes what they put as it comes.
    pub fn each(self) -> Self {
        self.with("each", true)
    }

    /// Another key of a wave, as a job file has it.
    pub fn key(self, key: &'static str, value: impl Into<Value>) -> Self {
        self.with(key, value)
    }

    /// Steps that each worker does once, before its first item.
    pub fn setup(mut self, steps: Steps) -> Self {
        self.setup.extend(steps.into_list());
        self
    }

    /// One more step.
    pub fn step(mut self, step: impl Into<AnyStep>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// More steps.
    pub fn steps(mut self, steps: Steps) -> Self {
        self.steps.extend(steps.into_list());
        self
    }

    pub(super) fn write(&self, out: &mut String) {
        out.push_str("\n[[wave]]\n");
        write_lines(out, &self.keys);
        for (header, steps) in [("setup", &self.setup), ("step", &self.steps)] {
            for step in steps {
                out.push_str(&format!("\n[[wave.{header}]]\n"));
                write_lines(out, step.keys());
            }
        }
    }
}

/// A table's entries, one on each line.
pub(super) fn write_lines<K: AsRef<str>>(out: &mut String, entries: &[(K, Value)]) {
    for (key, value) in entries {
        write_entry(out, key.as_ref(), value, 0);
        out.push('\n');
    }
}
