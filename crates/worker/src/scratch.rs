//! The scratch folder of one attempt, and the only way to a path within it.
//!
//! In: names that a peer sent. Out: paths that lie in the folder, also when symbolic links are
//! followed. Invariant: nothing outside the folder is written or removed by this process. (What a
//! `run` does by itself is its own affair.)

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use musec_protocol::ErrorKind;

use crate::failure::Failure;

/// The scratch folder.
#[derive(Clone, Debug)]
pub(crate) struct Scratch {
    /// Absolute, without links.
    path: PathBuf,
    /// What [`Self::clean`] leaves, relative to the folder.
    kept: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// Files and folders that are remembered: each costs its name, in memory.
const MARKED_MAX: usize = 100_000;

impl Scratch {
    /// Makes the folder `name` in `root` (made too if it is missing), for this user alone.
    ///
    /// # Errors
    /// If it cannot be made, or is there already: then it is another's.
    pub(crate) fn create(root: &Path, name: &str) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).recursive(true).create(root)?;
        let path = root.canonicalize()?.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, kept: Arc::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file `name` is, or would be; folders that lead to it are made.
    pub(crate) fn place(&self, name: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.path.join(self.checked(name)?);
        self.stays_within(&path, name)?;
        if let Some(parent) = path.parent() {
            let what = || format!("cannot make the folder of {}", show(name));
            fs::create_dir_all(parent).map_err(|error| Failure::io(&what(), &error))?;
        }
        Ok(path)
    }

    /// Where the existing file or folder `name` is.
    pub(crate) fn existing(&self, name: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.path.join(self.checked(name)?);
        self.stays_within(&path, name)?;
        match fs::metadata(&path) {
            Ok(_) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::new(
                ErrorKind::Missing,
                format!("no file {} in the scratch folder", show(name)),
            )),
            Err(error) => Err(Failure::io(&format!("cannot use {}", show(name)), &error)),
        }
    }

    /// Where the existing regular file `name` is. Others are refused: to open a pipe without a
    /// writer would hold up the worker.
    pub(crate) fn file(&self, name: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.existing(name)?;
        if path.is_file() {
            return Ok(path);
        }
        Err(Failure::new(ErrorKind::Invalid, format!("{} is not a regular file", show(name))))
    }

    /// Where the regular file `name` is or would be.
    pub(crate) fn new_file(&self, name: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.place(name)?;
        if path.exists() { self.file(name) } else { Ok(path) }
    }

    /// Removes all that is in the folder but for what was there at [`Self::mark`], following no
    /// link.
    pub(crate) fn clean(&self) -> io::Result<()> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.path.join(&folder))? {
                let entry = entry?;
                let (name, is_folder) =
                    (folder.join(entry.file_name()), entry.file_type()?.is_dir());
                match (kept.contains(&name), is_folder) {
                    (true, true) => folders.push(name),
                    (true, false) => {}
                    (false, true) => remove_folder(&entry.path())?,
                    (false, false) => fs::remove_file(entry.path())?,
                }
            }
        }
        Ok(())
    }

    /// [`Self::clean`], unless the folder is empty, which is the rule and costs next to nothing.
    pub(crate) async fn freshen(&self) -> io::Result<()> {
        if fs::read_dir(&self.path)?.next().is_none() {
            return Ok(());
        }
        let scratch = self.clone();
        crate::execute::blocking(move || scratch.clean()).await
    }

    /// Remembers what is in the folder now: [`Self::clean`] leaves it.
    ///
    /// # Errors
    /// If there is too much, or it cannot be read; nothing is remembered then.
    pub(crate) fn mark(&self) -> io::Result<()> {
        let mut found = BTreeSet::new();
        self.walk(PathBuf::new(), |name, _| {
            found.insert(name);
            if found.len() > MARKED_MAX {
                let text = format!(
                    "it holds more than {MARKED_MAX} files; say `keep = true` in the job, and \
                     clean up in its steps"
                );
                return Err(io::Error::new(io::ErrorKind::StorageFull, text));
            }
            Ok(())
        })?;
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(())
    }

    /// Tells all files and folders below `folder`, relative to the scratch folder, and whether each
    /// is a folder. Links are told and not followed.
    pub(crate) fn walk(
        &self,
        folder: PathBuf,
        mut tell: impl FnMut(PathBuf, bool) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.path.join(&folder))? {
                let entry = entry?;
                let (name, is_folder) =
                    (folder.join(entry.file_name()), entry.file_type()?.is_dir());
                if is_folder {
                    folders.push(name.clone());
                }
                tell(name, is_folder)?;
            }
        }
        Ok(())
    }

    /// Removes the folder itself.
    pub(crate) fn remove(&self) -> io::Result<()> {
        remove_folder(&self.path)
    }

    /// The name without `.`; empty for the folder itself.
    pub(crate) fn checked(&self, name: &[u8]) -> Result<PathBuf, Failure> {
        let refused = |why| {
            Failure::new(
                ErrorKind::Invalid,
                format!("{} is refused: {why}; name a path within the scratch folder", show(name)),
            )
        };
        if name.contains(&0) {
            return Err(refused("it has a zero byte"));
        }
        let mut path = PathBuf::new();
        for component in Path::new(OsStr::from_bytes(name)).components() {
            match component {
                Component::Normal(part) => path.push(part),
                Component::CurDir => {}
                Component::ParentDir => return Err(refused("it has a ..")),
                Component::RootDir | Component::Prefix(_) => return Err(refused("it is absolute")),
            }
        }
        Ok(path)
    }

    /// Follows the links of what exists of `path`.
    fn stays_within(&self, path: &Path, name: &[u8]) -> Result<(), Failure> {
        let present = path.ancestors().find(|part| part.symlink_metadata().is_ok());
        let real = present.and_then(|part| part.canonicalize().ok());
        match real {
            Some(real) if real.starts_with(&self.path) => Ok(()),
            _ => Err(Failure::new(
                ErrorKind::Invalid,
                format!(
                    "{} is refused: a symbolic link leads out of the scratch folder",
                    show(name)
                ),
            )),
        }
    }
}

/// Removes a folder with all that it holds. Folders that their owner may not write (a tool's
/// read-only cache) are made writable first.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path)?;
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

fn make_writable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

/// A name as it is shown in an error.
pub(crate) fn show(name: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(name).escape_debug())
}
