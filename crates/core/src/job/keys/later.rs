//! Keys of the grammar that this version does not know yet.

use super::{Later, Place};

/// All of them: each is refused by its name.
pub(in crate::job) static LATER: &[Later] = &[
    later("run_timeout", &[Place::Job]),
    later("retry", &[Place::Job, Place::Wave, Place::Step]),
    later("fail_fast", &[Place::Job, Place::Wave]),
    later("allow_failures", &[Place::Job, Place::Wave]),
    later("speculate", &[Place::Job, Place::Wave]),
    later("over_launch", &[Place::Job, Place::Wave]),
    later("max_attempts", &[Place::Job, Place::Wave]),
    later("max_cost", &[Place::Job]),
    later_action("send"),
    later_action("receive"),
    later("to", &[Place::Step]),
    later("from", &[Place::Step]),
    later("on", &[Place::Step]),
    later("once", &[Place::Step]),
];

const fn later(name: &'static str, places: &'static [Place]) -> Later {
    Later { name, places, is_action: false }
}

const fn later_action(name: &'static str) -> Later {
    Later { name, places: &[Place::Step], is_action: true }
}
