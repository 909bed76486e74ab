//! One writer at a time: an advisory lock on the collection's `LOCK` file, released by the system however the process
//! ends.
//!
//! A writer writes through its lock. Files are named by their paths, and a path may come to lead elsewhere: to nothing,
//! where a collection was moved, or to another collection. The lock file that is held says which is ours.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{AtPath, Error, Result};
use crate::format::layout::LOCK;
use crate::fs::{self, Access, Folder, Fs};

/// The right to write, held as long as it lives, and the file system to write with: it refuses once the collection is
/// elsewhere.
#[derive(Debug)]
pub struct WriterLock<'a> {
    path: PathBuf,
    file: File,
    fs: &'a dyn Fs,
    /// The same below the folder that holds the lock file.
    within: Option<Folder>,
}

impl<'a> WriterLock<'a> {
    /// Takes the lock of the collection at `folder`, or says that another writer has it.
    pub fn acquire(folder: &Path, fs: &'a dyn Fs) -> Result<Self> {
        let path = folder.join(LOCK);
        let folder = Folder::open(folder).at(folder)?;
        let file = folder.file(LOCK, Access::WriteOrCreate).map_err(|reason| Error::writing(&path, reason))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, file, fs, within: fs.is_system().then_some(folder) }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path }),
            Err(TryLockError::Error(source)) => Err(Error::Io { path, source }),
        }
    }

    /// The result of a writer, or the error that its collection is elsewhere, if that is why it failed.
    pub fn explained<T, E: From<Error>>(&self, ended: Result<T, E>) -> Result<T, E> {
        match (ended, self.check()) {
            (Err(_), Err(source)) => Err(Error::Io { path: self.path.clone(), source }.into()),
            (ended, _) => ended,
        }
    }

    /// The file system to read with.
    fn fs(&self) -> &dyn Fs {
        self.within.as_ref().map_or(self.fs, |folder| folder)
    }

    /// The file system to write with, if the collection is where it was.
    fn checked(&self) -> io::Result<&dyn Fs> {
        self.check().map(|()| self.fs())
    }

    /// That the path still leads to the file that is locked.
    #[cfg(unix)]
    fn check(&self) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;

        let held = self.file.metadata()?;
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (held.dev(), held.ino()) => Ok(()),
            Ok(_) => Err(moved()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(moved()),
            Err(error) => Err(error),
        }
    }

    /// A folder with an open file in it cannot be moved.
    #[cfg(not(unix))]
    fn check(&self) -> io::Result<()> {
        self.file.metadata().map(drop)
    }
}

fn moved() -> io::Error {
    io::Error::other(
        "the collection was moved away or replaced while it was being written; run the command again where it is now",
    )
}

impl Fs for WriterLock<'_> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn fs::File>> {
        self.checked()?.create(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.checked()?.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.fs().list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.checked()?.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.checked()?.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.checked()?.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.checked()?.remove_dir(path)
    }
}
