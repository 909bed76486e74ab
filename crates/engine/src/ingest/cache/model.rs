//! The folder of a model, and the file in it that says what the model is called.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::segment;
use crate::error::{AtPath, Result};

/// Contents of `model.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModelFile {
    /// The card or folder that was embedded with last.
    pub(super) model: String,
    pub(super) fingerprint: String,
    pub(super) dimensions: usize,
}

impl ModelFile {
    pub(super) const NAME: &str = "model.json";

    pub(super) fn folder(&self, cache: &Path) -> PathBuf {
        cache.join(format!("{}-{}", self.fingerprint, self.dimensions))
    }

    /// Nothing if the folder is no model's.
    pub(super) fn read(model_folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(model_folder.join(Self::NAME)).ok()?).ok()
    }

    pub(super) fn write(&self, model_folder: &Path) -> Result<()> {
        if Self::read(model_folder).as_ref() == Some(self) {
            return Ok(());
        }
        std::fs::create_dir_all(model_folder).at(model_folder)?;
        let (path, new) = (model_folder.join(Self::NAME), model_folder.join(format!("model.{}", std::process::id())));
        let json = serde_json::to_vec_pretty(self).expect("plain data becomes JSON");
        std::fs::write(&new, json).at(&new)?;
        std::fs::rename(&new, &path).at(&path)
    }
}

/// The models of a cache and their folders.
pub(super) fn models(cache: &Path) -> Result<Vec<(ModelFile, PathBuf)>> {
    let folders = segment::entries(cache)?;
    Ok(folders.into_iter().filter_map(|folder| Some((ModelFile::read(&folder)?, folder))).collect())
}
