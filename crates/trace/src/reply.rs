//! Replies in the journal's schema.

use crate::convert::Fault;
use crate::{
    CTime, CommandId, ErrorKind, LaunchId, Object, Outcome, Phase, PhaseKind, Reply, Tail, Usage,
    WTime, wire,
};

pub(crate) fn reply_to_wire(launch: LaunchId, t3: CTime, reply: Reply) -> wire::Replied {
    let (outcome, outcome_value, error_kind, error_text) = outcome_to_wire(&reply.outcome);
    let error_text = error_text.to_owned();
    wire::Replied {
        launch: launch.0,
        t3_ns: t3.ns,
        id: reply.id.0,
        received_ns: reply.received.ns,
        started_ns: reply.started.ns,
        finished_ns: reply.finished.ns,
        encoded_ns: reply.encoded.ns,
        clock_gap_ns: reply.clock_gap_ns,
        remaining_started_ms: reply.remaining_started_ms,
        remaining_finished_ms: reply.remaining_finished_ms,
        outcome,
        outcome_value,
        error_kind,
        error_text,
        phases: reply.phases.into_iter().map(phase_to_wire).collect(),
        usage: reply.usage.map(|usage| wire::Usage {
            user_ns: usage.user_ns,
            system_ns: usage.system_ns,
            peak_rss_bytes: usage.peak_rss_bytes,
        }),
        stdout: tail_to_wire(reply.stdout),
        stderr: tail_to_wire(reply.stderr),
        bytes: reply.bytes,
        objects: reply.objects.into_iter().map(object_to_wire).collect(),
    }
}

pub(crate) fn reply_from_wire(replied: wire::Replied) -> Result<(LaunchId, CTime, Reply), Fault> {
    let stamps = [replied.received_ns, replied.started_ns, replied.finished_ns, replied.encoded_ns];
    if !stamps.is_sorted() {
        return Err("a reply whose stamps run backwards");
    }
    let reply = Reply {
        id: CommandId(replied.id),
        received: WTime::from_ns(replied.received_ns),
        started: WTime::from_ns(replied.started_ns),
        finished: WTime::from_ns(replied.finished_ns),
        encoded: WTime::from_ns(replied.encoded_ns),
        clock_gap_ns: replied.clock_gap_ns,
        remaining_started_ms: replied.remaining_started_ms,
        remaining_finished_ms: replied.remaining_finished_ms,
        outcome: outcome_from_wire(
            replied.outcome,
            replied.outcome_value,
            replied.error_kind,
            replied.error_text,
        )?,
        phases: replied.phases.into_iter().map(phase_from_wire).collect::<Result<_, _>>()?,
        usage: replied.usage.map(|usage| Usage {
            user_ns: usage.user_ns,
            system_ns: usage.system_ns,
            peak_rss_bytes: usage.peak_rss_bytes,
        }),
        stdout: tail_from_wire(replied.stdout)?,
        stderr: tail_from_wire(replied.stderr)?,
        bytes: replied.bytes,
        objects: replied.objects.into_iter().map(object_from_wire).collect(),
    };
    Ok((LaunchId(replied.launch), CTime::from_ns(replied.t3_ns), reply))
}

/// Its number, its value, its kind of error and that error's text.
pub(crate) fn outcome_to_wire(outcome: &Outcome) -> (u32, i64, u32, &str) {
    match outcome {
        Outcome::Ok => (1, 0, 0, ""),
        Outcome::Exited(code) => (2, i64::from(*code), 0, ""),
        Outcome::Signalled(signal) => (3, i64::from(*signal), 0, ""),
        Outcome::TimedOut { limit_ms } => (4, i64::try_from(*limit_ms).unwrap_or(i64::MAX), 0, ""),
        Outcome::Failed { kind, text } => (5, 0, error_code(*kind), text),
        Outcome::Cancelled => (6, 0, 0, ""),
    }
}

