//! Stores: where objects are got from and put to.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use musec_protocol::{ErrorKind, Place, Welcome};
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, path::Path as Key};
use url::Url;

use crate::failure::{Failure, cure, kind_of};

/// The run's store and its inputs, each opened when it is first needed.
pub(crate) struct Stores {
    store: Opened,
    inputs: Opened,
}

struct Opened {
    url: String,
    objects: std::cell::OnceCell<Arc<dyn ObjectStore>>,
}

impl Stores {
    pub(crate) fn new(welcome: &Welcome) -> Self {
        let opened =
            |url: &String| Opened { url: url.clone(), objects: std::cell::OnceCell::new() };
        Self { store: opened(&welcome.store_url), inputs: opened(&welcome.inputs_url) }
    }

    /// The objects of a place, and its URL for errors.
    pub(crate) fn place(&self, place: Place) -> Result<(Arc<dyn ObjectStore>, &str), Failure> {
        let opened = match place {
            Place::Store => &self.store,
            Place::Inputs => &self.inputs,
        };
        if let Some(objects) = opened.objects.get() {
            return Ok((Arc::clone(objects), &opened.url));
        }
        let objects = open(&opened.url)?;
        let objects = opened.objects.get_or_init(|| objects);
        Ok((Arc::clone(objects), &opened.url))
    }
}

impl Stores {
    /// The folder that a place is.
    pub(crate) fn folder(&self, place: Place) -> Result<PathBuf, Failure> {
        match place {
            Place::Store => folder_of(&self.store.url),
            Place::Inputs => folder_of(&self.inputs.url),
        }
    }
}

/// Opens the store at `url`. Only folders so far; this is the place where others come in.
fn open(url: &str) -> Result<Arc<dyn ObjectStore>, Failure> {
    let objects = LocalFileSystem::new_with_prefix(folder_of(url)?);
    Ok(Arc::new(objects.map_err(|error| unusable(url, &error.to_string()))?))
}

fn unusable(url: &str, why: &str) -> Failure {
    Failure::new(ErrorKind::Unsupported, format!("cannot use the store {url}: {why}"))
}

fn folder_of(url: &str) -> Result<PathBuf, Failure> {
    let unusable = |why: String| unusable(url, &why);
    let parsed = Url::parse(url).map_err(|error| unusable(error.to_string()))?;
    if parsed.scheme() != "file" {
        return Err(unusable(format!("{}:// is not yet supported, use file://", parsed.scheme())));
    }
    parsed.to_file_path().map_err(|()| unusable("it names no folder".into()))
}

/// A key as the store knows it.
pub(crate) fn key(text: &str) -> Result<Key, Failure> {
    Key::parse(text).map_err(|error| {
        Failure::new(ErrorKind::Invalid, format!("{text:?} is not a key: {error}"))
    })
}

/// A store's refusal, in words.
pub(crate) fn refused(what: &str, url: &str, error: &object_store::Error) -> Failure {
    match error {
        object_store::Error::NotFound { .. } => {
            Failure::new(ErrorKind::Missing, format!("no object {what} in {url}"))
        }
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => {
            Failure::new(ErrorKind::Denied, format!("{what} in {url}: {error}"))
        }
        other => {
            let (kind, cure) = system_error(other)
                .map_or((ErrorKind::Io, ""), |error| (kind_of(error), cure(error)));
            Failure::new(kind, format!("{what} in {url}: {other}{cure}"))
        }
    }
}

/// The system's own error behind a store's.
fn system_error(error: &object_store::Error) -> Option<&io::Error> {
    let first = std::error::Error::source(error);
    std::iter::successors(first, |error| error.source()).find_map(|error| error.downcast_ref())
}
