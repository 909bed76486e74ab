//! Files that change while they are read.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use crate::error::Error;

/// The times that a file is read, before it is given up because it changes.
pub(super) const READS_MAX: u32 = 3;

/// The state of a file at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) n_bytes: u64,
    modified: Option<SystemTime>,
    /// Device and number, where the system has them.
    identity: Option<(u64, u64)>,
}

impl Stamp {
    /// Opens a file, and says what it is like.
    pub(super) fn open(path: &Path) -> io::Result<(File, Self)> {
        let file = File::open(path)?;
        let stamp = Self::of(&file.metadata()?);
        Ok((file, stamp))
    }

    /// True if the path leads to the same file, and nothing has written to it since. A file that is gone is as it was:
    /// what was read of it is whole.
    pub(super) fn is_current(&self, path: &Path) -> bool {
        fs::metadata(path).map_or(true, |found| Self::of(&found) == *self)
    }

    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt as _;
            Some((metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let identity = None;
        Self { n_bytes: metadata.len(), modified: metadata.modified().ok(), identity }
    }
}

/// The error of a file that changed each time.
pub(super) fn changed(path: &Path, n_times: u32) -> Error {
    Error::Changed { path: path.to_owned(), n_times }
}
