//! Rules for single source files: lengths, header, depth, words.

use super::Finding;
use crate::source::Source;

/// Longest file without its tests, in lines: what can still be read from top to bottom.
const FILE_LINES_MAX: usize = 500;

/// Longest function, in lines: one screen. Tests may list more cases than that.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that may be longer: one `match` with one plain arm for each event of the journal.
/// Cutting it in two would need an arm for "the others", and the compiler would no longer tell when
/// an event is forgotten.
const FUNCTIONS_OF_ONE_MATCH: [(&str, &str); 2] =
    [("crates/trace/src/convert.rs", "from"), ("crates/trace/src/convert.rs", "try_from")];

/// Longest line, in characters: rustfmt's width. It leaves comments alone.
const LINE_CHARS_MAX: usize = 100;

/// Deepest folder under `src`.
const DEPTH_MAX: usize = 3;

/// Macros that mark unfinished code.
const WORDS_IN_CODE: [&str; 3] = ["todo!", "dbg!", "unimplemented!"];

/// Marks of unfinished thoughts: they belong to the issues.
const WORDS_IN_COMMENTS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Checks one file, named by its path within the tree.
pub(super) fn check(place: &str, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//! ") {
        findings.push(Finding::new(place, "no `//!` header in its first line"));
    }
    let depth = place.split_once("src/").map_or(0, |(_, below)| below.matches('/').count());
    if depth > DEPTH_MAX {
        findings
            .push(Finding::new(place, format!("{depth} folders under src, at most {DEPTH_MAX}")));
    }
    let lines = source.lines_without_tests();
    if lines > FILE_LINES_MAX && !is_test_file(place) {
        findings.push(Finding::new(
            place,
            format!("{lines} lines without tests, at most {FILE_LINES_MAX}"),
        ));
    }
    findings.extend(long_functions(place, source));
    findings.extend(long_lines(place, source));
    findings.extend(unreasoned_limits(place, source));
    findings.extend(words(place, &source.code, &WORDS_IN_CODE));
    findings.extend(words(place, &source.comments, &WORDS_IN_COMMENTS));
    findings
}

/// Files that hold nothing but tests.
pub(super) fn is_test_file(place: &str) -> bool {
    let is_test_folder = |folder: &str| folder == "tests" || folder == "scenarios";
    place.split('/').any(is_test_folder) || place.ends_with("/tests.rs")
}

fn long_functions(place: &str, source: &Source) -> Vec<Finding> {
    let end = if is_test_file(place) { 0 } else { source.lines_without_tests() };
    let judged = source.functions().into_iter().filter(|f| f.line <= end);
    let is_one_match =
        |name: &str| FUNCTIONS_OF_ONE_MATCH.iter().any(|(file, f)| *file == place && *f == name);
    judged
        .filter(|f| f.lines > FUNCTION_LINES_MAX && !is_one_match(&f.name))
        .map(|f| {
            Finding::new(
                format!("{place}:{}", f.line),
                format!("`{}` has {} lines, at most {FUNCTION_LINES_MAX}", f.name, f.lines),
            )
        })
        .collect()
}

fn long_lines(place: &str, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let layers = source.code.lines().zip(source.comments.lines());
    for (n, (line, (code, comment))) in source.text.lines().zip(layers).enumerate() {
        let length = line.chars().count();
        // Addresses and literals cannot be broken.
        let shown = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        let unbreakable = line.contains("://") || shown(line) > shown(code) + shown(comment);
        if length > LINE_CHARS_MAX && !unbreakable {
            findings.push(Finding::new(
                format!("{place}:{}", n + 1),
                format!("a line of {length} characters, at most {LINE_CHARS_MAX}"),
            ));
        }
    }
    findings
}

/// A limit says its reason in a comment above it, and so does what seems to have no limit. Lines
/// that follow one another share their reason.
fn unreasoned_limits(place: &str, source: &Source) -> Vec<Finding> {
    if is_test_file(place) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut has_reason = false;
    let layers = source.code.lines().zip(source.comments.lines());
    for (n, (code, comment)) in layers.take(source.lines_without_tests()).enumerate() {
        has_reason |= !comment.trim().is_empty();
        let limit = limit_of(code);
        if let Some(name) = limit.filter(|_| !has_reason) {
            let what = format!("`{name}` without a comment that says why");
            findings.push(Finding::new(format!("{place}:{}", n + 1), what));
        }
        let code = code.trim();
        let is_comment = code.is_empty() && !comment.trim().is_empty();
        let goes_on = limit.is_some() || code.starts_with("#[") || has_word(code, "const");
        has_reason &= goes_on || is_comment;
    }
    findings
}

/// The limit that a line of code names: a `const` that ends in `_MAX` or is a duration, or a queue
/// without a bound.
fn limit_of(code: &str) -> Option<&str> {
    const UNBOUNDED: &str = "unbounded_channel";
    if has_word(code, UNBOUNDED) && !code.trim_start().starts_with("use ") {
        return Some(UNBOUNDED);
    }
    let words = code.trim_start().trim_start_matches("pub").trim_start();
    let words =
        words.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(words, |w| w.1);
    let (name, kind) = words.strip_prefix("const ")?.split_once(':')?;
    let is_limit = name.ends_with("_MAX") || kind.trim_start().starts_with("Duration");
    is_limit.then_some(name)
}

