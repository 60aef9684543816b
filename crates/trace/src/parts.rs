//! The larger parts of records and their generated types, there and back.

use crate::convert::Fault;
use crate::event::{Joined, Sample};
use crate::{CTime, ClockKind, Hello, LaunchId, RunId, RunStarted, WTime, wire};

const fn clock_code(clock: ClockKind) -> u32 {
    match clock {
        ClockKind::MonotonicRaw => 1,
        ClockKind::Monotonic => 2,
    }
}

fn clock_from(code: u32) -> Result<ClockKind, Fault> {
    match code {
        1 => Ok(ClockKind::MonotonicRaw),
        2 => Ok(ClockKind::Monotonic),
        _ => Err("an unknown clock"),
    }
}

pub(crate) fn started_to_wire(started: RunStarted) -> wire::RunStarted {
    wire::RunStarted {
        run: started.run.0.to_vec(),
        job: started.job,
        launcher: started.launcher,
        wall_ns: started.wall_ns,
        boot_id: started.boot_id,
        time_namespace: started.time_namespace,
        clock: clock_code(started.clock),
        rate_bound_ppm: started.rate_bound_ppm,
        seed: started.seed,
        version: started.version,
        job_text: started.job_text,
        options_json: started.options_json,
        clock_gap_ns: started.clock_gap_ns,
        cores: started.cores,
        starting_max: started.starting_max,
    }
}

pub(crate) fn started_from_wire(started: wire::RunStarted) -> Result<RunStarted, Fault> {
    Ok(RunStarted {
        run: RunId(started.run.try_into().map_err(|_| "a run id that is not 16 bytes long")?),
        job: started.job,
        launcher: started.launcher,
        wall_ns: started.wall_ns,
        boot_id: started.boot_id,
        time_namespace: started.time_namespace,
        clock: clock_from(started.clock)?,
        rate_bound_ppm: started.rate_bound_ppm,
        seed: started.seed,
        version: started.version,
        job_text: started.job_text,
        options_json: started.options_json,
        clock_gap_ns: started.clock_gap_ns,
        cores: started.cores,
        starting_max: started.starting_max,
    })
}

pub(crate) fn joined_to_wire(joined: Joined) -> wire::Joined {
    let hello = joined.hello;
    wire::Joined {
        launch: joined.launch.0,
        tcp_ns: joined.tcp.ns,
        tls_ns: joined.tls.ns,
        t3_ns: joined.t3.ns,
        host: hello.host,
        boot_id: hello.boot_id,
        time_namespace: hello.time_namespace,
        pid: hello.pid,
        clock: clock_code(hello.clock),
        encoded_ns: hello.encoded.ns,
        clock_gap_ns: hello.clock_gap_ns,
        wall_ns: hello.wall_ns,
        cpus: hello.cpus,
        memory_bytes: hello.memory_bytes,
        version: hello.version,
        facts: hello.facts,
    }
}

pub(crate) fn joined_from_wire(joined: wire::Joined) -> Result<Joined, Fault> {
    Ok(Joined {
        launch: LaunchId(joined.launch),
        tcp: CTime::from_ns(joined.tcp_ns),
        tls: CTime::from_ns(joined.tls_ns),
        t3: CTime::from_ns(joined.t3_ns),
        hello: Hello {
            host: joined.host,
            boot_id: joined.boot_id,
            time_namespace: joined.time_namespace,
            pid: joined.pid,
            clock: clock_from(joined.clock)?,
            encoded: WTime::from_ns(joined.encoded_ns),
            clock_gap_ns: joined.clock_gap_ns,
            wall_ns: joined.wall_ns,
            cpus: joined.cpus,
            memory_bytes: joined.memory_bytes,
            version: joined.version,
            facts: joined.facts,
        },
    })
}

pub(crate) fn sample_to_wire(sample: Sample) -> wire::Sample {
    wire::Sample {
        cpu_ns: sample.cpu_ns,
        lag_p50_ns: sample.lag_p50_ns,
        lag_p99_ns: sample.lag_p99_ns,
        lag_max_ns: sample.lag_max_ns,
        bytes_in: sample.bytes_in,
        bytes_out: sample.bytes_out,
        connections: sample.connections,
        refused: sample.refused,
        clock_gap_ns: sample.clock_gap_ns,
        journal_waits: sample.journal_waits,
        journal_wait_ns: sample.journal_wait_ns,
    }
}

pub(crate) fn sample_from_wire(sample: wire::Sample) -> Sample {
    Sample {
        cpu_ns: sample.cpu_ns,
        lag_p50_ns: sample.lag_p50_ns,
        lag_p99_ns: sample.lag_p99_ns,
        lag_max_ns: sample.lag_max_ns,
        bytes_in: sample.bytes_in,
        bytes_out: sample.bytes_out,
        connections: sample.connections,
        refused: sample.refused,
        clock_gap_ns: sample.clock_gap_ns,
        journal_waits: sample.journal_waits,
        journal_wait_ns: sample.journal_wait_ns,
    }
}
