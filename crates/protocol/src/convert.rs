//! Between the messages and their generated types: every check that a peer's values need.

use crate::limits::{
    ERROR_TEXT_BYTES_MAX, FACTS_MAX, OBJECT_TEXT_BYTES_MAX, OBJECTS_MAX, OUTPUT_TAIL_BYTES_MAX,
    PHASES_MAX,
};
use crate::{
    AttemptNo, ClockKind, CommandId, ErrorKind, FromWorker, Hello, Note, Object, Outcome, Phase,
    PhaseKind, Pong, ProtocolError, Reply, Stall, Tail, ToWorker, Usage, WTime, Welcome, WorkerId,
    wire,
};

const fn malformed(what: &'static str, why: &'static str) -> ProtocolError {
    ProtocolError::Malformed { what, why }
}

impl From<&ToWorker> for wire::to_worker::Body {
    fn from(message: &ToWorker) -> Self {
        match message {
            ToWorker::Welcome(welcome) => Self::Welcome(wire::Welcome {
                worker: welcome.worker.0,
                attempt: welcome.attempt.0,
                heartbeat_ms: welcome.heartbeat_ms,
                timeout_ms: welcome.timeout_ms,
                store_url: welcome.store_url.clone(),
                inputs_url: welcome.inputs_url.clone(),
                path_dirs: welcome.path_dirs.clone(),
                keep_scratch: welcome.keep_scratch,
                hears_notes: welcome.hears_notes,
            }),
            ToWorker::Command(command) => Self::Command(command.into()),
            ToWorker::Ping(seq) => Self::Ping(wire::Ping { seq: *seq }),
        }
    }
}

impl TryFrom<wire::to_worker::Body> for ToWorker {
    type Error = ProtocolError;

    fn try_from(body: wire::to_worker::Body) -> Result<Self, ProtocolError> {
        Ok(match body {
            wire::to_worker::Body::Welcome(welcome) => Self::Welcome(Welcome {
                worker: WorkerId(welcome.worker),
                attempt: AttemptNo(welcome.attempt),
                heartbeat_ms: welcome.heartbeat_ms,
                timeout_ms: welcome.timeout_ms,
                store_url: welcome.store_url,
                inputs_url: welcome.inputs_url,
                path_dirs: welcome.path_dirs,
                keep_scratch: welcome.keep_scratch,
                hears_notes: welcome.hears_notes,
            }),
            wire::to_worker::Body::Command(command) => Self::Command(command.try_into()?),
            wire::to_worker::Body::Ping(ping) => Self::Ping(ping.seq),
        })
    }
}

impl From<&FromWorker> for wire::from_worker::Body {
    fn from(message: &FromWorker) -> Self {
        match message {
            FromWorker::Hello(hello) => Self::Hello(hello.into()),
            FromWorker::Reply(reply) => Self::Reply(reply.into()),
            FromWorker::Pong(pong) => Self::Pong(wire::Pong {
                seq: pong.seq,
                received_ns: pong.received.ns,
                encoded_ns: pong.encoded.ns,
                clock_gap_ns: pong.clock_gap_ns,
            }),
            FromWorker::Note(note) => {
                Self::Note(wire::Note { received_ns: note.received.ns, text: note.text.clone() })
            }
            FromWorker::Stall(stall) => {
                Self::Stall(wire::Stall { from_ns: stall.from.ns, to_ns: stall.to.ns })
            }
        }
    }
}

impl TryFrom<wire::from_worker::Body> for FromWorker {
    type Error = ProtocolError;

