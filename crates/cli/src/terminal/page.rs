//! A page of text under way: headings, lines, tables, pieces that flow into the width.
//!
//! Invariants: no line is wider than the look unless it holds one word that is; no control
//! character of the data reaches the terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table};
use console::measure_text_width;

use super::look::{Ink, Look};

/// Between the pieces of a line that flows.
const BETWEEN: &str = " · ";

/// Text in the making.
pub(crate) struct Page<'a> {
    pub(crate) look: &'a Look,
    text: String,
}

impl<'a> Page<'a> {
    pub(crate) const fn new(look: &'a Look) -> Self {
        Self { look, text: String::new() }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// A line as it is, without blanks at its end.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A line in one colour.
    pub(crate) fn painted(&mut self, ink: Ink, line: &str) {
        self.line(&self.look.paint(ink, line.trim_end()));
    }

    /// An empty line, unless the page begins here.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// A heading, with what is said beside it.
    pub(crate) fn heading(&mut self, title: &str, beside: &str) {
        self.gap();
        let title = self.look.paint(Ink::Strong, title);
        self.line(&format!("{title}  {}", self.look.paint(Ink::Faint, beside)));
    }

    /// `label`, then pieces one after the other; further lines begin below the first piece.
    pub(crate) fn flow<S: AsRef<str>>(&mut self, label: &str, pieces: &[S]) {
        self.flow_by(label, pieces, BETWEEN, None);
    }

    /// The same in one colour.
    pub(crate) fn painted_flow<S: AsRef<str>>(&mut self, ink: Ink, label: &str, pieces: &[S]) {
        self.flow_by(label, pieces, BETWEEN, Some(ink));
    }

    /// A sentence that may need several lines.
    pub(crate) fn sentence(&mut self, ink: Option<Ink>, label: &str, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        self.flow_by(label, &words, " ", ink);
    }

    fn flow_by<S: AsRef<str>>(
        &mut self,
        label: &str,
        pieces: &[S],
        between: &str,
        ink: Option<Ink>,
    ) {
        let indent = measure_text_width(label);
        let mut line = String::new();
        let mut lines = Vec::new();
        for piece in pieces.iter().map(AsRef::as_ref).filter(|piece| !piece.is_empty()) {
            let wide = [line.as_str(), between, piece].map(measure_text_width);
            if !line.is_empty() && indent + wide.iter().sum::<usize>() > self.look.width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push_str(between);
            }
            line.push_str(piece);
        }
        lines.push(line);
        for (number, line) in lines.iter().enumerate() {
            let start = if number == 0 { label.to_owned() } else { " ".repeat(indent) };
            let line = ink.map_or_else(|| line.clone(), |ink| self.look.paint(ink, line));
            self.line(&format!("{start}{line}"));
        }
    }

    /// The lines of a table, its header first. A column whose title begins with `<` is of words;
    /// the first of these may wrap, so that figures never do.
    pub(crate) fn table(&self, header: &[&str], rows: &[Vec<String>]) -> Vec<String> {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(self.look.width).unwrap_or(u16::MAX));
        table.set_header(header.iter().map(|title| title.trim_start_matches('<')));
        table.add_rows(rows.iter().map(|row| row.iter().map(String::as_str).collect::<Vec<_>>()));
        let wraps = header.iter().position(|title| title.starts_with('<'));
        let last = header.len().saturating_sub(1);
        for (number, (column, title)) in table.column_iter_mut().zip(header).enumerate() {
            column.set_padding((0, if number == last { 0 } else { 2 }));
            if !title.starts_with('<') {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if wraps != Some(number) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// A table whose header stands back; see [`Self::table`].
    pub(crate) fn rows(&mut self, header: &[&str], rows: &[Vec<String>]) {
        for (number, line) in self.table(header, rows).iter().enumerate() {
            if number == 0 {
                self.painted(Ink::Faint, line);
            } else {
                self.line(line);
            }
        }
    }
}

/// Text of others on one line: control characters are shown, not obeyed.
pub(crate) fn clean(text: &str) -> String {
    let shown = |c: char| match c {
        '\t' => ' ',
        '\x7f' => '␡',
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('·'),
        '\u{80}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' => '·',
        '\u{2028}' | '\u{2029}' | '\u{2066}'..='\u{2069}' => '·',
        other => other,
    };
    text.chars().map(shown).collect()
}

/// At most `columns` of `text` on one line; what is cut is said by `…`.
pub(crate) fn short(text: &str, columns: usize) -> String {
    console::truncate_str(&clean(text), columns, "…").into_owned()
}

/// `count` things: `1 worker`, `2 workers`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { width: 30, colour: false };

    #[test]
    fn pieces_flow_into_the_width_below_the_first() {
        let mut page = Page::new(&PLAIN);
        page.flow("label  ", &["one two", "", "three four five", "six"]);
        assert_eq!(page.into_text(), "label  one two\n       three four five · six\n");
    }

    #[test]
    fn control_characters_of_others_are_shown_and_not_obeyed() {
        assert_eq!(clean("a\x1b[2J\tb\r\u{9b}c\u{202e}"), "a␛[2J b␍·c·");
        assert_eq!(short("héllo\nworld", 6), "héllo…");
    }

    #[test]
    fn names_too_long_for_a_table_wrap_and_figures_do_not() {
        let page = Page::new(&PLAIN);
        let row = vec!["a state with a very long name".to_owned(), "12.3 ms".to_owned()];
        let lines = page.table(&["<state", "p50"], &[row]);
        assert!(lines.iter().all(|line| measure_text_width(line) <= 30), "{lines:?}");
        assert!(lines.iter().any(|line| line.ends_with("12.3 ms")), "{lines:?}");
    }
}
