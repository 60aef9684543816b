//! One window's time given away: busy time as the worker measured it, the rest to the network.

use std::collections::BTreeMap;

use musec_trace::{CTime, CommandId};

use super::apportion::apportion;
use super::background;
use super::category::Category;
use super::session::{Cut, Window};
use super::sweep::{Cells, Limit, sweep};
use crate::clocks::AttemptClock;
use crate::fold::{Attempt, Command};

/// A window's account; its cells and what is unaccounted sum to its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowAccount {
    /// Nanoseconds by category and command.
    pub(crate) cells: Cells,
    /// In no category, in nanoseconds.
    pub(crate) unaccounted_ns: u128,
    /// The command that alone made the window.
    pub(crate) only: Option<CommandId>,
    /// Bounds of the network's part, in nanoseconds.
    pub(crate) network_bounds_ns: (u128, u128),
    /// Whether busy time was fitted.
    pub(crate) is_fitted: bool,
    /// Whether its busy time cannot have fitted.
    pub(crate) is_impossible: bool,
}

/// The account of `window`, which lasted from `from` to `to` (C).
///
/// Busy time B, measured on W, has bounds on C ([`bounds`]) and is no longer than the window, L.
/// The value nearest to B that both allow is taken. If even the least is above L, the window is
/// unaccounted, with a fault. Of a window that the session's end cuts, B is what was measured up
/// to there ([`measure`]). Commands sent before the hello, which only a damaged journal has, reach
/// beyond their window by an amount that nobody knows: they are fitted, and network may be
/// anything.
pub(crate) fn account(
    attempt: &Attempt,
    window: &Window,
    (from, to): (CTime, CTime),
    clock: &AttemptClock,
) -> WindowAccount {
    let length = u128::from(to.since(from));
    let mut account = WindowAccount { only: only(window), ..WindowAccount::default() };
    if window.is_broken {
        account.unaccounted_ns = length;
        return account;
    }
    let commands: Vec<(CommandId, &Command)> =
        window.answered.iter().filter_map(|id| Some((*id, attempt.commands.get(id)?))).collect();
    let (cells, (least, most)) = measure(attempt, window, &commands, (from, to), clock);
    account.cells = cells;
    let busy: u128 = account.cells.values().sum();
    if least > length && busy > length {
        account.cells.clear();
        account.unaccounted_ns = length;
        account.is_impossible = true;
        return account;
    }
    let (least, most) = (least.min(length), most.min(length));
    account.network_bounds_ns = (length - most, length - least);
    // Nothing can be scaled up to something.
    let value = if busy == 0 { 0 } else { busy.clamp(least, most) };
    if value != busy {
        account.is_fitted = true;
        account.cells = fit(&account.cells, value);
    }
    if value < length {
        add_network(&mut account.cells, &commands, window, attempt, length - value, to);
    }
    account
}

/// Busy time as measured on W, and its bounds on C.
///
/// Where the session's end cuts the window, the worker's clock stood between two W times then, by
/// all exchanges of the epoch (that of `quit` itself among them). What was measured is clipped at
/// the later one, or where the most that C allows is reached, but no earlier than at the earlier
/// one: the nearest to all that was measured.
fn measure(
    attempt: &Attempt,
    window: &Window,
    commands: &[(CommandId, &Command)],
    (from, to): (CTime, CTime),
    clock: &AttemptClock,
) -> (Cells, (u128, u128)) {
    let length = u128::from(to.since(from));
    let room = background::room(attempt, window, (from, to));
    let measured = |limit| {
        let cells = sweep(commands, &attempt.stalls, limit);
        let cells = match room {
            Some(room) => background::cut(cells, attempt, room),
            None => cells,
        };
        let busy: u128 = cells.values().sum();
        (cells, busy)
    };
    let epoch = window.answered.first().and_then(|id| clock.epoch_of(*id));
    let stood = epoch.and_then(|epoch| clock.stood(epoch, to));
    let (earlier, later) = match (window.cut, stood) {
        (Cut::None, _) => {
            let (cells, busy) = measured(Limit::NONE);
            return (cells, bounds((busy, busy), commands, window, clock, to));
        }
        (Cut::AtEnd, Some(stood)) => stood,
        (Cut::AtStart, _) | (Cut::AtEnd, None) => return (measured(Limit::NONE).0, (0, length)),
    };
    let (_, surely) = measured(Limit { until: earlier, ..Limit::NONE });
    let (_, perhaps) = measured(Limit { until: later, ..Limit::NONE });
    let (least, most) = bounds((surely, perhaps), commands, window, clock, to);
    let limit = Limit { until: later, most_ns: most.min(length).max(surely) };
    (measured(limit).0, (least, most))
}

