//! The coordinator's own look at stores: listing for items, copying of results.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::TryStreamExt;
use musec_core::Glob;
use musec_core::limits::ITEMS_TEXT_BYTES_MAX;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt, path::Path as Key};
use thiserror::Error;
use url::Url;

/// Keys of one listing: more would not fit in one journal record, and no job of this kind has them.
const KEYS_MAX: usize = 1_000_000;

/// The store and the inputs of a run.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) store: Place,
    pub(crate) inputs: Place,
}

/// A place for objects, and its URL as workers are told it.
#[derive(Clone)]
pub(crate) struct Place {
    objects: Arc<dyn ObjectStore>,
    url: String,
}

/// A store could not be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder cannot be used as a store.
    #[error("cannot use {path} as a store")]
    Open {
        /// The folder.
        path: PathBuf,
        /// The store's words.
        #[source]
        source: object_store::Error,
    },
    /// The folder's path cannot be written as a URL.
    #[error("{0} cannot be written as a URL; use an absolute path")]
    NoUrl(PathBuf),
    /// A glob that is none.
    #[error(transparent)]
    Glob(musec_core::PlanError),
    /// Listing failed.
    #[error("cannot list {url}")]
    List {
        /// The store.
        url: String,
        /// The store's words.
        #[source]
        source: object_store::Error,
    },
    /// More keys than one listing may have.
    #[error("more than {KEYS_MAX} keys match {0:?}; narrow the glob")]
    TooMany(String),
    /// A file that items are made of is too large.
    #[error("{key} has {bytes} bytes; items are made of files of at most {ITEMS_TEXT_BYTES_MAX}")]
    TooLarge {
        /// The object.
        key: String,
        /// Its length.
        bytes: u64,
    },
    /// An object could not be brought.
    #[error("cannot get {key} from {url}")]
    Get {
        /// The object.
        key: String,
        /// The store.
        url: String,
        /// The store's words.
        #[source]
        source: object_store::Error,
    },
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
}

impl Place {
    /// A folder as a store.
    pub(crate) fn folder(path: &Path) -> Result<Self, StoreError> {
        let objects = LocalFileSystem::new_with_prefix(path)
            .map_err(|source| StoreError::Open { path: path.to_owned(), source })?;
        let url =
            Url::from_directory_path(path).map_err(|()| StoreError::NoUrl(path.to_owned()))?;
        Ok(Self { objects: Arc::new(objects), url: url.into() })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The keys that match, sorted by bytes.
    pub(crate) async fn list(&self, glob: &Glob) -> Result<Vec<String>, StoreError> {
        let prefix = (!glob.folder.is_empty()).then(|| Key::from(glob.folder.as_str()));
        let list_error = |source| StoreError::List { url: self.url.clone(), source };
        let mut keys = Vec::new();
        let mut listing = self.objects.list(prefix.as_ref());
        while let Some(object) = listing.try_next().await.map_err(list_error)? {
            let key = object.location.to_string();
            if glob.matches(&key) {
                keys.push(key);
            }
            if keys.len() > KEYS_MAX {
                return Err(StoreError::TooMany(glob.pattern.clone()));
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// A whole object, if it is not larger than what items may be made of.
    async fn read(&self, key: &str) -> Result<Vec<u8>, StoreError> {
        let get_error =
            |source| StoreError::Get { key: key.to_owned(), url: self.url.clone(), source };
        let object = self.objects.get(&Key::from(key)).await.map_err(get_error)?;
        if object.meta.size > ITEMS_TEXT_BYTES_MAX as u64 {
            let (key, bytes) = (key.to_owned(), object.meta.size);
            return Err(StoreError::TooLarge { key, bytes });
        }
        object.bytes().await.map(Into::into).map_err(get_error)
    }

    /// Copies an object into a file that appears whole or not at all.
    pub(crate) async fn fetch(&self, key: &str, file: &Path) -> Result<(), StoreError> {
        let get_error =
            |source| StoreError::Get { key: key.to_owned(), url: self.url.clone(), source };
        let write_error = |source| StoreError::Write { path: file.to_owned(), source };
        let object = self.objects.get(&Key::from(key)).await.map_err(get_error)?;
        let folder = file.parent().unwrap_or_else(|| Path::new("."));
        std::fs::create_dir_all(folder).map_err(write_error)?;
        let mut partial = file.as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        let mut out = std::fs::File::create(&partial).map_err(write_error)?;
        let mut chunks = object.into_stream();
        while let Some(chunk) = chunks.try_next().await.map_err(get_error)? {
            std::io::Write::write_all(&mut out, &chunk).map_err(write_error)?;
        }
        std::fs::rename(&partial, file).map_err(write_error)
    }
}

impl Stores {
    /// A whole file that items are made of.
    pub(crate) async fn read(
        &self,
        place: musec_protocol::Place,
        key: &str,
    ) -> Result<Vec<u8>, StoreError> {
        match place {
            musec_protocol::Place::Inputs => self.inputs.read(key).await,
            musec_protocol::Place::Store => self.store.read(key).await,
        }
    }

    /// The keys that match a glob of a job file, without `in:`.
    pub(crate) async fn list(&self, glob: &Glob) -> Result<Vec<String>, StoreError> {
        match glob.place {
            musec_protocol::Place::Inputs => self.inputs.list(glob).await,
            musec_protocol::Place::Store => self.store.list(glob).await,
        }
    }
}
