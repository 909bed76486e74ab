//! The embedding cache of a user: what one collection had embedded, no other embeds again.
//!
//! ```text
//! <folder>/<fingerprint>-<dimensions>/    one folder a model
//!   model.json                            what the model is called
//!   <time>-<process>/                     a segment: keys, vectors
//! ```
//!
//! Every process writes to segments of its own, so writers never wait for each other, and reads all segments. A vector
//! is handed out only if it is the one that was kept, checksum and all. A cache may be deleted at any time, whole or in
//! part: it costs time.
//!
//! **Limit.** After a run that wrote, the segments used longest ago are removed until all models together are within
//! the limit. A segment is used when something is written to it or found in it; segments that a process still writes to
//! are left alone.

mod embeddings;
mod prune;
mod segment;
mod status;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use self::embeddings::CachedEmbeddings;
pub use self::prune::{CachePrune, CachePruned, prune};
pub use self::status::{CacheStatus, CachedModel, status};
use crate::error::{AtPath, Error, Result};

/// Bytes that all embeddings of a user may take, unless told otherwise.
pub const CACHE_BYTES_MAX: u64 = 8 << 30;

/// Where embeddings are kept, and how much of the disk they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOptions {
    /// The folder with one folder a model; made when something is kept.
    pub folder: PathBuf,
    /// Bytes of all models together, held after each run that wrote.
    pub max_bytes: u64,
}

impl CacheOptions {
    /// `$XDG_CACHE_HOME/cento/embeddings`, else `~/.cache/cento/embeddings`, with the default limit.
    ///
    /// # Errors
    /// If the environment names no such folder.
    pub fn of_user() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = variable("XDG_CACHE_HOME").filter(|cache| cache.is_absolute());
        let cache = cache.or_else(|| variable("HOME").map(|home| home.join(".cache"))).ok_or(Error::NoCacheFolder)?;
        Ok(Self { folder: cache.join("cento").join("embeddings"), max_bytes: CACHE_BYTES_MAX })
    }
}

/// Contents of `model.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ModelFile {
    /// The card or folder that was embedded with last.
    model: String,
    fingerprint: String,
    dimensions: usize,
}

impl ModelFile {
    const NAME: &str = "model.json";

    fn folder(&self, cache: &Path) -> PathBuf {
        cache.join(format!("{}-{}", self.fingerprint, self.dimensions))
    }

    /// Nothing if the folder is no model's.
    fn read(model_folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(model_folder.join(Self::NAME)).ok()?).ok()
    }

    fn write(&self, model_folder: &Path) -> Result<()> {
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
fn models(cache: &Path) -> Result<Vec<(ModelFile, PathBuf)>> {
    let folders = segment::entries(cache)?;
    Ok(folders.into_iter().filter_map(|folder| Some((ModelFile::read(&folder)?, folder))).collect())
}
