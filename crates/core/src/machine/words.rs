//! How a command ended, in words that end up in reports.

use std::time::Duration;

use musec_protocol::Outcome;

use crate::duration;

/// An outcome in words.
pub(super) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok => "it succeeded".to_owned(),
        Outcome::Exited(code) => format!("exit code {code}"),
        // Nobody else says so: the system ends a process without a word.
        Outcome::Signalled(9) => {
            "killed by signal 9 (KILL), which is also how a process ends when \
                                  memory runs out"
                .to_owned()
        }
        Outcome::Signalled(signal) => match signal_name(*signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
        Outcome::TimedOut { limit_ms } => {
            format!("timed out after {}", duration::in_words(Duration::from_millis(*limit_ms)))
        }
        Outcome::Failed { text, .. } => text.clone(),
        // What the program cancels is not judged, and of a run that ends nobody asks why its
        // commands failed.
        Outcome::Cancelled => "its worker ended before it: a signal told the worker to, or it did \
                               not hear from the coordinator"
            .to_owned(),
    }
}

/// Names of the signals that end processes, where their numbers are the same on all systems.
const fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        5 => "TRAP",
        6 => "ABRT",
        8 => "FPE",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        _ => return None,
    })
}
