//! From checked steps to a wave's graph. Nothing can be wrong any more.
//!
//! Nodes are made from the last step to the first, so that each knows the one that comes after it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::job::lanes::NamedLane;
use crate::job::step::{Kind, States, Step};
use crate::program::node::{CommandNode, LaneNo, LanesNode, Node, NodeId, NodeKind};
use crate::program::{OutlineLane, OutlineStep, StateId, WaveId};

/// Makes the nodes of one wave.
pub(super) struct Lowering<'s> {
    pub wave: WaveId,
    pub states: &'s States,
    pub nodes: Vec<Node>,
    /// Where the program ends.
    pub end: NodeId,
    /// Where the loops go on that the present step is in, innermost last.
    pub outs: Vec<NodeId>,
    /// Sub-lanes of background commands, by their names.
    backgrounds: BTreeMap<String, LaneNo>,
    /// Nodes that go to the first step that names a state, to be pointed there.
    gotos: Vec<(NodeId, String)>,
}

/// What all nodes of one step have in common.
struct Origin {
    state: Option<StateId>,
    name: String,
    names_state: bool,
}

/// How a step holds other steps.
#[derive(Clone, Copy)]
struct Held {
    timeout: Option<Duration>,
    pipelined: bool,
}

impl<'s> Lowering<'s> {
    pub(super) const fn new(
        wave: WaveId,
        states: &'s States,
        backgrounds: BTreeMap<String, LaneNo>,
    ) -> Self {
        Self {
            wave,
            states,
            nodes: Vec::new(),
            end: NodeId(0),
            outs: Vec::new(),
            backgrounds,
            gotos: Vec::new(),
        }
    }

    /// A whole wave: where it begins.
    pub(super) fn program(&mut self, steps: Vec<Step>) -> NodeId {
        self.end = self.push(None, "end", NodeKind::End);
        let mut targets = BTreeMap::new();
        let mut next = self.end;
        for step in steps.into_iter().rev() {
            let state = step.names_state.then(|| step.state.clone());
            next = self.step(step, next);
            // The first in the text is the last here.
            targets.extend(state.map(|state| (state, next)));
        }
        self.point_gotos(&targets);
        next
    }

    fn point_gotos(&mut self, targets: &BTreeMap<String, NodeId>) {
        for (node, state) in std::mem::take(&mut self.gotos) {
            let node = self.nodes.get_mut(node.0 as usize).map(|node| &mut node.kind);
            // A state that no step names was noted: nobody will run this.
            if let (Some(NodeKind::Goto { to }), Some(target)) = (node, targets.get(&state)) {
                *to = *target;
            }
        }
    }

    fn list(&mut self, steps: Vec<Step>, next: NodeId) -> NodeId {
        steps.into_iter().rev().fold(next, |next, step| self.step(step, next))
    }

    fn step(&mut self, mut step: Step, next: NodeId) -> NodeId {
        let origin = Origin {
            state: self.states.known(self.wave, &step.state),
            name: std::mem::take(&mut step.name),
            names_state: step.names_state,
        };
        let on_error = std::mem::take(&mut step.on_error);
        if on_error.is_empty() {
            return self.choice(&origin, step, next);
        }
        let handler = self.list(on_error, next);
        let end = self.push(origin.state, &origin.name, NodeKind::EndGuard { next });
        let first = self.choice(&origin, step, end);
        self.push(origin.state, &origin.name, NodeKind::Guard { handler, next: first })
    }

    /// A step without its handler.
    fn choice(&mut self, origin: &Origin, step: Step, next: NodeId) -> NodeId {
        let otherwise = if step.otherwise.is_empty() {
            next
        } else {
            let steps = step.otherwise;
            self.entered(origin, step.timeout, next, |this, end| this.list(steps, end))
        };
        let held = Held { timeout: step.timeout, pipelined: step.pipelined };
        let then = self.action(origin, held, step.kind, next);
        match step.condition {
            None => then,
            Some(condition) => self.node(origin, NodeKind::Branch { condition, then, otherwise }),
        }
    }

