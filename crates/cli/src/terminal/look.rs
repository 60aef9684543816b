//! How wide the screen is, and whether it has colours. Text is laid out by this and nothing else,
//! so that the same look gives the same text.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use musec_analysis::breakdown::Group;

/// Narrower, tables would be unreadable.
const WIDTH_MIN: usize = 80;

/// Wider, lines would be hard to follow.
const WIDTH_MAX: usize = 120;

/// How text is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Columns.
    pub(crate) width: usize,
    /// Whether escape codes are understood and wanted.
    pub(crate) colour: bool,
}

/// What a piece of text is, and so its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// A heading or a name.
    Strong,
    /// What may be skipped.
    Faint,
    /// All is well.
    Good,
    /// Something needs a look.
    Alert,
    /// Something went wrong.
    Bad,
    /// Goes on.
    Lively,
    /// A row of the roll-up.
    Group(Group),
    /// What could not be accounted for.
    Unaccounted,
}

impl Look {
    /// Of standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::of(&std::io::stdout())
    }

    /// Of standard error.
    pub(crate) fn of_stderr() -> Self {
        Self::of(&std::io::stderr())
    }

    fn of<T: IsTerminal + AsFd>(stream: &T) -> Self {
        if !stream.is_terminal() {
            return Self { width: WIDTH_MIN, colour: false };
        }
        let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col);
        Self { width: usize::from(columns).clamp(WIDTH_MIN, WIDTH_MAX), colour: wants_colour() }
    }

    /// `text` in its colour, or as it is.
    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{}m{text}\x1b[0m", ink.code())
        } else {
            text.to_owned()
        }
    }
}

/// Whether the person at the terminal wants colours (<https://no-color.org>).
pub(crate) fn wants_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !is_set("NO_COLOR") && !is_dumb
}

impl Ink {
    /// Only the sixteen colours that every terminal has and every theme sets.
    const fn code(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "1;32",
            Self::Alert => "1;33",
            Self::Bad => "1;31",
            Self::Lively => "1;36",
            Self::Group(Group::User) => "32",
            Self::Group(Group::Storage) => "36",
            Self::Group(Group::Messages) => "35",
            Self::Group(Group::Waiting) => "33",
            Self::Group(Group::Overhead) => "34",
            Self::Group(Group::Lost) => "31",
            Self::Unaccounted => "37",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_no_text_has_escape_codes() {
        let plain = Look { width: 80, colour: false };
        let bright = Look { width: 80, colour: true };
        for ink in [Ink::Strong, Ink::Bad, Ink::Group(Group::User), Ink::Unaccounted] {
            assert_eq!(plain.paint(ink, "text"), "text");
            let painted = bright.paint(ink, "text");
            assert!(painted.starts_with("\x1b[") && painted.ends_with("\x1b[0m"), "{painted:?}");
            assert_eq!(console::strip_ansi_codes(&painted), "text");
        }
        assert_eq!(bright.paint(Ink::Bad, ""), "", "nothing is painted around nothing");
    }
}
