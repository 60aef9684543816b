//! From checked steps to a wave's graph. Nothing can be wrong any more.
//!
//! Nodes are made from the last step to the first, so that each knows the one that comes after it.

use std::time::Duration;

use crate::job::step::{Kind, States, Step};
use crate::program::node::{CommandNode, Node, NodeId, NodeKind};
use crate::program::{OutlineStep, StateId, WaveId};

/// Makes the nodes of one wave.
pub(super) struct Lowering<'s> {
    pub wave: WaveId,
    pub states: &'s States,
    pub nodes: Vec<Node>,
}

/// What all nodes of one step have in common.
struct Origin {
    state: Option<StateId>,
    name: String,
    names_state: bool,
}

impl Lowering<'_> {
    /// A whole wave: where it begins.
    pub(super) fn program(&mut self, steps: Vec<Step>) -> NodeId {
        let end = self.push(None, "end", NodeKind::End);
        self.list(steps, end)
    }

    fn list(&mut self, steps: Vec<Step>, next: NodeId) -> NodeId {
        steps.into_iter().rev().fold(next, |next, step| self.step(step, next))
    }

    fn step(&mut self, step: Step, next: NodeId) -> NodeId {
        let origin = Origin {
            state: self.states.known(self.wave, &step.state),
            name: step.name,
            names_state: step.names_state,
        };
        let otherwise = if step.otherwise.is_empty() {
            next
        } else {
            let steps = step.otherwise;
            self.entered(&origin, step.timeout, next, |this, end| this.list(steps, end))
        };
        let then = match step.kind {
            Kind::Command { state, action, expect } => {
                let command = CommandNode { action, timeout: step.timeout, expect, next };
                self.entered(&origin, None, next, |this, _| {
                    let kind = NodeKind::Command(Box::new(command));
                    this.push(Some(state), &origin.name, kind)
                })
            }
            Kind::Set(assignments) => self.entered(&origin, None, next, |this, end| {
                let kind = NodeKind::Set { assignments, next: end };
                this.push(origin.state, &origin.name, kind)
            }),
            Kind::Do(steps) => {
                self.entered(&origin, step.timeout, next, |this, end| this.list(steps, end))
            }
            Kind::For { values, slot, body } => {
                self.entered(&origin, step.timeout, next, |this, end| {
                    let again = this.again(&origin, body, end);
                    let kind = NodeKind::For { values, slot, again };
                    this.push(origin.state, &origin.name, kind)
                })
            }
        };
        match step.condition {
            None => then,
            Some(condition) => {
                let kind = NodeKind::Branch { condition, then, otherwise };
                self.push(origin.state, &origin.name, kind)
            }
        }
    }

    /// A loop's body, which goes back to the node that is returned.
    fn again(&mut self, origin: &Origin, body: Vec<Step>, next: NodeId) -> NodeId {
        // Its body is made after it, because the body's end points to it.
        let kind = NodeKind::Again { body: next, next };
        let again = self.push(origin.state, &origin.name, kind);
        let first = self.list(body, again);
        if let Some(NodeKind::Again { body, .. }) =
            self.nodes.get_mut(again.0 as usize).map(|node| &mut node.kind)
        {
            *body = first;
        }
        again
    }

    /// What a step holds, with its state entered before it and its time limit around it.
    fn entered(
        &mut self,
        origin: &Origin,
        limit: Option<Duration>,
        next: NodeId,
        inner: impl FnOnce(&mut Self, NodeId) -> NodeId,
    ) -> NodeId {
        let end = match limit {
            Some(_) => self.push(origin.state, &origin.name, NodeKind::EndLimit { next }),
            None => next,
        };
        let mut first = inner(self, end);
        if let Some(limit) = limit {
            let kind = NodeKind::Limit { limit, next: first };
            first = self.push(origin.state, &origin.name, kind);
        }
        if origin.names_state {
            let kind = NodeKind::Enter { next: first };
            first = self.push(origin.state, &origin.name, kind);
        }
        first
    }

    fn push(&mut self, state: Option<StateId>, name: &str, kind: NodeKind) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(Node { state, name: name.to_owned(), kind });
        id
    }
}

/// Steps as a list for people.
pub(super) fn outline(steps: &[Step]) -> Vec<OutlineStep> {
    steps
        .iter()
        .map(|step| OutlineStep {
            action: step.action,
            text: step.text.clone(),
            state: step.state.clone(),
            condition: step
                .condition
                .as_ref()
                .map(|condition| condition.source().trim().to_owned()),
            steps: match &step.kind {
                Kind::Command { .. } | Kind::Set(_) => Vec::new(),
                Kind::Do(steps) | Kind::For { body: steps, .. } => outline(steps),
            },
            otherwise: outline(&step.otherwise),
        })
        .collect()
}
