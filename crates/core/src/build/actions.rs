//! What a step does: one function for each action.
//!
//! Texts are templates, conditions and values expressions, as in a job file.

use std::time::Duration;

use crate::build::names::{Info, Loop, State, Task, Var};
use crate::build::step::{Step, Steps, duration, kind};
use crate::build::text::Value;

/// A text for a shell.
pub fn run(text: impl Into<String>) -> Step<kind::Run> {
    Step::new("run", text.into())
}

/// A program and its arguments.
pub fn run_argv<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Step<kind::Run> {
    let words = words.into_iter().map(|word| Value::Text(word.into()));
    Step::new("run", Value::List(words.collect()))
}

/// Brings an object, a folder or all that match; of the inputs with `in:` before the key.
pub fn get(key: impl Into<String>) -> Step<kind::Get> {
    Step::new("get", key.into())
}

/// Puts a file, a folder or all that match into the store.
pub fn put(file: impl Into<String>) -> Step<kind::Put> {
    Step::new("put", file.into())
}

/// A round trip: the worker answers.
pub fn echo(text: impl Into<String>) -> Step<kind::Simple> {
    Step::new("echo", text.into())
}

/// Waits, at the worker.
pub fn sleep(time: Duration) -> Step<kind::Simple> {
    Step::new("sleep", duration(time))
}

/// Shows a file as the job's answer at the end.
pub fn print(file: impl Into<String>) -> Step<kind::Simple> {
    Step::new("print", file.into())
}

/// Gives variables values, in this order, at the coordinator: texts are expressions.
pub fn set<V: Into<Value>>(values: impl IntoIterator<Item = (Var, V)>) -> Step<kind::Decision> {
    let values = values.into_iter().map(|(var, value)| (var.name().to_owned(), value.into()));
    Step::new("set", Value::Table(values.collect()))
}

/// Steps in a row.
pub fn list(steps: Steps) -> Step<kind::List> {
    Step::new("do", steps.into_value())
}

/// Steps for when a condition holds.
pub fn choose(condition: impl Into<String>, steps: Steps) -> Step<kind::List> {
    list(steps).only_if(condition)
}

/// Steps for each of the values that an expression gives.
pub fn repeat(name: Loop, values: impl Into<String>, steps: Steps) -> Step<kind::List> {
    let values = Value::Table(vec![(name.name().to_owned(), Value::Text(values.into()))]);
    list(steps).with("for", values)
}

/// Steps as long as a condition holds; it is evaluated before each round.
pub fn while_true(condition: impl Into<String>, steps: Steps) -> Step<kind::List> {
    list(steps).with("while", condition.into())
}

/// Leaves the innermost loop, if a condition holds.
pub fn break_if(condition: impl Into<String>) -> Step<kind::Decision> {
    Step::new("break_if", condition.into())
}

/// Lanes by their names, done at the same time; the program goes on when all have ended.
pub fn parallel<'n>(lanes: impl IntoIterator<Item = (&'n str, Steps)>) -> Step<kind::Lanes> {
    let lanes = lanes.into_iter().map(|(name, steps)| (name.to_owned(), steps.into_value()));
    Step::new("parallel", Value::Table(lanes.collect()))
}

/// Waits until a command in the background of this lane has ended.
pub fn await_task(task: Task) -> Step<kind::Wait> {
    Step::new("await", task.name())
}

/// Waits until code of the worker has told a value for this key.
pub fn wait_info(info: Info) -> Step<kind::Wait> {
    Step::new("wait_info", info.name())
}

/// Waits until all workers of the wave have come to the barrier of this name.
pub fn barrier(name: &str) -> Step<kind::Meeting> {
    Step::new("barrier", name)
}

/// Goes on at the first of the wave's own steps that names this state: an edge of the graph.
pub fn goto(state: State) -> Step<kind::Decision> {
    Step::new("goto", state.name())
}

/// Fails, with this text.
pub fn fail(text: impl Into<String>) -> Step<kind::Decision> {
    Step::new("fail", text.into())
}

/// Ends the program, well.
pub fn done() -> Step<kind::Decision> {
    Step::new("done", true)
}
