//! One epoch of one worker's clock: exchanges that do not contradict one another, and what they
//! say about any W time.
//!
//! An exchange bounds two instants: the worker decoded (a, W) no earlier than t0 (C), and encoded
//! (b, W) no later than t3 (C). Everything here follows from these and from |dW/dC − 1| ≤ r.
//! All products are exact: with stamps below 2⁶⁴ and factors below 2²¹ they fit in 2⁸⁷.

use musec_trace::{CTime, WTime};

use super::front::Front;
use super::rate::{EPSILON_NS, Rate, div_ceil, scaled};

/// The way towards the worker: sent no later than received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Towards {
    /// Before the first byte went to TLS, C.
    pub t0: CTime,
    /// After decoding, W.
    pub a: WTime,
}

/// The way back: encoded no later than read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Back {
    /// Just before encoding, W.
    pub b: WTime,
    /// After the last byte was read, C.
    pub t3: CTime,
}

/// An epoch of one worker's clock.
#[derive(Clone, Debug)]
pub struct Epoch {
    rate: Rate,
    /// When it was first heard of, C; before that its exchanges may belong to the epoch before.
    from: CTime,
    test: Test,
    position: Position,
}

/// For the fault test b_j − a_i ≤ (t3_j − t0_i) + r·|t3_j − t0_i| + ε: with t3_j ≥ t0_i it reads
/// (b_j − (1+r)·t3_j) − (a_i − (1+r)·t0_i) ≤ ε, else the same with 1−r. Two fronts for each way,
/// since the slope differs by sign.
#[derive(Clone, Debug, Default)]
struct Test {
    /// By t0: least a − (1+r)·t0.
    towards_before: Front,
    /// By −t0: least a − (1−r)·t0.
    towards_after: Front,
    /// By −t3: least −(b − (1+r)·t3).
    back_after: Front,
    /// By t3: least −(b − (1−r)·t3).
    back_before: Front,
}

/// For positions: w lies on C in [max t0 + lo(w − a), min t3 + hi(w − b)].
#[derive(Clone, Debug, Default)]
struct Position {
    /// By a: least −(t0·(1+r) − a).
    low_near: Front,
    /// By −a: least −(t0·(1−r) − a).
    low_far: Front,
    /// By b: least t3·(1−r) − b.
    high_far: Front,
    /// By −b: least t3·(1+r) − b.
    high_near: Front,
}

impl Epoch {
    /// An epoch that is first heard of at `from` (C).
    #[must_use]
    pub fn new(rate: Rate, from: CTime) -> Self {
        Self { rate, from, test: Test::default(), position: Position::default() }
    }

    /// When it was first heard of, C.
    #[must_use]
    pub fn from(&self) -> CTime {
        self.from
    }

    /// Its bound of rates.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether this exchange, with itself and with all exchanges of the epoch, passes the one
    /// fault test. O(log n).
    #[must_use]
    pub fn admits(&self, towards: Option<Towards>, back: Option<Back>) -> bool {
        let limit = scaled(EPSILON_NS);
        if let (Some(towards), Some(back)) = (towards, back)
            && !self.admits_pair(towards, back)
        {
            return false;
        }
        let (fast, slow) = (self.rate.fast(), self.rate.slow());
        if let Some(back) = back {
            let t3 = i128::from(back.t3.ns);
            let b = scaled(i128::from(back.b.ns));
            let before = self.test.towards_before.least_up_to(t3);
            let after = self.test.towards_after.least_up_to(-t3 - 1);
            if before.is_some_and(|least| b - fast * t3 - least > limit)
                || after.is_some_and(|least| b - slow * t3 - least > limit)
            {
                return false;
            }
        }
        if let Some(towards) = towards {
            let t0 = i128::from(towards.t0.ns);
            let a = scaled(i128::from(towards.a.ns));
            let after = self.test.back_after.least_up_to(-t0);
            let before = self.test.back_before.least_up_to(t0 - 1);
            if after.is_some_and(|least| -least - (a - fast * t0) > limit)
                || before.is_some_and(|least| -least - (a - slow * t0) > limit)
            {
                return false;
            }
        }
        true
    }

