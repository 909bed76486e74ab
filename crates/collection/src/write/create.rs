//! A folder for a new collection.

use std::path::{Path, PathBuf};

use crate::error::{AtPath, Error, Result};
use crate::format::layout::{DELETES, GENERATIONS, OURS, PINS, SEGMENTS};
use crate::fs::Fs;

/// Makes the folders of a collection that has no generation yet.
///
/// # Errors
/// `NotACollection` if the folder holds anything that no collection has; `ReadOnly` or `Io` if it cannot be made.
pub fn create(fs: &dyn Fs, folder: &Path) -> Result<()> {
    if folder.exists() {
        let names = fs.list(folder).at(folder)?;
        if names.iter().any(|name| !OURS.contains(&name.as_str())) {
            return Err(Error::NotACollection { path: folder.to_owned() });
        }
    }
    for name in [GENERATIONS, SEGMENTS, DELETES, PINS] {
        let path = folder.join(name);
        fs.create_dir(&path).map_err(|error| Error::writing(&path, error))?;
    }
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let around = whole.parent().map_or_else(PathBuf::new, Path::to_owned);
    fs.sync_dir(&around).at(&around) // its other entries are synced by the first commit
}