    fn try_from(body: wire::from_worker::Body) -> Result<Self, ProtocolError> {
        Ok(match body {
            wire::from_worker::Body::Hello(hello) => Self::Hello(hello.try_into()?),
            wire::from_worker::Body::Reply(reply) => Self::Reply(reply.try_into()?),
            wire::from_worker::Body::Pong(pong) => {
                if pong.received_ns > pong.encoded_ns {
                    return Err(malformed("pong", "stamps that run backwards"));
                }
                Self::Pong(Pong {
                    seq: pong.seq,
                    received: WTime::from_ns(pong.received_ns),
                    encoded: WTime::from_ns(pong.encoded_ns),
                    clock_gap_ns: pong.clock_gap_ns,
                })
            }
            wire::from_worker::Body::Note(note) => {
                if note.text.len() > crate::limits::NOTE_BYTES_MAX {
                    return Err(ProtocolError::Malformed { what: "note", why: "it is too long" });
                }
                let received = WTime::from_ns(note.received_ns);
                Self::Note(Note { received, text: note.text })
            }
            wire::from_worker::Body::Stall(stall) => {
                if stall.from_ns > stall.to_ns {
                    return Err(malformed("stall", "stamps that run backwards"));
                }
                Self::Stall(Stall {
                    from: WTime::from_ns(stall.from_ns),
                    to: WTime::from_ns(stall.to_ns),
                })
            }
        })
    }
}

impl From<&Hello> for wire::Hello {
    fn from(hello: &Hello) -> Self {
        Self {
            host: hello.host.clone(),
            boot_id: hello.boot_id.clone(),
            time_namespace: hello.time_namespace.clone(),
            pid: hello.pid,
            clock: match hello.clock {
                ClockKind::MonotonicRaw => wire::ClockKind::MonotonicRaw,
                ClockKind::Monotonic => wire::ClockKind::Monotonic,
            }
            .into(),
            encoded_ns: hello.encoded.ns,
            clock_gap_ns: hello.clock_gap_ns,
            wall_ns: hello.wall_ns,
            cpus: hello.cpus,
            memory_bytes: hello.memory_bytes,
            version: hello.version.clone(),
            facts: hello.facts.clone(),
        }
    }
}

impl TryFrom<wire::Hello> for Hello {
    type Error = ProtocolError;

    fn try_from(hello: wire::Hello) -> Result<Self, ProtocolError> {
        if hello.facts.len() > FACTS_MAX {
            return Err(malformed("hello", "too many facts"));
        }
        Ok(Self {
            clock: match hello.clock() {
                wire::ClockKind::MonotonicRaw => ClockKind::MonotonicRaw,
                wire::ClockKind::Monotonic => ClockKind::Monotonic,
                wire::ClockKind::Unspecified => return Err(malformed("hello", "no clock")),
            },
            host: hello.host,
            boot_id: hello.boot_id,
            time_namespace: hello.time_namespace,
            pid: hello.pid,
            encoded: WTime::from_ns(hello.encoded_ns),
            clock_gap_ns: hello.clock_gap_ns,
            wall_ns: hello.wall_ns,
            cpus: hello.cpus,
            memory_bytes: hello.memory_bytes,
            version: hello.version,
            facts: hello.facts,
        })
    }
}

impl From<&Reply> for wire::Reply {
    fn from(reply: &Reply) -> Self {
        Self {
            id: reply.id.0,
            received_ns: reply.received.ns,
            started_ns: reply.started.ns,
            finished_ns: reply.finished.ns,
            encoded_ns: reply.encoded.ns,
            clock_gap_ns: reply.clock_gap_ns,
            remaining_started_ms: reply.remaining_started_ms,
            remaining_finished_ms: reply.remaining_finished_ms,
            phases: reply.phases.iter().map(Into::into).collect(),
            usage: reply.usage.map(|usage| wire::Usage {
                user_ns: usage.user_ns,
                system_ns: usage.system_ns,
                peak_rss_bytes: usage.peak_rss_bytes,
            }),
            stdout: tail_to_wire(&reply.stdout),
            stderr: tail_to_wire(&reply.stderr),
            bytes: reply.bytes,
            objects: reply.objects.iter().map(Into::into).collect(),
            outcome: Some((&reply.outcome).into()),
        }
    }
}

impl TryFrom<wire::Reply> for Reply {
    type Error = ProtocolError;

