//! The folder of a model, and the file in it that says what the model is called.

use std::io::Write;
use std::path::{Path, PathBuf};

use cento_collection::fs::{create_private_folders, private_file, read_bounded};
use serde::{Deserialize, Serialize};

use super::{CacheOptions, segment};
use crate::encoder::Known;
use crate::error::{AtPath, Result};

/// A longer `model.json` is none.
const FILE_BYTES_MAX: u64 = 1 << 16;

/// Contents of `model.json`: whose vectors are in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelFile {
    /// The card or folder that was embedded with last.
    pub(crate) model: String,
    pub(crate) fingerprint: String,
    pub(crate) dimensions: usize,
    /// [`Embedder::arithmetic`](cento_embedder::Embedder::arithmetic). Earlier versions did not tell: what lies in
    /// their folders is found by nobody, and goes as what was used longest ago.
    #[serde(default)]
    pub(crate) arithmetic: String,
    /// The probes that an encoder at an endpoint is known again by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) probes: Option<String>,
}

impl ModelFile {
    pub(super) const NAME: &str = "model.json";

    pub(super) fn folder(&self, cache: &Path) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let arithmetic: String = self.arithmetic.chars().map(plain).collect();
        cache.join(format!("{}-{}-{arithmetic}", self.fingerprint, self.dimensions))
    }

    /// Nothing if the folder is no model's.
    pub(super) fn read(model_folder: &Path) -> Option<Self> {
        serde_json::from_slice(&read_bounded(&model_folder.join(Self::NAME), FILE_BYTES_MAX).ok()?).ok()
    }

    /// The encoders at endpoints whose vectors a cache has; none of one that cannot be read.
    pub(crate) fn at_endpoints(options: &CacheOptions) -> Vec<Known> {
        let models = models(&options.folder).unwrap_or_default().into_iter();
        models.filter_map(|(model, _)| Some(Known { probes: model.probes?, fingerprint: model.fingerprint })).collect()
    }

    pub(super) fn write(&self, model_folder: &Path) -> Result<()> {
        if Self::read(model_folder).as_ref() == Some(self) {
            return Ok(());
        }
        create_private_folders(model_folder).at(model_folder)?;
        let (path, new) = (model_folder.join(Self::NAME), model_folder.join(format!("model.{}", std::process::id())));
        let json = serde_json::to_vec_pretty(self).expect("plain data becomes JSON");
        let file = private_file().write(true).create(true).truncate(true).open(&new);
        file.and_then(|mut file| file.write_all(&json)).at(&new)?;
        std::fs::rename(&new, &path).at(&path)
    }
}

/// The models of a cache and their folders.
pub(super) fn models(cache: &Path) -> Result<Vec<(ModelFile, PathBuf)>> {
    let folders = segment::entries(cache)?;
    Ok(folders.into_iter().filter_map(|folder| Some((ModelFile::read(&folder)?, folder))).collect())
}
