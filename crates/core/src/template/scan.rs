//! A look at an expression's tokens, as far as minijinja does not tell: where an expression ends in
//! a text, where a name stands, which filters and tests are used. Strings are passed over.

use std::ops::Range;

/// How a name is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// After `|`.
    Filter,
    /// After `is` or `is not`.
    Test,
}

/// A token: an identifier, a string, or one byte of anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Ident(Range<usize>),
    Text,
    Other(u8),
}

struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for Tokens<'_> {
    type Item = (Token, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let start = self.at;
        let first = *self.bytes.get(start)?;
        let token = if first == b'\'' || first == b'"' {
            self.at = end_of_string(self.bytes, start);
            Token::Text
        } else if is_ident(first) {
            while self.bytes.get(self.at).copied().is_some_and(is_ident) {
                self.at += 1;
            }
            Token::Ident(start..self.at)
        } else {
            self.at += 1;
            Token::Other(first)
        };
        Some((token, start..self.at))
    }
}

const fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The byte after a string that begins at `start`; the end of all if it does not end.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes.get(start).copied();
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at).copied() {
        at += 1;
        if byte == b'\\' {
            at += 1;
        } else if Some(byte) == quote {
            return at;
        }
    }
    bytes.len()
}

fn tokens(source: &str) -> Tokens<'_> {
    Tokens { bytes: source.as_bytes(), at: 0 }
}

/// Where the expression that begins `text` ends: at its `}}` that is in no string and no bracket.
pub(super) fn end_of_expression(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (token, range) in tokens(text) {
        match token {
            Token::Other(b'}') if depth == 0 && text.as_bytes().get(range.end) == Some(&b'}') => {
                return Some(range.start);
            }
            Token::Other(b'(' | b'[' | b'{') => depth += 1,
            Token::Other(b')' | b']' | b'}') => depth -= 1,
            Token::Other(_) | Token::Ident(_) | Token::Text => {}
        }
    }
    None
}

/// Where a name is used for the first time, not as an attribute; the whole expression if that
/// cannot be told.
pub(super) fn find_name(source: &str, name: &str) -> Range<usize> {
    let mut after_dot = false;
    for (token, range) in tokens(source) {
        if !after_dot && source.get(range.clone()) == Some(name) && token != Token::Text {
            return range;
        }
        after_dot = token == Token::Other(b'.');
    }
    0..source.len()
}

/// Where a dotted path is used for the first time; the whole expression if that cannot be told.
pub(super) fn find_path(source: &str, path: &str) -> Range<usize> {
    source
        .match_indices(path)
        .map(|(at, _)| at..at + path.len())
        .find(|range| {
            let next = source.as_bytes().get(range.end).copied();
            !next.is_some_and(is_ident)
        })
        .unwrap_or(0..source.len())
}

/// The filters and tests that an expression uses.
pub(super) fn filters_and_tests(source: &str) -> Vec<(Use, Range<usize>)> {
    let mut uses = Vec::new();
    let mut pending = None;
    let mut after_dot = false;
    for (token, range) in tokens(source) {
        let word = source.get(range.clone()).unwrap_or_default();
        match &token {
            Token::Ident(_) if pending == Some(Use::Test) && word == "not" => continue,
            Token::Ident(_) if pending.is_some() => {
                uses.extend(pending.take().map(|usage| (usage, range)));
            }
            Token::Ident(_) if word == "is" && !after_dot => pending = Some(Use::Test),
            Token::Other(b'|') => pending = Some(Use::Filter),
            Token::Ident(_) | Token::Text | Token::Other(_) => pending = None,
        }
        after_dot = token == Token::Other(b'.');
    }
    uses
}

/// Calls of a function: where, and the text that is its one argument, if it is one.
pub(super) fn calls<'s>(source: &'s str, function: &str) -> Vec<(Range<usize>, Option<&'s str>)> {
    let tokens: Vec<(Token, Range<usize>)> = tokens(source).collect();
    let mut calls = Vec::new();
    for (at, (_, range)) in tokens.iter().enumerate() {
        let after_dot = at > 0 && tokens.get(at - 1).is_some_and(|(token, _)| *token == DOT);
        if source.get(range.clone()) != Some(function) || after_dot {
            continue;
        }
        let argument = match tokens.get(at + 1..at + 4) {
            Some([(Token::Other(b'('), _), (Token::Text, text), (Token::Other(b')'), _)]) => {
                let text = source.get(text.start + 1..text.end.saturating_sub(1));
                text.filter(|text| !text.contains('\\'))
            }
            _ => None,
        };
        calls.push((range.clone(), argument));
    }
    calls
}

const DOT: Token = Token::Other(b'.');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_ends_at_braces_outside_of_strings_and_brackets() {
        assert_eq!(end_of_expression(" x }} y"), Some(3));
        assert_eq!(end_of_expression(" '}}' }}"), Some(6));
        assert_eq!(end_of_expression(" {'a': {'b': 1}} }}"), Some(17));
        assert_eq!(end_of_expression(r#" "\"}}" }}"#), Some(8));
        assert_eq!(end_of_expression(" x }"), None);
        assert_eq!(end_of_expression(" 'x }}"), None);
    }

    #[test]
    fn names_are_found_where_they_are_used_and_not_in_strings_or_attributes() {
        assert_eq!(find_name("'k' ~ a.k ~ k", "k"), 12..13);
        assert_eq!(find_path("vars.xy + vars.x", "vars.x"), 10..16);
    }

    #[test]
    fn filters_and_tests_are_told_apart() {
        let source = "a|int + b is not defined + c is odd | join('is no')";
        let found: Vec<_> = filters_and_tests(source)
            .into_iter()
            .map(|(usage, range)| (usage, &source[range]))
            .collect();
        assert_eq!(
            found,
            [
                (Use::Filter, "int"),
                (Use::Test, "defined"),
                (Use::Test, "odd"),
                (Use::Filter, "join"),
            ]
        );
    }
}