    fn try_from(reply: wire::Reply) -> Result<Self, ProtocolError> {
        let what = "reply";
        let stamps = [reply.received_ns, reply.started_ns, reply.finished_ns, reply.encoded_ns];
        if !stamps.is_sorted() {
            return Err(malformed(what, "stamps that run backwards"));
        }
        if reply.phases.len() > PHASES_MAX || reply.objects.len() > OBJECTS_MAX {
            return Err(malformed(what, "too many phases or objects"));
        }
        let outcome = reply.outcome.ok_or_else(|| malformed(what, "no outcome"))?.try_into()?;
        let phases =
            reply.phases.into_iter().map(Phase::try_from).collect::<Result<Vec<_>, _>>()?;
        let mut last = reply.started_ns;
        for phase in &phases {
            if phase.from.ns < last || phase.to < phase.from {
                return Err(malformed(what, "phases that overlap or run backwards"));
            }
            last = phase.to.ns;
        }
        if last > reply.finished_ns {
            return Err(malformed(what, "a phase after its end"));
        }
        Ok(Self {
            id: CommandId(reply.id),
            received: WTime::from_ns(reply.received_ns),
            started: WTime::from_ns(reply.started_ns),
            finished: WTime::from_ns(reply.finished_ns),
            encoded: WTime::from_ns(reply.encoded_ns),
            clock_gap_ns: reply.clock_gap_ns,
            remaining_started_ms: reply.remaining_started_ms,
            remaining_finished_ms: reply.remaining_finished_ms,
            outcome,
            phases,
            usage: reply.usage.map(|usage| Usage {
                user_ns: usage.user_ns,
                system_ns: usage.system_ns,
                peak_rss_bytes: usage.peak_rss_bytes,
            }),
            stdout: tail_from_wire(reply.stdout)?,
            stderr: tail_from_wire(reply.stderr)?,
            bytes: reply.bytes,
            objects: reply
                .objects
                .into_iter()
                .map(Object::try_from)
                .collect::<Result<Vec<_>, _>>()?,
        })
    }
}

fn tail_to_wire(tail: &Tail) -> Option<wire::Tail> {
    (tail.total_bytes > 0)
        .then(|| wire::Tail { text: tail.text.clone(), total_bytes: tail.total_bytes })
}

fn tail_from_wire(tail: Option<wire::Tail>) -> Result<Tail, ProtocolError> {
    let Some(tail) = tail else {
        return Ok(Tail::default());
    };
    if tail.text.len() > OUTPUT_TAIL_BYTES_MAX {
        return Err(malformed("reply", "an output tail above the limit"));
    }
    if tail.text.len() as u64 > tail.total_bytes {
        return Err(malformed("reply", "an output tail longer than the output"));
    }
    Ok(Tail { text: tail.text, total_bytes: tail.total_bytes })
}

impl From<&Outcome> for wire::reply::Outcome {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Ok(wire::Ok {}),
            Outcome::Exited(code) => Self::Exited(*code),
            Outcome::Signalled(signal) => Self::Signalled(*signal),
            Outcome::TimedOut { limit_ms } => {
                Self::TimedOut(wire::TimedOut { limit_ms: *limit_ms })
            }
            Outcome::Failed { kind, text } => Self::Error(wire::Error {
                kind: wire::ErrorKind::from(*kind).into(),
                text: cut(text),
            }),
            Outcome::Cancelled => Self::Cancelled(wire::Cancelled {}),
        }
    }
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(ERROR_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

impl TryFrom<wire::reply::Outcome> for Outcome {
    type Error = ProtocolError;

    fn try_from(outcome: wire::reply::Outcome) -> Result<Self, ProtocolError> {
        Ok(match outcome {
            wire::reply::Outcome::Ok(_) => Self::Ok,
            wire::reply::Outcome::Exited(code) => Self::Exited(code),
            wire::reply::Outcome::Signalled(signal) => Self::Signalled(signal),
            wire::reply::Outcome::TimedOut(over) => Self::TimedOut { limit_ms: over.limit_ms },
            wire::reply::Outcome::Error(error) => {
                Self::Failed { kind: error.kind().try_into()?, text: cut(&error.text) }
            }
            wire::reply::Outcome::Cancelled(_) => Self::Cancelled,
        })
    }
}

impl From<ErrorKind> for wire::ErrorKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Spawn => Self::Spawn,
            ErrorKind::Missing => Self::Missing,
            ErrorKind::Denied => Self::Denied,
            ErrorKind::Full => Self::Full,
            ErrorKind::Invalid => Self::Invalid,
            ErrorKind::Io => Self::Io,
            ErrorKind::Unsupported => Self::Unsupported,
        }
    }
}

