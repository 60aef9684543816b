//! What a worker was busy with in one window, by its own clock.
//!
//! In: the window's commands that replied, all of one epoch, and the attempt's stalls. Out: how
//! many nanoseconds of W each category won, and for which command. At every instant the category
//! of the highest precedence among what goes on wins; of several commands with it the one of the
//! first lane, then of the lowest id. A step may say where its command's own time (a run's user
//! phase, a transfer) counts; what the worker does around it stays overhead. A background command
//! counts where no other is at work. What comes after a limit does not count.

use std::collections::{BTreeMap, BTreeSet};

use musec_trace::{CommandId, PhaseKind, WTime};

use super::category::Category;
use crate::fold::{Command, ReplyFacts};

/// Nanoseconds of W by category and command; a stall between commands has none.
pub(crate) type Cells = BTreeMap<(Category, Option<CommandId>), u128>;

/// Where a sweep ends, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// At this instant of W.
    pub(crate) until: WTime,
    /// When the cells sum to this, in nanoseconds.
    pub(crate) most_ns: u128,
}

impl Limit {
    /// Nothing is left out.
    pub(crate) const NONE: Self = Self { until: WTime::from_ns(u64::MAX), most_ns: u128::MAX };
}

/// What wins at an instant: the least of these. Background commands come last.
type Rank = (bool, Category, usize, CommandId);

/// An interval of W, half-open, in which something goes on.
struct Piece {
    from: u64,
    to: u64,
    rank: Rank,
}

/// One command that replied.
struct Job<'a> {
    id: CommandId,
    command: &'a Command,
    reply: &'a ReplyFacts,
    lane: usize,
}

/// The cells of one window. O(n log n) in commands, phases and stalls.
pub(crate) fn sweep(
    commands: &[(CommandId, &Command)],
    stalls: &[(WTime, WTime)],
    limit: Limit,
) -> Cells {
    let lanes: BTreeSet<&[u32]> = commands.iter().map(|(_, command)| command.lane()).collect();
    let lanes: BTreeMap<&[u32], usize> =
        lanes.into_iter().enumerate().map(|(place, lane)| (lane, place)).collect();
    let jobs: Vec<Job<'_>> = commands
        .iter()
        .filter_map(|(id, command)| {
            Some(Job {
                id: *id,
                command,
                reply: command.reply.as_ref()?,
                lane: lanes.get(command.lane()).copied().unwrap_or(0),
            })
        })
        .collect();
    let mut pieces = Vec::new();
    for job in &jobs {
        at_work(job, &mut pieces);
    }
    for lane in 0..lanes.len() {
        let foreground = |job: &&Job<'_>| job.lane == lane && !job.command.is_background();
        waiting(jobs.iter().filter(foreground), &mut pieces);
    }
    win(&pieces, &within_hull(&jobs, stalls), limit)
}

