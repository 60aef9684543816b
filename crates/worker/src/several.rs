//! `get` and `put` of a folder, or of all that match a glob: several objects at a time.
//!
//! Phases: what is to be moved is looked for and asked for, then bytes are on their way; every
//! object has its own stamps. The first that fails ends the command; those that were moved by then
//! stay. Objects are told sorted by their keys, and all of them: a command with more than fit in
//! one reply is refused before anything is moved.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use futures_util::stream;
use futures_util::{StreamExt, TryStreamExt};
use globset::{GlobBuilder, GlobMatcher};
use musec_protocol::limits::{FRAME_BYTES_MAX, GLOB_BYTES_MAX, OBJECTS_MAX};
use musec_protocol::{ErrorKind, Get, Outcome, PhaseKind, Place, Put, Which};

use crate::execute::{Context, blocking};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::scratch::show;
use crate::store::key;
use crate::transfer::{self, Marks};

/// What one object takes in a reply beside its key at most: stamps, an etag, a version.
const OBJECT_BYTES: usize = 300;

/// Bytes of a reply that its objects may take; the rest of a frame is for outputs.
const OBJECTS_BYTES_MAX: usize = FRAME_BYTES_MAX - (1 << 20);

/// Brings all objects of a folder, or that match, into a folder of the scratch folder.
pub(crate) async fn get(
    get: &Get,
    context: &Context,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    progress.enter(PhaseKind::FirstByte);
    let names = Names::of(get.which, &get.key)?;
    let keys = list(get, &names, context).await?;
    fits(keys.iter().map(String::len))?;
    let gets = keys.into_iter().map(|object| {
        let file = joined(&get.file, names.below(&object).as_bytes());
        Get { key: object, file, which: Which::One, ..get.clone() }
    });
    progress.enter(PhaseKind::Transfer);
    let marks = Marks::Stamps(progress);
    stream::iter(gets)
        .map(|one| async move { transfer::get(&one, context, &marks).await.map(drop) })
        .buffer_unordered(at_a_time(get.concurrency))
        .try_collect::<()>()
        .await?;
    finish(progress);
    Ok(Outcome::Ok)
}

/// Puts all files of a folder, or that match, into the store.
pub(crate) async fn put(
    put: &Put,
    context: &Context,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    progress.enter(PhaseKind::Disk);
    let pattern = std::str::from_utf8(&put.file).map_err(|_| {
        let text = format!("{} is not UTF-8, and names several files", show(&put.file));
        Failure::new(ErrorKind::Invalid, text)
    })?;
    let names = Names::of(put.which, pattern)?;
    let files = find(&names, pattern, context).await?;
    let puts: Vec<Put> = files
        .into_iter()
        .map(|file| Put {
            key: format!("{}{}", put.key, names.below(&file)),
            file: file.into_bytes(),
            which: Which::One,
            ..put.clone()
        })
        .collect();
    fits(puts.iter().map(|one| one.key.len()))?;
    progress.enter(PhaseKind::Transfer);
    let marks = Marks::Stamps(progress);
    stream::iter(puts)
        .map(|one| async move { transfer::put(&one, context, &marks).await.map(drop) })
        .buffer_unordered(at_a_time(put.concurrency))
        .try_collect::<()>()
        .await?;
    finish(progress);
    Ok(Outcome::Ok)
}

/// Which names are meant, and which folder they are below.
#[derive(Clone)]
struct Names {
    /// With a slash at its end; empty for all.
    folder: String,
    /// `None` for all that are below the folder.
    glob: Option<GlobMatcher>,
}

impl Names {
    fn of(which: Which, text: &str) -> Result<Self, Failure> {
        if which != Which::Glob {
            let folder = text.trim_end_matches('/').trim_start_matches("./");
            let is_all = folder.is_empty() || folder == ".";
            let folder = if is_all { String::new() } else { format!("{folder}/") };
            return Ok(Self { folder, glob: None });
        }
        let text = text.trim_start_matches("./");
        if text.len() > GLOB_BYTES_MAX {
            let why = format!("a glob is longer than {GLOB_BYTES_MAX} bytes");
            return Err(Failure::new(ErrorKind::Invalid, why));
        }
        let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| {
            Failure::new(ErrorKind::Invalid, format!("{text:?} is not a glob: {}", error.kind()))
        })?;
        let special = text.find(['*', '?', '[', '{', '\\']).unwrap_or(text.len());
        let literal = text.get(..special).unwrap_or_default();
        let folder = literal.rfind('/').and_then(|at| literal.get(..=at)).unwrap_or_default();
        Ok(Self { folder: folder.to_owned(), glob: Some(glob.compile_matcher()) })
    }

    fn are(&self, name: &str) -> bool {
        name.starts_with(&self.folder) && self.glob.as_ref().is_none_or(|glob| glob.is_match(name))
    }

    /// A name without the folder.
    fn below<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(&self.folder).unwrap_or(name)
    }
}

