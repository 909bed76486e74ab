//! One writer at a time: an advisory lock on the collection's `LOCK` file, released by the system however the process ends.
//!
//! A writer writes through its lock. Files are named by their paths, and a path may come to lead elsewhere: to nothing, where a
//! collection was moved, or to another collection. The lock file that is held says which is ours.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::layout::LOCK;
use crate::fs::{self, Fs};

/// The right to write, held as long as it lives, and the file system to write with: it refuses once the collection is elsewhere.
#[derive(Debug)]
pub struct WriterLock<'a> {
    path: PathBuf,
    file: File,
    fs: &'a dyn Fs,
}

impl<'a> WriterLock<'a> {
    /// Takes the lock of the collection at `folder`, or says that another writer has it.
    pub fn acquire(folder: &Path, fs: &'a dyn Fs) -> Result<Self> {
        let path = folder.join(LOCK);
        let file = match File::options().create(true).truncate(false).write(true).open(&path) {
            Ok(file) => file,
            Err(reason) => return Err(Error::writing(&path, reason)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Self { path, file, fs }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path }),
            Err(TryLockError::Error(source)) => Err(Error::Io { path, source }),
        }
    }

    /// What a writer came to, or that its collection is elsewhere, if that is why it failed.
    pub fn explained<T, E: From<Error>>(&self, ended: Result<T, E>) -> Result<T, E> {
        match (ended, self.check()) {
            (Err(_), Err(source)) => Err(Error::Io { path: self.path.clone(), source }.into()),
            (ended, _) => ended,
        }
    }

    /// That the path still leads to the file that is locked.
    #[cfg(unix)]
    fn check(&self) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;

        let held = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
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
        self.check()?;
        self.fs.create(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.fs.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.fs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check()?;
        self.fs.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.fs.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.fs.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.fs.remove_dir(path)
    }
}
