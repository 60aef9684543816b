//! Whether a reply is what the step expects.

use musec_protocol::{Outcome, Reply};

use crate::machine::bindings::{Last, View};
use crate::machine::lane::{Fault, Lane};
use crate::machine::{Blame, Token, Turn, node_of, words};
use crate::program::node::{CommandNode, NodeId, NodeKind};

impl Lane {
    /// Judges a reply: the node that comes next, or why the step failed.
    pub(super) fn judge(
        &mut self,
        turn: &Turn<'_>,
        token: Token,
        reply: &Reply,
    ) -> Result<NodeId, Fault> {
        let node = node_of(turn.wave, token.node);
        let NodeKind::Command(command) = &node.kind else {
            panic!("a machine waits at {node:?}, which sends nothing");
        };
        let keeps_output = turn.wave.reads_output || command.reads_output();
        self.last = Some(Last::of(reply, keeps_output));
        let verdict = self.verdict(turn, command, reply, token.scoped);
        if !turn.wave.reads_output
            && let Some(last) = &mut self.last
        {
            last.output = None;
        }
        verdict.map(|()| command.next).map_err(|error| Fault {
            node: token.node,
            error,
            blamed: Some(Blame { command: reply.id, output: reply.last_output() }),
        })
    }

    fn verdict(
        &self,
        turn: &Turn<'_>,
        command: &CommandNode,
        reply: &Reply,
        scoped: bool,
    ) -> Result<(), String> {
        let in_words = || match (&reply.outcome, self.tightest_limit()) {
            (Outcome::TimedOut { .. }, Some(limit)) if scoped => limit.in_words(turn.wave),
            (outcome, _) => words::outcome(outcome),
        };
        let expected = match &command.expect {
            Some(_) if reply.outcome == Outcome::Cancelled => false,
            Some(expect) => expect
                .holds(&View::new(turn, self))
                .map_err(|error| format!("`expect`: {error}"))?,
            None => reply.outcome.is_success(),
        };
        match &command.expect {
            _ if expected => Ok(()),
            Some(expect) => {
                Err(format!("expected `{}`, but: {}", expect.source().trim(), in_words()))
            }
            None => Err(in_words()),
        }
    }
}

impl CommandNode {
    /// Whether the step itself reads the output of its command.
    pub(super) fn reads_output(&self) -> bool {
        self.expect.as_ref().is_some_and(|expect| expect.reads_output())
    }
}
