//! Rules between crates: which room may use which, and what is never in it.
//!
//! The table is that of ARCHITECTURE.md; a change here is a change there. Tests of a crate may use
//! any library, but no other room than the crate itself may. Not checked: that `cli` does no
//! arithmetic on times, which no list of words can tell.

use std::path::Path;

use super::Finding;
use super::style;
use crate::source::Source;
use crate::tree;

/// One room of the house, by its folder under `crates/`.
struct Room {
    folder: &'static str,
    /// Rooms that it may use, by folder.
    uses: &'static [&'static str],
    /// Libraries that are never in it; a trailing `*` stands for any end.
    never: &'static [&'static str],
    /// Words that are never in its code.
    words: &'static [&'static str],
}

const ROOMS: [Room; 7] = [
    Room {
        folder: "protocol",
        uses: &[],
        never: &["tokio*", "mio", "socket2", "rustix", "rustls", "object_store"],
        words: &["std::fs", "std::net", "Instant::now", "SystemTime::now"],
    },
    Room { folder: "trace", uses: &["protocol"], never: &["tokio*", "mio", "socket2"], words: &[] },
    Room {
        folder: "core",
        uses: &["protocol", "trace"],
        never: &["tokio*", "mio", "socket2", "rustix", "rustls", "rcgen", "object_store", "rand*"],
        words: &[
            "std::fs",
            "std::net",
            "std::process",
            "std::thread",
            "std::env",
            "Instant",
            "SystemTime",
            "HashMap",
            "HashSet",
        ],
    },
    Room {
        folder: "coordinator",
        uses: &["core", "trace", "protocol"],
        never: &["clap", "comfy-table", "indicatif", "miette"],
        words: &["println!", "eprintln!"],
    },
    Room {
        folder: "worker",
        uses: &["protocol"],
        never: &["clap", "miette", "minijinja"],
        words: &[],
    },
    Room {
        folder: "analysis",
        uses: &["trace"],
        never: &["tokio*", "mio", "socket2", "rustix", "rustls", "rusqlite", "object_store"],
        words: &[
            "std::fs",
            "std::net",
            "std::process",
            "std::thread",
            "Instant",
            "SystemTime",
            "HashMap",
            "HashSet",
        ],
    },
    Room {
        folder: "cli",
        uses: &["protocol", "trace", "core", "coordinator", "worker", "analysis"],
        never: &[],
        words: &[],
    },
];

/// Checks the manifests of all crates under `crates/`.
pub(super) fn check_manifests(root: &Path) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for path in tree::files(&root.join("crates"), "toml")? {
        let Ok(below) = path.strip_prefix(root.join("crates")) else { continue };
        if below.components().count() != 2 || !below.ends_with("Cargo.toml") {
            continue;
        }
        let folder = below.components().next().map(|c| c.as_os_str().to_string_lossy());
        let folder = folder.unwrap_or_default();
        findings.extend(check_manifest(&folder, &tree::read_toml(&path)?));
    }
    Ok(findings)
}

fn check_manifest(folder: &str, manifest: &toml::Table) -> Vec<Finding> {
    let place = format!("crates/{folder}/Cargo.toml");
    let Some(room) = ROOMS.iter().find(|room| room.folder == folder) else {
        return vec![Finding::new(place, "a crate that the table of rooms does not know")];
    };
    let mut findings = Vec::new();
    for (package, of_tests) in dependencies(manifest) {
        match room_of(&package) {
            Some(other) if other != folder && !room.uses.contains(&other) => {
                let allowed = room.uses.join(", ");
                findings.push(Finding::new(
                    &place,
                    format!("`{folder}` must not use `{other}`; it may use: {allowed}"),
                ));
            }
            None if !of_tests && room.never.iter().any(|never| matches(never, &package)) => {
                findings.push(Finding::new(&place, format!("`{package}` is never in `{folder}`")));
            }
            Some(_) | None => {}
        }
    }
    findings
}

