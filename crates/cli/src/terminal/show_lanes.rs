//! Lanes of one worker side by side in canonical form: what must come after what, with its stamps.

use musec_analysis::report::{ShowLane, ShowLetter};

use super::figures::instant;
use super::look::Ink;
use super::page::{Page, clean, short};

/// Columns of what a letter was.
const LETTER_COLUMNS: usize = 44;

/// All lanes; nothing if there is only the program itself.
pub(super) fn write(page: &mut Page<'_>, lanes: &[ShowLane]) {
    if lanes.len() < 2 {
        return;
    }
    page.gap();
    page.painted(
        Ink::Faint,
        "lanes: each in its own order; no two things of the same step depend on one another",
    );
    let mut rows: Vec<Vec<String>> = Vec::new();
    for lane in lanes {
        let mut name = match &lane.lane {
            None => format!("info {}", clean(&lane.name)),
            Some(path) if path.is_empty() => "(program)".to_owned(),
            Some(path) => format!("{}{}", "  ".repeat(path.len().min(8)), clean(&lane.name)),
        };
        for letter in &lane.letters {
            // A lane is named where it begins.
            let name = std::mem::take(&mut name);
            rows.push(vec![name, letter.step.to_string(), instant(letter.at_ns), words(letter)]);
        }
    }
    page.rows(&["<lane", "step", "at", "<what"], &rows);
}

fn words(letter: &ShowLetter) -> String {
    let names = letter.names.join(", ");
    let text = match (letter.act, &letter.from, &letter.to) {
        ("move", None, Some(to)) => format!("enters {to}"),
        ("move", Some(from), Some(to)) => format!("{from} → {to}"),
        ("move", Some(from), None) => format!("leaves {from}"),
        ("command", ..) => {
            let id = letter.command.map(|id| format!(" {id}")).unwrap_or_default();
            format!("{names}{id}")
        }
        ("join", ..) => format!("joins {names}"),
        ("fork", ..) => format!("begins {names}"),
        ("begin", ..) => format!("begins {names} in the background"),
        ("await", ..) => format!("has awaited {names}"),
        ("arrive", ..) => format!("at barrier {names}"),
        ("tell", ..) => "told".to_owned(),
        (other, ..) => other.to_owned(),
    };
    let class = match letter.class {
        "start" | "done" => String::new(),
        other => format!(", {other}"),
    };
    short(&format!("{text}{class}"), LETTER_COLUMNS)
}
