//! The coordinator's own look at stores: listing for items, copying of results.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::TryStreamExt;
use musec_core::Glob;
use musec_core::limits::ITEMS_TEXT_BYTES_MAX;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt, path::Path as Key};
use thiserror::Error;
use url::Url;

use crate::cure::cure;
use crate::listing::{Listing, is_upload, list};

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
    path: PathBuf,
    url: String,
    /// Whether objects are put here; files of uploads that are under way are no objects.
    takes_uploads: bool,
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
    #[error("cannot list {path}")]
    List {
        /// The folder.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// A file that items are made of could not be read.
    #[error("cannot read {key} in {url}")]
    Read {
        /// The file.
        key: String,
        /// Its place.
        url: String,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// A glob has a key that the store cannot have.
    #[error("{key:?} is not a key: {why}")]
    Key {
        /// What was taken for a key.
        key: String,
        /// What is wrong with it.
        why: String,
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
    #[error("cannot write {path}{}", cure(.source))]
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
    pub(crate) fn store(path: &Path) -> Result<Self, StoreError> {
        Self::folder(path, true)
    }

    /// A folder of files that are only got.
    pub(crate) fn inputs(path: &Path) -> Result<Self, StoreError> {
        Self::folder(path, false)
    }

    fn folder(path: &Path, takes_uploads: bool) -> Result<Self, StoreError> {
        let objects = LocalFileSystem::new_with_prefix(path)
            .map_err(|source| StoreError::Open { path: path.to_owned(), source })?;
        let url =
            Url::from_directory_path(path).map_err(|()| StoreError::NoUrl(path.to_owned()))?;
        let path = path.to_owned();
        Ok(Self { objects: Arc::new(objects), path, url: url.into(), takes_uploads })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The keys that match, sorted by bytes. Names that match and can be no key are warned of.
    pub(crate) async fn list(&self, glob: &Glob) -> Result<Vec<String>, StoreError> {
        if !glob.folder.is_empty() {
            parse_key(&glob.folder)?;
        }
        let (root, wanted, hides) = (self.path.clone(), glob.clone(), self.takes_uploads);
        let listing = tokio::task::spawn_blocking(move || list(&root, &wanted, hides, KEYS_MAX));
        let Listing { keys, unfit } = match listing.await {
            Ok(listing) => listing.map_err(|(path, source)| StoreError::List { path, source })?,
            Err(error) => {
                let (path, source) = (self.path.clone(), std::io::Error::other(error));
                return Err(StoreError::List { path, source });
            }
        };
        for path in unfit {
            tracing::warn!("{path:?} in {} can be no key, and is left out; rename it", self.url);
        }
        if keys.len() > KEYS_MAX {
            return Err(StoreError::TooMany(glob.pattern.clone()));
        }
        Ok(keys)
    }

    /// A whole object, if it is not larger than what items may be made of.
    async fn read(&self, key: &str) -> Result<Vec<u8>, StoreError> {
        let get_error =
            |source| StoreError::Get { key: key.to_owned(), url: self.url.clone(), source };
        let name = Path::new(key).file_name().unwrap_or_default();
        if !self.takes_uploads && is_upload(name) {
            // The store would take it for an upload's.
            let url = self.url.clone();
            return self.read_file(key).map_err(|source| StoreError::Read {
                key: key.to_owned(),
                url,
                source,
            });
        }
        let object = self.objects.get(&Key::from(key)).await.map_err(get_error)?;
        if object.meta.size > ITEMS_TEXT_BYTES_MAX as u64 {
            let (key, bytes) = (key.to_owned(), object.meta.size);
            return Err(StoreError::TooLarge { key, bytes });
        }
        object.bytes().await.map(Into::into).map_err(get_error)
    }

    /// No more of it than shows that it is too large: that is found where it is used.
    fn read_file(&self, key: &str) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let most = ITEMS_TEXT_BYTES_MAX as u64 + 1;
        std::fs::File::open(self.path.join(key))?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Copies an object into a file that appears whole or not at all.
    pub(crate) async fn fetch(&self, key: &str, file: &Path) -> Result<(), StoreError> {
        let get_error =
            |source| StoreError::Get { key: key.to_owned(), url: self.url.clone(), source };
        let write_error = |source| StoreError::Write { path: file.to_owned(), source };
        let object = self.objects.get(&parse_key(key)?).await.map_err(get_error)?;
        let folder = file.parent().unwrap_or_else(|| Path::new("."));
        std::fs::create_dir_all(folder).map_err(write_error)?;
        // Its name is this process's own: another run may be bringing the same file.
        let mut partial = file.as_os_str().to_owned();
        partial.push(format!(".{}.part", std::process::id()));
        let partial = Partial(partial.into());
        let mut out = std::fs::File::create(&partial.0).map_err(write_error)?;
        let mut chunks = object.into_stream();
        while let Some(chunk) = chunks.try_next().await.map_err(get_error)? {
            std::io::Write::write_all(&mut out, &chunk).map_err(write_error)?;
        }
        std::fs::rename(&partial.0, file).map_err(write_error)
    }
}

/// A file that is not yet whole; removed if it does not get its name.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // Where it got its name there is nothing to remove.
        if let Err(error) = std::fs::remove_file(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// A key as workers take it: as it stands. (`Key::from` would encode what is unusual in it, and so
/// name another object.)
fn parse_key(key: &str) -> Result<Key, StoreError> {
    Key::parse(key).map_err(|error| StoreError::Key { key: key.to_owned(), why: error.to_string() })
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

#[cfg(test)]
mod tests {
    use musec_protocol::Place as KeyPlace;

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
    }

    #[test]
    fn objects_with_unusual_names_are_listed_and_fetched_as_they_are_named() {
        let place = tempfile::tempdir().expect("temporary folder");
        let names = ["plain", "ü~ {x}", "a#b", "50%", "a%20b", "[x]*?", "q\"\\`"];
        let folder = place.path().join("ö#%41");
        std::fs::create_dir(&folder).expect("made");
        for name in names {
            std::fs::write(folder.join(name), name).expect("written");
        }
        let store = Place::store(place.path()).expect("a store");
        let glob = Glob::new(KeyPlace::Store, "ö#%41/*").expect("a glob");
        let keys = block_on(store.list(&glob)).expect("listed");
        let mut expected = names.map(|name| format!("ö#%41/{name}"));
        expected.sort_unstable();
        assert_eq!(keys, expected);
        let copy = place.path().join("copy");
        for key in keys {
            block_on(store.fetch(&key, &copy)).expect("fetched");
            let bytes = std::fs::read(&copy).expect("there");
            assert_eq!(format!("ö#%41/{}", String::from_utf8_lossy(&bytes)), key);
        }
    }

    #[test]
    fn what_another_run_is_bringing_at_the_same_time_is_left_alone() {
        let place = tempfile::tempdir().expect("temporary folder");
        std::fs::write(place.path().join("object"), "whole").expect("written");
        let store = Place::store(place.path()).expect("a store");
        let copy = place.path().join("copy");
        let of_another = [place.path().join("copy.part"), place.path().join("copy.1.part")];
        for path in &of_another {
            std::fs::write(path, "half").expect("written");
        }
        block_on(store.fetch("object", &copy)).expect("fetched");
        assert_eq!(std::fs::read(&copy).expect("there"), b"whole");
        for path in &of_another {
            assert_eq!(std::fs::read(path).expect("still there"), b"half");
        }
    }

    #[test]
    fn a_name_that_can_be_no_key_keeps_no_other_out_and_numbered_names_are_files_of_inputs() {
        use std::os::unix::ffi::OsStrExt;
        let place = tempfile::tempdir().expect("temporary folder");
        for name in [&b"line\nbreak"[..], b"\xff\xfe", b"a", b"a#1", b"b#x"] {
            let path = place.path().join(std::ffi::OsStr::from_bytes(name));
            std::fs::write(path, name).expect("written");
        }
        std::os::unix::fs::symlink(".", place.path().join("circle")).expect("linked");
        let glob = Glob::new(KeyPlace::Store, "*").expect("a glob");
        let inputs = Place::inputs(place.path()).expect("a folder");
        assert_eq!(block_on(inputs.list(&glob)).expect("listed"), ["a", "a#1", "b#x"]);
        assert_eq!(block_on(inputs.read("a#1")).expect("read"), b"a#1");
        let store = Place::store(place.path()).expect("a store");
        assert_eq!(block_on(store.list(&glob)).expect("listed"), ["a", "b#x"]);
        let all = Glob::new(KeyPlace::Store, "**").expect("a glob");
        assert_eq!(block_on(inputs.list(&all)).expect("listed"), ["a", "a#1", "b#x"]);
        let listing = list(place.path(), &glob, false, 10).expect("listed");
        assert_eq!(listing.unfit.len(), 2, "{listing:?}");
        assert_eq!(list(place.path(), &glob, false, 1).expect("listed").keys.len(), 3);
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_files() {
        let place = tempfile::tempdir().expect("temporary folder");
        let store = Place::store(place.path()).expect("a store");
        let glob = Glob::new(KeyPlace::Store, "gone/*").expect("a glob");
        assert!(block_on(store.list(&glob)).expect("listed").is_empty());
    }
}