    /// What a step does when it is done.
    fn action(&mut self, origin: &Origin, held: Held, kind: Kind, next: NodeId) -> NodeId {
        let Held { timeout, .. } = held;
        match kind {
            Kind::Command { state, action, expect, category, background } => {
                let command = CommandNode { action, timeout, expect, category, background, next };
                let kind = NodeKind::Command(Box::new(command));
                if background.is_some() {
                    // Its own sub-lane enters its state.
                    return self.push(Some(state), &origin.name, kind);
                }
                self.entered(origin, None, next, |this, _| {
                    this.push(Some(state), &origin.name, kind)
                })
            }
            Kind::Barrier(barrier) => self.entered(origin, timeout, next, |this, end| {
                this.node(origin, NodeKind::Lanes(LanesNode::Barrier { barrier, next: end }))
            }),
            Kind::WaitInfo(info) => self.entered(origin, timeout, next, |this, end| {
                this.node(origin, NodeKind::Lanes(LanesNode::WaitInfo { info, next: end }))
            }),
            Kind::Await(name) => self.entered(origin, timeout, next, |this, end| {
                // A name that is unknown was noted: nobody will run this.
                let background = this.backgrounds.get(&name).copied().unwrap_or_default();
                this.node(origin, NodeKind::Lanes(LanesNode::Await { background, next: end }))
            }),
            Kind::Set(assignments) => self.entered(origin, None, next, |this, end| {
                this.node(origin, NodeKind::Set { assignments, next: end })
            }),
            Kind::Do(steps) => self.held(origin, held, next, |this, end| this.list(steps, end)),
            Kind::For { values, slot, body } => {
                self.held(origin, held, next, |this, end| {
                    // Its body is made after it, because the body's end points to it.
                    let again = this.node(origin, NodeKind::Again { body: end, next: end });
                    this.body(again, body, end);
                    this.node(origin, NodeKind::For { values, slot, again })
                })
            }
            Kind::While { condition, body } => self.held(origin, held, next, |this, end| {
                let kind = NodeKind::AgainWhile { condition, body: end, next: end };
                let again = this.node(origin, kind);
                this.body(again, body, end);
                this.node(origin, NodeKind::While { again })
            }),
            Kind::Break(condition) => self.entered(origin, None, next, |this, end| {
                let out = this.outs.last().copied().unwrap_or(end);
                this.node(origin, NodeKind::Break { condition, out, next: end })
            }),
            Kind::Fail(text) => {
                self.entered(origin, None, next, |this, _| this.node(origin, NodeKind::Fail(text)))
            }
            Kind::Done => self.entered(origin, None, next, |this, _| this.end),
            Kind::Goto(state) => self.entered(origin, None, next, |this, end| {
                let node = this.node(origin, NodeKind::Goto { to: end });
                this.gotos.push((node, state));
                node
            }),
            Kind::Parallel { lanes, first } => self.entered(origin, timeout, next, |this, end| {
                let lanes = this.parallel(origin, lanes);
                this.node(origin, NodeKind::Lanes(LanesNode::Fork { lanes, first, next: end }))
            }),
        }
    }

    /// Lanes, and where each begins.
    fn parallel(&mut self, origin: &Origin, lanes: Vec<NamedLane>) -> Vec<(LaneNo, NodeId)> {
        let begun = lanes.into_iter().map(|lane| {
            let outs = std::mem::take(&mut self.outs);
            let end = self.node(origin, NodeKind::End);
            let first = self.list(lane.steps, end);
            self.outs = outs;
            (lane.no, first)
        });
        begun.collect()
    }

    /// A loop's body, which goes back to `again`; the loop goes on at `out` when it is left.
    fn body(&mut self, again: NodeId, steps: Vec<Step>, out: NodeId) {
        self.outs.push(out);
        let first = self.list(steps, again);
        self.outs.pop();
        let node = self.nodes.get_mut(again.0 as usize).map(|node| &mut node.kind);
        if let Some(NodeKind::Again { body, .. } | NodeKind::AgainWhile { body, .. }) = node {
            *body = first;
        }
    }

    /// The steps that a step holds, as a pipelined list if it is one.
    fn held(
        &mut self,
        origin: &Origin,
        held: Held,
        next: NodeId,
        inner: impl FnOnce(&mut Self, NodeId) -> NodeId,
    ) -> NodeId {
        self.entered(origin, held.timeout, next, |this, end| {
            if !held.pipelined {
                return inner(this, end);
            }
            let end = this.node(origin, NodeKind::Lanes(LanesNode::EndList { next: end }));
            let first = inner(this, end);
            this.node(origin, NodeKind::Lanes(LanesNode::List { next: first }))
        })
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

    fn node(&mut self, origin: &Origin, kind: NodeKind) -> NodeId {
        self.push(origin.state, &origin.name, kind)
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
            pipelined: step.pipelined,
            background: matches!(step.kind, Kind::Command { background: Some(_), .. }),
            condition: step
                .condition
                .as_ref()
                .map(|condition| condition.source().trim().to_owned()),
            steps: match &step.kind {
                Kind::Parallel { .. } => Vec::new(),
                other => other.lists().into_iter().flat_map(outline).collect(),
            },
            lanes: match &step.kind {
                Kind::Parallel { lanes, .. } => lanes.iter().map(outline_lane).collect(),
                _ => Vec::new(),
            },
            otherwise: outline(&step.otherwise),
            on_error: outline(&step.on_error),
        })
        .collect()
}

fn outline_lane(lane: &NamedLane) -> OutlineLane {
    OutlineLane { name: lane.name.clone(), steps: outline(&lane.steps) }
}
