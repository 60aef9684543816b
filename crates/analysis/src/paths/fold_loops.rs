//! Sequences of symbols, with loops folded: `a b a b c` becomes `(a b)×n c`.
//!
//! In: sequences, symbol by symbol. Out: the same with what is repeated put into one symbol, which
//! does not say how often. Invariants: no symbol is lost but for repetitions; the same sequences
//! give the same symbols, and what goes round once somewhere is a loop there too, once it was seen
//! to go round twice somewhere.

use std::collections::BTreeMap;

/// Longest body of a loop that is looked for, in symbols: a longer one is rare, and looking for it
/// costs as many comparisons as the sequence is long.
const BODY_MAX: usize = 128;

/// Most loops that are folded in one sequence: each costs a walk along it for each length of a
/// body, and a program has few.
const ROUNDS_MAX: usize = 256;

/// A symbol, by its number.
pub(super) type Symbol = usize;

/// What is known of a symbol.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    /// What it is shown as.
    pub(super) text: String,
    /// The same with the numbers of steps, which tell apart what looks alike.
    pub(super) exact: String,
    /// What is done in it, one by one.
    pub(super) leaves: Vec<Leaf>,
}

/// One thing that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// In words.
    pub(super) text: String,
    /// The same with the number of its step.
    pub(super) exact: String,
}

/// All symbols of a wave's paths.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    meanings: Vec<Meaning>,
    by_exact: BTreeMap<String, Symbol>,
    loops: BTreeMap<Vec<Symbol>, Symbol>,
    bodies: BTreeMap<Symbol, Vec<Symbol>>,
}

impl Symbols {
    /// The symbol with this meaning; symbols are told apart by [`Meaning::exact`].
    pub(super) fn symbol(&mut self, meaning: Meaning) -> Symbol {
        let next = self.meanings.len();
        if let Some(known) = self.by_exact.get(&meaning.exact) {
            return *known;
        }
        self.by_exact.insert(meaning.exact.clone(), next);
        self.meanings.push(meaning);
        next
    }

    /// How many loops are known.
    pub(super) fn loops(&self) -> usize {
        self.loops.len()
    }

    /// What a sequence is shown as, with `between` its symbols.
    pub(super) fn joined(&self, sequence: &[Symbol], between: &str) -> Meaning {
        let all = || sequence.iter().filter_map(|symbol| self.meanings.get(*symbol));
        let join = |texts: Vec<&str>| texts.join(between);
        Meaning {
            text: join(all().map(|of| of.text.as_str()).collect()),
            exact: join(all().map(|of| of.exact.as_str()).collect()),
            leaves: all().flat_map(|of| of.leaves.iter().cloned()).collect(),
        }
    }

    /// `sequence` with its loops folded, those with the shortest bodies first. A step that comes
    /// twice within a body is therefore taken for a loop of its own, which it is: a program comes
    /// to a step again by a loop only.
    pub(super) fn fold(&mut self, sequence: Vec<Symbol>, between: &str) -> Vec<Symbol> {
        let mut folded = sequence;
        for _ in 0..ROUNDS_MAX {
            folded = self.known(folded);
            let Some((from, period)) = shortest(&folded) else { break };
            let body = folded.get(from..from + period).unwrap_or_default().to_vec();
            let symbol = self.repeated(&body, between);
            folded = replaced(&folded, &body, symbol, 2);
        }
        folded
    }

    /// Puts the bodies of known loops into their loops, inner ones first, also where they stand
    /// once.
    fn known(&self, mut sequence: Vec<Symbol>) -> Vec<Symbol> {
        let mut bodies: Vec<(&Vec<Symbol>, Symbol)> =
            self.loops.iter().map(|(body, symbol)| (body, *symbol)).collect();
        bodies.sort_by_key(|(body, _)| body.len());
        for (body, symbol) in bodies {
            if !sequence.windows(body.len()).any(|window| window == body.as_slice()) {
                continue;
            }
            sequence = replaced(&sequence, body, symbol, 1);
        }
        sequence
    }

    /// The loop with this body; a loop of a loop is that loop.
    fn repeated(&mut self, body: &[Symbol], between: &str) -> Symbol {
        if let [only] = body
            && self.bodies.contains_key(only)
        {
            return *only;
        }
        if let Some(known) = self.loops.get(body) {
            return *known;
        }
        let Meaning { text, exact, mut leaves } = self.joined(body, between);
        for leaf in &mut leaves {
            leaf.text.push_str(REPEATED);
            leaf.exact.push_str(REPEATED);
        }
        let meaning =
            Meaning { text: format!("({text})×n"), exact: format!("({exact})×n"), leaves };
        let symbol = self.symbol(meaning);
        self.loops.insert(body.to_vec(), symbol);
        self.bodies.insert(symbol, body.to_vec());
        symbol
    }
}

