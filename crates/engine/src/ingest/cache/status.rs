//! What the cache holds, model by model.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::Serialize;

use super::CacheOptions;
use super::model::models;
use super::segment::{self, Segment};
use crate::error::Result;

/// Contents of the embedding cache.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CacheStatus {
    /// Format of this answer.
    pub version: u32,
    /// Where it lies.
    pub folder: PathBuf,
    /// Bytes it may take.
    pub max_bytes: u64,
    /// Bytes it takes.
    pub n_bytes: u64,
    /// By folder.
    pub models: Vec<CachedModel>,
}

/// Cache contents of one model.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CachedModel {
    /// Card or folder that was embedded with last.
    pub model: String,
    /// Of the model.
    pub fingerprint: String,
    /// Of its vectors.
    pub dimensions: usize,
    /// The part of the machine that decides their bits; empty for vectors of an earlier version, which are not used any
    /// more.
    pub arithmetic: String,
    /// Vectors, those of one text kept twice counted twice.
    pub n_embeddings: u64,
    /// Segments they lie in.
    pub n_segments: u64,
    /// Bytes they take.
    pub n_bytes: u64,
    /// When something was last found or written, in seconds since 1970.
    pub last_use_seconds: u64,
}

/// Reads sizes only.
pub fn status(options: &CacheOptions) -> Result<CacheStatus> {
    let mut found = Vec::new();
    for (file, folder) in models(&options.folder)? {
        let mut model = CachedModel {
            model: file.model,
            fingerprint: file.fingerprint,
            dimensions: file.dimensions,
            arithmetic: file.arithmetic,
            n_embeddings: 0,
            n_segments: 0,
            n_bytes: 0,
            last_use_seconds: 0,
        };
        for path in segment::list(&folder)? {
            let Ok(Some(segment)) = Segment::open(&path, model.dimensions) else { continue };
            let last_use = segment.last_use()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            model.n_embeddings += u64::from(segment.n_rows);
            model.n_segments += 1;
            model.n_bytes += segment.n_bytes()?;
            model.last_use_seconds = model.last_use_seconds.max(last_use);
        }
        found.push(model);
    }
    let n_bytes = found.iter().map(|model| model.n_bytes).sum();
    Ok(CacheStatus { version: 1, folder: options.folder.clone(), max_bytes: options.max_bytes, n_bytes, models: found })
}
