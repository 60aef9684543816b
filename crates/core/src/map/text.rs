//! Words with placeholders, parsed once and filled in for each item: bytes all the way.
//!
//! In text for a shell every value is quoted for the place where it stands, so that no item can
//! become syntax: bare, within double quotes, or within single ones. Braces with other words in
//! them are no placeholders and stay as they are.

/// A word, or a shell's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Part(Part, Place),
}

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    In,
    Out,
    Name,
    Stem,
    Ext,
    Index,
}

const PARTS: [(&[u8], Part); 6] = [
    (b"{in}", Part::In),
    (b"{out}", Part::Out),
    (b"{name}", Part::Name),
    (b"{stem}", Part::Stem),
    (b"{ext}", Part::Ext),
    (b"{index}", Part::Index),
];

/// Where a placeholder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a word of its own: nothing is quoted.
    Word,
    /// In a shell's text, outside of quotes.
    Bare,
    /// In a shell's text, within `"`.
    Double,
    /// In a shell's text, within `'`.
    Single,
}

impl Place {
    /// Where the shell is after `byte`, and whether the next byte stands for itself.
    const fn after(self, byte: u8) -> (Self, bool) {
        match (self, byte) {
            (Self::Bare, b'"') => (Self::Double, false),
            (Self::Bare, b'\'') => (Self::Single, false),
            (Self::Double, b'"') | (Self::Single, b'\'') => (Self::Bare, false),
            (Self::Bare | Self::Double, b'\\') => (self, true),
            (Self::Word | Self::Bare | Self::Double | Self::Single, _) => (self, false),
        }
    }

    /// A quotation mark that ends the one around, and begins it again.
    const fn mark(self) -> &'static [u8] {
        match self {
            Self::Word | Self::Bare => b"",
            Self::Double => b"\"",
            Self::Single => b"'",
        }
    }
}

/// What placeholders stand for, of one item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub item: &'a [u8],
    pub index: u64,
    pub out: &'a [u8],
}

impl Parts<'_> {
    /// The item's last part.
    pub(super) fn name(&self) -> &[u8] {
        last_part(self.item)
    }

    fn push(&self, part: Part, out: &mut Vec<u8>) {
        let name = self.name();
        // Split at its last dot, unless that is its first character.
        let dot = name.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0);
        let bytes = match part {
            Part::In => self.item,
            Part::Out => self.out,
            Part::Name => name,
            Part::Stem => name.get(..dot.unwrap_or(name.len())).unwrap_or_default(),
            Part::Ext => dot.and_then(|at| name.get(at + 1..)).unwrap_or_default(),
            Part::Index => {
                out.extend_from_slice(self.index.to_string().as_bytes());
                return;
            }
        };
        out.extend_from_slice(bytes);
    }
}

/// What stands after the last slash that is not at the end.
pub(super) fn last_part(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    let path = path.get(..end).unwrap_or_default();
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    path.get(start..).unwrap_or_default()
}

impl Text {
    /// A word that is handed over as it is.
    pub(super) fn word(source: &[u8]) -> Self {
        Self::parse(source, Place::Word)
    }

    /// Text for a shell.
    pub(super) fn shell(source: &[u8]) -> Self {
        Self::parse(source, Place::Bare)
    }

    fn parse(source: &[u8], mut place: Place) -> Self {
        let mut pieces = Vec::new();
        let mut bytes = Vec::new();
        let mut rest = source;
        let mut is_literal = false;
        while let Some((first, after)) = rest.split_first() {
            let found = PARTS.iter().find(|(written, _)| rest.starts_with(written));
            if let Some((written, part)) = found.filter(|_| !is_literal) {
                if !bytes.is_empty() {
                    pieces.push(Piece::Bytes(std::mem::take(&mut bytes)));
                }
                pieces.push(Piece::Part(*part, place));
                rest = rest.get(written.len()..).unwrap_or_default();
                continue;
            }
            bytes.push(*first);
            if std::mem::take(&mut is_literal) {
                rest = after;
                continue;
            }
            (place, is_literal) = place.after(*first);
            rest = after;
        }
        if !bytes.is_empty() {
            pieces.push(Piece::Bytes(bytes));
        }
        Self(pieces)
    }

    /// The item as a further word of a shell's text.
    pub(super) fn and_item(mut self) -> Self {
        self.0.push(Piece::Bytes(b" ".to_vec()));
        self.0.push(Piece::Part(Part::In, Place::Bare));
        self
    }

    pub(super) fn has(&self, wanted: Part) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Part(part, _) if *part == wanted))
    }

    pub(super) fn has_any(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Part(..)))
    }

    /// The text for one item.
    pub(super) fn fill(&self, parts: &Parts<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Part(part, Place::Word) => parts.push(*part, &mut out),
                Piece::Part(part, place) => {
                    let mut value = Vec::new();
                    parts.push(*part, &mut value);
                    out.extend_from_slice(place.mark());
                    quote(&value, &mut out);
                    out.extend_from_slice(place.mark());
                }
            }
        }
        out
    }
}

/// One word for a shell, whatever it holds.
fn quote(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in value {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            other => out.push(*other),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &Text, item: &[u8]) -> String {
        let parts = Parts { item, index: 7, out: b"./o.png" };
        String::from_utf8_lossy(&text.fill(&parts)).into_owned()
    }

    #[test]
    fn a_word_has_the_parts_of_its_item() {
        let text = Text::word(b"{index}:{in}:{name}:{stem}:{ext}:{out}:{other}:{");
        let shown = filled(&text, b"/a b/c.tar.gz");
        assert_eq!(shown, "7:/a b/c.tar.gz:c.tar.gz:c.tar:gz:./o.png:{other}:{");
        let ends = Text::word(b"{name}|{stem}|{ext}");
        assert_eq!(filled(&ends, b".bashrc"), ".bashrc|.bashrc|");
        assert_eq!(filled(&ends, b"dir.d/"), "dir.d|dir|d");
        assert_eq!(filled(&ends, b""), "||");
        assert_eq!(filled(&ends, b"///"), "||");
    }

    #[test]
    fn in_a_shell_every_value_is_quoted_for_its_place() {
        let text = Text::shell(b"a {in} \"b {in}\" 'c {in}' \\\"{in} # {print}");
        let shown = filled(&text, b"x'y");
        assert_eq!(
            shown,
            "a 'x'\\''y' \"b \"'x'\\''y'\"\" 'c ''x'\\''y''' \\\"'x'\\''y' # {print}"
        );
        assert_eq!(filled(&Text::shell(b"cat").and_item(), b"-n;"), "cat '-n;'");
    }
}
