//! `get` and `put`: objects between a store and the scratch folder, streamed in bounded memory.
//!
//! Phases partition [s, f]: asking until the first byte, bytes on their way, bytes at the disk.
//! (Where several objects are under way at a time, `several` tells the phases of all.) A file of
//! the scratch folder appears whole or not at all, and so does an object. One that is stopped
//! midway leaves nothing behind.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use musec_protocol::{ByteRange, ErrorKind, Get, Object, Outcome, PhaseKind, Place, Put, WTime};
use object_store::{
    GetOptions, GetRange, GetResult, GetResultPayload, ObjectStore, ObjectStoreExt, PutPayload,
};

use crate::execute::{Context, blocking};
use crate::failure::Failure;
use crate::listing::is_upload;
use crate::progress::{Done, Progress};
use crate::scratch::show;
use crate::store::{key, refused};

/// Bytes of one read or write of a `get`: bounds memory, and makes each worth its call.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes of one part of a `put`: stores want parts of 5 MiB at least, and one is in memory.
const PART_BYTES: usize = 8 << 20;

/// Where a transfer notes what it does.
#[derive(Clone, Copy)]
pub(crate) enum Marks<'a> {
    /// It is the only one: its phases are the command's.
    Phases(&'a Progress),
    /// It is one of several: only its stamps and bytes count.
    Stamps(&'a Progress),
}

impl Marks<'_> {
    fn enter(self, kind: PhaseKind) -> WTime {
        match self {
            Self::Phases(progress) => progress.enter(kind),
            Self::Stamps(progress) => progress.now(),
        }
    }

    fn leave(self) -> WTime {
        match self {
            Self::Phases(progress) => progress.leave(),
            Self::Stamps(progress) => progress.now(),
        }
    }

    fn note(self, change: impl FnOnce(&mut Done)) {
        match self {
            Self::Phases(progress) | Self::Stamps(progress) => progress.note(change),
        }
    }
}

/// Brings one object, or a part of it, into the scratch folder.
pub(crate) async fn get(
    get: &Get,
    context: &Context,
    progress: &Marks<'_>,
) -> Result<Outcome, Failure> {
    let asked = progress.enter(PhaseKind::FirstByte);
    let (_, url) = context.stores.place(get.place)?;
    let path = context.scratch.place(&get.file)?;
    let Found { etag, version, length, mut source } = find(get, context).await?;
    let failed =
        |error: &io::Error| Failure::io(&format!("cannot write {}", show(&get.file)), error);
    let (partial, mut file) = Partial::create(context.scratch.path()).map_err(|e| failed(&e))?;
    let (mut first_byte, mut last_byte, mut bytes) = (None, asked, 0);
    loop {
        let least = if first_byte.is_none() { 1 } else { CHUNK_BYTES };
        let chunk = source.next(least).await.map_err(|e| refused(&get.key, url, &e))?;
        if chunk.is_empty() {
            break;
        }
        last_byte = progress.enter(PhaseKind::Disk);
        first_byte.get_or_insert(last_byte);
        let more = chunk.len() as u64;
        bytes += more;
        progress.note(|done| done.bytes += more);
        file = blocking(move || file.write_all(&chunk).map(|()| file))
            .await
            .map_err(|error| failed(&error))?;
        progress.enter(PhaseKind::Transfer);
    }
    let ended = progress.enter(PhaseKind::Disk);
    if bytes != length {
        let text = format!("{} in {url} ended after {bytes} of {length} bytes", get.key);
        return Err(Failure::new(ErrorKind::Io, text));
    }
    drop(file);
    partial.publish(path).await.map_err(|error| failed(&error))?;
    let done_at = progress.leave();
    progress.note(|done| {
        done.objects.push(Object {
            key: prefixed(get),
            etag,
            version,
            bytes,
            asked,
            first_byte: first_byte.unwrap_or(ended),
            last_byte: if bytes == 0 { ended } else { last_byte },
            done: done_at,
        });
    });
    Ok(Outcome::Ok)
}

/// An object that was found, or the part of it that is asked for.
struct Found {
    etag: String,
    version: String,
    length: u64,
    source: Source,
}

async fn find(get: &Get, context: &Context) -> Result<Found, Failure> {
    let (objects, url) = context.stores.place(get.place)?;
    let location = key(&get.key)?;
    let unread =
        |error: &io::Error| Failure::io(&format!("cannot read {} in {url}", get.key), error);
    let name = Path::new(&get.key).file_name().unwrap_or_default();
    if get.place == Place::Inputs && is_upload(name) {
        // The store would take it for an upload's.
        let path = context.stores.folder(get.place)?.join(&get.key);
        return numbered(&path, get.range).map_err(|error| unread(&error));
    }
    let options = GetOptions::default().with_range(get.range.map(wanted));
    let found = objects.get_opts(&location, options).await;
    let found = found.map_err(|error| refused(&get.key, url, &error))?;
    Ok(Found {
        etag: found.meta.e_tag.clone().unwrap_or_default(),
        version: found.meta.version.clone().unwrap_or_default(),
        length: found.range.end.saturating_sub(found.range.start),
        source: Source::of(found).map_err(|error| unread(&error))?,
    })
}

/// A file that the store does not open, because its name ends like `#1`.
fn numbered(path: &Path, range: Option<ByteRange>) -> io::Result<Found> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let Range { start, end } = match range {
        None => 0..size,
        Some(ByteRange::From { from, to }) => {
            from..to.map_or(size, |to| to.saturating_add(1).min(size))
        }
        Some(ByteRange::Last(last)) => size.saturating_sub(last)..size,
    };
    file.seek(SeekFrom::Start(start))?;
    let length = end.saturating_sub(start);
    let source = Source::File(Some(file), length);
    Ok(Found { etag: String::new(), version: String::new(), length, source })
}

