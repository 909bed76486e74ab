//! The traits of a file that change when another takes its place.

use std::path::Path;
use std::time::SystemTime;

use crate::error::{AtPath as _, Result};

/// Differs between two files that were put in one place, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) modified: SystemTime,
    n_bytes: u64,
    file: u64,
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let found = std::fs::symlink_metadata(path).at(path)?;
        Ok(Self { modified: found.modified().at(path)?, n_bytes: found.len(), file: file_number(&found) })
    }
}

#[cfg(unix)]
fn file_number(found: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn file_number(_: &std::fs::Metadata) -> u64 {
    0
}
