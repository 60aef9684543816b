//! `get` and `put`: objects between a store and the scratch folder, streamed.
//!
//! Phases partition [s, f]: asking until the first byte, bytes on their way, bytes at the disk.
//! A file of the scratch folder appears whole or not at all, and so does an object.

use std::path::Path;

use futures_util::StreamExt;
use musec_protocol::{ErrorKind, Get, Object, Outcome, PhaseKind, Place, Put};
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::execute::Context;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::scratch::show;
use crate::store::{key, refused};

/// Bytes of one read or part: bounds memory, and makes each worth its call.
const CHUNK_BYTES: usize = 1 << 20;

/// Smallest file that is put in parts.
const PARTS_FROM_BYTES: u64 = 8 << 20;

/// Brings one object into the scratch folder.
pub(crate) async fn get(
    get: &Get,
    context: &Context,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    let asked = progress.enter(PhaseKind::FirstByte);
    let (objects, url) = context.stores.place(get.place)?;
    let path = context.scratch.place(&get.file)?;
    let found = objects.get(&key(&get.key)?).await;
    let found = found.map_err(|error| refused(&get.key, url, &error))?;
    let meta = found.meta.clone();
    let failed =
        |error: &std::io::Error| Failure::io(&format!("cannot write {}", show(&get.file)), error);
    let partial = partial_of(&path);
    let mut file = tokio::fs::File::create(&partial).await.map_err(|error| failed(&error))?;
    let mut chunks = found.into_stream();
    let mut first_byte = None;
    let mut last_byte = asked;
    let mut bytes = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| refused(&get.key, url, &error))?;
        last_byte = progress.enter(PhaseKind::Disk);
        first_byte.get_or_insert(last_byte);
        bytes += chunk.len() as u64;
        file.write_all(&chunk).await.map_err(|error| failed(&error))?;
        progress.note(|done| done.bytes = bytes);
        progress.enter(PhaseKind::Transfer);
    }
    progress.enter(PhaseKind::Disk);
    file.flush().await.map_err(|error| failed(&error))?;
    drop(file);
    tokio::fs::rename(&partial, &path).await.map_err(|error| failed(&error))?;
    let done_at = progress.leave();
    let first_byte = first_byte.unwrap_or(done_at);
    progress.note(|done| {
        done.objects.push(Object {
            key: prefixed(get),
            etag: meta.e_tag.unwrap_or_default(),
            version: meta.version.unwrap_or_default(),
            bytes,
            asked,
            first_byte,
            last_byte: last_byte.max(first_byte),
            done: done_at,
        });
    });
    Ok(Outcome::Ok)
}

fn prefixed(get: &Get) -> String {
    match get.place {
        Place::Inputs => format!("in:{}", get.key),
        Place::Store => get.key.clone(),
    }
}

fn partial_of(path: &Path) -> std::path::PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".musec-part");
    partial.into()
}

/// Puts one file of the scratch folder into the store.
pub(crate) async fn put(
    put: &Put,
    context: &Context,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    let asked = progress.enter(PhaseKind::Disk);
    let failed =
        |error: &std::io::Error| Failure::io(&format!("cannot read {}", show(&put.file)), error);
    let (objects, url) = context.stores.place(Place::Store)?;
    let path = context.scratch.existing(&put.file)?;
    let location = key(&put.key)?;
    let mut file = tokio::fs::File::open(&path).await.map_err(|error| failed(&error))?;
    let meta = file.metadata().await.map_err(|error| failed(&error))?;
    if !meta.is_file() {
        let text = format!("{} is not a file", show(&put.file));
        return Err(Failure::new(ErrorKind::Invalid, text));
    }
    let put_failed = |error: &object_store::Error| refused(&put.key, url, error);
    let mut bytes = 0;
    let first_byte;
    let result = if meta.len() < PARTS_FROM_BYTES {
        let mut whole = Vec::new();
        file.read_to_end(&mut whole).await.map_err(|error| failed(&error))?;
        bytes = whole.len() as u64;
        first_byte = progress.enter(PhaseKind::Transfer);
        objects.put(&location, PutPayload::from(whole)).await.map_err(|e| put_failed(&e))?
    } else {
        let upload = objects.put_multipart(&location).await.map_err(|e| put_failed(&e))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PARTS_FROM_BYTES as usize);
        first_byte = progress.enter(PhaseKind::Disk);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            progress.enter(PhaseKind::Disk);
            let read = file.read(&mut chunk).await.map_err(|error| failed(&error))?;
            if read == 0 {
                break;
            }
            progress.enter(PhaseKind::Transfer);
            bytes += read as u64;
            upload.write(&chunk[..read]);
            upload.wait_for_capacity(1).await.map_err(|e| put_failed(&e))?;
            progress.note(|done| done.bytes = bytes);
        }
        progress.enter(PhaseKind::Transfer);
        upload.finish().await.map_err(|e| put_failed(&e))?
    };
    let done_at = progress.leave();
    progress.note(|done| {
        done.bytes = bytes;
        done.objects.push(Object {
            key: put.key.clone(),
            etag: result.e_tag.unwrap_or_default(),
            version: result.version.unwrap_or_default(),
            bytes,
            asked,
            first_byte,
            last_byte: done_at,
            done: done_at,
        });
    });
    Ok(Outcome::Ok)
}
