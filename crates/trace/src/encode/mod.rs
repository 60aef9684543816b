//! From a record to its bytes.
//!
//! In: a record. Out: the bytes that its generated type would give. The events that every command
//! makes are written straight into the journal's chunk: recording is on the path of each command,
//! and to build the generated types first costs twice as much. The other events are rare, and go
//! through their generated types.

mod fields;

use prost::Message;

use crate::encode::fields::Fields;
use crate::event::{Event, Queued, Record};
use crate::reply::{outcome_to_wire, phase_code};
use crate::{CTime, LaunchId, Object, Phase, Reply, StateId, StepCategory, Tail, wire};

/// Fields of `Record` in `proto/journal.proto`.
mod tag {
    pub(super) const AT: u32 = 1;
    pub(super) const TRANSITION: u32 = 11;
    pub(super) const QUEUED: u32 = 12;
    pub(super) const SENT: u32 = 13;
    pub(super) const REPLIED: u32 = 14;
}

/// Appends the bytes of `record`.
pub(crate) fn encode(record: Record, out: &mut Vec<u8>) {
    let mut fields = Fields::new(out);
    let at = record.at;
    match &record.event {
        Event::Transition { launch, lane, from, to, cause } => {
            fields.number(tag::AT, at.ns);
            fields.message(tag::TRANSITION, |fields| {
                fields.number(1, launch.0);
                fields.packed(2, lane);
                fields.optional(3, from.map(state));
                fields.optional(4, to.map(state));
                fields.number(5, cause.code().into());
            });
        }
        Event::Queued(command) => {
            fields.number(tag::AT, at.ns);
            fields.message(tag::QUEUED, |fields| queued(fields, command));
        }
        Event::Sent { launch, id, t0 } => {
            fields.number(tag::AT, at.ns);
            fields.message(tag::SENT, |fields| {
                fields.number(1, launch.0);
                fields.number(2, id.0);
                fields.number(3, t0.ns);
            });
        }
        Event::Replied { launch, t3, reply } => {
            fields.number(tag::AT, at.ns);
            fields.message(tag::REPLIED, |fields| replied(fields, *launch, *t3, reply));
        }
        Event::RunStarted(_)
        | Event::StateNamed { .. }
        | Event::LaneNamed { .. }
        | Event::Arrived { .. }
        | Event::Released { .. }
        | Event::Forked { .. }
        | Event::Merged { .. }
        | Event::Begun { .. }
        | Event::Awaited { .. }
        | Event::Info { .. }
        | Event::Garbled { .. }
        | Event::WrongReply { .. }
        | Event::Given { .. }
        | Event::WaveStarted { .. }
        | Event::WaveEnded { .. }
        | Event::WaveSkipped { .. }
        | Event::Requested { .. }
        | Event::Accepted { .. }
        | Event::NotLaunched { .. }
        | Event::Joined(_)
        | Event::ItemGiven { .. }
        | Event::Closed { .. }
        | Event::Exited { .. }
        | Event::Pulse { .. }
        | Event::Stalled { .. }
        | Event::Frozen { .. }
        | Event::Waiting { .. }
        | Event::TimerFired { .. }
        | Event::Failure(_)
        | Event::Ended { .. }
        | Event::Printed { .. }
        | Event::Listed { .. }
        | Event::Read { .. }
        | Event::Sample(_)
        | Event::Cancelled { .. }
        | Event::Output { .. }
        | Event::RunEnded { .. } => return wire::Record::from(record).encode_raw(out),
    }
    fields.finish();
}

fn state(state: StateId) -> u64 {
    state.0.into()
}

fn queued(fields: &mut Fields<'_>, queued: &Queued) {
    fields.number(1, queued.launch.0);
    fields.number(2, queued.id.0);
    fields.packed(3, &queued.lane);
    fields.optional(4, queued.state.map(state));
    fields.number(5, queued.visit.into());
    fields.bytes(6, queued.name.as_bytes());
    for argument in &queued.arguments {
        fields.element(7, argument);
    }
    fields.number(8, queued.pipelined.into());
    fields.number(9, queued.background.into());
    fields.number(10, queued.category.map_or(0, StepCategory::code).into());
    fields.number(11, queued.step.into());
}

fn replied(fields: &mut Fields<'_>, launch: LaunchId, t3: CTime, reply: &Reply) {
    let (outcome, value, kind, text) = outcome_to_wire(&reply.outcome);
    fields.number(1, launch.0);
    fields.number(2, t3.ns);
    fields.number(3, reply.id.0);
    fields.number(4, reply.received.ns);
    fields.number(5, reply.started.ns);
    fields.number(6, reply.finished.ns);
    fields.number(7, reply.encoded.ns);
    fields.signed(8, reply.clock_gap_ns);
    fields.optional_signed(9, reply.remaining_started_ms);
    fields.optional_signed(10, reply.remaining_finished_ms);
    fields.number(11, outcome.into());
    fields.signed(12, value);
    fields.number(13, kind.into());
    fields.bytes(14, text.as_bytes());
    for part in &reply.phases {
        fields.message(15, |fields| phase(fields, part));
    }
    if let Some(usage) = &reply.usage {
        fields.message(16, |fields| {
            fields.number(1, usage.user_ns);
            fields.number(2, usage.system_ns);
            fields.number(3, usage.peak_rss_bytes);
        });
    }
    tail(fields, 17, &reply.stdout);
    tail(fields, 18, &reply.stderr);
    fields.number(19, reply.bytes);
    for moved in &reply.objects {
        fields.message(20, |fields| object(fields, moved));
    }
}