/// Checks the words of one source file, its tests apart.
pub(super) fn check_source(place: &str, source: &Source) -> Vec<Finding> {
    let room = ROOMS.iter().find(|room| place.starts_with(&format!("crates/{}/src/", room.folder)));
    let Some(room) = room.filter(|_| !style::is_test_file(place)) else { return Vec::new() };
    let lines = source.code.lines().take(source.lines_without_tests());
    style::words(place, &lines.collect::<Vec<_>>().join("\n"), room.words)
}

/// The names of all packages that a manifest depends on, and whether only for tests.
fn dependencies(manifest: &toml::Table) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables =
        targets.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table);
    for table in std::iter::once(manifest).chain(tables) {
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let listed = table.get(kind).and_then(toml::Value::as_table);
            for (name, value) in listed.into_iter().flatten() {
                let renamed = value.get("package").and_then(toml::Value::as_str);
                found.push((renamed.unwrap_or(name).to_owned(), kind == "dev-dependencies"));
            }
        }
    }
    found
}

/// The room whose package this is.
fn room_of(package: &str) -> Option<&'static str> {
    let folder = if package == "musec" { "cli" } else { package.strip_prefix("musec-")? };
    ROOMS.iter().map(|room| room.folder).find(|&known| known == folder)
}

fn matches(pattern: &str, package: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == package, |start| package.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &str, manifest: &str) -> Vec<String> {
        let manifest = manifest.parse().unwrap();
        check_manifest(folder, &manifest).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn the_table_has_no_circles() {
        for (n, room) in ROOMS.iter().enumerate() {
            for used in room.uses {
                let at = ROOMS.iter().position(|other| other.folder == *used).unwrap();
                assert!(!ROOMS[at].uses.contains(&room.folder), "{} and {used}, {n}", room.folder);
            }
        }
    }

    #[test]
    fn a_forbidden_room_is_found_in_every_kind_of_dependency() {
        for table in [
            "[dependencies]\nmusec-core.workspace = true",
            "[dev-dependencies]\nmusec-core = { path = \"../core\" }",
            "[build-dependencies]\nmusec-core = \"1\"",
            "[target.'cfg(unix)'.dependencies]\nmusec-core = \"1\"",
            "[dependencies]\nalias = { package = \"musec-core\", path = \"../core\" }",
        ] {
            let wanted =
                "crates/worker/Cargo.toml: `worker` must not use `core`; it may use: protocol";
            assert_eq!(found("worker", table), [wanted], "{table}");
        }
        assert_eq!(found("worker", "[dependencies]\nmusec-protocol.workspace = true"), [""; 0]);
    }

    #[test]
    fn a_forbidden_library_is_found_except_in_tests() {
        let core =
            found("core", "[dependencies]\ntokio = \"1\"\ntokio-rustls = \"1\"\nserde = \"1\"");
        assert_eq!(core.len(), 2, "{core:?}");
        assert_eq!(core[0], "crates/core/Cargo.toml: `tokio` is never in `core`");
        assert_eq!(found("core", "[dev-dependencies]\nrand = \"1\""), [""; 0]);
        assert_eq!(found("worker", "[dependencies]\ntokio = \"1\""), [""; 0]);
    }

    #[test]
    fn an_unknown_crate_is_found() {
        assert_eq!(found("attic", "").len(), 1);
    }

    #[test]
    fn forbidden_words_are_found_in_code_but_not_in_tests_of_it() {
        let text = "//! No HashMap.\nuse std::collections::HashMap;\n#[cfg(test)]\nmod tests {\n use std::fs;\n}\n";
        let findings = check_source("crates/core/src/a.rs", &Source::new(text));
        let wanted = Finding::new("crates/core/src/a.rs:2", "`HashMap` is not for here");
        assert_eq!(findings, [wanted]);
        assert_eq!(check_source("crates/worker/src/a.rs", &Source::new(text)), []);
        assert_eq!(check_source("crates/core/tests/a.rs", &Source::new(text)), []);
    }
}
