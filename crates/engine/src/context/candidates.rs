//! Candidates: the chunks that a query found and those that stand beside them, as assembly takes them.

use std::collections::HashMap;

use cento_assembly::Candidate;
use cento_assembly::fuse::{Contribution, Fused};

use crate::error::{Error, Result};
use crate::retrieve::searcher::Searcher;
use crate::source::refs::{ChunkKey, ChunkRef};

/// A chunk among the candidates, with what retrieval gave it; neither score nor arms if it only stands beside one that
/// was found.
pub(crate) struct Found {
    pub(crate) key: ChunkKey,
    relevance: Option<f64>,
    arms: Vec<Contribution>,
}

impl Found {
    /// A chunk that retrieval did not find.
    pub(crate) fn beside(key: ChunkKey) -> Self {
        Self { key, relevance: None, arms: Vec::new() }
    }

    /// Its id, and the chunk itself.
    pub(crate) fn place(&self) -> (String, ChunkRef) {
        (self.key.id.to_string(), self.key.chunk)
    }
}

impl From<Fused<ChunkKey>> for Found {
    fn from(fused: Fused<ChunkKey>) -> Self {
        Self { key: fused.id, relevance: Some(fused.score), arms: fused.contributions }
    }
}

impl Searcher {
    /// Facts assembly needs of each chunk, document by document.
    pub(crate) fn candidates(&self, found: Vec<Found>) -> Result<Vec<Candidate>> {
        let chunks: Vec<ChunkRef> = found.iter().map(|found| found.key.chunk).collect();
        let mut given: HashMap<ChunkRef, Found> = found.into_iter().map(|found| (found.key.chunk, found)).collect();
        let mut candidates = self.source.chunks(&chunks)?;
        for (candidate, chunk) in candidates.iter_mut().zip(chunks) {
            let Some(Found { key, relevance, arms }) = given.remove(&chunk) else { continue };
            if *key.id != *candidate.id {
                let reason = format!("its answers cannot be: {} is {} too", key.id, candidate.id);
                return Err(Error::Shard { shard: self.source.whose(chunk), reason });
            }
            let Some(relevance) = relevance else { continue };
            (candidate.relevance, candidate.arms, candidate.is_neighbor) = (relevance, arms, false);
        }
        sort(&mut candidates);
        Ok(candidates)
    }
}

/// Sorts by document and place: an order that does not depend on which segment or shard holds a document.
pub(crate) fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| (&a.document, a.index).cmp(&(&b.document, b.index)));
}
