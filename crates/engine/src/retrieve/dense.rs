//! The dense arm over chunks: which kind of vector finds documents, and which scores the chunks inside one.
//!
//! With one kind for both a chunk's score is its cosine. With two, documents come from the chunks nearest by the one
//! kind, and inside a document chunks are ordered, and spaced, by the other:
//!
//! `score(chunk) = max over its document of cosine_find + cosine_score(chunk) - max over its document of cosine_score`
//!
//! so that a document's best chunk has the score the document was found with, and every chunk of a document that was
//! found is a candidate. With one kind the formula is the cosine.

use cento_lexical::Unit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::searcher::Searcher;
use crate::source::ranking::Ranking;
use crate::source::scope::{Scope, Scopes};
use crate::source::seam::{DenseQueries, Near, Rescored};
use cento_collection::format::config::{FIND, Pooling, SCORE, VectorColumn};

/// The kinds of vectors a query is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VectorsUsed {
    /// For finding documents.
    pub find: VectorColumn,
    /// For scoring chunks inside a document.
    pub score: VectorColumn,
}

/// The result of the dense arm.
pub(crate) struct DenseChunks {
    pub(crate) chunks: Ranking,
    /// The kind of scan: `exact`, `graph`, or `exact and graph`.
    pub(crate) scanned: &'static str,
    pub(crate) used: VectorsUsed,
}

impl Searcher {
    /// The kinds of vectors to use, where `None` means the collection's only one or, with both, [`FIND`] and [`SCORE`].
    pub fn vectors_used(&self, find: Option<VectorColumn>, score: Option<VectorColumn>) -> Result<VectorsUsed> {
        let pooling = self.manifest().config.pooling;
        let choose = |setting, asked: Option<VectorColumn>, default| match (pooling, asked) {
            (_, Some(asked)) if pooling.columns().contains(&asked) => Ok(asked),
            (_, Some(asked)) => {
                Err(Error::Mismatch { setting, collection: pooling.to_string(), requested: asked.to_string() })
            }
            (Pooling::Both, None) => Ok(default),
            (_, None) => Ok(pooling.columns()[0]),
        };
        Ok(VectorsUsed { find: choose("find-vectors", find, FIND)?, score: choose("score-vectors", score, SCORE)? })
    }

    /// The best chunks by vectors, and all chunks of their documents where another kind of vectors scores them.
    pub(crate) fn dense_chunks(
        &self,
        query: &[f32],
        request: &ChunkSearch,
        scope: Option<&Scope>,
    ) -> Result<DenseChunks> {
        let used = self.vectors_used(request.find, request.score)?;
        let near = self.source.nearest(&DenseQueries {
            vectors: query,
            scopes: Scopes { of_query: &[], of_all: scope },
            unit: Unit::Row,
            column: used.find,
            depth: request.candidates,
            scan: request.scan,
            ef: request.ef,
            accelerator: None,
            cancel: &request.cancel,
        })?;
        let Near { mut ranking, n_exact, n_graph } = near.into_iter().next().unwrap_or_default();
        if used.find != used.score {
            let found: Vec<_> = ranking.iter().map(|(key, score)| (key.chunk, *score)).collect();
            let (column, depth, cancel) = (used.score, request.candidates, &request.cancel);
            ranking = self.source.rescore(&Rescored { vector: query, found: &found, column, depth, cancel })?;
        }
        ranking.truncate(request.candidates);
        let scanned = match (n_exact, n_graph) {
            (_, 0) => "exact",
            (0, _) => "graph",
            _ => "exact and graph",
        };
        Ok(DenseChunks { chunks: ranking, scanned, used })
    }
}
