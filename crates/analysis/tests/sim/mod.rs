//! One life with known truth. True time is C itself, in nanoseconds; W follows it with an offset, a
//! drift that changes within ±r, and at most one jump. Both directions of the connection keep
//! their order, as TCP does. The truth of categories is swept naively over true time.

use std::collections::BTreeMap;

use musec_analysis::breakdown::Category;
use musec_trace::{AttemptOutcome, CommandId, Event, LaunchId, PhaseKind};

use crate::common::{Log, MS, US, c, hello, reply, w};

/// What kind of life.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) ppm: u32,
    pub(crate) commands: usize,
    /// The longest that one way takes.
    pub(crate) trip_ns: u64,
    /// Whether one more command is sent and never replied.
    pub(crate) loses_last_reply: bool,
    /// Whether quit is sent while a command is outstanding. Not with the one above.
    pub(crate) is_cancelled: bool,
    pub(crate) jump: Option<Jump>,
}

/// What happens to W, once, after the first commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    /// By how much W jumps, in nanoseconds.
    pub(crate) by: i64,
    /// By how much BOOTTIME − MONOTONIC grows.
    pub(crate) gap: i64,
}

/// When a command really started and finished.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    pub(crate) id: CommandId,
    pub(crate) started: u64,
    pub(crate) finished: u64,
}

/// The four instants of an exchange, in true time.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    t0: u64,
    a: u64,
    b: u64,
    t3: u64,
}

/// A life that was lived.
pub(crate) struct Life {
    pub(crate) log: Log,
    pub(crate) truth: BTreeMap<Category, u64>,
    pub(crate) commands: Vec<Truth>,
    /// True instants and their W stamps.
    pub(crate) marks: Vec<(u64, u64)>,
    pub(crate) lost: Option<CommandId>,
    /// True windows, C; the last one is that which quit cuts, if it cuts one.
    pub(crate) windows: Vec<(u64, u64)>,
    exchanges: Vec<Exchange>,
    hello: Exchange,
    clock: Clock,
}

