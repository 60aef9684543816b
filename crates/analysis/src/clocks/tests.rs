//! The fast fault test and the fast bounds against the definitions, pair by pair.

use musec_trace::{CTime, WTime};
use proptest::prelude::*;

use super::epoch::{Back, Epoch, Towards};
use super::rate::{EPSILON_NS, Rate, div_ceil, scaled};

#[derive(Clone, Copy, Debug)]
struct Both(Option<Towards>, Option<Back>);

fn stamp() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..30_000_u64, 4 => 0..60_000_000_000_u64, 1 => any::<u64>()]
}

fn exchange() -> impl Strategy<Value = Both> {
    let towards = (stamp(), stamp())
        .prop_map(|(t0, a)| Towards { t0: CTime::from_ns(t0), a: WTime::from_ns(a) });
    let back = (stamp(), stamp())
        .prop_map(|(b, t3)| Back { b: WTime::from_ns(b), t3: CTime::from_ns(t3) });
    (prop::option::of(towards), prop::option::of(back)).prop_map(|(to, back)| Both(to, back))
}

/// An exchange of a clock that is `offset` ahead: mostly sound, so that epochs grow.
fn likely() -> impl Strategy<Value = Both> {
    (0..50_000_000_u64, 0..9_000_u64, 0..9_000_u64, 0..9_000_u64).prop_map(
        |(t0, up, busy, down)| {
            let towards = Towards { t0: CTime::from_ns(t0), a: WTime::from_ns(t0 + up + 70_000) };
            let back = Back {
                b: WTime::from_ns(t0 + up + busy + 70_000),
                t3: CTime::from_ns(t0 + up + busy + down),
            };
            Both(Some(towards), Some(back))
        },
    )
}

fn pair_passes(rate: Rate, towards: Towards, back: Back) -> bool {
    let on_c = i128::from(back.t3.ns) - i128::from(towards.t0.ns);
    let on_w = i128::from(back.b.ns) - i128::from(towards.a.ns);
    scaled(on_w) <= scaled(on_c + EPSILON_NS) + i128::from(rate.ppm()) * on_c.abs()
}

/// All pairs of `all` and `new`, and of `new` with itself.
fn all_pairs_pass(rate: Rate, all: &[Both], new: Both) -> bool {
    let towards = all.iter().chain([&new]).filter_map(|both| both.0);
    let mut pairs = towards.flat_map(|towards| {
        let backs = all.iter().chain([&new]).filter_map(|both| both.1);
        backs.map(move |back| (towards, back))
    });
    pairs.all(|(towards, back)| pair_passes(rate, towards, back))
}

fn slow_position(rate: Rate, all: &[Both], w: u64) -> (Option<i128>, Option<i128>) {
    let w = i128::from(w);
    let low = all.iter().filter_map(|both| both.0).map(|Towards { t0, a }| {
        let x = w - EPSILON_NS - i128::from(a.ns);
        let slope = if x >= 0 { rate.fast() } else { rate.slow() };
        i128::from(t0.ns) + scaled(x).div_euclid(slope)
    });
    let high = all.iter().filter_map(|both| both.1).map(|Back { b, t3 }| {
        let x = w + EPSILON_NS - i128::from(b.ns);
        let slope = if x >= 0 { rate.slow() } else { rate.fast() };
        i128::from(t3.ns) + div_ceil(scaled(x), slope)
    });
    (low.max(), high.min())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_fault_test_equals_the_one_of_all_pairs(
        exchanges in prop::collection::vec(prop_oneof![4 => likely(), 1 => exchange()], 1..40),
        ppm in prop::sample::select(vec![0, 200, 600, 999_999]),
    ) {
        let rate = Rate::from_ppm(ppm);
        let mut epoch = Epoch::new(rate, CTime::ZERO);
        let mut kept = Vec::new();
        for both in exchanges {
            let passes = epoch.admits(both.0, both.1);
            prop_assert_eq!(passes, all_pairs_pass(rate, &kept, both));
            if passes {
                epoch.insert(both.0, both.1);
                kept.push(both);
            }
        }
    }

    #[test]
    fn bounds_equal_those_of_all_exchanges(
        exchanges in prop::collection::vec(prop_oneof![likely(), exchange()], 0..40),
        queries in prop::collection::vec(stamp(), 1..20),
        ppm in prop::sample::select(vec![0, 200, 600, 999_999]),
    ) {
        let rate = Rate::from_ppm(ppm);
        let mut epoch = Epoch::new(rate, CTime::ZERO);
        for both in &exchanges {
            epoch.insert(both.0, both.1);
        }
        for w in queries {
            let fast = epoch.position(WTime::from_ns(w));
            prop_assert_eq!(fast, slow_position(rate, &exchanges, w));
        }
    }
}