/// Findings for each of `forbidden` that stands as a word of its own in a layer of the source.
pub(super) fn words(place: &str, layer: &str, forbidden: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (n, line) in layer.lines().enumerate() {
        for word in forbidden.iter().filter(|word| has_word(line, word)) {
            findings.push(Finding::new(
                format!("{place}:{}", n + 1),
                format!("`{word}` is not for here"),
            ));
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !joins(before.chars().next_back()) && (word.ends_with('!') || !joins(after.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(place: &str, text: &str) -> Vec<String> {
        check(place, &Source::new(text)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_tidy_file_has_no_findings() {
        assert_eq!(found("crates/a/src/b.rs", "//! Header.\n\nfn a() {}\n"), [""; 0]);
    }

    #[test]
    fn a_file_without_a_header_is_found() {
        assert_eq!(
            found("a.rs", "// Not a header.\n"),
            ["a.rs: no `//!` header in its first line"]
        );
    }

    #[test]
    fn a_folder_too_deep_is_found() {
        assert_eq!(found("crates/a/src/b/c/d/e.rs", "//! Header.\n"), [""; 0]);
        let deep = found("crates/a/src/b/c/d/e/f.rs", "//! Header.\n");
        assert_eq!(deep, ["crates/a/src/b/c/d/e/f.rs: 4 folders under src, at most 3"]);
    }

    #[test]
    fn a_limit_without_a_reason_is_found_and_a_reason_may_serve_the_next_line() {
        let found = |text: &str| found("crates/a/src/b.rs", &format!("//! Header.\n\n{text}"));
        for limit in [
            "const A_MAX: usize = 1;",
            "pub(crate) const A_MAX: usize = 1;",
            "pub const WAIT: Duration = Duration::ZERO;",
            "fn a() { let (a, b) = unbounded_channel(); }",
        ] {
            assert_eq!(found(&format!("{limit}\n")).len(), 1, "{limit}");
            assert_eq!(found(&format!("/// Why.\n{limit}\n{limit}\n")), [""; 0], "{limit}");
            assert_eq!(found(&format!("/// Why.\n#[cfg(unix)]\n{limit}\n")), [""; 0], "{limit}");
            assert_eq!(found(&format!("// Of others.\n\n{limit}\n")).len(), 1, "{limit}");
        }
        assert_eq!(found("const A: usize = 1;\nconst fn a_MAX(a: u8) {}\n"), [""; 0]);
    }

    #[test]
    fn a_long_file_is_found_but_its_tests_do_not_count() {
        let lines = |n: usize| format!("//! Header.\n{}", "const A: u8 = 0;\n".repeat(n));
        assert_eq!(found("src/a.rs", &lines(499)), [""; 0]);
        assert_eq!(
            found("src/a.rs", &lines(500)),
            ["src/a.rs: 501 lines without tests, at most 500"]
        );
        let with_tests =
            format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", lines(499), "\n".repeat(99));
        assert_eq!(found("src/a.rs", &with_tests), [""; 0]);
        for place in ["crates/a/tests/b.rs", "crates/a/src/b/tests.rs", "scenarios/b.rs"] {
            assert_eq!(found(place, &lines(900)), [""; 0]);
        }
    }

    #[test]
    fn a_long_function_is_found() {
        let function = |n: usize| format!("//! Header.\nfn a() {{\n{}}}\n", "    b();\n".repeat(n));
        assert_eq!(found("a.rs", &function(68)), [""; 0]);
        assert_eq!(found("a.rs", &function(69)), ["a.rs:2: `a` has 71 lines, at most 70"]);
        assert_eq!(found("crates/a/tests/b.rs", &function(69)), [""; 0]);
    }

    #[test]
    fn a_long_line_is_found_unless_it_cannot_be_broken() {
        let line = |text: &str| format!("//! Header.\n// {text}{}\n", "é".repeat(95));
        assert_eq!(found("a.rs", &line("ab")), [""; 0]);
        assert_eq!(found("a.rs", &line("abc")), ["a.rs:2: a line of 101 characters, at most 100"]);
        assert_eq!(found("a.rs", &line("https://a.example/")), [""; 0]);
        let literal = format!("//! Header.\nconst A: &str = \"{}\";\n", "a".repeat(100));
        assert_eq!(found("a.rs", &literal), [""; 0]);
    }

    #[test]
    fn unfinished_code_is_found_but_words_in_literals_are_not() {
        let text =
            "//! Header.\nfn a() { todo!() }\nfn b() { dbg!(1); }\nfn c() { unimplemented!() }\n";
        let places: Vec<String> = found("a.rs", text);
        assert_eq!(places.len(), 3, "{places:?}");
        assert_eq!(places[0], "a.rs:2: `todo!` is not for here");
        assert_eq!(found("a.rs", "//! Header.\n// FIXME later\n").len(), 1);
        assert_eq!(
            found("a.rs", "//! Header.\nconst A: &str = \"todo! FIXME\"; // todo!\n"),
            [""; 0]
        );
        assert_eq!(found("a.rs", "//! Header.\nfn a() { not_todo!() }\n"), [""; 0]);
    }
}