/// Random numbers that depend on the seed alone (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    /// Mostly short, sometimes long.
    fn skewed(&mut self, longest: u64) -> u64 {
        let scale = self.within(0, 12);
        self.within(1, (longest >> scale).max(2))
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// A worker's clock.
struct Clock {
    ppm: u32,
    offset: i128,
    /// From when on (true time), W then without offset in 10⁻⁹ ns, and the rate in 10⁻⁹.
    pieces: Vec<(u64, i128, i128)>,
    jump: Option<(u64, Jump)>,
}

impl Clock {
    fn new(dice: &mut Dice, ppm: u32) -> Self {
        let most = i128::from(ppm) * 1_000;
        let (mut at, mut sum, mut pieces) = (0_u64, 0_i128, Vec::new());
        for _ in 0..40 {
            let drift = match dice.within(0, 3) {
                0 => most,
                1 => -most,
                _ => i128::from(dice.next()) % (2 * most + 1) - most,
            };
            let rate = 1_000_000_000 + drift;
            pieces.push((at, sum, rate));
            let length = dice.within(MS, 4_000 * MS);
            at += length;
            sum += i128::from(length) * rate;
        }
        let offset = i128::from(dice.within(1_000_000 * MS, 9_000_000 * MS));
        Self { ppm, offset, pieces, jump: None }
    }

    /// The stamp at a true instant, as if W had not jumped.
    fn steady(&self, at: u64) -> i128 {
        let place = self.pieces.partition_point(|(from, ..)| *from <= at) - 1;
        let (from, sum, rate) = self.pieces[place];
        self.offset + (sum + i128::from(at - from) * rate).div_euclid(1_000_000_000)
    }

    fn stamp(&self, at: u64) -> u64 {
        let jump = self.jump.filter(|(from, _)| at >= *from).map_or(0, |(_, jump)| jump.by);
        u64::try_from(self.steady(at) + i128::from(jump)).expect("the offset is large")
    }

    fn gap(&self, at: u64) -> i64 {
        self.jump.filter(|(from, _)| at >= *from).map_or(0, |(_, jump)| jump.gap)
    }
}

/// A command as it really went.
struct Job {
    name: &'static str,
    way: Exchange,
    s: u64,
    f: u64,
    /// The phase within it.
    phase: Option<(PhaseKind, u64, u64)>,
    stall: Option<(u64, u64)>,
}

/// A life after `plan`.
pub(crate) fn life(plan: &Plan) -> Life {
    let mut dice = Dice(plan.seed);
    let mut clock = Clock::new(&mut dice, plan.ppm);
    let requested = dice.within(0, MS);
    let accepted = requested + dice.within(0, 5 * MS);
    let tcp = accepted + dice.within(0, 50 * MS);
    let encoded = tcp + dice.within(1, 20 * MS);
    let joined = encoded + dice.within(1, plan.trip_ns);
    let mut jobs = jobs(&mut dice, plan, joined);
    let cancel = plan.is_cancelled.then(|| cancel(&mut dice, plan, &mut jobs));
    let last = jobs.last().map_or(joined, |job| job.way.t3);
    let lost_at = plan.loses_last_reply.then(|| last + dice.within(1, 5 * MS));
    let quit = match (lost_at, cancel) {
        (Some(lost), _) => lost + dice.within(1_000 * MS, 20_000 * MS),
        (None, Some(way)) => way.t0,
        (None, None) => last + dice.within(1, 5 * MS),
    };
    let heard = cancel.map_or(quit, |way| way.t3);
    let end = if lost_at.is_some() { quit } else { heard + dice.within(1, 50 * MS) };
    if let Some(jump) = plan.jump {
        clock.jump = Some((jump_at(&mut dice, &jobs, jump), jump));
    }
    let pulses = pulses(&mut dice, plan, &jobs, joined, lost_at.unwrap_or(quit));

    let mut log = Log::new(plan.ppm, 1);
    log.request(requested, 0);
    log.accept(accepted, 0);
    let steady = clock.stamp(encoded);
    log.join(0, tcp, joined, hello(steady, plan.ppm == 0));
    record(&mut log, &clock, &jobs, &pulses);
    let lost = lost_at.map(|t0| {
        log.send(0, jobs.len() as u64, "run", t0, t0);
        CommandId(jobs.len() as u64)
    });
    if lost.is_none() {
        log.send(0, jobs.len() as u64, "quit", quit, quit);
    }
    if let Some(way) = cancel.filter(|_| dice.one_in(2)) {
        let stamps = [way.a, way.a, way.b, way.b].map(|at| clock.stamp(at));
        log.reply(0, way.t3, reply(jobs.len() as u64, stamps, &[]));
    }
    let outcome = if lost.is_some() { AttemptOutcome::Lost } else { AttemptOutcome::Done };
    log.end(0, end, joined, outcome);
    log.records.sort_by_key(|record| record.at);

    let mut truth = sweep(&jobs, joined, lost_at.unwrap_or(quit));
    for (category, from, to) in [
        (Category::Launch, requested, accepted),
        (Category::Start, accepted, tcp),
        (Category::Handshake, tcp, joined),
        (Category::Teardown, quit, end),
        (Category::Lost, lost_at.unwrap_or(end), end),
    ] {
        truth.insert(category, to - from);
    }
    Life {
        truth,
        commands: jobs
            .iter()
            .enumerate()
            .map(|(id, job)| Truth { id: CommandId(id as u64), started: job.s, finished: job.f })
            .collect(),
        marks: (0..20).map(|_| dice.within(encoded, end)).map(|at| (at, clock.stamp(at))).collect(),
        lost,
        windows: windows(&jobs),
        exchanges: jobs.iter().map(|job| job.way).chain(pulses).collect(),
        hello: Exchange { t0: u64::MAX, a: u64::MAX, b: encoded, t3: joined },
        log,
        clock,
    }
}

/// Commands, alone or some sent at once, which a worker serves in order.
fn jobs(dice: &mut Dice, plan: &Plan, joined: u64) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut t = joined;
    while jobs.len() < plan.commands {
        t += dice.within(2, 5 * MS);
        let at_once = if dice.one_in(4) { dice.within(2, 4) } else { 1 };
        let (mut t0, mut a, mut free, mut t3) = (t, 0, 0, 0);
        for _ in 0..at_once {
            t0 += dice.within(1, 50 * US);
            a = (t0 + dice.within(1, plan.trip_ns)).max(a + 1);
            let s = (a + dice.within(0, 200 * US)).max(free + dice.within(0, 20 * US));
            let mut job = serve(dice, s);
            let b = job.f + dice.within(0, 100 * US);
            free = b;
            t3 = (b + dice.within(1, plan.trip_ns)).max(t3 + 1);
            job.way = Exchange { t0, a, b, t3 };
            jobs.push(job);
        }
        t = t3;
    }
    jobs
}

