//! Candidates: the chunks that a query found and those that stand beside them, as assembly takes them.

use std::collections::HashMap;

use cento_assembly::Candidate;
use cento_assembly::fuse::{Contribution, Fused};

use crate::error::Result;
use crate::retrieve::searcher::Searcher;
use crate::source::refs::{ChunkRef, RankedChunk};

/// A chunk among the candidates, with what retrieval gave it; neither score nor arms if it only stands beside one that
/// was found.
#[derive(Debug)]
pub(crate) struct Found {
    ranked: RankedChunk,
    relevance: Option<f64>,
    arms: Vec<Contribution>,
}

impl Found {
    /// A chunk that retrieval did not find.
    pub(crate) fn beside(ranked: impl Into<RankedChunk>) -> Self {
        Self { ranked: ranked.into(), relevance: None, arms: Vec::new() }
    }
}

impl From<Fused<RankedChunk>> for Found {
    fn from(fused: Fused<RankedChunk>) -> Self {
        Self { ranked: fused.id, relevance: Some(fused.score), arms: fused.contributions }
    }
}

impl Searcher {
    /// Facts assembly needs of each chunk, document by document; the chunks go to `places`, by their ids.
    pub(crate) fn candidates(
        &self,
        found: Vec<Found>,
        places: &mut HashMap<String, ChunkRef>,
    ) -> Result<Vec<Candidate>> {
        let mut candidates = self.read(found.iter().map(|found| &found.ranked))?;
        for (candidate, Found { ranked, relevance, arms }) in candidates.iter_mut().zip(found) {
            places.insert(candidate.id.clone(), ranked.chunk);
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