/// What is said of something in a loop.
const REPEATED: &str = ", in a loop";

/// Where the first repetition with the shortest body begins, and how long the body is.
fn shortest(sequence: &[Symbol]) -> Option<(usize, usize)> {
    for period in 1..=BODY_MAX.min(sequence.len() / 2) {
        let pairs = sequence.iter().zip(sequence.get(period..).unwrap_or_default());
        let mut alike = 0;
        for (place, (one, other)) in pairs.enumerate() {
            alike = if one == other { alike + 1 } else { 0 };
            if alike == period {
                return Some((place + 1 - period, period));
            }
        }
    }
    None
}

/// `sequence` with `symbol` for what is at least `least` times `body`.
fn replaced(sequence: &[Symbol], body: &[Symbol], symbol: Symbol, least: usize) -> Vec<Symbol> {
    let mut out = Vec::with_capacity(sequence.len());
    let mut rest = sequence;
    while let Some((first, after)) = rest.split_first() {
        let times = rest.chunks_exact(body.len()).take_while(|chunk| *chunk == body).count();
        if times >= least {
            out.push(symbol);
            rest = rest.get(times * body.len()..).unwrap_or_default();
        } else {
            out.push(*first);
            rest = after;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letters(symbols: &mut Symbols, text: &str) -> Vec<Symbol> {
        let letter = |c: char| Meaning { text: c.into(), exact: c.into(), leaves: Vec::new() };
        text.chars().map(|c| symbols.symbol(letter(c))).collect()
    }

    fn folded(symbols: &mut Symbols, text: &str) -> String {
        let sequence = letters(symbols, text);
        let sequence = symbols.fold(sequence, "");
        symbols.joined(&sequence, "").text
    }

    #[test]
    fn loops_fold_within_loops_and_do_not_say_how_often() {
        for (text, shown) in [
            ("abc", "abc"),
            ("aaab", "(a)×nb"),
            ("ababab", "(ab)×n"),
            ("abbbabb", "(a(b)×n)×n"),
            ("xabbcabbbcabcy", "x(a(b)×nc)×ny"),
        ] {
            assert_eq!(settled(&[text.to_owned()]), [shown], "{text}");
        }
    }

    #[test]
    fn what_goes_round_once_is_the_loop_that_goes_round_twice_elsewhere() {
        let mut symbols = Symbols::default();
        assert_eq!(folded(&mut symbols, "xabaz"), "xabaz");
        assert_eq!(folded(&mut symbols, "xababz"), "x(ab)×nz");
        assert_eq!(folded(&mut symbols, "xabz"), "x(ab)×nz");
        assert_eq!(folded(&mut symbols, "xz"), "xz");
    }

    /// What texts fold to when all their loops are known.
    fn settled(texts: &[String]) -> Vec<String> {
        let mut symbols = Symbols::default();
        loop {
            let before = symbols.loops();
            let all = texts.iter().map(|text| folded(&mut symbols, text)).collect();
            if symbols.loops() == before {
                return all;
            }
        }
    }

    proptest! {
        #[test]
        fn going_round_more_often_changes_nothing(
            before in "[a-c]{0,3}", after in "[j-l]{0,3}",
            body in prop::sample::subsequence(vec!["d", "e", "f", "g", "h"], 1..=5).prop_shuffle(),
            times in prop::collection::vec(2..9_usize, 2),
        ) {
            let text = |times: usize| format!("{before}{}{after}", body.concat().repeat(times));
            let odd = format!("{}z", text(times[1]));
            let all = settled(&[text(times[0]), text(times[1]), odd]);
            prop_assert_eq!(&all[0], &all[1]);
            prop_assert_ne!(&all[1], &all[2]);
        }

        #[test]
        fn loops_within_loops_may_go_round_as_often_as_they_like(
            rounds in prop::collection::vec(prop::collection::vec(1..5_usize, 2..6), 2..5),
        ) {
            let round = |inner: &usize| format!("a{}c", "b".repeat(*inner));
            let text = |rounds: &Vec<usize>| rounds.iter().map(round).collect::<String>();
            let mut texts: Vec<String> = rounds.iter().map(text).collect();
            // Somebody goes round twice.
            texts.push("abbc".to_owned());
            let all = settled(&texts);
            let same = |shown: &String| shown == "(a(b)×nc)×n";
            prop_assert!(all.iter().all(same), "{all:?}");
        }
    }
}