/// Quit's way, sent while one of the commands is outstanding; those after it are not sent.
fn cancel(dice: &mut Dice, plan: &Plan, jobs: &mut Vec<Job>) -> Exchange {
    let place = usize::try_from(dice.next()).expect("64 bit") % jobs.len();
    let way = jobs[place].way;
    // Just after it was sent, just before its reply is read, or anywhere in between.
    let t0 = match dice.within(0, 3) {
        0 => way.t0 + dice.within(1, plan.trip_ns),
        1 => way.t3.saturating_sub(dice.within(1, plan.trip_ns)),
        _ => dice.within(way.t0 + 1, way.t3 - 1),
    };
    let t0 = t0.clamp(way.t0 + 1, way.t3 - 1);
    jobs.retain(|job| job.way.t0 < t0);
    let last = |at: fn(&Exchange) -> u64| jobs.iter().map(|job| at(&job.way)).max().unwrap_or(0);
    let a = (t0 + dice.within(1, plan.trip_ns)).max(last(|way| way.a) + 1);
    let b = a.max(last(|way| way.b)) + dice.within(1, MS);
    let t3 = (b + dice.within(1, plan.trip_ns)).max(last(|way| way.t3) + 1);
    Exchange { t0, a, b, t3 }
}

/// A command's service from `s` on.
fn serve(dice: &mut Dice, s: u64) -> Job {
    let way = Exchange { t0: 0, a: 0, b: 0, t3: 0 };
    let stall = dice.one_in(4).then(|| dice.within(300 * MS, 1_000 * MS));
    let (name, kind, longest) = match dice.within(0, 5) {
        0 | 1 => ("run", PhaseKind::User, 2_000 * MS),
        2 => ("sleep", PhaseKind::Sleep, 500 * MS),
        other => {
            let (name, longest) = match other {
                3 => ("put", 800 * MS),
                4 => ("get", 800 * MS),
                _ => ("echo", 50 * US),
            };
            let f = s + dice.skewed(longest);
            return Job { name, way, s, f, phase: None, stall: None };
        }
    };
    let from = s + dice.within(0, 2 * MS);
    let frozen = from + dice.skewed(longest);
    let to = frozen + stall.unwrap_or(0) + dice.skewed(longest);
    Job {
        name,
        way,
        s,
        f: to + dice.within(0, MS),
        phase: Some((kind, from, to)),
        stall: stall.map(|length| (frozen, frozen + length)),
    }
}

/// When W jumps: between two commands, or for jumps forward also within one; never before the
/// first was done, since one way back alone bounds nothing forward.
fn jump_at(dice: &mut Dice, jobs: &[Job], jump: Jump) -> u64 {
    if jump.by > 0 && dice.one_in(2) {
        let later: Vec<&Job> = jobs.iter().filter(|job| job.way.t0 > jobs[0].way.t3).collect();
        if !later.is_empty() {
            let job = later[usize::try_from(dice.next()).expect("64 bit") % later.len()];
            return dice.within(job.s, job.f);
        }
    }
    let pauses: Vec<u64> = jobs
        .windows(2)
        .filter(|pair| pair[0].way.t3 + 1 < pair[1].way.t0)
        .map(|pair| pair[0].way.t3.midpoint(pair[1].way.t0))
        .collect();
    if pauses.is_empty() {
        return jobs[jobs.len() - 1].way.t3 + 1;
    }
    pauses[usize::try_from(dice.next()).expect("64 bit") % pauses.len()]
}

