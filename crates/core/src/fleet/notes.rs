//! Notes: what user code tells, from a worker that is not trusted.
//!
//! In: notes as they came. Out: records, and what machines make of them. Invariant: what one
//! attempt tells is bounded by [`TOLD_BYTES_MAX`] in the journal.

use musec_protocol::LaunchId;
use musec_protocol::note::Told;
use musec_trace::{AttemptOutcome, CTime, EndCause, Event};

use super::Fleet;
use super::attempt::AttemptState;
use super::io::Heard;
use crate::limits::{NOTE_BYTES_LEAST, TOLD_BYTES_MAX};
use crate::machine::Advance;

impl Fleet {
    pub(super) fn noted(&mut self, now: CTime, launch: LaunchId, t3: CTime, note: Heard) {
        self.sign_of_life(now, launch, t3);
        let Heard { received, bytes, told } = note;
        let Some(attempt) = self.attempt_mut(launch) else {
            return;
        };
        let is_working = match attempt.state {
            AttemptState::Working => true,
            AttemptState::Quitting { .. } => false,
            AttemptState::Requested | AttemptState::Vanished { .. } | AttemptState::Ended => return,
        };
        attempt.told_bytes += NOTE_BYTES_LEAST.max(bytes);
        if attempt.told_bytes > TOLD_BYTES_MAX {
            let error = format!("its code told more than {TOLD_BYTES_MAX} bytes of infos");
            let why = "one too many".to_owned();
            self.record(now, Event::Garbled { launch, t3, received, why, bytes });
            let outcome = AttemptOutcome::Failed;
            self.give_up(now, launch, EndCause::Protocol, outcome, error);
            return;
        }
        match told {
            Err(why) => {
                self.record(now, Event::Garbled { launch, t3, received, why, bytes });
            }
            Ok(Told::Info { key, value }) => {
                let (told_key, told) = (key.clone(), value.clone());
                self.record(now, Event::Info { launch, t3, received, key, value });
                let machine = self.attempt_mut(launch).filter(|_| is_working);
                if let Some(machine) = machine.and_then(|attempt| attempt.machine.take()) {
                    self.move_machine(now, launch, machine, Advance::Told(&told_key, &told));
                }
            }
        }
    }
}
