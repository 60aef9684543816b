//! The papers: README, changelog, licences and the table of contents of the guide.

use std::path::Path;

use super::Finding;
use crate::tree;

/// Files that must be there.
const PAPERS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs/src/SUMMARY.md",
];

/// What the README promises a newcomer: one command that runs the first job, one that tests.
const README_COMMANDS: usize = 2;

/// Checks all papers.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let missing: Vec<Finding> = PAPERS
        .iter()
        .filter(|paper| !root.join(paper).is_file())
        .map(|paper| Finding::new(*paper, "not there"))
        .collect();
    if !missing.is_empty() {
        return Ok(missing);
    }
    let mut findings = Vec::new();
    findings.extend(check_readme(&tree::read(&root.join("README.md"))?));
    findings.extend(check_changelog(&tree::read(&root.join("CHANGELOG.md"))?));
    let mut chapters = Vec::new();
    let folder = root.join("docs/src");
    for path in tree::files(&folder, "md")? {
        chapters.push(path.strip_prefix(&folder).unwrap_or(&path).display().to_string());
    }
    findings.extend(check_summary(&tree::read(&folder.join("SUMMARY.md"))?, &chapters));
    Ok(findings)
}

/// `.ci/run` runs what stands there, so that there must be no doubt what that is.
fn check_readme(text: &str) -> Vec<Finding> {
    let blocks = shell_blocks(text);
    let mut findings = Vec::new();
    if blocks.len() != README_COMMANDS {
        findings.push(Finding::new(
            "README.md",
            format!("{} blocks of `sh`, not {README_COMMANDS}", blocks.len()),
        ));
    }
    for (n, lines) in blocks.iter().enumerate().filter(|(_, lines)| lines.len() != 1) {
        findings.push(Finding::new(
            "README.md",
            format!("block {} of `sh` has {} lines, not one", n + 1, lines.len()),
        ));
    }
    findings
}

/// The lines of each fenced block of `sh`.
fn shell_blocks(text: &str) -> Vec<Vec<&str>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_end() == "```sh" {
            blocks.push(lines.by_ref().take_while(|line| line.trim_end() != "```").collect());
        }
    }
    blocks
}

fn check_changelog(text: &str) -> Option<Finding> {
    let has = text.lines().any(|line| line.trim_end() == "## [Unreleased]");
    (!has).then(|| Finding::new("CHANGELOG.md", "no `## [Unreleased]`"))
}

/// Every chapter is listed, and every listed chapter is there.
fn check_summary(summary: &str, chapters: &[String]) -> Vec<Finding> {
    let listed: Vec<&str> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link.trim_start_matches("./"))
        .collect();
    let place = "docs/src/SUMMARY.md";
    let mut findings = Vec::new();
    for link in listed.iter().filter(|link| !chapters.iter().any(|chapter| chapter == *link)) {
        findings.push(Finding::new(place, format!("`{link}` is listed, but not there")));
    }
    let unlisted =
        |chapter: &&String| *chapter != "SUMMARY.md" && !listed.contains(&chapter.as_str());
    for chapter in chapters.iter().filter(unlisted) {
        findings.push(Finding::new(place, format!("`{chapter}` is there, but not listed")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str =
        "# A\n```sh\ncargo a\n```\ntext\n```text\nx\ny\n```\n```sh\ncargo b\n```\n";

    #[test]
    fn a_readme_has_two_commands_of_one_line() {
        assert_eq!(check_readme(README), []);
        let one = check_readme(&README.replacen("```sh", "```bash", 1));
        assert_eq!(one, [Finding::new("README.md", "1 blocks of `sh`, not 2")]);
        let long = check_readme(&README.replace("cargo b", "cargo b\ncargo c"));
        assert_eq!(long, [Finding::new("README.md", "block 2 of `sh` has 2 lines, not one")]);
        assert_eq!(check_readme(&README.replace("cargo a\n", "")).len(), 1);
    }

    #[test]
    fn a_changelog_has_room_for_the_next_release() {
        assert_eq!(check_changelog("# Changelog\n\n## [Unreleased]\n"), None);
        assert!(check_changelog("# Changelog\n\n## [0.1.0]\n").is_some());
    }

    #[test]
    fn chapters_and_their_list_agree() {
        let chapters = ["SUMMARY.md", "a.md", "b/c.md"].map(str::to_owned);
        let summary = "# Summary\n\n- [A](a.md)\n  - [C](./b/c.md)\n";
        assert_eq!(check_summary(summary, &chapters), []);
        let lost = check_summary(summary, &chapters[..2]);
        assert_eq!(lost[0].what, "`b/c.md` is listed, but not there");
        let unlisted = check_summary("- [A](a.md)", &chapters);
        assert_eq!(unlisted[0].what, "`b/c.md` is there, but not listed");
    }

    #[test]
    fn missing_papers_are_named() {
        let empty = tree::root().unwrap().join("xtask/src/tidy");
        let findings = check(&empty).unwrap();
        assert_eq!(findings.len(), PAPERS.len());
        assert_eq!(findings[3].to_string(), "CHANGELOG.md: not there");
    }
}
