//! The files of a segment, wherever they are kept, and the face on them that tantivy reads through.
//!
//! Whoever keeps the files implements [`Files`]: in a collection they are memory-mapped and verified block by block.
//! Nothing is copied on the way, and what a file reports reaches the caller with its name. There is no way to write.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};

use crate::error::FileError;

/// The named files of one segment, as they were written: tantivy trusts the bytes it is given, so an implementation
/// verifies them.
pub trait Files: Send + Sync + Debug {
    /// The file of that name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// What kept it from being opened.
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn File>>>;

    /// The names of all files, in any order.
    fn names(&self) -> Vec<String>;
}

/// One immutable file.
pub trait File: Send + Sync + Debug {
    /// Its length in bytes.
    fn len(&self) -> usize;

    /// True if it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a range within `0..len()`.
    ///
    /// # Errors
    ///
    /// What kept them from being read or verified.
    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes>;
}

/// Files kept in memory: what [`Writer::finish`](crate::Writer::finish) returned.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<String, OwnedBytes>,
}

impl From<Vec<(String, Vec<u8>)>> for Memory {
    fn from(files: Vec<(String, Vec<u8>)>) -> Self {
        let owned: Vec<_> = files.into_iter().map(|(name, bytes)| (name, OwnedBytes::new(bytes))).collect();
        owned.into()
    }
}

impl From<Vec<(String, OwnedBytes)>> for Memory {
    fn from(files: Vec<(String, OwnedBytes)>) -> Self {
        Self { files: files.into_iter().collect() }
    }
}

impl Files for Memory {
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn File>>> {
        Ok(self.files.get(name).map(|bytes| Arc::new(InMemory(bytes.clone())) as Arc<dyn File>))
    }

    fn names(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }
}

#[derive(Debug)]
struct InMemory(OwnedBytes);

impl File for InMemory {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        Ok(self.0.slice(range))
    }
}

/// tantivy's face on [`Files`].
#[derive(Debug, Clone)]
pub(crate) struct ReadOnly {
    files: Arc<dyn Files>,
}

impl ReadOnly {
    pub(crate) fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }

    fn file(&self, path: &Path) -> Result<Handle, OpenReadError> {
        let name = path.to_string_lossy().into_owned();
        match self.files.open(&name) {
            Ok(Some(file)) => Ok(Handle { name, file }),
            Ok(None) => Err(OpenReadError::FileDoesNotExist(path.to_owned())),
            Err(source) => Err(OpenReadError::wrap_io_error(FileError::read(&name, source), path.to_owned())),
        }
    }
}

impl Directory for ReadOnly {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(self.file(path)?))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        match self.file(path) {
            Ok(_) => Ok(true),
            Err(OpenReadError::FileDoesNotExist(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let handle = self.file(path)?;
        let bytes = handle
            .read_bytes(0..handle.len())
            .map_err(|source| OpenReadError::wrap_io_error(source, path.to_owned()))?;
        Ok(bytes.to_vec())
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath: path.to_owned() })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.to_owned()))
    }

    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    /// Nothing changes, so nothing needs a lock.
    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    /// Nothing changes, so there is nothing to watch.
    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a segment is never changed")
}

/// One open file, with the name its errors are reported under.
#[derive(Debug)]
struct Handle {
    name: String,
    file: Arc<dyn File>,
}

impl HasLen for Handle {
    fn len(&self) -> usize {
        self.file.len()
    }
}

impl FileHandle for Handle {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let n_bytes = self.file.len();
        if range.start > range.end || range.end > n_bytes {
            return Err(FileError::outside(&self.name, &range, n_bytes));
        }
        self.file.read(range).map_err(|source| FileError::read(&self.name, source))
    }
}
