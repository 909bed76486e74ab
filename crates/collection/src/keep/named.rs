//! The manifests that snapshots keep, by name.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{AtPath, Error, Result};
use crate::format::layout::SNAPSHOTS;
use crate::format::manifest::Manifest;
use crate::fs::Folder;

/// The longest name of a snapshot.
const NAME_BYTES_MAX: usize = 64;

/// The manifest of each snapshot, by name.
pub fn all(folder: &Path) -> Result<BTreeMap<String, Manifest>> {
    let place = folder.join(SNAPSHOTS);
    let opened = match Folder::open(folder).and_then(|folder| folder.folder(SNAPSHOTS)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        opened => opened.at(&place)?,
    };
    let mut snapshots = BTreeMap::new();
    for file in opened.names().at(&place)? {
        if let Some(name) = file.strip_suffix(".json").filter(|name| check_name(name).is_ok()) {
            snapshots.insert(name.to_owned(), Manifest::read_file(&opened, &file)?);
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
