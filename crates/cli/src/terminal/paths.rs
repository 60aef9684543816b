//! Paths: how many workers did what, and how the few differ from the many.

use musec_analysis::paths::{Difference, PathGroup, Paths};

use super::figures::short_id;
use super::look::{Ink, Look};
use super::page::{Page, clean, counted};

/// Ranges of workers that are named; the rest are counted.
const RANGES_MAX: usize = 12;

/// All paths of a run.
pub(crate) fn render(paths: &Paths, look: &Look) -> String {
    let mut page = Page::new(look);
    let workers: usize = paths.paths.iter().map(|path| path.workers.len()).sum();
    let count = [workers, paths.paths.len()].map(|n| u64::try_from(n).unwrap_or(u64::MAX));
    let run = look.paint(Ink::Faint, &format!("run {}", short_id(&paths.run)));
    let pieces = [counted(count[0], "worker"), counted(count[1], "path"), run];
    page.flow("", &pieces);
    for path in &paths.paths {
        write(&mut page, path);
    }
    page.into_text()
}

fn write(page: &mut Page<'_>, group: &PathGroup) {
    let count = u64::try_from(group.workers.len()).unwrap_or(u64::MAX);
    let named = format!("wave {}: {}", clean(&group.wave), ranges(&group.workers));
    page.heading(&counted(count, "worker"), &named);
    let path = if group.path.is_empty() { "did nothing".to_owned() } else { clean(&group.path) };
    page.sentence(None, "  ", &path);
    if let Some(difference) = &group.differs {
        page.sentence(Some(Ink::Alert), "  ", &differs(difference));
    }
}

/// What differs, in a sentence.
fn differs(difference: &Difference) -> String {
    let list = |parts: &[String]| match parts {
        [] => "nothing".to_owned(),
        parts => parts.iter().map(|part| clean(part)).collect::<Vec<_>>().join("; "),
    };
    let place = match &difference.after {
        Some(after) => format!("after {}", clean(after)),
        None => "from the beginning".to_owned(),
    };
    let (has, instead) = (list(&difference.has), list(&difference.instead_of));
    format!("differs {place}: {has}, where most have {instead}")
}

/// `0–6, 8, 10–199`.
fn ranges(workers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for worker in workers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*worker) => *last = *worker,
            Some(_) | None => ranges.push((*worker, *worker)),
        }
    }
    let shown = ranges.iter().take(RANGES_MAX);
    let mut texts: Vec<String> = shown
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}–{to}") })
        .collect();
    if ranges.len() > RANGES_MAX {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_told_as_ranges_and_long_lists_are_cut() {
        assert_eq!(ranges(&[0, 1, 2, 4, 6, 7]), "0–2, 4, 6–7");
        let odd: Vec<u32> = (0..60).map(|n| 2 * n).collect();
        assert_eq!(ranges(&odd).matches(", ").count(), RANGES_MAX);
        assert!(ranges(&odd).ends_with(", …"));
    }
}
