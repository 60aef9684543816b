//! What core was told, from the records that it made of it.
//!
//! In: records that follow each other, none of which core has decided yet. Out: the input that they
//! are the first records of. Every input that changes something leaves a record, and that one is
//! the first; but for a sign of life of a worker that stood still, which is told before what the
//! sign was.

use musec_protocol::limits::FRAME_BYTES_MAX;
use musec_protocol::note::Told;
use musec_protocol::{CommandId, LaunchId, Object, Outcome, Pong, Reply, Stall};
use musec_trace::{CTime, Event, Record, WTime, WaveId};

use crate::fleet::{Closed, Heard, Input};
use crate::program::Seen;

/// What records are the first of.
pub(super) enum Found {
    Input(Box<Input>),
    /// Deadlines that had come.
    Tick,
    /// Of nothing that was told: a barrier that had become complete.
    Settled,
    /// Records that have not been read tell.
    NeedsMore,
    /// Of nothing: they are decisions, of which core knows nothing.
    Nothing,
}

impl Found {
    fn input(input: Input) -> Self {
        Self::Input(Box::new(input))
    }
}

/// Whether a record tells what core was told, not what it decided.
pub(super) const fn is_input(event: &Event) -> bool {
    match event {
        Event::Accepted { .. }
        | Event::NotLaunched { .. }
        | Event::Joined(_)
        | Event::Replied { .. }
        | Event::WrongReply { .. }
        | Event::Pulse { .. }
        | Event::Stalled { .. }
        | Event::Info { .. }
        | Event::Garbled { .. }
        | Event::Closed { .. }
        | Event::Exited { .. }
        | Event::Listed { .. }
        | Event::Read { .. }
        | Event::Cancelled { .. } => true,
        Event::RunStarted(_)
        | Event::Given { .. }
        | Event::StateNamed { .. }
        | Event::LaneNamed { .. }
        | Event::WaveStarted { .. }
        | Event::WaveEnded { .. }
        | Event::WaveSkipped { .. }
        | Event::Requested { .. }
        | Event::ItemGiven { .. }
        | Event::Transition { .. }
        | Event::Forked { .. }
        | Event::Arrived { .. }
        | Event::Released { .. }
        | Event::Begun { .. }
        | Event::Awaited { .. }
        | Event::Merged { .. }
        | Event::Queued(_)
        | Event::Sent { .. }
        | Event::Frozen { .. }
        | Event::Waiting { .. }
        | Event::TimerFired { .. }
        | Event::Failure(_)
        | Event::Ended { .. }
        | Event::Printed { .. }
        | Event::Sample(_)
        | Event::Output { .. }
        | Event::RunEnded { .. } => false,
    }
}

/// What these records are the first of, in a run of so many waves. At the journal's end there are
/// no more.
pub(super) fn find(records: &[&Record], waves: usize, is_end: bool) -> Found {
    let [record, rest @ ..] = records else {
        return Found::NeedsMore;
    };
    match &record.event {
        Event::Frozen { thawed: true, .. } => find(rest, waves, is_end),
        Event::Frozen { thawed: false, .. } | Event::TimerFired { .. } => Found::Tick,
        Event::Released { .. } => Found::Settled,
        Event::Replied { launch, t3, reply } => {
            replied((*launch, *t3), reply, rest.first(), is_end)
                .map_or(Found::NeedsMore, Found::input)
        }
        Event::Listed { wave, .. } | Event::Read { wave, .. } | Event::WaveSkipped { wave, .. } => {
            match seen(&record.event) {
                Some(seen) if is_wave(*wave, waves) => {
                    Found::input(Input::Seen { wave: *wave, seen })
                }
                Some(_) | None => Found::Nothing,
            }
        }
        event => plain(event).map_or(Found::Nothing, Found::input),
    }
}

fn is_wave(wave: WaveId, waves: usize) -> bool {
    usize::try_from(wave.0).is_ok_and(|wave| wave < waves)
}

/// A reply. What a step prints stands in a record of its own, which comes next.
fn replied(
    (launch, t3): (LaunchId, CTime),
    reply: &Reply,
    next: Option<&&Record>,
    is_end: bool,
) -> Option<Input> {
    let mut reply = Box::new(reply.clone());
    if reply.stdout.total_bytes > 0 && reply.stdout.text.is_empty() {
        match next.map(|next| &next.event) {
            None if !is_end => return None,
            Some(Event::Printed { launch: of, text, .. }) if *of == launch => {
                reply.stdout.text.clone_from(text);
            }
            Some(_) | None => {}
        }
    }
    Some(Input::Replied { launch, t3, reply })
}

/// What was seen of a wave's items, or why it could not be.
fn seen(event: &Event) -> Option<Result<Seen, String>> {
    match event {
        Event::Listed { keys, .. } => Some(Ok(Seen::Keys(keys.clone()))),
        Event::Read { text, .. } => Some(Ok(Seen::Text(text.clone()))),
        Event::WaveSkipped { reason, .. } => Some(Err(reason.clone())),
        _ => None,
    }
}

/// The input of which this one record tells all.
fn plain(event: &Event) -> Option<Input> {
    Some(match event.clone() {
        Event::Accepted { launch, accepted: at, engine_id } => {
            Input::Accepted { launch, at, engine_id }
        }
        Event::NotLaunched { launch, error } => Input::NotLaunched { launch, error },
        Event::Joined(joined) => Input::Joined(joined),
        Event::WrongReply { launch, t3, id, objects } => {
            let objects =
                usize::try_from(objects).ok().filter(|count| *count <= FRAME_BYTES_MAX)?;
            Input::Replied { launch, t3, reply: Box::new(reply_to(id, objects)) }
        }
        Event::Pulse { launch, seq, t0, t3, received, encoded, clock_gap_ns } => {
            let pong = Pong { seq, received, encoded, clock_gap_ns };
            Input::Pulsed { launch, t0, t3, pong }
        }
        Event::Stalled { launch, t3, from, to } => {
            Input::Stalled { launch, t3, stall: Stall { from, to } }
        }
        Event::Info { launch, t3, received, key, value } => {
            let told = Told::Info { key, value };
            let bytes = told.to_bytes().ok()?.len() as u64;
            Input::Noted { launch, t3, note: Heard { received, bytes, told: Ok(told) } }
        }
        Event::Garbled { launch, t3, received, why, bytes } => {
            Input::Noted { launch, t3, note: Heard { received, bytes, told: Err(why) } }
        }
        Event::Closed { launch, closed: at, why, broke_protocol } => {
            let why = if broke_protocol { Closed::Protocol(why) } else { Closed::Lost(why) };
            Input::Closed { launch, at, why }
        }
        Event::Exited { launch, exited: at, status } => Input::Exited { launch, at, status },
        Event::Cancelled { cause } => Input::Cancel { cause },
        _ => return None,
    })
}

/// A reply of which only its number counts, and how many objects it has.
fn reply_to(id: CommandId, objects: usize) -> Reply {
    let never = WTime::from_ns(0);
    let object = Object {
        key: String::new(),
        etag: String::new(),
        version: String::new(),
        bytes: 0,
        asked: never,
        first_byte: never,
        last_byte: never,
        done: never,
    };
    Reply { objects: vec![object; objects], ..Reply::bare(id, Outcome::Ok) }
}
