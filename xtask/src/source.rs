//! Rust source, split into code and comments: text in, two texts of the same shape out.
//!
//! What does not belong to a layer is blanked with spaces, so that lines and columns stay. Literals
//! belong to neither. A full parser is not needed for counting lines and finding words, and would
//! be the heaviest dependency of the workspace's chores.

/// One source file in its layers.
pub(crate) struct Source {
    /// The file as it is.
    pub(crate) text: String,
    /// Code alone: comments and the insides of literals are blanked.
    pub(crate) code: String,
    /// Comments alone, doc comments among them.
    pub(crate) comments: String,
}

/// A function with a body: its name, its first line (from 1) and how many lines it has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// What a character belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    Code,
    Comment,
    Literal,
}

impl Source {
    /// Splits `text` into its layers.
    pub(crate) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut layers = Vec::with_capacity(chars.len());
        while layers.len() < chars.len() {
            let at = layers.len();
            let (layer, length) = token(&chars, at);
            layers.extend(std::iter::repeat_n(layer, length.min(chars.len() - at)));
        }
        let only = |wanted: Layer| -> String {
            let kept =
                |(&c, &layer): (&char, &Layer)| if layer == wanted || c == '\n' { c } else { ' ' };
            chars.iter().zip(&layers).map(kept).collect()
        };
        Self { text: text.to_owned(), code: only(Layer::Code), comments: only(Layer::Comment) }
    }

    /// How many lines come before the file's own tests (`#[cfg(test)]` and then `mod tests`).
    pub(crate) fn lines_without_tests(&self) -> usize {
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        let is_cut = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests");
        lines.windows(2).position(is_cut).unwrap_or(lines.len())
    }

    /// All functions that have a body, nested ones too.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            let before = self.code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = &self.code[at + 3..];
            let name: String =
                rest.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
            let Some(length) = body_end(rest).filter(|_| !name.is_empty()) else { continue };
            found.push(Function {
                name,
                line: self.code[..at].matches('\n').count() + 1,
                lines: rest[..length].matches('\n').count() + 1,
            });
        }
        found
    }
}

/// Where the body ends that follows a signature; `None` without a body (a trait's method).
fn body_end(code: &str) -> Option<usize> {
    let (mut nested, mut braces) = (0_i32, 0_i32);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => nested += 1,
            ')' | ']' => nested -= 1,
            ';' if nested == 0 && braces == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 && nested == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The layer and length of the token that starts at `at`.
fn token(chars: &[char], at: usize) -> (Layer, usize) {
    let next = |n: usize| chars.get(at + n).copied();
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match (chars[at], next(1)) {
        ('/', Some('/')) => {
            (Layer::Comment, chars[at..].iter().take_while(|&&c| c != '\n').count())
        }
        ('/', Some('*')) => (Layer::Comment, block_comment(&chars[at..])),
        ('"', _) => (Layer::Literal, quoted(&chars[at..])),
        ('r', Some('"' | '#')) if !in_word => {
            raw_string(&chars[at..]).map_or((Layer::Code, 1), |length| (Layer::Literal, length))
        }
        // `b'` and `b"` differ from the plain ones by their first letter only; `br"` likewise.
        ('\'', Some('\\')) => (Layer::Literal, 1 + quoted_char(&chars[at + 1..])),
        ('\'', Some(_)) if next(2) == Some('\'') => (Layer::Literal, 3),
        ('b', Some('r')) if !in_word => raw_string(&chars[at + 1..])
            .map_or((Layer::Code, 1), |length| (Layer::Literal, length + 1)),
        _ => (Layer::Code, 1),
    }
}

fn block_comment(chars: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn quoted(chars: &[char]) -> usize {
    let mut at = 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// From a backslash to the closing quote of a character literal.
fn quoted_char(chars: &[char]) -> usize {
    2 + chars.iter().skip(2).take_while(|&&c| c != '\'').count() + 1
}

/// `r"…"`, `r#"…"#` and so on; `None` where it is something else (`r#type`).
fn raw_string(chars: &[char]) -> Option<usize> {
    let hashes = chars.iter().skip(1).take_while(|&&c| c == '#').count();
    if chars.first() != Some(&'r') || chars.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let start = 2 + hashes;
    let closes = |at: usize| {
        chars[at] == '"'
            && chars[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes
    };
    (start..chars.len()).find(|&at| closes(at)).map(|at| at + 1 + hashes).or(Some(chars.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        let source = Source::new("a(\"// b!\"); // c \"d!\"\ne /* f /* g */ h */ i");
        assert_eq!(source.code, "a(       );          \ne                   i");
        assert_eq!(source.comments, "            // c \"d!\"\n  /* f /* g */ h */  ");
    }

    #[test]
    fn quotes_in_characters_lifetimes_and_raw_strings_do_not_confuse() {
        for text in [
            "let a = '\"'; MARK",
            "let a = '\\''; MARK",
            "let a = '\\u{1F600}'; MARK",
            "fn f<'a>(x: &'a str) {} MARK",
            "let a = r#\"say \"x\" // \"#; MARK",
            "let a = br\"\\\"; MARK",
            "let a = b\"\\\"\"; MARK",
            "let r#type = \"\"; MARK",
            "let a = \"\\\\\"; MARK",
        ] {
            assert!(Source::new(text).code.ends_with("MARK"), "{text}");
        }
        assert!(!Source::new("r##\"a\"# MARK\"##").code.contains("MARK"));
    }

    #[test]
    fn layers_keep_lines_and_columns() {
        let text = "fn é() {\n  \"ü\n\" /* ö\n */ }\n";
        let source = Source::new(text);
        for layer in [&source.code, &source.comments] {
            let shape = |text: &str| text.lines().map(|l| l.chars().count()).collect::<Vec<_>>();
            assert_eq!(shape(layer), shape(text));
        }
    }

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let source =
            Source::new("trait T { fn a(&self); }\nfn b(x: [u8; 2])\nwhere\n{\n  \"}\"\n}\n");
        let b = Function { name: "b".to_owned(), line: 2, lines: 5 };
        assert_eq!(source.functions(), [b]);
    }

    #[test]
    fn own_tests_are_cut_off() {
        let source = Source::new("fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n");
        assert_eq!(source.lines_without_tests(), 2);
        assert_eq!(Source::new("a\n#[cfg(test)]\nuse b;\n").lines_without_tests(), 3);
    }
}
