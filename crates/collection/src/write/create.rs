//! A folder for a new collection.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{AtPath, Error, Result};
use crate::format::layout::{DELETES, GENERATIONS, OURS, PINS, QUARANTINE, REPORTS, SEGMENTS, SNAPSHOTS};
use crate::format::names;
use crate::fs::{Folder, Fs, create_private_folders, sync_parents};

/// Makes the folder of a new collection, or takes one that has nothing in it but what a first run left that was cut
/// short.
///
/// # Errors
/// `NotACollection` if the folder holds anything else; `ReadOnly` or `Io` if it cannot be made.
pub fn folder(fs: &dyn Fs, folder: &Path) -> Result<()> {
    match Folder::open(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => check_leftovers(&opened.at(folder)?)?,
    }
    let n_new = folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).count();
    let made = if fs.is_system() { create_private_folders(folder) } else { fs.create_dir(folder) };
    made.map_err(|error| Error::writing(folder, error))?;
    sync_parents(fs, folder, n_new.max(1)) // its other entries are synced by the first commit
}

/// Makes the folders that every collection has.
///
/// # Errors
/// `ReadOnly` or `Io` if one cannot be made.
pub fn inner_folders(fs: &dyn Fs, folder: &Path) -> Result<()> {
    for name in [GENERATIONS, SEGMENTS, DELETES, PINS] {
        let path = folder.join(name);
        fs.create_dir(&path).map_err(|error| Error::writing(&path, error))?;
    }
    Ok(())
}

/// Refuses a folder with anything in it that no run of ours leaves there: the commit would remove what it does not
/// name.
fn check_leftovers(folder: &Folder) -> Result<()> {
    for name in folder.names().at(folder.path())? {
        let is_ours: fn(&str) -> bool = match name.as_str() {
            GENERATIONS => names::is_manifest,
            SEGMENTS => names::is_segment,
            DELETES => names::is_tombstones,
            REPORTS => names::is_reports,
            PINS => names::is_pin,
            SNAPSHOTS | QUARANTINE => |_| true,
            name if OURS.contains(&name) => continue,
            _ => return Err(Error::NotACollection { path: folder.path().to_owned() }),
        };
        let path = folder.path().join(&name);
        let names = folder.folder(&name).and_then(|inner| inner.names()).at(&path)?;
        if !names.iter().all(|name| is_ours(name)) {
            return Err(Error::NotACollection { path });
        }
    }
    Ok(())
}