/// Bounds on C of busy time that is between `least` and `most` on W: [B⁻, B⁺]
/// ([`Rate::least_on_c`], [`Rate::most_on_c`]); of a command that alone made the window, and thus
/// was busy from a to b without pause, narrowed by where all exchanges of the epoch let a and b
/// lie. `to` (C) ends the window.
///
/// [`Rate::least_on_c`]: crate::clocks::Rate::least_on_c
/// [`Rate::most_on_c`]: crate::clocks::Rate::most_on_c
fn bounds(
    (least, most): (u128, u128),
    commands: &[(CommandId, &Command)],
    window: &Window,
    clock: &AttemptClock,
    to: CTime,
) -> (u128, u128) {
    let (least, most) = (clock.rate().least_on_c(least), clock.rate().most_on_c(most));
    let alone = match (commands, window.unanswered.as_slice()) {
        ([(id, command)], []) => clock.busy_bounds(*id, command, to),
        _ => None,
    };
    let Some((shortest, longest)) = alone else {
        return (least, most);
    };
    let narrowed = (least.max(shortest.into()), most.min(longest.into()));
    if narrowed.0 <= narrowed.1 { narrowed } else { (least, most) }
}

/// The command that alone made a window.
fn only(window: &Window) -> Option<CommandId> {
    match (window.answered.as_slice(), window.unanswered.as_slice()) {
        ([only], []) | ([], [only]) => Some(*only),
        _ => None,
    }
}

/// `cells` scaled to sum to `value`: first categories by largest remainder, then each category's
/// commands.
fn fit(cells: &Cells, value: u128) -> Cells {
    let mut by_category: BTreeMap<Category, u128> = BTreeMap::new();
    for ((category, _), ns) in cells {
        *by_category.entry(*category).or_default() += ns;
    }
    let weights: Vec<u128> = by_category.values().copied().collect();
    let totals = apportion(value, &weights);
    let mut fitted = Cells::new();
    for (category, total) in by_category.keys().zip(totals) {
        let own = || cells.iter().filter(|((of, _), _)| of == category);
        let weights: Vec<u128> = own().map(|(_, ns)| *ns).collect();
        let parts = apportion(total, &weights);
        fitted.extend(own().map(|(key, _)| *key).zip(parts));
    }
    fitted
}

/// Gives `network` nanoseconds to the window's commands in proportion to their own t3 − t0 −
/// (b − a); one that did not reply has been in transit for all that is known.
fn add_network(
    cells: &mut Cells,
    answered: &[(CommandId, &Command)],
    window: &Window,
    attempt: &Attempt,
    network: u128,
    to: CTime,
) {
    let mut shares: BTreeMap<CommandId, u128> = BTreeMap::new();
    for (id, command) in answered {
        shares.insert(*id, own_network(command));
    }
    for id in &window.unanswered {
        let t0 = attempt.commands.get(id).and_then(|command| command.t0);
        shares.insert(*id, u128::from(to.since(t0.unwrap_or(to))));
    }
    let weights: Vec<u128> = shares.values().copied().collect();
    for (id, part) in shares.keys().zip(apportion(network, &weights)) {
        *cells.entry((Category::Network, Some(*id))).or_default() += part;
    }
}

/// t3 − t0 − (b − a), in nanoseconds; 0 where clocks make it negative.
fn own_network(command: &Command) -> u128 {
    let (Some(t0), Some(reply)) = (command.t0, command.reply.as_ref()) else {
        return 0;
    };
    let outside = reply.t3.since(t0).saturating_sub(reply.stamps.at_worker_ns());
    u128::from(outside)
}
