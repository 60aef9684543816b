//! Pacing: how many attempts are on their way from launch to hello at a time.
//!
//! One that is slow to connect does not hold up the others for longer than [`START_TIME_MAX`]: it
//! goes on being awaited, but another is launched in its place.

use std::collections::BTreeMap;
use std::time::Duration;

use musec_protocol::LaunchId;
use musec_trace::{CTime, Event, Timer, WaveId};

use super::Fleet;

/// How long an attempt counts as starting, however long it takes to connect: several times what a
/// process on a loaded machine needs.
const START_TIME_MAX: Duration = Duration::from_secs(1);

/// Attempts that were launched and have not joined, with the instant of their launch, C.
#[derive(Debug, Default)]
pub(super) struct Starting(BTreeMap<LaunchId, CTime>);

impl Fleet {
    /// Whether one more attempt may be launched now.
    pub(super) fn may_start(&self) -> bool {
        let max = self.options.starting_max.map_or(usize::MAX, |max| max.max(1) as usize);
        self.starting.0.len() < max
    }

    pub(super) fn starts(&mut self, now: CTime, launch: LaunchId) {
        if self.options.starting_max.is_some() {
            self.starting.0.insert(launch, now);
        }
    }

    /// An attempt has joined or ended: another may start.
    pub(super) fn has_started(&mut self, now: CTime, launch: LaunchId) {
        if self.starting.0.remove(&launch).is_some() {
            self.launch_everywhere(now);
        }
    }

    /// When the oldest start ceases to count, C, if others wait for that.
    pub(super) fn next_start_due(&self) -> Option<CTime> {
        let (_, oldest) = self.starting.0.first_key_value()?;
        (!self.may_start()).then(|| oldest.after(START_TIME_MAX))
    }

    pub(super) fn forget_slow_starts(&mut self, now: CTime) {
        let is_slow = |started: &CTime| started.after(START_TIME_MAX) <= now;
        let slow: Vec<LaunchId> =
            self.starting.0.iter().filter(|(_, s)| is_slow(s)).map(|(l, _)| *l).collect();
        for launch in &slow {
            self.starting.0.remove(launch);
            self.record(now, Event::TimerFired { timer: Timer::Start, launch: Some(*launch) });
        }
        if !slow.is_empty() {
            self.launch_everywhere(now);
        }
    }

    fn launch_everywhere(&mut self, now: CTime) {
        for index in 0..self.waves.len() {
            self.launch_more(now, WaveId(u32::try_from(index).unwrap_or(u32::MAX)));
        }
    }

    /// Notes as what the launcher has started an attempt.
    pub(super) fn accepted(&mut self, now: CTime, launch: LaunchId, at: CTime, engine_id: String) {
        if let Some(attempt) = self.attempt_mut(launch) {
            attempt.engine_id = Some(engine_id.clone());
        }
        self.record(now, Event::Accepted { launch, accepted: at, engine_id });
    }

    /// What is known of an attempt whose time to connect is over.
    pub(super) fn why_not_connected(&self, launch: LaunchId) -> String {
        let attempt = self.attempt(launch);
        let wave = attempt.and_then(|attempt| self.program.wave(attempt.wave));
        let limit = wave.map_or(Duration::ZERO, |wave| wave.connect_timeout);
        let engine_id = attempt.and_then(|attempt| attempt.engine_id.as_ref());
        let known = engine_id.map_or_else(
            || "and the launcher has not said that it started".to_owned(),
            |id| format!("though the launcher started it as {id}"),
        );
        format!(
            "it never connected within {limit:?}, {known}; see workers.log in the run's folder, \
             or raise connect_timeout"
        )
    }
}
