//! Where an index run looks for vectors before it embeds, and keeps those it made: the user's embedding cache.
//!
//! A cache that cannot be read or written never stops a run; the run goes on without it and says what that costs.

use std::path::Path;

use cento_collection::format::config::CollectionConfig;
use cento_embedder::Embedding;
use cento_embedder::cache::Key;

use crate::error::{Error, Result};
use crate::ingest::cache::{CacheOptions, CachedEmbeddings, ModelFile};

/// A vector that was embedded before.
pub(crate) struct Logged {
    pub(crate) vector: Vec<f32>,
    pub(crate) n_tokens: u32,
}

impl From<Logged> for Embedding {
    /// Of a text that fits the window, as far as anybody knows.
    fn from(Logged { vector, n_tokens }: Logged) -> Self {
        Self { vector, n_tokens, truncated: false }
    }
}

/// Opened for looking up and appending.
pub(crate) struct EmbeddingLog {
    cache: Option<CachedEmbeddings>,
    notes: Vec<String>,
}

impl EmbeddingLog {
    /// Reads the keys of the cache.
    pub(crate) fn open(cache: Option<&CacheOptions>, config: &CollectionConfig, arithmetic: String) -> Self {
        let mut notes = Vec::new();
        let cache = cache.and_then(|options| {
            let model = ModelFile {
                model: config.model.clone(),
                fingerprint: config.model_fingerprint.clone(),
                dimensions: config.dimensions,
                arithmetic,
                probes: config.endpoint.as_ref().map(|endpoint| endpoint.probes.clone()),
            };
            let opened = CachedEmbeddings::open(options, model);
            opened.map_err(|error| notes.push(without(&options.folder, &error))).ok()
        });
        notes.extend(
            cache.iter().flat_map(|cache| &cache.refused).map(|what| format!("embedding cache: {what}; passed over")),
        );
        Self { cache, notes }
    }

    /// The vector of a key, if it was embedded before and is as it was then.
    pub(crate) fn find(&mut self, key: &Key) -> Option<Logged> {
        self.cache.as_mut().and_then(|cache| cache.find(key)).map(|(vector, n_tokens)| Logged { vector, n_tokens })
    }

    /// Keeps a batch and waits until it is on the disk. A cache that fails is used no more.
    pub(crate) fn append(&mut self, keys: &[Key], embeddings: &[Embedding]) -> Result<()> {
        let new = keys.iter().zip(embeddings).map(|(key, embedding)| (key, embedding.n_tokens, &embedding.vector[..]));
        if let Some(cache) = &mut self.cache
            && let Err(error) = cache.append(new)
        {
            self.notes.push(format!("embedding cache: {}; nothing more was kept", crate::describe(&error)));
            self.cache = None;
        }
        Ok(())
    }

    /// Removes what this run kept.
    pub(crate) fn forget(&mut self) -> Result<()> {
        self.cache.take().map_or(Ok(()), CachedEmbeddings::forget)
    }

    /// Ends the run; what was noticed.
    pub(crate) fn finish(self) -> Vec<String> {
        let mut notes = self.notes;
        if let Some(cache) = self.cache {
            if cache.n_damaged > 0 {
                notes.push(format!(
                    "embedding cache: {} damaged vectors were embedded again; a cache prune removes them",
                    cache.n_damaged
                ));
            }
            if let Err(error) = cache.finish() {
                notes.push(format!("embedding cache: {}", crate::describe(&error)));
            }
        }
        notes
    }
}

fn without(folder: &Path, error: &Error) -> String {
    let folder = folder.display();
    format!("embedding cache {folder}: {}; going on without it, an interrupted run begins anew", crate::describe(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_cannot_be_written_stops_nothing_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "in the way").unwrap();
        let options = CacheOptions { folder: file.join("cache"), max_bytes: 0 };
        let config = CollectionConfig {
            model: "tiny".to_owned(),
            model_fingerprint: "f00d".to_owned(),
            dimensions: 3,
            chunk_tokens: "128".to_owned(),
            chunker_version: 1,
            header: "none".to_owned(),
            language: "english".to_owned(),
            vectors: "f32".to_owned(),
            precision: "f32".to_owned(),
            pooling: cento_collection::format::config::Pooling::Plain,
            late: None,
            given: None,
            endpoint: None,
            context: None,
            prompt: None,
        };
        let key = cento_embedder::cache::key("f00d", "1");
        let mut opened = EmbeddingLog::open(Some(&options), &config, "a machine".to_owned());
        assert!(opened.find(&key).is_none());
        opened.append(&[key], &[Embedding { vector: vec![1.0, 1.25, 1.5], n_tokens: 1, truncated: false }]).unwrap();
        let notes = opened.finish();
        assert!(notes[0].contains("file") && notes[0].contains("embedding cache"), "{notes:?}");
    }
}