/// A range as a store is asked for it.
fn wanted(range: ByteRange) -> GetRange {
    match range {
        ByteRange::From { from, to: Some(to) } => GetRange::Bounded(from..to.saturating_add(1)),
        ByteRange::From { from, to: None } => GetRange::Offset(from),
        ByteRange::Last(last) => GetRange::Suffix(last),
    }
}

fn prefixed(get: &Get) -> String {
    match get.place {
        Place::Inputs => format!("in:{}", get.key),
        Place::Store => get.key.clone(),
    }
}

/// Where an object's bytes come from.
enum Source {
    /// A file of a folder that is the store: read at once in large pieces. With what is left of it
    /// to be read.
    File(Option<File>, u64),
    Stream(BoxStream<'static, object_store::Result<Vec<u8>>>),
}

impl Source {
    fn of(found: GetResult) -> io::Result<Self> {
        let Range { start, end } = found.range;
        Ok(match found.payload {
            GetResultPayload::File(mut file, _) => {
                file.seek(SeekFrom::Start(start))?;
                Self::File(Some(file), end.saturating_sub(start))
            }
            GetResultPayload::Stream(stream) => Self::Stream(stream.map_ok(Vec::from).boxed()),
        })
    }

    /// At least `least` bytes unless the object ends before; none at its end.
    async fn next(&mut self, least: usize) -> object_store::Result<Vec<u8>> {
        let mut chunk = Vec::new();
        match self {
            Self::File(slot, left) => {
                let most = (CHUNK_BYTES as u64).min(*left);
                let Some(file) = slot.take() else { return Ok(chunk) };
                let read = blocking(move || {
                    (&file).take(most).read_to_end(&mut chunk)?;
                    Ok((file, chunk))
                });
                let (file, chunk) = read.await.map_err(|error| object_store::Error::Generic {
                    store: "folder",
                    source: Box::new(error),
                })?;
                *slot = Some(file);
                *left = left.saturating_sub(chunk.len() as u64);
                Ok(chunk)
            }
            Self::Stream(stream) => {
                while chunk.len() < least
                    && let Some(more) = stream.next().await
                {
                    chunk.extend_from_slice(&more?);
                }
                Ok(chunk)
            }
        }
    }
}

/// How files begin that are on their way to their names.
pub(crate) const PARTIAL_PREFIX: &str = ".musec-part-";

/// A file on its way to its name; removed if it does not get there.
#[derive(Debug)]
pub(crate) struct Partial(Option<PathBuf>);

impl Partial {
    pub(crate) fn create(folder: &Path) -> io::Result<(Self, File)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{PARTIAL_PREFIX}{}-{number}", std::process::id()));
        let file = File::options().write(true).create_new(true).open(&path)?;
        Ok((Self(Some(path)), file))
    }

    /// Where it is, until it has its name.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    pub(crate) async fn publish(self, path: PathBuf) -> io::Result<()> {
        blocking(move || self.publish_now(&path)).await
    }

    /// Gives it its name, on this thread.
    pub(crate) fn publish_now(mut self, path: &Path) -> io::Result<()> {
        if let Some(from) = &self.0 {
            std::fs::rename(from, path)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(path) = self.0.take()
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::debug!("cannot remove {}: {error}", path.display());
        }
    }
}

/// Puts one file of the scratch folder into the store. It goes in parts, however small it is: so
/// the last byte of the body has a stamp of its own, before the object can be seen by others.
pub(crate) async fn put(
    put: &Put,
    context: &Context,
    progress: &Marks<'_>,
) -> Result<Outcome, Failure> {
    let asked = progress.enter(PhaseKind::FirstByte);
    let (objects, url) = context.stores.place(Place::Store)?;
    let location = key(&put.key)?;
    let path = context.scratch.file(&put.file)?;
    let unread =
        |error: &io::Error| Failure::io(&format!("cannot read {}", show(&put.file)), error);
    let mut file = File::open(path).map_err(|error| unread(&error))?;
    let unput = |error: &object_store::Error| refused(&put.key, url, error);
    let mut upload = objects.put_multipart(&location).await.map_err(|error| unput(&error))?;
    let (mut first_byte, mut bytes) = (None, 0);
    loop {
        progress.enter(PhaseKind::Disk);
        let (rest, part) = blocking(move || part_of(file)).await.map_err(|error| unread(&error))?;
        file = rest;
        if part.is_empty() {
            break;
        }
        let sent = progress.enter(PhaseKind::Transfer);
        first_byte.get_or_insert(sent);
        let length = part.len() as u64;
        upload.put_part(PutPayload::from(part)).await.map_err(|error| unput(&error))?;
        bytes += length;
        progress.note(|done| done.bytes += length);
    }
    let last_byte = progress.enter(PhaseKind::Transfer);
    let result = upload.complete().await.map_err(|error| unput(&error))?;
    let done_at = progress.leave();
    progress.note(|done| {
        done.objects.push(Object {
            key: put.key.clone(),
            etag: result.e_tag.unwrap_or_default(),
            version: result.version.unwrap_or_default(),
            bytes,
            asked,
            first_byte: first_byte.unwrap_or(last_byte),
            last_byte,
            done: done_at,
        });
    });
    Ok(Outcome::Ok)
}

/// The next part of a file; none at its end.
fn part_of(file: File) -> io::Result<(File, Vec<u8>)> {
    let mut part = Vec::new();
    (&file).take(PART_BYTES as u64).read_to_end(&mut part)?;
    Ok((file, part))
}
