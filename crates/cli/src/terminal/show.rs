//! One worker, command by command: as it was recorded, where it was in time, and where its time
//! went if it is seen as not pipelined.

use musec_analysis::report::{ShowAttempt, ShowCommand};
use musec_analysis::{Show, format_ns};

use super::figures::{bytes, instant, short_id};
use super::look::{Ink, Look};
use super::page::{Page, clean, short};

/// Columns of a state's name in a table.
const STATE_COLUMNS: usize = 16;

/// Columns of how a command ended.
const ENDING_COLUMNS: usize = 24;

/// All attempts of a worker.
pub(crate) fn render(show: &Show, look: &Look) -> String {
    let mut page = Page::new(look);
    let worker = look.paint(Ink::Strong, &format!("worker {}", show.worker));
    let run = short_id(&show.run);
    page.flow("", &[format!("{worker} of wave {}", clean(&show.wave)), format!("run {run}")]);
    if show.attempts.is_empty() {
        page.line("It has not started: no attempt of it was launched so far.");
    }
    for attempt in &show.attempts {
        write_attempt(&mut page, attempt);
    }
    page.into_text()
}

fn write_attempt(page: &mut Page<'_>, attempt: &ShowAttempt) {
    let outcome = match (attempt.outcome, attempt.cause) {
        (Some(outcome), Some(cause)) => format!("{outcome} ({cause})"),
        (outcome, _) => outcome.unwrap_or("alive").to_owned(),
    };
    let beside = format!("{outcome}, life {}", format_ns(attempt.life_ns));
    page.heading(&format!("Attempt {}", attempt.attempt), &beside);
    if let Some(error) = &attempt.launch_error {
        page.sentence(Some(Ink::Bad), "  ", &format!("not launched: {}", clean(error)));
    }
    let mut host: Vec<String> = Vec::new();
    host.extend(attempt.host.as_ref().map(|host| format!("host {}", clean(host))));
    host.extend(attempt.pid.map(|pid| format!("pid {pid}")));
    host.push(format!("clock rate within {} ppm", attempt.rate_bound_ppm));
    page.flow("  ", &host);
    page.flow("  milestones  ", &milestones(attempt));
    let spent = attempt.categories.iter().filter(|(_, ns)| *ns > 0);
    let mut parts: Vec<String> =
        spent.map(|(category, ns)| format!("{category} {}", format_ns(ns))).collect();
    if attempt.unaccounted_ns > 0 {
        parts.push(format!("unaccounted {}", format_ns(attempt.unaccounted_ns)));
    }
    page.flow("  time        ", &parts);
    let items: Vec<String> =
        attempt.items.iter().map(|item| short(&item.value, STATE_COLUMNS)).collect();
    if !items.is_empty() {
        page.flow("  items       ", &items);
    }
    if attempt.commands.is_empty() {
        page.painted(Ink::Faint, "  no command was sent to it");
        return;
    }
    page.sentence(None, "  path        ", &clean(&attempt.path));
    super::show_lanes::write(page, &attempt.lanes);
    let commands = in_order(attempt);
    raw(page, &commands);
    bounds(page, &commands);
    alone(page, &commands);
}

/// Commands lane by lane, in the order of the program; those of a lane in their own order.
fn in_order(attempt: &ShowAttempt) -> Vec<&ShowCommand> {
    let mut commands: Vec<&ShowCommand> = attempt.commands.iter().collect();
    commands.sort_by(|a, b| (&a.lane, a.id).cmp(&(&b.lane, b.id)));
    commands
}

/// C, in seconds since the run's start.
fn milestones(attempt: &ShowAttempt) -> Vec<String> {
    let all = [
        ("asked for", Some(attempt.requested_ns)),
        ("accepted", attempt.accepted_ns),
        ("connected", attempt.tcp_ns),
        ("TLS", attempt.tls_ns),
        ("hello", attempt.hello_ns),
        ("quit", attempt.quit_ns),
        ("end", attempt.end_ns),
    ];
    let known = all.into_iter().filter_map(|(name, at)| Some(format!("{name} {}", instant(at?))));
    known.collect()
}

