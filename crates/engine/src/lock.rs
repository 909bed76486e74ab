//! One writer at a time: an advisory lock on the collection's `LOCK` file, released by the system however the process ends.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{AtPath, Error, Result};

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct WriterLock {
    _file: File,
}

impl WriterLock {
    /// Takes the lock of the collection at `folder`, or says that another writer has it.
    pub(crate) fn acquire(folder: &Path) -> Result<Self> {
        let path = folder.join("LOCK");
        let file = File::options().create(true).truncate(false).write(true).open(&path).at(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path }),
            Err(TryLockError::Error(source)) => Err(Error::Io { path, source }),
        }
    }
}