fn outcome_from_wire(code: u32, value: i64, kind: u32, text: String) -> Result<Outcome, Fault> {
    let number = || i32::try_from(value).map_err(|_| "an exit code out of range");
    Ok(match code {
        1 => Outcome::Ok,
        2 => Outcome::Exited(number()?),
        3 => Outcome::Signalled(number()?),
        4 => Outcome::TimedOut {
            limit_ms: u64::try_from(value).map_err(|_| "a negative time limit")?,
        },
        5 => Outcome::Failed { kind: error_from(kind)?, text },
        6 => Outcome::Cancelled,
        _ => return Err("an unknown outcome of a command"),
    })
}

const fn error_code(kind: ErrorKind) -> u32 {
    match kind {
        ErrorKind::Spawn => 1,
        ErrorKind::Missing => 2,
        ErrorKind::Denied => 3,
        ErrorKind::Full => 4,
        ErrorKind::Invalid => 5,
        ErrorKind::Io => 6,
        ErrorKind::Unsupported => 7,
    }
}

fn error_from(code: u32) -> Result<ErrorKind, Fault> {
    Ok(match code {
        1 => ErrorKind::Spawn,
        2 => ErrorKind::Missing,
        3 => ErrorKind::Denied,
        4 => ErrorKind::Full,
        5 => ErrorKind::Invalid,
        6 => ErrorKind::Io,
        7 => ErrorKind::Unsupported,
        _ => return Err("an unknown kind of error"),
    })
}

pub(crate) const fn phase_code(kind: PhaseKind) -> u32 {
    match kind {
        PhaseKind::User => 1,
        PhaseKind::Sleep => 2,
        PhaseKind::FirstByte => 3,
        PhaseKind::Transfer => 4,
        PhaseKind::Disk => 5,
        PhaseKind::BackOff => 6,
    }
}

fn phase_to_wire(phase: Phase) -> wire::Phase {
    wire::Phase { kind: phase_code(phase.kind), from_ns: phase.from.ns, to_ns: phase.to.ns }
}

fn phase_from_wire(phase: wire::Phase) -> Result<Phase, Fault> {
    let kind = match phase.kind {
        1 => PhaseKind::User,
        2 => PhaseKind::Sleep,
        3 => PhaseKind::FirstByte,
        4 => PhaseKind::Transfer,
        5 => PhaseKind::Disk,
        6 => PhaseKind::BackOff,
        _ => return Err("an unknown kind of phase"),
    };
    if phase.from_ns > phase.to_ns {
        return Err("a phase that runs backwards");
    }
    Ok(Phase { kind, from: WTime::from_ns(phase.from_ns), to: WTime::from_ns(phase.to_ns) })
}

pub(crate) fn tail_to_wire(tail: Tail) -> Option<wire::Tail> {
    (tail.total_bytes > 0).then_some(wire::Tail { text: tail.text, total_bytes: tail.total_bytes })
}

pub(crate) fn tail_from_wire(tail: Option<wire::Tail>) -> Result<Tail, Fault> {
    let Some(tail) = tail else { return Ok(Tail::default()) };
    if tail.text.len() as u64 > tail.total_bytes {
        return Err("an output tail longer than the output");
    }
    Ok(Tail { text: tail.text, total_bytes: tail.total_bytes })
}

fn object_to_wire(object: Object) -> wire::Object {
    wire::Object {
        key: object.key,
        etag: object.etag,
        version: object.version,
        bytes: object.bytes,
        asked_ns: object.asked.ns,
        first_byte_ns: object.first_byte.ns,
        last_byte_ns: object.last_byte.ns,
        done_ns: object.done.ns,
    }
}

fn object_from_wire(object: wire::Object) -> Object {
    Object {
        key: object.key,
        etag: object.etag,
        version: object.version,
        bytes: object.bytes,
        asked: WTime::from_ns(object.asked_ns),
        first_byte: WTime::from_ns(object.first_byte_ns),
        last_byte: WTime::from_ns(object.last_byte_ns),
        done: WTime::from_ns(object.done_ns),
    }
}
