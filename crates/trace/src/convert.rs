//! Between records and the journal's generated types.

use crate::codes::{
    AttemptOutcome, Cause, EndCause, RunStatus, StepCategory, Stream, Timer, WaitReason,
};
use crate::event::{Event, Failure, Queued, Record, StateId, WaveId};
use crate::parts::{
    joined_from_wire, joined_to_wire, sample_from_wire, sample_to_wire, started_from_wire,
    started_to_wire,
};
use crate::reply::{reply_from_wire, reply_to_wire, tail_from_wire, tail_to_wire};
use crate::{AttemptNo, CTime, CommandId, LaunchId, WTime, WorkerId, wire};

/// What is wrong with bytes that have a good checksum: a newer program wrote them, or a bug did.
pub(crate) type Fault = &'static str;

impl From<Record> for wire::Record {
    fn from(record: Record) -> Self {
        Self { at_ns: record.at.ns, event: Some(record.event.into()) }
    }
}

impl From<Event> for wire::record::Event {
    #[expect(clippy::too_many_lines, reason = "one arm an event; splitting would hide none")]
    fn from(event: Event) -> Self {
        match event {
            Event::RunStarted(started) => Self::RunStarted(started_to_wire(*started)),
            Event::StateNamed { state, wave, name } => {
                Self::StateNamed(wire::StateNamed { state: state.0, wave: wave.0, name })
            }
            Event::WaveStarted { wave, name, first_worker, workers, items } => {
                let first_worker = first_worker.0;
                Self::WaveStarted(wire::WaveStarted {
                    wave: wave.0,
                    name,
                    first_worker,
                    workers,
                    items,
                })
            }
            Event::WaveEnded { wave } => Self::WaveEnded(wire::WaveEnded { wave: wave.0 }),
            Event::Closed { launch, closed, why, broke_protocol } => Self::Closed(wire::Closed {
                launch: launch.0,
                closed_ns: closed.ns,
                why,
                broke_protocol,
            }),
            Event::Exited { launch, exited, status } => {
                Self::Exited(wire::Exited { launch: launch.0, exited_ns: exited.ns, status })
            }
            Event::WaveSkipped { wave, name, reason } => {
                Self::WaveSkipped(wire::WaveSkipped { wave: wave.0, name, reason })
            }
            Event::Requested { launch, worker, attempt, wave } => {
                Self::Requested(wire::Requested {
                    launch: launch.0,
                    worker: worker.0,
                    attempt: attempt.0,
                    wave: wave.0,
                })
            }
            Event::Accepted { launch, accepted, engine_id } => Self::Accepted(wire::Accepted {
                launch: launch.0,
                accepted_ns: accepted.ns,
                engine_id,
            }),
            Event::NotLaunched { launch, error } => {
                Self::NotLaunched(wire::NotLaunched { launch: launch.0, error })
            }
            Event::Joined(joined) => Self::Joined(joined_to_wire(*joined)),
            Event::ItemGiven { launch, item, value_json } => {
                Self::ItemGiven(wire::ItemGiven { launch: launch.0, item, value_json })
            }
            Event::Transition { launch, lane, from, to, cause } => {
                Self::Transition(wire::Transition {
                    launch: launch.0,
                    lane,
                    from: from.map(|state| state.0),
                    to: to.map(|state| state.0),
                    cause: cause.code(),
                })
            }
            Event::Queued(queued) => Self::Queued(wire::Queued {
                launch: queued.launch.0,
                id: queued.id.0,
                lane: queued.lane,
                state: queued.state.map(|state| state.0),
                visit: queued.visit,
                name: queued.name.into_owned(),
                arguments: queued.arguments,
                pipelined: queued.pipelined,
                background: queued.background,
                category: queued.category.map_or(0, StepCategory::code),
                step: queued.step,
            }),
            Event::Sent { launch, id, t0 } => {
                Self::Sent(wire::Sent { launch: launch.0, id: id.0, t0_ns: t0.ns })
            }
            Event::Replied { launch, t3, reply } => {
                Self::Replied(reply_to_wire(launch, t3, *reply))
            }
            Event::Pulse { launch, seq, t0, t3, received, encoded, clock_gap_ns } => {
                Self::Pulse(wire::Pulse {
                    launch: launch.0,
                    seq,
                    t0_ns: t0.ns,
                    t3_ns: t3.ns,
                    received_ns: received.ns,
                    encoded_ns: encoded.ns,
                    clock_gap_ns,
                })
            }
            Event::Stalled { launch, t3, from, to } => Self::Stalled(wire::Stalled {
                launch: launch.0,
                from_ns: from.ns,
                to_ns: to.ns,
                t3_ns: t3.ns,
            }),
            Event::WrongReply { launch, t3, id, objects } => Self::WrongReply(wire::WrongReply {
                launch: launch.0,
                t3_ns: t3.ns,
                id: id.0,
                objects,
            }),
            Event::Given { wave, items } => Self::Given(wire::Given { wave: wave.0, items }),
            Event::Frozen { launch, since, thawed } => {
                Self::Frozen(wire::Frozen { launch: launch.0, since_ns: since.ns, thawed })
            }
            Event::LaneNamed { wave, path, name } => {
                Self::LaneNamed(wire::LaneNamed { wave: wave.0, path, name })
            }
            Event::Forked { launch, lane, lanes, first } => {
                Self::Forked(wire::Forked { launch: launch.0, lane, lanes, first })
            }
            Event::Begun { launch, lane, background } => {
                Self::Begun(wire::Begun { launch: launch.0, lane, background })
            }
            Event::Awaited { launch, lane, background } => {
                Self::Awaited(wire::Awaited { launch: launch.0, lane, background })
            }
            Event::Arrived { launch, lane, barrier } => {
                Self::Arrived(wire::Arrived { launch: launch.0, lane, barrier })
            }
            Event::Released { wave, barrier, workers, last } => {
                Self::Released(wire::Released { wave: wave.0, barrier, workers, last: last.0 })
            }
            Event::Info { launch, t3, received, key, value } => Self::Info(wire::Info {
                launch: launch.0,
                t3_ns: t3.ns,
                received_ns: received.ns,
                key,
                value,
            }),
            Event::Garbled { launch, t3, received, why, bytes } => Self::Garbled(wire::Garbled {
                launch: launch.0,
                t3_ns: t3.ns,
                received_ns: received.ns,
                why,
                bytes,
            }),
            Event::Merged { launch, lane, winner } => {
                Self::Merged(wire::Merged { launch: launch.0, lane, winner })
            }
            Event::Waiting { launch, reason } => {
                Self::Waiting(wire::Waiting { launch: launch.0, reason: reason.code() })
            }
            Event::TimerFired { timer, launch } => Self::TimerFired(wire::TimerFired {
                timer: timer.code(),
                launch: launch.map(|launch| launch.0),
            }),
            Event::Failure(failure) => Self::Failure(wire::Failure {
                launch: failure.launch.0,
                state: failure.state.map(|state| state.0),
                command: failure.command.map(|command| command.0),
                name: failure.name,
                error: failure.error,
                output: failure.output,
            }),
            Event::Ended { launch, end, last_sign, cause, outcome } => Self::Ended(wire::Ended {
                launch: launch.0,
                end_ns: end.ns,
                last_sign_ns: last_sign.ns,
                cause: cause.code(),
                outcome: outcome.code(),
            }),
            Event::Printed { launch, text, total_bytes } => {
                Self::Printed(wire::Printed { launch: launch.0, text, total_bytes })
            }
            Event::Read { wave, text } => Self::Read(wire::Read { wave: wave.0, text }),
            Event::Listed { wave, keys } => Self::Listed(wire::Listed { wave: wave.0, keys }),
            Event::Sample(sample) => Self::Sample(sample_to_wire(*sample)),
            Event::Cancelled { cause } => Self::Cancelled(wire::Cancelled { cause }),
            Event::Output { launch, id, stream, tail } => Self::Output(wire::Output {
                launch: launch.0,
                id: id.0,
                stream: stream.code(),
                tail: tail_to_wire(tail),
            }),
            Event::RunEnded { status } => Self::RunEnded(wire::RunEnded { status: status.code() }),
        }
    }
}