/// The parts of `stalls` between the first a and the last b.
fn within_hull(jobs: &[Job<'_>], stalls: &[(WTime, WTime)]) -> Vec<(u64, u64)> {
    let first = jobs.iter().map(|job| job.reply.stamps.received.ns).min().unwrap_or(0);
    let last = jobs.iter().map(|job| job.reply.stamps.encoded.ns).max().unwrap_or(0);
    stalls
        .iter()
        .map(|(from, to)| (from.ns.max(first), to.ns.min(last)))
        .filter(|(from, to)| from < to)
        .collect()
}

/// `[s,f]` and `[f,b]` of one command; of a background command `[a,s]` too.
fn at_work(job: &Job<'_>, pieces: &mut Vec<Piece>) {
    let stamps = job.reply.stamps;
    let background = job.command.is_background();
    let mut put = |from: u64, to: u64, category| {
        if from < to {
            let rank = (background, category, job.lane, job.id);
            pieces.push(Piece { from, to, rank });
        }
    };
    if background {
        put(stamps.received.ns, stamps.started.ns, Category::Overhead);
    }
    put(stamps.finished.ns, stamps.encoded.ns, Category::Overhead);
    let (s, f) = (stamps.started.ns, stamps.finished.ns);
    let own = |default| job.command.category().map_or(default, Category::from);
    let (kind, inner, rest) = match job.command.name() {
        "run" => (PhaseKind::User, own(Category::User), Category::Overhead),
        "get" | "put" => return put(s, f, own(Category::Storage)),
        "sleep" if !job.reply.phases.iter().any(|phase| phase.kind == PhaseKind::Sleep) => {
            return put(s, f, own(Category::Wait));
        }
        "sleep" => (PhaseKind::Sleep, own(Category::Wait), Category::Overhead),
        "send" | "receive" => (PhaseKind::Transfer, own(Category::Peer), Category::PeerWait),
        _ => return put(s, f, own(Category::Overhead)),
    };
    let mut inside: Vec<(u64, u64)> = job
        .reply
        .phases
        .iter()
        .filter(|phase| phase.kind == kind)
        .map(|phase| (phase.from.ns.clamp(s, f), phase.to.ns.clamp(s, f)))
        .filter(|(from, to)| from < to)
        .collect();
    inside.sort_unstable();
    let mut at = s;
    for (from, to) in inside {
        put(at, from, rest);
        put(from, to, inner);
        at = at.max(to);
    }
    put(at, f, rest);
}

/// `[a,s]` of one lane's foreground commands: behind an earlier one, or the worker's overhead. The
/// first of those that wait stands for all: if it has nobody before it, overhead wins anyway.
fn waiting<'a>(jobs: impl Iterator<Item = &'a Job<'a>>, pieces: &mut Vec<Piece>) {
    // Time, whether it is a wait (else a service), whether it begins, whose, lane.
    let mut edges: Vec<(u64, bool, bool, CommandId, usize)> = Vec::new();
    for job in jobs {
        let stamps = job.reply.stamps;
        let (a, s, f) = (stamps.received.ns, stamps.started.ns, stamps.finished.ns);
        for (from, to, waits) in [(a, s, true), (s, f, false)] {
            if from < to {
                edges.push((from, waits, true, job.id, job.lane));
                edges.push((to, waits, false, job.id, job.lane));
            }
        }
    }
    edges.sort_unstable();
    let (mut waiters, mut holders) = (BTreeSet::new(), BTreeSet::new());
    let mut at = 0;
    for (time, waits, begins, id, lane) in edges {
        if at < time
            && let Some(first) = waiters.first().copied()
        {
            let queued = holders.first().is_some_and(|holder| *holder < first);
            let category = if queued { Category::Queue } else { Category::Overhead };
            pieces.push(Piece { from: at, to: time, rank: (false, category, lane, first) });
        }
        at = time;
        let set = if waits { &mut waiters } else { &mut holders };
        if begins {
            set.insert(id);
        } else {
            set.remove(&id);
        }
    }
}

/// Goes along W from edge to edge, up to the limit, and gives each stretch to who wins it.
fn win(pieces: &[Piece], stalls: &[(u64, u64)], limit: Limit) -> Cells {
    let mut edges: Vec<(u64, Option<Rank>, bool)> = Vec::new();
    for piece in pieces {
        edges.push((piece.from, Some(piece.rank), true));
        edges.push((piece.to, Some(piece.rank), false));
    }
    for (from, to) in stalls {
        edges.push((*from, None, true));
        edges.push((*to, None, false));
    }
    edges.sort_unstable();
    let mut active: BTreeMap<Option<Rank>, i64> = BTreeMap::new();
    let mut cells = Cells::new();
    let (mut at, mut left) = (0, limit.most_ns);
    for (time, what, begins) in edges {
        let length = u128::from(time.min(limit.until.ns).saturating_sub(at)).min(left);
        if length > 0
            && let Some(key) = winner(&active)
        {
            *cells.entry(key).or_default() += length;
            left -= length;
        }
        at = time;
        let count = active.entry(what).or_default();
        *count += if begins { 1 } else { -1 };
        if *count == 0 {
            active.remove(&what);
        }
    }
    cells
}

/// The category and command that win among what is active; a stall (key `None`, the least) takes
/// all but the user's own time, in the name of the command that it held up.
fn winner(active: &BTreeMap<Option<Rank>, i64>) -> Option<(Category, Option<CommandId>)> {
    let stalled = active.contains_key(&None);
    let best = active.keys().flatten().next();
    match (best, stalled) {
        (Some((_, Category::User, _, id)), _) => Some((Category::User, Some(*id))),
        (best, true) => Some((Category::Stall, best.map(|(.., id)| *id))),
        (Some((_, category, _, id)), false) => Some((*category, Some(*id))),
        (None, false) => None,
    }
}