fn phase(fields: &mut Fields<'_>, phase: &Phase) {
    fields.number(1, phase_code(phase.kind).into());
    fields.number(2, phase.from.ns);
    fields.number(3, phase.to.ns);
}

fn tail(fields: &mut Fields<'_>, tag: u32, tail: &Tail) {
    if tail.total_bytes > 0 {
        fields.message(tag, |fields| {
            fields.bytes(1, &tail.text);
            fields.number(2, tail.total_bytes);
        });
    }
}

fn object(fields: &mut Fields<'_>, object: &Object) {
    fields.bytes(1, object.key.as_bytes());
    fields.bytes(2, object.etag.as_bytes());
    fields.bytes(3, object.version.as_bytes());
    fields.number(4, object.bytes);
    fields.number(5, object.asked.ns);
    fields.number(6, object.first_byte.ns);
    fields.number(7, object.last_byte.ns);
    fields.number(8, object.done.ns);
}

#[cfg(test)]
mod tests {
    use musec_protocol::{CommandId, ErrorKind, Outcome, PhaseKind, Usage, WTime};
    use proptest::prelude::*;

    use super::*;
    use crate::Cause;

    fn same(event: Event, at_ns: u64) -> Result<(), TestCaseError> {
        let record = Record { at: CTime::from_ns(at_ns), event };
        let wanted = wire::Record::from(record.clone()).encode_to_vec();
        let mut ours = vec![1, 2, 3];
        encode(record, &mut ours);
        prop_assert_eq!(&ours[3..], wanted);
        Ok(())
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Ok),
            any::<i32>().prop_map(Outcome::Exited),
            any::<i32>().prop_map(Outcome::Signalled),
            any::<u64>().prop_map(|limit_ms| Outcome::TimedOut { limit_ms }),
            ".{0,200}".prop_map(|text| Outcome::Failed { kind: ErrorKind::Denied, text }),
            Just(Outcome::Cancelled),
        ]
    }

    fn tails() -> impl Strategy<Value = Tail> {
        (prop::collection::vec(any::<u8>(), 0..300), any::<u64>())
            .prop_map(|(text, total_bytes)| Tail { text, total_bytes })
    }

    fn objects() -> impl Strategy<Value = Vec<Object>> {
        let object = (".{0,150}", any::<[u64; 5]>()).prop_map(|(key, n)| Object {
            key,
            etag: "\"e\"".into(),
            version: String::new(),
            bytes: n[0],
            asked: WTime::from_ns(n[1]),
            first_byte: WTime::from_ns(n[2]),
            last_byte: WTime::from_ns(n[3]),
            done: WTime::from_ns(n[4]),
        });
        prop::collection::vec(object, 0..4)
    }

    fn phases() -> impl Strategy<Value = Vec<Phase>> {
        let phase = any::<[u64; 2]>().prop_map(|[from, to]| Phase {
            kind: PhaseKind::BackOff,
            from: WTime::from_ns(from),
            to: WTime::from_ns(to),
        });
        prop::collection::vec(phase, 0..40)
    }

    proptest! {
        #[test]
        fn a_reply_is_written_as_its_generated_type_would_be(
            n: [u64; 8],
            signed: (i64, Option<i64>, Option<i64>),
            outcome in outcome(),
            tails in (tails(), tails()),
            usage: Option<[u64; 3]>,
            objects in objects(),
            phases in phases(),
        ) {
            let reply = Reply {
                id: CommandId(n[0]),
                received: WTime::from_ns(n[1]),
                started: WTime::from_ns(n[2]),
                finished: WTime::from_ns(n[3]),
                encoded: WTime::from_ns(n[4]),
                clock_gap_ns: signed.0,
                remaining_started_ms: signed.1,
                remaining_finished_ms: signed.2,
                outcome,
                phases,
                usage: usage.map(|[user_ns, system_ns, peak_rss_bytes]| {
                    Usage { user_ns, system_ns, peak_rss_bytes }
                }),
                stdout: tails.0,
                stderr: tails.1,
                bytes: n[5],
                objects,
            };
            let (launch, t3) = (LaunchId(n[6]), CTime::from_ns(n[7]));
            same(Event::Replied { launch, t3, reply: Box::new(reply) }, n[1])?;
        }

        #[test]
        fn a_command_is_written_as_its_generated_type_would_be(
            n: [u64; 4],
            lane: Vec<u32>,
            state: Option<u32>,
            visit: u32,
            name in ".{0,40}",
            arguments: Vec<Vec<u8>>,
            flags: (bool, bool, bool),
        ) {
            let (launch, id, state) = (LaunchId(n[0]), CommandId(n[1]), state.map(StateId));
            let category = flags.2.then_some(StepCategory::Peer);
            let moved = lane.clone();
            let queued = Queued {
                launch, id, lane, state, visit, name: name.into(), arguments,
                pipelined: flags.0, background: flags.1, category, step: visit,
            };
            same(Event::Queued(Box::new(queued)), n[2])?;
            same(Event::Sent { launch, id, t0: CTime::from_ns(n[3]) }, n[2])?;
            let (from, cause) = (Some(StateId(visit)), Cause::Failed);
            same(Event::Transition { launch, lane: moved, from, to: state, cause }, n[2])?;
        }
    }

    #[test]
    fn zeros_and_what_is_empty_are_left_out() -> Result<(), TestCaseError> {
        same(Event::Sent { launch: LaunchId(0), id: CommandId(0), t0: CTime::ZERO }, 0)
    }
}