/// As it was recorded by the coordinator.
fn raw(page: &mut Page<'_>, commands: &[&ShowCommand]) {
    page.gap();
    page.painted(Ink::Faint, "raw: the coordinator's clock, seconds since the run's start");
    let rows: Vec<Vec<String>> = commands
        .iter()
        .map(|command| {
            vec![
                command.id.to_string(),
                state(command),
                clean(&command.command),
                ending(command),
                maybe_instant(command.queued_ns),
                maybe_instant(command.sent_ns),
                maybe_instant(command.replied_ns),
            ]
        })
        .collect();
    page.rows(&["id", "<state", "<command", "<result", "queued", "sent", "replied"], &rows);
}

/// Where it was on the coordinator's clock, by what causality proves.
fn bounds(page: &mut Page<'_>, commands: &[&ShowCommand]) {
    page.gap();
    page.painted(Ink::Faint, "placed: it started and ended between these, on the same clock");
    let pair = |bounds: Option<(u64, u64)>| match bounds {
        Some((from, to)) => [instant(from), instant(to)],
        None => ["–".to_owned(), "–".to_owned()],
    };
    let rows: Vec<Vec<String>> = commands
        .iter()
        .map(|command| {
            let [start, start_to] = pair(command.start_bounds_ns);
            let [end, end_to] = pair(command.end_bounds_ns);
            let phases = command.phases.iter().map(|phase| phase.kind).collect::<Vec<_>>();
            vec![command.id.to_string(), phases.join(" "), start, start_to, end, end_to]
        })
        .collect();
    page.rows(&["id", "<phases", "start", "to", "end", "to"], &rows);
}

/// Its parts, each command by itself, by the worker's clock.
fn alone(page: &mut Page<'_>, commands: &[&ShowCommand]) {
    page.gap();
    page.painted(
        Ink::Faint,
        "not pipelined: sent to replied = network + queue + overhead + service",
    );
    let time = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| format_ns(ns.into()));
    let rows: Vec<Vec<String>> = commands
        .iter()
        .map(|command| {
            let left =
                command.remaining_ms.map_or_else(|| "–".to_owned(), |(_, end)| format!("{end} ms"));
            vec![
                command.id.to_string(),
                clean(&command.command),
                signed(command.network_ns),
                time(command.queue_ns),
                time(command.overhead_ns),
                time(command.service_ns),
                time(command.estimated_service_ns),
                left,
                bytes(command.bytes.into()),
            ]
        })
        .collect();
    let header = [
        "id",
        "<command",
        "network",
        "queue",
        "overhead",
        "service",
        "estimated",
        "time left",
        "bytes",
    ];
    page.rows(&header, &rows);
    page.painted(
        Ink::Faint,
        "estimated: what the coordinator's stamps alone would say of the service",
    );
}

fn state(command: &ShowCommand) -> String {
    let Some(state) = &command.state else { return "–".to_owned() };
    let name = short(state, STATE_COLUMNS);
    if command.visit == 0 { name } else { format!("{name} #{}", command.visit) }
}

fn ending(command: &ShowCommand) -> String {
    let text = match (command.success, command.exit, command.signal, &command.error) {
        (None, ..) => "no reply".to_owned(),
        (Some(true), ..) => "ok".to_owned(),
        (Some(false), Some(code), _, _) => format!("exit {code}"),
        (Some(false), None, Some(signal), _) => format!("signal {signal}"),
        (Some(false), None, None, Some(error)) => error.clone(),
        (Some(false), None, None, None) => "failed".to_owned(),
    };
    short(&text, ENDING_COLUMNS)
}

fn maybe_instant(at: Option<u64>) -> String {
    at.map_or_else(|| "–".to_owned(), instant)
}

/// Negative only where clocks contradict one another.
fn signed(ns: Option<i128>) -> String {
    let Some(ns) = ns else { return "–".to_owned() };
    let size = format_ns(ns.unsigned_abs());
    if ns < 0 { format!("-{size}") } else { size }
}
