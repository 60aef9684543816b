//! Open files: how many attempts this process can have alive at a time.

use musec_core::Program;
use musec_protocol::limits::UNAUTHENTICATED_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything else: a coordinator with nothing to do has 24 (standard streams,
/// event loop, signals, journal and its readers, guard), and a launch has some for a moment.
const RESERVED: u64 = 40;

/// Strangers that must have room beside the attempts: with fewer, a handful of idle connections
/// would keep workers out.
const STRANGERS_MIN: u64 = 16;

/// A wave that wants more attempts alive at a time than there are descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TooMany {
    pub(crate) wave: String,
    pub(crate) at_once: u32,
    pub(crate) possible: u64,
    /// The limit that it needs.
    pub(crate) needed: u64,
}

/// Checks every wave whose size is known before the run, and raises this process's soft limit if
/// that is needed and allowed. Where it is not needed the limit stays: children inherit it. One
/// attempt takes `per_attempt` descriptors. Says for how many strangers there is room besides.
pub(crate) fn make_room(program: &Program, cores: u32, per_attempt: u64) -> Result<usize, TooMany> {
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let mut needed = needed_for(1, per_attempt);
    for (wave, def) in program.waves() {
        let Ok(plan) = program.plan(wave, cores, None) else { continue };
        let at_once = plan.alive_at_once(cores).min(plan.workers);
        let wanted = needed_for(at_once, per_attempt);
        if wanted > hard {
            let possible = hard.saturating_sub(needed_for(0, per_attempt)) / per_attempt;
            let wave = def.name.clone();
            return Err(TooMany { wave, at_once, possible, needed: wanted });
        }
        needed = needed.max(wanted);
    }
    if needed > soft {
        let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!("cannot raise the limit of open files to {needed}: {error}");
        }
    }
    let spare = soft.max(needed) - needed + STRANGERS_MIN;
    Ok(usize::try_from(spare).unwrap_or(usize::MAX).min(UNAUTHENTICATED_MAX))
}

fn needed_for(at_once: u32, per_attempt: u64) -> u64 {
    u64::from(at_once) * per_attempt + RESERVED + STRANGERS_MIN
}

#[cfg(test)]
mod tests {
    use musec_core::job::{Options, parse};

    use super::*;

    const PER_ATTEMPT: u64 = 2;

    fn program(workers: u32, at_once: &str) -> Program {
        let job = format!("[job]\nworkers = {workers}\n{at_once}\n[[step]]\nrun = \"true\"\n");
        parse(&job, &Options::default()).expect("a job")
    }

    #[test]
    fn more_workers_than_descriptors_are_refused_unless_fewer_are_alive_at_once() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let Ok(workers) = u32::try_from(hard) else { return };
        let workers = workers.min(1 << 20);
        if u64::from(workers) * PER_ATTEMPT > hard {
            let refused = make_room(&program(workers, ""), 2, PER_ATTEMPT).expect_err("too many");
            assert!(refused.possible < u64::from(workers), "{refused:?}");
        }
        let strangers = make_room(&program(workers, "at_once = 3"), 2, PER_ATTEMPT);
        let strangers = strangers.expect("room for three");
        assert!((16..=UNAUTHENTICATED_MAX).contains(&strangers), "{strangers}");
    }
}
