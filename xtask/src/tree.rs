//! The source tree: where it is and which files it has.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold no sources of ours, wherever they stand.
const SKIPPED: [&str; 2] = ["target", "node_modules"];

/// The folder of the workspace.
pub(crate) fn root() -> Result<PathBuf, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().ok_or_else(|| format!("{} has no parent", here.display()))?;
    Ok(root.to_owned())
}

/// All files below `folder` with the extension `extension`, sorted; hidden ones are left out.
pub(crate) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |error| format!("cannot read {}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with('.') || SKIPPED.contains(&name.as_ref()) {
                continue;
            }
            if entry.file_type().map_err(unreadable)?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|other| other == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A text file's content.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// A TOML file's content.
pub(crate) fn read_toml(path: &Path) -> Result<toml::Table, String> {
    read(path)?.parse().map_err(|error| format!("cannot parse {}: {error}", path.display()))
}