/// The keys that are meant, sorted.
async fn list(get: &Get, names: &Names, context: &Context) -> Result<Vec<String>, Failure> {
    let (_, url) = context.stores.place(get.place)?;
    let folder = names.folder.trim_end_matches('/');
    if !folder.is_empty() {
        key(folder)?;
    }
    let root = context.stores.folder(get.place)?;
    let (wanted, below, hides) = (names.clone(), folder.to_owned(), get.place == Place::Store);
    let listing =
        blocking(move || Ok(crate::listing::list(&root, &below, hides, |name| wanted.are(name))));
    let listed = listing
        .await
        .map_err(|error| Failure::new(ErrorKind::Io, format!("cannot list {url}: {error}")))?;
    let keys = listed?;
    if keys.len() > OBJECTS_MAX {
        return Err(too_many());
    }
    if keys.is_empty() {
        let text = format!("no object {} in {url}", get.key);
        return Err(Failure::new(ErrorKind::Missing, text));
    }
    Ok(keys)
}

/// The files of the scratch folder that are meant, sorted.
async fn find(names: &Names, pattern: &str, context: &Context) -> Result<Vec<String>, Failure> {
    let none = || {
        let text = format!("no file {} in the scratch folder", show(pattern.as_bytes()));
        Failure::new(ErrorKind::Missing, text)
    };
    let folder = context.scratch.checked(names.folder.as_bytes())?;
    if !folder.as_os_str().is_empty()
        && !context.scratch.existing(names.folder.as_bytes())?.is_dir()
    {
        return Err(none());
    }
    let scratch = context.scratch.clone();
    let found = blocking(move || {
        let mut found: Vec<PathBuf> = Vec::new();
        scratch.walk(folder, |name, is_folder| {
            if !is_folder {
                found.push(name);
            }
            Ok(())
        })?;
        Ok(found)
    });
    let found = found.await.map_err(|error: io::Error| {
        Failure::io(&format!("cannot read {}", show(pattern.as_bytes())), &error)
    })?;
    let mut files = Vec::new();
    for path in found {
        let Some(name) = path.to_str() else {
            if names.glob.is_some() {
                continue;
            }
            let text = format!("{} is not UTF-8: no key", show(path.as_os_str().as_bytes()));
            return Err(Failure::new(ErrorKind::Invalid, text));
        };
        if names.are(name) && !is_partial(&path) {
            files.push(name.to_owned());
        }
    }
    if files.is_empty() {
        return Err(none());
    }
    files.sort_unstable();
    Ok(files)
}

/// Whether it is a file of ours that is on its way to its name.
fn is_partial(path: &Path) -> bool {
    path.as_os_str().as_bytes().starts_with(transfer::PARTIAL_PREFIX.as_bytes())
}

/// Notes that all is done.
fn finish(progress: &Progress) {
    progress.leave();
    progress.note(|done| done.objects.sort_by(|a, b| a.key.cmp(&b.key)));
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    [folder, b"/", name].concat()
}

fn at_a_time(concurrency: u32) -> usize {
    usize::try_from(concurrency).unwrap_or(1).clamp(1, CONCURRENCY_MAX)
}

/// Objects under way at a time: each has a file open and a piece in memory.
const CONCURRENCY_MAX: usize = 64;

/// Refuses more objects than a reply can tell.
fn fits(keys: impl Iterator<Item = usize>) -> Result<(), Failure> {
    let (mut count, mut bytes) = (0, 0);
    for length in keys {
        count += 1;
        bytes += length + OBJECT_BYTES;
    }
    if count > OBJECTS_MAX || bytes > OBJECTS_BYTES_MAX { Err(too_many()) } else { Ok(()) }
}

fn too_many() -> Failure {
    let most = OBJECTS_BYTES_MAX / (OBJECT_BYTES + 40);
    let text = format!("more than about {most} objects at once; name fewer with a glob, in a loop");
    Failure::new(ErrorKind::Invalid, text)
}