/// Heartbeats, about two a second; one that would overtake is left out.
fn pulses(dice: &mut Dice, plan: &Plan, jobs: &[Job], from: u64, to: u64) -> Vec<Exchange> {
    let mut all: Vec<Exchange> = jobs.iter().map(|job| job.way).collect();
    let mut t0 = from;
    loop {
        t0 += dice.within(50 * MS, 900 * MS);
        let mut a = t0 + dice.within(1, plan.trip_ns);
        if let Some(stall) = jobs.iter().filter_map(|job| job.stall).find(|s| s.0 <= a && a < s.1) {
            a = stall.1;
        }
        let b = a + dice.within(0, 20 * US);
        let pulse = Exchange { t0, a, b, t3: b + dice.within(1, plan.trip_ns) };
        if pulse.t3 >= to {
            return all.split_off(jobs.len());
        }
        let in_order = |other: &Exchange| {
            (pulse.t0 < other.t0) == (pulse.a < other.a)
                && (pulse.b < other.b) == (pulse.t3 < other.t3)
        };
        if all.iter().all(in_order) {
            all.push(pulse);
        }
    }
}

fn record(log: &mut Log, clock: &Clock, jobs: &[Job], pulses: &[Exchange]) {
    for (id, job) in jobs.iter().enumerate() {
        let id = id as u64;
        let Exchange { t0, a, b, t3 } = job.way;
        log.send(0, id, job.name, t0, t0);
        let phases: Vec<_> = job
            .phase
            .iter()
            .map(|(kind, from, to)| (*kind, clock.stamp(*from), clock.stamp(*to)))
            .collect();
        let stamps = [a, job.s, job.f, b].map(|at| clock.stamp(at));
        let mut reply = reply(id, stamps, &phases);
        reply.clock_gap_ns = clock.gap(b);
        log.reply(0, t3, reply);
        if let Some((from, to)) = job.stall {
            log.push(
                to,
                Event::Stalled {
                    launch: LaunchId(0),
                    t3: c(to),
                    from: w(clock.stamp(from)),
                    to: w(clock.stamp(to)),
                },
            );
        }
    }
    for (seq, pulse) in pulses.iter().enumerate() {
        log.push(
            pulse.t3,
            Event::Pulse {
                launch: LaunchId(0),
                seq: seq as u64,
                t0: c(pulse.t0),
                t3: c(pulse.t3),
                received: w(clock.stamp(pulse.a)),
                encoded: w(clock.stamp(pulse.b)),
                clock_gap_ns: clock.gap(pulse.b),
            },
        );
    }
}

fn windows(jobs: &[Job]) -> Vec<(u64, u64)> {
    let mut windows: Vec<(u64, u64)> = Vec::new();
    for job in jobs {
        match windows.last_mut() {
            Some((_, to)) if job.way.t0 <= *to => *to = job.way.t3.max(*to),
            _ => windows.push((job.way.t0, job.way.t3)),
        }
    }
    windows
}

/// What really went on, in true time.
fn pieces(jobs: &[Job]) -> Vec<(Category, u64, u64)> {
    let mut pieces = Vec::new();
    for (place, job) in jobs.iter().enumerate() {
        let service = match job.name {
            "put" | "get" => Category::Storage,
            _ => Category::Overhead,
        };
        pieces.push((Category::Overhead, job.f, job.way.b));
        match job.phase {
            None => pieces.push((service, job.s, job.f)),
            Some((kind, from, to)) => {
                let inner = match kind {
                    PhaseKind::User => Category::User,
                    _ => Category::Wait,
                };
                pieces.push((service, job.s, from));
                pieces.push((inner, from, to));
                pieces.push((service, to, job.f));
            }
        }
        pieces.extend(job.stall.map(|(from, to)| (Category::Stall, from, to)));
        let mut at = job.way.a;
        for before in &jobs[..place] {
            let (from, to) = (before.s.clamp(at, job.s), before.f.clamp(at, job.s));
            pieces.push((Category::Overhead, at, from));
            pieces.push((Category::Queue, from, to));
            at = to;
        }
        pieces.push((Category::Overhead, at, job.s));
    }
    pieces
}

