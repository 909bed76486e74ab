//! The manifests that snapshots keep, by name.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{AtPath, Error, Result};
use crate::format::layout::SNAPSHOTS;
use crate::format::manifest::Manifest;
use crate::fs::Folder;

/// The longest name of a snapshot.
const NAME_BYTES_MAX: usize = 64;

/// The snapshots of a collection, by name: one that cannot be read is in nobody's way.
#[derive(Debug, Default)]
pub struct Snapshots {
    /// The manifest of each.
    pub whole: BTreeMap<String, Manifest>,
    /// Why the others cannot be read. Nobody knows what they keep.
    pub unread: BTreeMap<String, Error>,
}

impl Snapshots {
    /// Their names.
    pub fn names(&self) -> Vec<&String> {
        self.whole.keys().chain(self.unread.keys()).collect()
    }
}

/// Reads the snapshots of the collection at `folder`.
///
/// # Errors
/// `Io` where the folder they lie in cannot be listed.
pub fn all(folder: &Path) -> Result<Snapshots> {
    let place = folder.join(SNAPSHOTS);
    let opened = match Folder::open(folder).and_then(|folder| folder.folder(SNAPSHOTS)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Snapshots::default()),
        opened => opened.at(&place)?,
    };
    let mut snapshots = Snapshots::default();
    for file in opened.names().at(&place)? {
        let Some(name) = file.strip_suffix(".json").filter(|name| check_name(name).is_ok()) else { continue };
        match Manifest::read_file(&opened, &file) {
            Ok(manifest) => drop(snapshots.whole.insert(name.to_owned(), manifest)),
            Err(error) => drop(snapshots.unread.insert(name.to_owned(), error)),
        }
    }
    Ok(snapshots)
}

/// Refuses a name that could not be one of a file.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.starts_with('.') && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(Error::Setting {
            setting: "snapshot",
            value: name.to_owned(),
            reason: format!("is no name: up to {NAME_BYTES_MAX} letters, digits, -, _ and ., not beginning with ."),
        }),
    }
}
