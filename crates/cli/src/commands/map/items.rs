//! Where items come from: globs in the current folder, a file of items, standard input.

use std::ffi::OsStr;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use musec_core::{ByteItems, Glob};
use musec_protocol::Place;

use crate::args::MapArgs;
use crate::error::CliError;

/// Bytes that are read of a list of items: what the program holds, and one more.
const LIST_BYTES_MAX: u64 =
    (musec_core::limits::ITEMS_BYTES_MAX as u64) + musec_core::limits::ITEMS_MAX + 1;

/// The current folder.
pub(super) fn here() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|source| CliError::Read { path: PathBuf::from("."), source })
}

/// All items.
pub(super) fn read(args: &MapArgs) -> Result<ByteItems, CliError> {
    let is_dash = match args.stdin.as_slice() {
        [] => false,
        [one] if one == "-" => true,
        [other, ..] => {
            return Err(CliError::Usage(format!(
                "{} is not expected here: quote a glob (-i '*.png'), so that musec sees it and \
                 not your shell; a command stands after `--`",
                other.display()
            )));
        }
    };
    match (args.globs.as_slice(), &args.items) {
        ([], None) if is_dash || !std::io::stdin().is_terminal() => {
            let path = Path::new("standard input");
            Ok(split(&read_all(std::io::stdin().lock(), path)?, args.zero))
        }
        ([], None) => Err(CliError::Usage(
            "no items: name files with -i 'GLOB', a list with --items FILE, or pipe one in".into(),
        )),
        ([], Some(path)) if !is_dash => {
            let file = std::fs::File::open(path);
            let file = file.map_err(|source| CliError::Read { path: path.clone(), source })?;
            Ok(split(&read_all(file, path)?, args.zero))
        }
        (globs, None) if !is_dash => {
            let mut items = ByteItems::default();
            for glob in globs {
                find(glob, &here()?, &mut items)?;
            }
            Ok(items)
        }
        (_, _) => Err(CliError::Usage("choose one of -i, --items and -".into())),
    }
}

fn read_all(source: impl Read, path: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    source
        .take(LIST_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    Ok(bytes)
}

/// Lines, or what stands between zero bytes. A last line need not end.
fn split(bytes: &[u8], zero: bool) -> ByteItems {
    let mut items = ByteItems::default();
    let separator = if zero { 0 } else { b'\n' };
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == separator);
        items.push(&rest[..end.unwrap_or(rest.len())]);
        rest = end.map_or(&[], |end| &rest[end + 1..]);
    }
    items
}

/// Appends the absolute paths of the files that match, sorted by bytes.
fn find(pattern: &OsStr, here: &Path, items: &mut ByteItems) -> Result<(), CliError> {
    let text = pattern
        .to_str()
        .ok_or_else(|| CliError::Usage(format!("{} is not UTF-8", pattern.display())))?;
    let glob =
        Glob::new(Place::Inputs, text).map_err(|error| CliError::Usage(error.to_string()))?;
    let depth = if text.contains("**") { usize::MAX } else { text.split('/').count() };
    let wants_hidden =
        text.split('/').any(|part| part.starts_with('.') && part != "." && part != "..");
    let folder = match glob.folder.as_str() {
        "" if text.starts_with('/') => "/",
        folder => folder,
    };
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(here.join(&folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.as_bytes().starts_with(b".") && !wants_hidden {
                continue;
            }
            let path = folder.join(&name);
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && path.components().count() < depth {
                folders.push(path);
            } else if !kind.is_dir() && glob.matches_path(&path) && here.join(&path).is_file() {
                found.push(here.join(&path).into_os_string().into_vec());
            }
        }
    }
    if found.is_empty() {
        return Err(CliError::Usage(format!("no file matches {text:?} in {}", here.display())));
    }
    found.sort_unstable();
    found.iter().for_each(|path| items.push(path));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(bytes: &[u8], zero: bool) -> Vec<Vec<u8>> {
        split(bytes, zero).iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn lines_are_items_as_they_are_and_the_last_need_not_end() {
        assert_eq!(list(b"a b\n\n\xff'\r\nlast", false), [&b"a b"[..], b"", b"\xff'\r", b"last"]);
        assert_eq!(list(b"a\nb\0c\0", true), [&b"a\nb"[..], b"c"]);
        assert!(list(b"", false).is_empty());
    }

    #[test]
    fn globs_find_files_in_order_and_pass_over_what_is_hidden() {
        let place = tempfile::tempdir().expect("a folder");
        for name in ["b.png", "a.png", ".hidden.png", "sub/c.png", "sub/deep/d.png", "x.txt"] {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, "").expect("written");
        }
        let found = |pattern: &str| {
            let mut items = ByteItems::default();
            find(OsStr::new(pattern), place.path(), &mut items).map(|()| {
                let below = |path: &[u8]| {
                    let path = Path::new(OsStr::from_bytes(path));
                    let below = path.strip_prefix(place.path()).expect("absolute");
                    below.to_string_lossy().into_owned()
                };
                items.iter().map(below).collect::<Vec<_>>()
            })
        };
        assert_eq!(found("*.png").expect("found"), ["a.png", "b.png"]);
        assert_eq!(
            found("**/*.png").expect("found"),
            ["a.png", "b.png", "sub/c.png", "sub/deep/d.png"]
        );
        assert_eq!(found("sub/*.png").expect("found"), ["sub/c.png"]);
        assert_eq!(found(".*.png").expect("found"), [".hidden.png"]);
        let absolute = place.path().join("*.txt");
        assert_eq!(found(absolute.to_str().expect("text")).expect("found"), ["x.txt"]);
        assert!(found("*.gif").is_err());
    }
}
