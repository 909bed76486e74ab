//! Where the cache lies, and its limit.

use std::path::PathBuf;

use crate::error::{Error, Result};

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
