//! Files and folders that are there and could not be read: nothing is known of them, so nothing of them counts as gone.
//!
//! A folder whose ignore rules cannot be read is one of them: which of its files may be read is not known.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The files of a folder that hold its ignore rules.
pub(super) const IGNORE_FILES: [&str; 2] = [".gitignore", ".centoignore"];

/// A file or folder that the system did not let be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// Origin of the file, or what the origins of all files under the folder begin with.
    pub origin: String,
    /// Where it is, as far as it can be written.
    pub path: String,
    /// The system's error.
    pub reason: String,
}

/// Says that `origin` is one of `places`, or lies in a folder that is one of them.
pub(super) fn lies_in(origin: &str, places: &BTreeSet<String>) -> bool {
    let folders = origin.rmatch_indices('/').map(|(end, _)| &origin[..end]);
    std::iter::once(origin).chain(folders).any(|place| places.contains(place))
}

/// The ignore file of `folder` that is there and cannot be read, with the reason.
///
/// The walk itself takes such a file for an absent one.
pub(super) fn unread_rules(folder: &Path) -> Option<(PathBuf, io::Error)> {
    IGNORE_FILES.iter().map(|name| folder.join(name)).find_map(|path| {
        let read = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => std::fs::read(&path).map(drop),
            Ok(_) => Ok(()), // a folder of that name holds no rules
            Err(error) => Err(error),
        };
        let error = read.err().filter(|error| error.kind() != io::ErrorKind::NotFound)?;
        Some((path, error))
    })
}

/// The path that an error of the walk speaks of; none where the listing of some folder broke off.
pub(super) fn error_path(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => error_path(err),
        _ => None,
    }
}

/// The system's error, without the path, which is told beside it.
pub(super) fn reason(error: &ignore::Error) -> String {
    match error.io_error() {
        Some(error) => match error.get_ref().and_then(|inner| inner.source()) {
            Some(cause) => cause.to_string(),
            None => error.to_string(),
        },
        None => error.to_string(),
    }
}
