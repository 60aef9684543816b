//! The milestones of a life: requested, accepted, TCP, hello, quit, end.

use musec_trace::CTime;

use crate::fold::Attempt;

/// Milestones, C, never descending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milestones {
    /// The launcher was asked.
    pub requested: CTime,
    /// Its engine took it.
    pub accepted: CTime,
    /// The connection was accepted.
    pub tcp: CTime,
    /// Its hello was read.
    pub hello: CTime,
    /// `quit` was sent.
    pub quit: CTime,
    /// Its end, or the journal's.
    pub end: CTime,
}

impl Milestones {
    /// Of `attempt`: one that is missing, or later than its successor, takes the value of the next
    /// present one, at last the end. (Engines may accept after the worker has connected.)
    #[must_use]
    pub fn of(attempt: &Attempt, journal_end: CTime) -> Self {
        let end = attempt.end_or(journal_end);
        let before = |stamp: Option<CTime>, next: CTime| stamp.map_or(next, |own| own.min(next));
        let quit = before(attempt.quit_sent, end);
        let hello = before(attempt.hello_at, quit);
        let tcp = before(attempt.tcp, hello);
        let accepted = before(attempt.accepted, tcp);
        let requested = attempt.requested.min(accepted);
        Self { requested, accepted, tcp, hello, quit, end }
    }

    /// Requested → end, in nanoseconds.
    #[must_use]
    pub fn life_ns(&self) -> u64 {
        self.end.since(self.requested)
    }
}
