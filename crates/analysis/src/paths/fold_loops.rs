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

    /// `sequence` with its loops folded.
    pub(super) fn fold(&mut self, sequence: Vec<Symbol>, between: &str) -> Vec<Symbol> {
        let mut folded = self.known(sequence);
        let mut period = 1;
        while period <= BODY_MAX && 2 * period <= folded.len() {
            let before = folded.len();
            folded = self.collapse(&folded, period, between);
            // What was folded may be the body, or a neighbour, of a loop that is shorter now.
            period = if folded.len() < before { 1 } else { period + 1 };
        }
        folded
    }

    /// Puts the bodies of known loops into their loops, longest first, where they stand once.
    fn known(&self, mut sequence: Vec<Symbol>) -> Vec<Symbol> {
        let mut bodies: Vec<(&Vec<Symbol>, Symbol)> =
            self.loops.iter().map(|(body, symbol)| (body, *symbol)).collect();
        bodies.sort_by_key(|(body, _)| std::cmp::Reverse(body.len()));
        for (body, symbol) in bodies {
            if !sequence.windows(body.len()).any(|window| window == body.as_slice()) {
                continue;
            }
            let mut folded = Vec::new();
            let mut rest = sequence.as_slice();
            while let Some((first, after)) = rest.split_first() {
                if let Some(after) = rest.strip_prefix(body.as_slice()) {
                    folded.push(symbol);
                    rest = after;
                } else {
                    folded.push(*first);
                    rest = after;
                }
            }
            sequence = folded;
        }
        sequence
    }

    /// Folds what stands at least twice in a row, with a body of `period` symbols.
    fn collapse(&mut self, sequence: &[Symbol], period: usize, between: &str) -> Vec<Symbol> {
        let mut folded = Vec::with_capacity(sequence.len());
        let mut rest = sequence;
        while let Some((first, after)) = rest.split_first() {
            let body = rest.get(..period).unwrap_or_default();
            let times = rest.chunks_exact(period).take_while(|chunk| *chunk == body).count();
            if times >= 2 {
                folded.push(self.repeated(body, between));
                rest = rest.get(times * period..).unwrap_or_default();
            } else {
                folded.push(*first);
                rest = after;
            }
        }
        folded
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
            let mut symbols = Symbols::default();
            let mut first = folded(&mut symbols, text);
            // What goes round once is a loop as soon as it is known as one.
            first = if first == shown { first } else { folded(&mut symbols, text) };
            assert_eq!(first, shown, "{text}");
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

    proptest! {
        #[test]
        fn going_round_more_often_changes_nothing(
            before in "[a-c]{0,3}", body in "[d-f]{1,4}", after in "[g-i]{0,3}",
            times in prop::collection::vec(2..9_usize, 2),
        ) {
            let text = |times: usize| format!("{before}{}{after}", body.repeat(times));
            let mut symbols = Symbols::default();
            let one = folded(&mut symbols, &text(times[0]));
            prop_assert_eq!(&one, &folded(&mut symbols, &text(times[1])));
            let other = folded(&mut symbols, &format!("{}z", text(times[1])));
            prop_assert_ne!(one, other);
        }
    }
}
