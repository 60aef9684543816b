//! The law of canonical forms, against brute force: two words have the same form if and only if
//! swaps of independent neighbours lead from one to the other.

mod common;

use std::collections::BTreeSet;

use common::c;
use musec_analysis::paths::{Act, Canonical, Class, Letter, Stamped, Track};
use musec_trace::StateId;
use proptest::prelude::*;

/// A letter of one of four lanes or an info, with what it reads. Few kinds, so that equal letters,
/// and letters that depend on one another by their reads alone, are common.
fn letter() -> impl Strategy<Value = Letter> {
    let track = prop::sample::select(vec![
        Track::Lane(vec![]),
        Track::Lane(vec![0]),
        Track::Lane(vec![1]),
        Track::Lane(vec![1, 0]),
        Track::Info("x".to_owned()),
    ]);
    let reads = prop_oneof![
        4 => Just(Vec::new()),
        1 => track.clone().prop_map(|one| vec![one]),
        1 => Just(vec![Track::Lane(vec![0]), Track::Lane(vec![1])]),
    ];
    (track, reads, 0..2_u32).prop_map(|(track, reads, to)| Letter {
        track,
        act: Act::Move(None, Some(StateId(to))),
        class: Class::Done,
        reads,
    })
}

fn form(word: &[Letter]) -> Canonical {
    let stamped = word.iter().zip(0..).map(|(letter, at)| Stamped {
        letter: letter.clone(),
        at: c(at),
        command: None,
    });
    Canonical::of(stamped.collect())
}

/// All words that swaps of independent neighbours make of `word`, and nothing else.
fn class(word: &[Letter]) -> BTreeSet<Vec<Letter>> {
    let mut all = BTreeSet::from([word.to_vec()]);
    let mut fresh = vec![word.to_vec()];
    while let Some(word) = fresh.pop() {
        for place in 1..word.len() {
            if word[place - 1].depends_on(&word[place]) {
                continue;
            }
            let mut swapped = word.clone();
            swapped.swap(place - 1, place);
            if all.insert(swapped.clone()) {
                fresh.push(swapped);
            }
        }
    }
    all
}

/// All orders of the letters.
fn orders(letters: &[Letter]) -> BTreeSet<Vec<Letter>> {
    let Some((first, rest)) = letters.split_first() else { return BTreeSet::from([Vec::new()]) };
    let mut all = BTreeSet::new();
    for order in orders(rest) {
        for place in 0..=order.len() {
            let mut order = order.clone();
            order.insert(place, first.clone());
            all.insert(order);
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every order of the same letters: those of the class have the form, and no other has.
    #[test]
    fn forms_are_equal_exactly_where_swaps_of_independent_letters_lead_from_one_to_the_other(
        word in prop::collection::vec(letter(), 0..=6),
    ) {
        let class = class(&word);
        let own = form(&word);
        for order in orders(&word) {
            let same = form(&order).is_same_execution(&own);
            prop_assert_eq!(same, class.contains(&order), "{:?}", order);
        }
    }

    /// Other letters: one that is left out, put in or changed makes another execution.
    #[test]
    fn words_of_other_letters_have_another_form(
        word in prop::collection::vec(letter(), 1..=7),
        other in letter(),
        place in any::<prop::sample::Index>(),
    ) {
        let own = form(&word);
        let place = place.index(word.len());
        let mut changed = word.clone();
        changed.remove(place);
        prop_assert!(!form(&changed).is_same_execution(&own));
        changed.insert(place, other);
        let same = form(&changed).is_same_execution(&own);
        prop_assert_eq!(same, class(&word).contains(&changed));
    }

    /// What a canonical form is: steps of independent letters, each letter with one in the step
    /// before that it depends on; each lane's letters in their order, with their stamps.
    #[test]
    fn each_letter_stands_in_the_first_step_that_its_dependences_allow(
        word in prop::collection::vec(letter(), 0..=30),
    ) {
        let own = form(&word);
        for (number, step) in own.steps().iter().enumerate() {
            for (place, one) in step.iter().enumerate() {
                let rest = &step[place + 1..];
                prop_assert!(rest.iter().all(|other| !one.letter.depends_on(&other.letter)));
                let before = number.checked_sub(1).map(|before| &own.steps()[before]);
                let needs = |step: &Vec<Stamped>| {
                    step.iter().any(|earlier| earlier.letter.depends_on(&one.letter))
                };
                prop_assert!(before.is_none_or(needs), "{:?} could come before", one);
            }
        }
        for (track, letters) in own.tracks() {
            let wanted = word.iter().zip(0..).filter(|(letter, _)| letter.track == *track);
            let wanted: Vec<_> = wanted.map(|(letter, at)| (letter, c(at))).collect();
            let got: Vec<_> = letters.iter().map(|(_, of)| (&of.letter, of.at)).collect();
            prop_assert_eq!(got, wanted);
        }
    }
}