impl TryFrom<wire::ErrorKind> for ErrorKind {
    type Error = ProtocolError;

    fn try_from(kind: wire::ErrorKind) -> Result<Self, ProtocolError> {
        Ok(match kind {
            wire::ErrorKind::Unspecified => return Err(malformed("reply", "no kind of error")),
            wire::ErrorKind::Spawn => Self::Spawn,
            wire::ErrorKind::Missing => Self::Missing,
            wire::ErrorKind::Denied => Self::Denied,
            wire::ErrorKind::Full => Self::Full,
            wire::ErrorKind::Invalid => Self::Invalid,
            wire::ErrorKind::Io => Self::Io,
            wire::ErrorKind::Unsupported => Self::Unsupported,
        })
    }
}

impl From<&Phase> for wire::Phase {
    fn from(phase: &Phase) -> Self {
        let kind = match phase.kind {
            PhaseKind::User => wire::PhaseKind::User,
            PhaseKind::Sleep => wire::PhaseKind::Sleep,
            PhaseKind::FirstByte => wire::PhaseKind::FirstByte,
            PhaseKind::Transfer => wire::PhaseKind::Transfer,
            PhaseKind::Disk => wire::PhaseKind::Disk,
            PhaseKind::BackOff => wire::PhaseKind::BackOff,
        };
        Self { kind: kind.into(), from_ns: phase.from.ns, to_ns: phase.to.ns }
    }
}

impl TryFrom<wire::Phase> for Phase {
    type Error = ProtocolError;

    fn try_from(phase: wire::Phase) -> Result<Self, ProtocolError> {
        let kind = match phase.kind() {
            wire::PhaseKind::Unspecified => return Err(malformed("reply", "no kind of phase")),
            wire::PhaseKind::User => PhaseKind::User,
            wire::PhaseKind::Sleep => PhaseKind::Sleep,
            wire::PhaseKind::FirstByte => PhaseKind::FirstByte,
            wire::PhaseKind::Transfer => PhaseKind::Transfer,
            wire::PhaseKind::Disk => PhaseKind::Disk,
            wire::PhaseKind::BackOff => PhaseKind::BackOff,
        };
        Ok(Self { kind, from: WTime::from_ns(phase.from_ns), to: WTime::from_ns(phase.to_ns) })
    }
}

impl From<&Object> for wire::Object {
    fn from(object: &Object) -> Self {
        Self {
            key: object.key.clone(),
            etag: object.etag.clone(),
            version: object.version.clone(),
            bytes: object.bytes,
            asked_ns: object.asked.ns,
            first_byte_ns: object.first_byte.ns,
            last_byte_ns: object.last_byte.ns,
            done_ns: object.done.ns,
        }
    }
}

impl TryFrom<wire::Object> for Object {
    type Error = ProtocolError;

    fn try_from(object: wire::Object) -> Result<Self, ProtocolError> {
        let texts = [&object.key, &object.etag, &object.version];
        if texts.iter().any(|text| text.len() > OBJECT_TEXT_BYTES_MAX) {
            return Err(malformed("reply", "an object's name above the limit"));
        }
        Ok(Self {
            key: object.key,
            etag: object.etag,
            version: object.version,
            bytes: object.bytes,
            asked: WTime::from_ns(object.asked_ns),
            first_byte: WTime::from_ns(object.first_byte_ns),
            last_byte: WTime::from_ns(object.last_byte_ns),
            done: WTime::from_ns(object.done_ns),
        })
    }
}