/// 0 stands for none.
fn step_category(code: u32) -> Result<Option<StepCategory>, Fault> {
    if code == 0 {
        return Ok(None);
    }
    StepCategory::from_code(code).map(Some).ok_or("an unknown category")
}

impl TryFrom<wire::Record> for Record {
    type Error = Fault;

    fn try_from(record: wire::Record) -> Result<Self, Fault> {
        let event = record.event.ok_or("no event, or one of a newer version")?;
        Ok(Self { at: CTime::from_ns(record.at_ns), event: event.try_into()? })
    }
}

impl TryFrom<wire::record::Event> for Event {
    type Error = Fault;

    #[expect(clippy::too_many_lines, reason = "one arm an event; splitting would hide none")]
    fn try_from(event: wire::record::Event) -> Result<Self, Fault> {
        use wire::record::Event as Wire;
        Ok(match event {
            Wire::RunStarted(started) => Self::RunStarted(Box::new(started_from_wire(started)?)),
            Wire::StateNamed(named) => Self::StateNamed {
                state: StateId(named.state),
                wave: WaveId(named.wave),
                name: named.name,
            },
            Wire::WaveStarted(started) => Self::WaveStarted {
                wave: WaveId(started.wave),
                name: started.name,
                first_worker: WorkerId(started.first_worker),
                workers: started.workers,
                items: started.items,
            },
            Wire::WaveEnded(ended) => Self::WaveEnded { wave: WaveId(ended.wave) },
            Wire::Closed(closed) => Self::Closed {
                launch: LaunchId(closed.launch),
                closed: CTime::from_ns(closed.closed_ns),
                why: closed.why,
                broke_protocol: closed.broke_protocol,
            },
            Wire::Exited(exited) => Self::Exited {
                launch: LaunchId(exited.launch),
                exited: CTime::from_ns(exited.exited_ns),
                status: exited.status,
            },
            Wire::WaveSkipped(skipped) => Self::WaveSkipped {
                wave: WaveId(skipped.wave),
                name: skipped.name,
                reason: skipped.reason,
            },
            Wire::Requested(requested) => Self::Requested {
                launch: LaunchId(requested.launch),
                worker: WorkerId(requested.worker),
                attempt: AttemptNo(requested.attempt),
                wave: WaveId(requested.wave),
            },
            Wire::Accepted(accepted) => Self::Accepted {
                launch: LaunchId(accepted.launch),
                accepted: CTime::from_ns(accepted.accepted_ns),
                engine_id: accepted.engine_id,
            },
            Wire::NotLaunched(not) => {
                Self::NotLaunched { launch: LaunchId(not.launch), error: not.error }
            }
            Wire::Joined(joined) => Self::Joined(Box::new(joined_from_wire(joined)?)),
            Wire::ItemGiven(given) => Self::ItemGiven {
                launch: LaunchId(given.launch),
                item: given.item,
                value_json: given.value_json,
            },
            Wire::Transition(moved) => Self::Transition {
                launch: LaunchId(moved.launch),
                lane: moved.lane,
                from: moved.from.map(StateId),
                to: moved.to.map(StateId),
                cause: Cause::from_code(moved.cause).ok_or("an unknown cause")?,
            },
            Wire::Queued(queued) => Self::Queued(Box::new(Queued {
                launch: LaunchId(queued.launch),
                id: CommandId(queued.id),
                lane: queued.lane,
                state: queued.state.map(StateId),
                visit: queued.visit,
                name: queued.name.into(),
                arguments: queued.arguments,
                pipelined: queued.pipelined,
                background: queued.background,
                category: step_category(queued.category)?,
                step: queued.step,
            })),
            Wire::Sent(sent) => Self::Sent {
                launch: LaunchId(sent.launch),
                id: CommandId(sent.id),
                t0: CTime::from_ns(sent.t0_ns),
            },
            Wire::Replied(replied) => {
                let (launch, t3, reply) = reply_from_wire(replied)?;
                Self::Replied { launch, t3, reply: Box::new(reply) }
            }
            Wire::Pulse(pulse) => Self::Pulse {
                launch: LaunchId(pulse.launch),
                seq: pulse.seq,
                t0: CTime::from_ns(pulse.t0_ns),
                t3: CTime::from_ns(pulse.t3_ns),
                received: WTime::from_ns(pulse.received_ns),
                encoded: WTime::from_ns(pulse.encoded_ns),
                clock_gap_ns: pulse.clock_gap_ns,
            },
            Wire::Stalled(stalled) => Self::Stalled {
                launch: LaunchId(stalled.launch),
                t3: CTime::from_ns(stalled.t3_ns),
                from: WTime::from_ns(stalled.from_ns),
                to: WTime::from_ns(stalled.to_ns),
            },
            Wire::Frozen(frozen) => Self::Frozen {
                launch: LaunchId(frozen.launch),
                since: CTime::from_ns(frozen.since_ns),
                thawed: frozen.thawed,
            },
            Wire::LaneNamed(named) => {
                Self::LaneNamed { wave: WaveId(named.wave), path: named.path, name: named.name }
            }
            Wire::Forked(forked) => Self::Forked {
                launch: LaunchId(forked.launch),
                lane: forked.lane,
                lanes: forked.lanes,
                first: forked.first,
            },
            Wire::Begun(begun) => Self::Begun {
                launch: LaunchId(begun.launch),
                lane: begun.lane,
                background: begun.background,
            },
            Wire::Awaited(awaited) => Self::Awaited {
                launch: LaunchId(awaited.launch),
                lane: awaited.lane,
                background: awaited.background,
            },
            Wire::Arrived(arrived) => Self::Arrived {
                launch: LaunchId(arrived.launch),
                lane: arrived.lane,
                barrier: arrived.barrier,
            },
            Wire::Released(released) => Self::Released {
                wave: WaveId(released.wave),
                barrier: released.barrier,
                workers: released.workers,
                last: LaunchId(released.last),
            },
            Wire::Info(info) => Self::Info {
                launch: LaunchId(info.launch),
                t3: CTime::from_ns(info.t3_ns),
                received: WTime::from_ns(info.received_ns),
                key: info.key,
                value: info.value,
            },
            Wire::Garbled(garbled) => Self::Garbled {
                launch: LaunchId(garbled.launch),
                t3: CTime::from_ns(garbled.t3_ns),
                received: WTime::from_ns(garbled.received_ns),
                why: garbled.why,
                bytes: garbled.bytes,
            },
            Wire::WrongReply(reply) => Self::WrongReply {
                launch: LaunchId(reply.launch),
                t3: CTime::from_ns(reply.t3_ns),
                id: CommandId(reply.id),
                objects: reply.objects,
            },
            Wire::Given(given) => Self::Given { wave: WaveId(given.wave), items: given.items },
            Wire::Merged(merged) => Self::Merged {
                launch: LaunchId(merged.launch),
                lane: merged.lane,
                winner: merged.winner,
            },
            Wire::Waiting(waiting) => Self::Waiting {
                launch: LaunchId(waiting.launch),
                reason: WaitReason::from_code(waiting.reason).ok_or("an unknown wait")?,
            },
            Wire::TimerFired(fired) => Self::TimerFired {
                timer: Timer::from_code(fired.timer).ok_or("an unknown timer")?,
                launch: fired.launch.map(LaunchId),
            },
            Wire::Failure(failure) => Self::Failure(Box::new(Failure {
                launch: LaunchId(failure.launch),
                state: failure.state.map(StateId),
                command: failure.command.map(CommandId),
                name: failure.name,
                error: failure.error,
                output: failure.output,
            })),
            Wire::Ended(ended) => Self::Ended {
                launch: LaunchId(ended.launch),
                end: CTime::from_ns(ended.end_ns),
                last_sign: CTime::from_ns(ended.last_sign_ns),
                cause: EndCause::from_code(ended.cause).ok_or("an unknown end")?,
                outcome: AttemptOutcome::from_code(ended.outcome).ok_or("an unknown outcome")?,
            },
            Wire::Printed(printed) => Self::Printed {
                launch: LaunchId(printed.launch),
                text: printed.text,
                total_bytes: printed.total_bytes,
            },
            Wire::Read(read) => Self::Read { wave: WaveId(read.wave), text: read.text },
            Wire::Listed(listed) => Self::Listed { wave: WaveId(listed.wave), keys: listed.keys },
            Wire::Sample(sample) => Self::Sample(Box::new(sample_from_wire(sample))),
            Wire::Cancelled(cancelled) => Self::Cancelled { cause: cancelled.cause },
            Wire::Output(output) => Self::Output {
                launch: LaunchId(output.launch),
                id: CommandId(output.id),
                stream: Stream::from_code(output.stream).ok_or("an unknown stream")?,
                tail: tail_from_wire(output.tail)?,
            },
            Wire::RunEnded(ended) => Self::RunEnded {
                status: RunStatus::from_code(ended.status).ok_or("an unknown status")?,
            },
        })
    }
}
