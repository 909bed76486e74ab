//! What an index run would ask of an encoder at an endpoint: the texts that the cache does not have.

use std::collections::HashSet;

use cento_collection::format::config::CollectionConfig;
use cento_embedder::{Kind, cache};

use super::kept::EmbeddingLog;
use super::prepare::Prepared;
use super::vectors::EMBED_TEXTS;
use crate::encoder::{Encoder, Estimate, Remote};
use crate::ingest::cache::CacheOptions;

/// The texts of a run that would be embedded.
pub(super) struct Estimating<'e> {
    encoder: &'e Encoder,
    remote: &'e Remote,
    log: EmbeddingLog,
    seen: HashSet<cache::Key>,
    n_tokens: Vec<u32>,
}

impl<'e> Estimating<'e> {
    /// Nothing for an encoder of this machine, which costs nothing to ask.
    pub(super) fn new(encoder: &'e Encoder, config: &CollectionConfig, cache: Option<&CacheOptions>) -> Option<Self> {
        let remote = encoder.elsewhere()?;
        let log = EmbeddingLog::open(cache, config, encoder.arithmetic());
        Some(Self { encoder, remote, log, seen: HashSet::new(), n_tokens: Vec::new() })
    }

    pub(super) fn add(&mut self, prepared: &Prepared) {
        for new in prepared.as_new().chunks {
            let text = format!("{}{}", new.header, &prepared.document.text[new.chunk.span.clone()]);
            let embedded = self.encoder.bytes_embedded(&text, Kind::Document);
            let key = cache::key(self.encoder.fingerprint(), &embedded);
            if self.seen.insert(key) && self.log.find(&key).is_none() {
                let n_tokens = self.encoder.tokenizer().count(&embedded) + self.encoder.n_special();
                self.n_tokens.push(n_tokens.min(self.encoder.max_tokens()) as u32);
            }
        }
    }

    pub(super) fn finish(self) -> Estimate {
        self.remote.estimate(&self.n_tokens, EMBED_TEXTS)
    }
}