/// Between `from` and `to`: the first category of all that goes on; in windows else network,
/// outside of them the coordinator.
fn sweep(jobs: &[Job], from: u64, to: u64) -> BTreeMap<Category, u64> {
    let (pieces, windows) = (pieces(jobs), windows(jobs));
    let mut edges: Vec<u64> = pieces.iter().flat_map(|(_, from, to)| [*from, *to]).collect();
    edges.extend(windows.iter().flat_map(|(from, to)| [*from, *to]));
    edges.extend([from, to]);
    edges.sort_unstable();
    edges.dedup();
    let mut truth = BTreeMap::new();
    for pair in edges.windows(2).filter(|pair| pair[1] <= to) {
        let is_in = |from: u64, to: u64| from <= pair[0] && pair[1] <= to;
        let category = if windows.iter().any(|(from, to)| is_in(*from, *to)) {
            let busy = pieces.iter().filter(|(_, from, to)| is_in(*from, *to));
            busy.map(|(category, ..)| *category).min().unwrap_or(Category::Network)
        } else {
            Category::Coordinator
        };
        *truth.entry(category).or_default() += pair[1] - pair[0];
    }
    truth
}

impl Life {
    /// Slacks, in nanoseconds rounded up, of all pairs that a jump falls between: how far W can
    /// jump before the fault test of that pair fails. Of hello there is only the way back.
    fn slacks(&self, forward: bool) -> Vec<u128> {
        let Some((jump, _)) = self.clock.jump else {
            return Vec::new();
        };
        let mut slacks = Vec::new();
        for i in &self.exchanges {
            for j in self.exchanges.iter().chain([&self.hello]) {
                let fits =
                    if forward { i.a < jump && j.b >= jump } else { i.a >= jump && j.b < jump };
                if fits {
                    slacks.push(self.slack(i, j));
                }
            }
        }
        slacks
    }

    fn slack(&self, i: &Exchange, j: &Exchange) -> u128 {
        let on_c = i128::from(j.t3) - i128::from(i.t0);
        let on_w = self.clock.steady(j.b) - self.clock.steady(i.a);
        let limit = (on_c - on_w + 1_000) * 1_000_000 + i128::from(self.clock.ppm) * on_c.abs();
        u128::try_from(limit.div_euclid(1_000_000)).expect("a sound clock passes")
    }

    /// Whether anything came from the worker after W jumped.
    pub(crate) fn is_jump_heard_of(&self) -> bool {
        let jump = self.clock.jump.map_or(u64::MAX, |(jump, _)| jump);
        self.exchanges.iter().any(|exchange| exchange.b >= jump)
    }

    /// The jump that just passes unseen.
    pub(crate) fn least_slack(&self, forward: bool) -> u128 {
        self.slacks(forward).into_iter().min().unwrap_or(u128::MAX)
    }

    /// A jump beyond this is seen at the first exchange.
    pub(crate) fn largest_slack(&self, forward: bool) -> u128 {
        self.slacks(forward).into_iter().max().unwrap_or(u128::MAX)
    }

    /// Length of the window within which W jumped; 0 if it was between two.
    pub(crate) fn window_around_jump(&self) -> u64 {
        let Some((jump, _)) = self.clock.jump else {
            return 0;
        };
        let around = self.windows.iter().find(|(from, to)| from < &jump && &jump < to);
        around.map_or(0, |(from, to)| to - from)
    }
}
