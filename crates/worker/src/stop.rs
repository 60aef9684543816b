//! Asking a command to end before its time.
//!
//! ```text
//! going ─► asked (time limit, cancel) ─► ending (the session ends: at once)
//!       └──────────────────────────────────▲
//! ```
//! The first reason that was asked with is the one that is told; `ending` overrides it in urgency.

use std::time::Duration;

use musec_protocol::Outcome;
use tokio::sync::watch;

/// Why a command is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its time limit is over.
    TimeLimit(Duration),
    /// The coordinator cancelled it.
    Cancelled,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    reason: Option<Reason>,
    at_once: bool,
}

/// One command's request to end; shared by who asks and who obeys.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    state: watch::Sender<State>,
}

impl Stop {
    /// Asks; a process gets its grace.
    pub(crate) fn ask(&self, reason: Reason) {
        self.state.send_if_modified(|state| {
            let first = state.reason.is_none();
            state.reason.get_or_insert(reason);
            first
        });
    }

    /// The session ends: a process is killed at once.
    pub(crate) fn end(&self) {
        self.state.send_modify(|state| {
            state.reason.get_or_insert(Reason::Cancelled);
            state.at_once = true;
        });
    }

    /// Why it was asked, if it was.
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.state.borrow().reason
    }

    /// Waits until it is asked.
    pub(crate) async fn asked(&self) {
        self.until(|state| state.reason.is_some()).await;
    }

    /// Waits until it must end at once.
    pub(crate) async fn at_once(&self) {
        self.until(|state| state.at_once).await;
    }

    async fn until(&self, reached: impl FnMut(&State) -> bool) {
        // The sender is `self`, so the wait can only end by what it waits for.
        drop(self.state.subscribe().wait_for(reached).await);
    }
}

impl From<Reason> for Outcome {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::TimeLimit(limit) => {
                Self::TimedOut { limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }
            }
            Reason::Cancelled => Self::Cancelled,
        }
    }
}
