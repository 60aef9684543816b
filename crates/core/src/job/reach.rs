//! Where steps can go on, as far as that is known before the run: for steps that can never be
//! reached, and loops that cannot end. What depends on replies counts as possible.

use crate::job::step::{Kind, Step};
use crate::template::{Binding, Expr, Planning, Value};

/// Where a step can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// To the step after it.
    pub passes: bool,
    /// Out of the innermost loop, by `break_if`.
    pub breaks: bool,
    /// To the program's end, by `done`.
    pub ends: bool,
    /// To a handler around it, by `fail`.
    pub fails: bool,
}

impl Reach {
    const PASSES: Self = Self { passes: true, breaks: false, ends: false, fails: false };
    const NOWHERE: Self = Self { passes: false, breaks: false, ends: false, fails: false };

    /// Of what a step does.
    pub(super) fn of(kind: &Kind, params: &[Value]) -> Self {
        match kind {
            Kind::Command { .. }
            | Kind::Set(_)
            | Kind::Await(_)
            | Kind::WaitInfo(_)
            | Kind::Barrier(_) => Self::PASSES,
            Kind::Do(steps) => Self::of_list(steps),
            Kind::For { body, .. } => Self { passes: true, breaks: false, ..Self::of_list(body) },
            Kind::While { condition, body } => {
                let inside = Self::of_list(body);
                let passes = inside.breaks || constant(condition, params) != Some(true);
                Self { passes, breaks: false, ..inside }
            }
            Kind::Break(condition) => {
                let passes = constant(condition, params) != Some(true);
                Self { passes, breaks: true, ..Self::PASSES }
            }
            Kind::Fail(_) => Self { fails: true, ..Self::NOWHERE },
            // Somewhere else is an end to all that is around it.
            Kind::Done | Kind::Goto(_) => Self { ends: true, ..Self::NOWHERE },
            Kind::Parallel { lanes, first } => {
                let lanes: Vec<Self> =
                    lanes.iter().map(|lane| Self::of_list(&lane.steps)).collect();
                let passes = if *first {
                    lanes.iter().any(|lane| lane.passes)
                } else {
                    lanes.iter().all(|lane| lane.passes)
                };
                Self { passes, ..lanes.iter().fold(Self::NOWHERE, Self::or) }
            }
        }
    }

    /// Of steps in a row.
    pub(super) fn of_list(steps: &[Step]) -> Self {
        let mut reach = Self::PASSES;
        for step in steps.iter().map(|step| step.reach) {
            reach = Self { passes: step.passes, ..reach.or(&step) };
            if !step.passes {
                break;
            }
        }
        reach
    }

    /// Of a choice between two.
    pub(super) const fn or(self, other: &Self) -> Self {
        Self {
            passes: self.passes || other.passes,
            breaks: self.breaks || other.breaks,
            ends: self.ends || other.ends,
            fails: self.fails || other.fails,
        }
    }

    /// Of a step whose failures go to a handler.
    pub(super) const fn guarded_by(self, handler: &Self) -> Self {
        Self { fails: handler.fails, ..self.or(handler) }
    }
}

/// Whether a condition holds, if it is the same in all runs of this job.
pub(super) fn constant(condition: &Expr, params: &[Value]) -> Option<bool> {
    let is_fixed = condition.bindings().all(|binding| matches!(binding, Binding::Param(_)));
    is_fixed.then(|| condition.holds(&Planning::of(params)).ok())?
}

/// Whether a round of these steps can change the value of a condition.
pub(super) fn can_change(condition: &Expr, body: &[Step], vars: &[String]) -> bool {
    condition.bindings().any(|binding| match binding {
        Binding::Vars => match condition.vars_read() {
            Some(read) => {
                read.iter().any(|var| sets(body, vars.iter().position(|known| known == var)))
            }
            None => true,
        },
        Binding::Last => sends(body),
        Binding::Info => true,
        Binding::Param(_)
        | Binding::Index
        | Binding::Workers
        | Binding::Wave
        | Binding::Group
        | Binding::Place
        | Binding::Attempt
        | Binding::Item
        | Binding::Name
        | Binding::Stem
        | Binding::Ext
        | Binding::Column
        | Binding::Loop(_)
        | Binding::OutputsOf
        | Binding::Cores => false,
    })
}

/// Whether a step of these sends a command.
fn sends(steps: &[Step]) -> bool {
    any(steps, &|step| matches!(step.kind, Kind::Command { .. } | Kind::Await(_)))
}

/// Whether a step of these sets the variable with this number.
fn sets(steps: &[Step], var: Option<usize>) -> bool {
    let is = |number: u32| usize::try_from(number).ok() == var;
    any(steps, &|step| match &step.kind {
        Kind::Set(assignments) => assignments.iter().any(|(number, _)| is(*number)),
        _ => false,
    })
}

fn any(steps: &[Step], is: &dyn Fn(&Step) -> bool) -> bool {
    steps.iter().any(|step| {
        let inner = step.kind.lists();
        is(step)
            || inner.into_iter().any(|steps| any(steps, is))
            || any(&step.otherwise, is)
            || any(&step.on_error, is)
    })
}
