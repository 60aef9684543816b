//! Expressions and templates, within a job that gives them all that can be bound.
//!
//! The text stands as a condition, as the value of a variable, as items, as a template and in
//! braces. Whatever it is, it is refused in words, or evaluated at a bounded cost.

use std::fmt::Write as _;

use crate::job::check_text;

pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (plain, braced) = (quoted(text), quoted(&format!("{{{{ {text} }}}}")));
    for place in [
        format!("[job]\nworkers = {plain}\n[[step]]\necho = \"\"\n"),
        format!("[job]\nitems = {braced}\n[[step]]\necho = \"{{{{ item }}}}\"\n"),
        format!("{HEAD}[[step]]\nif = {plain}\necho = \"yes\"\nelse = [{{ echo = \"no\" }}]\n"),
        format!(
            "{HEAD}[[step]]\nset = {{ v = {plain}, w = {braced} }}\n[[step]]\necho = {plain}\n"
        ),
        format!(
            "{HEAD}[[step]]\nset = {{ v = 0 }}\n[[step]]\nwhile = {plain}\ndo = [{{ set = {{ v = \"vars.v + 1\" }} }}]\n"
        ),
        format!(
            "{HEAD}[[step]]\necho = \"\"\n[[step]]\nfor = {{ k = {plain} }}\ndo = [{{ echo = {braced} }}]\n"
        ),
    ] {
        check_text(&place);
    }
}

/// Parameters and items of every type.
const HEAD: &str = "\
[params]\nn = 3\nx = 0.5\ntext = \"a, b\"\nlist = [1, 2, 3]\nmap = { a = 1, b = \"c\" }\n
[job]\nitems = { list = [{ a = 1, b = [1, 2] }, \"in:a/b.png\", 7] }\nworkers = 2\n";

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Writing to a text cannot fail.
            c if c.is_control() => drop(write!(out, "\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