    /// The fault test of one way towards and one way back.
    fn admits_pair(&self, towards: Towards, back: Back) -> bool {
        let on_c = i128::from(back.t3.ns) - i128::from(towards.t0.ns);
        let on_w = i128::from(back.b.ns) - i128::from(towards.a.ns);
        let slack = i128::from(self.rate.ppm()) * on_c.abs();
        scaled(on_w) <= scaled(on_c) + slack + scaled(EPSILON_NS)
    }

    /// Adds what an exchange says. O(log n).
    pub fn insert(&mut self, towards: Option<Towards>, back: Option<Back>) {
        let (fast, slow) = (self.rate.fast(), self.rate.slow());
        if let Some(Towards { t0, a }) = towards {
            let (t0, a) = (i128::from(t0.ns), i128::from(a.ns));
            self.test.towards_before.insert(t0, scaled(a) - fast * t0);
            self.test.towards_after.insert(-t0, scaled(a) - slow * t0);
            self.position.low_near.insert(a, scaled(a) - fast * t0);
            self.position.low_far.insert(-a, scaled(a) - slow * t0);
        }
        if let Some(Back { b, t3 }) = back {
            let (b, t3) = (i128::from(b.ns), i128::from(t3.ns));
            self.test.back_after.insert(-t3, fast * t3 - scaled(b));
            self.test.back_before.insert(t3, slow * t3 - scaled(b));
            self.position.high_far.insert(b, slow * t3 - scaled(b));
            self.position.high_near.insert(-b, fast * t3 - scaled(b));
        }
    }

    /// Forgets what only the fault test needs: no exchange will be added any more.
    pub fn close(&mut self) {
        self.test = Test::default();
    }

    /// Where `w` lies on C: [maxᵢ(t0ᵢ + lo(w − ε − aᵢ)), minᵢ(t3ᵢ + hi(w + ε − bᵢ))], rounded
    /// outwards; lo(x) = x/(1+r) for x ≥ 0 else x/(1−r), hi the reverse. A side is `None` if no
    /// exchange bounds it. O(log n).
    #[must_use]
    pub fn position(&self, w: WTime) -> (Option<i128>, Option<i128>) {
        let (fast, slow) = (self.rate.fast(), self.rate.slow());
        let early = i128::from(w.ns) - EPSILON_NS;
        let near = self.position.low_near.least_up_to(early);
        let far = self.position.low_far.least_up_to(-early - 1);
        let low = [(near, fast), (far, slow)]
            .into_iter()
            .filter_map(|(least, slope)| Some((scaled(early) - least?).div_euclid(slope)))
            .max();
        let late = i128::from(w.ns) + EPSILON_NS;
        let far = self.position.high_far.least_up_to(late);
        let near = self.position.high_near.least_up_to(-late - 1);
        let high = [(far, slow), (near, fast)]
            .into_iter()
            .filter_map(|(least, slope)| Some(div_ceil(scaled(late) + least?, slope)))
            .min();
        (low, high)
    }

    /// The W times whose [`position`](Self::position) holds `c`, least and most: what the clock may
    /// have shown then. A side that no exchange bounds is the end of all stamps. Exchanges that
    /// contradict one another within ε give the W times in between. O(log n), 128 positions.
    #[must_use]
    pub fn stood(&self, c: CTime) -> (WTime, WTime) {
        let c = i128::from(c.ns);
        let position = |ns: u64| self.position(WTime::from_ns(ns));
        // Both sides of a position grow with W.
        let least = first(|ns| position(ns).1.is_none_or(|high| high >= c));
        let beyond = first(|ns| position(ns).0.is_some_and(|low| low > c));
        let least = least.unwrap_or(u64::MAX);
        let most = beyond.map_or(u64::MAX, |beyond| beyond.saturating_sub(1));
        (WTime::from_ns(least.min(most)), WTime::from_ns(least.max(most)))
    }
}

/// The first number from which on `holds` is true; `None` if it never is.
fn first(holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(u64::MAX) {
        return None;
    }
    let (mut low, mut high) = (0, u64::MAX);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}
