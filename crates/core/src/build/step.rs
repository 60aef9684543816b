//! Steps: a table of keys that grows, with a type that says which keys go with its action.

use std::marker::PhantomData;
use std::time::Duration;

use crate::build::names::{State, Task};
use crate::build::text::Value;
use crate::program::StepCategory;

/// What a step does, as a type.
pub mod kind {
    /// Runs a program.
    #[derive(Clone, Copy, Debug)]
    pub enum Run {}
    /// Brings objects.
    #[derive(Clone, Copy, Debug)]
    pub enum Get {}
    /// Puts files.
    #[derive(Clone, Copy, Debug)]
    pub enum Put {}
    /// Another command of the worker.
    #[derive(Clone, Copy, Debug)]
    pub enum Simple {}
    /// Steps in a row, or a loop over them.
    #[derive(Clone, Copy, Debug)]
    pub enum List {}
    /// Lanes.
    #[derive(Clone, Copy, Debug)]
    pub enum Lanes {}
    /// Waits for something.
    #[derive(Clone, Copy, Debug)]
    pub enum Wait {}
    /// Waits for other workers.
    #[derive(Clone, Copy, Debug)]
    pub enum Meeting {}
    /// Decided by the coordinator alone: nothing is sent.
    #[derive(Clone, Copy, Debug)]
    pub enum Decision {}
}

/// Kinds of steps that send a command.
pub trait Command {}
impl Command for kind::Run {}
impl Command for kind::Get {}
impl Command for kind::Put {}
impl Command for kind::Simple {}

/// Kinds of steps whose time can be bounded.
pub trait Bounded {}
impl<K: Command> Bounded for K {}
impl Bounded for kind::List {}
impl Bounded for kind::Lanes {}
impl Bounded for kind::Wait {}
impl Bounded for kind::Meeting {}

/// A step; its kind says which modifiers go with it.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a step does nothing until it is in a wave"]
pub struct Step<K> {
    keys: Vec<(&'static str, Value)>,
    kind: PhantomData<fn() -> K>,
}

/// A step of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct AnyStep(Vec<(&'static str, Value)>);

impl<K> From<Step<K>> for AnyStep {
    fn from(step: Step<K>) -> Self {
        Self(step.keys)
    }
}

impl AnyStep {
    pub(super) fn into_value(self) -> Value {
        Value::Table(self.0.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    pub(super) fn keys(&self) -> &[(&'static str, Value)] {
        &self.0
    }
}

/// Steps in a row; `steps![…]` makes them.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "steps do nothing until they are in a wave"]
pub struct Steps(Vec<AnyStep>);

impl Steps {
    /// None yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// One more.
    pub fn then(mut self, step: impl Into<AnyStep>) -> Self {
        self.0.push(step.into());
        self
    }

    pub(super) fn into_list(self) -> Vec<AnyStep> {
        self.0
    }

    pub(super) fn into_value(self) -> Value {
        Value::List(self.0.into_iter().map(AnyStep::into_value).collect())
    }
}

impl<K> Step<K> {
    pub(super) fn new(action: &'static str, value: impl Into<Value>) -> Self {
        Self { keys: vec![(action, value.into())], kind: PhantomData }
    }

    /// Sets a key; what it was set to before is forgotten.
    pub(super) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match self.keys.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.keys.push((key, value)),
        }
        self
    }

    /// The state that it belongs to; its parent's by default.
    pub fn state(self, state: State) -> Self {
        self.with("state", state.name())
    }

    /// What it is called in errors; its action by default.
    pub fn name(self, name: &str) -> Self {
        self.with("name", name)
    }

    /// It is done only if this expression holds.
    pub fn only_if(self, condition: impl Into<String>) -> Self {
        self.with("if", condition.into())
    }

    /// Steps for when the condition of [`Self::only_if`] does not hold.
    pub fn otherwise(self, steps: Steps) -> Self {
        self.with("else", steps.into_value())
    }

    /// Steps for when it fails, or one within it; then the program goes on after it. An edge to
    /// another state is a [`super::goto`] there.
    pub fn on_error(self, steps: Steps) -> Self {
        self.with("on_error", steps.into_value())
    }
}

impl<K: Bounded> Step<K> {
    /// The time of all that it holds.
    pub fn timeout(self, time: Duration) -> Self {
        self.with("timeout", duration(time))
    }
}

impl<K: Command> Step<K> {
    /// Whether a reply is a success, as an expression over it; by default exit code 0, or success.
    pub fn expect(self, condition: impl Into<String>) -> Self {
        self.with("expect", condition.into())
    }

    /// Where its own time is counted; by default that of its action.
    pub fn category(self, category: StepCategory) -> Self {
        self.with("category", category.name())
    }

    /// The worker begins it, and its lane goes on at once. [`super::await_task`] waits for it.
    pub fn in_background(self, task: Task) -> Self {
        self.with("background", true).with("name", task.name())
    }
}

impl Step<kind::Run> {
    /// The shell of a text; `/bin/sh` by default.
    pub fn shell(self, shell: &str) -> Self {
        self.with("shell", shell)
    }

    /// A variable added to its environment.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        let value = Value::Text(value.into());
        let known = self.keys.iter_mut().find_map(|(key, value)| match value {
            Value::Table(variables) if *key == "env" => Some(variables),
            _ => None,
        });
        let Some(variables) = known else {
            return self.with("env", Value::Table(vec![(name.to_owned(), value)]));
        };
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value));
        self
    }

    /// The folder within the scratch folder where it runs.
    pub fn cwd(self, folder: impl Into<String>) -> Self {
        self.with("cwd", folder.into())
    }

    /// A file of the scratch folder that is its standard input.
    pub fn stdin(self, file: impl Into<String>) -> Self {
        self.with("stdin", file.into())
    }

    /// A file of the scratch folder that takes its standard output.
    pub fn stdout(self, file: impl Into<String>) -> Self {
        self.with("stdout", file.into())
    }

    /// Time from TERM to KILL when its time is over.
    pub fn grace(self, time: Duration) -> Self {
        self.with("grace", duration(time))
    }
}

impl Step<kind::Get> {
    /// The file that takes the object; the folder of several.
    pub fn to_file(self, file: impl Into<String>) -> Self {
        self.with("as", file.into())
    }

    /// Bytes of the object: `FROM-TO`, both included, `FROM-`, or `-LAST`.
    pub fn range(self, range: impl Into<String>) -> Self {
        self.with("range", range.into())
    }

    /// How many objects are under way at a time.
    pub fn concurrency(self, objects: u32) -> Self {
        self.with("concurrency", objects)
    }
}

impl Step<kind::Put> {
    /// The key of the object; the folder of several.
    pub fn to_key(self, key: impl Into<String>) -> Self {
        self.with("as", key.into())
    }

    /// How many objects are under way at a time.
    pub fn concurrency(self, objects: u32) -> Self {
        self.with("concurrency", objects)
    }
}

impl Step<kind::List> {
    /// Its commands are sent one after another without awaiting replies.
    pub fn pipelined(self) -> Self {
        self.with("pipelined", true)
    }
}

impl Step<kind::Lanes> {
    /// The first lane that ends well ends it; the others are cancelled.
    pub fn first(self) -> Self {
        self.with("first", true)
    }
}

impl Step<kind::Meeting> {
    /// Those of one group meet, not all of the wave.
    pub fn of_group(self) -> Self {
        self.with("scope", "group")
    }
}

/// A duration as a job file says it.
pub(super) fn duration(time: Duration) -> String {
    format!("{}ms", time.as_nanos().div_ceil(1_000_000))
}
