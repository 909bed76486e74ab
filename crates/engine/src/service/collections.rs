//! The collections of a service, by name: those that it was started with, and those that it made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cento_collection::format::layout::CURRENT;
use parking_lot::Mutex;

use crate::error::{AtPath, Error, Result};

/// Folders by the names of their collections, as they are at one moment.
#[derive(Debug)]
pub(super) struct Collections(Mutex<Arc<BTreeMap<String, PathBuf>>>);

impl Collections {
    pub(super) fn new(collections: BTreeMap<String, PathBuf>) -> Self {
        Self(Mutex::new(Arc::new(collections)))
    }

    pub(super) fn insert(&self, name: &str, folder: PathBuf) {
        Arc::make_mut(&mut self.0.lock()).insert(name.to_owned(), folder);
    }

    pub(super) fn all(&self) -> Arc<BTreeMap<String, PathBuf>> {
        Arc::clone(&self.0.lock())
    }

    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let all = self.all();
        let known = || all.keys().cloned().collect();
        all.get(name).cloned().ok_or_else(|| Error::UnknownCollection { name: name.to_owned(), known: known() })
    }
}

/// The collections in a folder, by the names of their own folders.
pub(super) fn found_in(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut collections = BTreeMap::new();
    for entry in std::fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        if path.join(CURRENT).is_file() {
            collections.insert(name_of(&path)?, path);
        }
    }
    if collections.is_empty() {
        return Err(Error::NoCollections { folder: folder.to_owned() });
    }
    Ok(collections)
}

/// The name of a collection in a folder: the folder's own, without a dot before it.
pub(super) fn name_of(folder: &Path) -> Result<String> {
    let found = std::path::absolute(folder).at(folder)?;
    let name = found.file_name().and_then(|name| name.to_str()).map(|name| name.trim_start_matches('.'));
    name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or_else(|| Error::Setting {
        setting: "collection",
        value: folder.display().to_string(),
        reason: "has no name that can be written".to_owned(),
    })
}
