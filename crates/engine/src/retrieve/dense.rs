//! The dense arm over chunks: which kind of vector finds documents, and which scores the chunks inside one.
//!
//! With one kind for both a chunk's score is its cosine. With two, documents come from the chunks nearest by the one
//! kind, and inside a document chunks are ordered, and spaced, by the other:
//!
//! `score(chunk) = max over its document of cosine_find + cosine_score(chunk) - max over its document of cosine_score`
//!
//! so that a document's best chunk has the score the document was found with, and every chunk of a document that was
//! found is a candidate. With one kind the formula is the cosine.

use cento_embedder::Accelerator;
use cento_lexical::Unit;
use cento_vector::Lift;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::limits::{self, CANDIDATES_MAX, EF_MAX};
use crate::retrieve::request::{ChunkSearch, Mode, check_k};
use crate::retrieve::searcher::Searcher;
use crate::source::device_scan::SCAN_QUERIES;
use crate::source::filter::Filter;
use crate::source::ranking::{Ranking, name};
use crate::source::refs::{RankedChunk, document_of};
use crate::source::scope::{Scope, Scopes};
use crate::source::seam::{DenseQueries, Near, Rescored, Scan};
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

/// Neighbours that are wanted of each of several vectors.
#[derive(Debug, Clone)]
pub struct NeighborSearch {
    /// Neighbours of each.
    pub k: usize,
    /// Width of the beam that walks a graph; `k` where that is more.
    pub ef: usize,
    /// The way vectors are scanned.
    pub scan: Scan,
    /// Ids of the documents that may answer; `None` for all.
    pub scope: Option<Vec<String>>,
    /// The filter that documents, or their chunks, must pass, besides.
    pub filter: Option<Filter>,
    /// A device that compares several vectors at once with all rows, where no graph is walked; the neighbours are those
    /// that the CPU finds.
    pub accelerator: Option<Accelerator>,
    /// Looked at while vectors are compared.
    pub cancel: Cancel,
}

/// The neighbours of a vector, nearest first, equal scores by id descending.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VectorNeighbors {
    /// Their ids: of chunks, or of documents where the collection was given its vectors.
    pub ids: Vec<String>,
    /// Their scores: cosines, inner products or Euclidean distances below 0.
    pub scores: Vec<f64>,
}

impl Searcher {
    /// The neighbours of each vector, and how they were found: `exact`, `graph`, or `exact and graph`. Vectors are
    /// divided among the threads of the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of its range, or a vector of other dimensions or without a direction; those
    /// of the collection; [`Error::Cancelled`].
    pub fn neighbors(
        &self,
        vectors: &[Vec<f32>],
        search: &NeighborSearch,
    ) -> Result<(Vec<VectorNeighbors>, &'static str)> {
        check_k(search.k, CANDIDATES_MAX)?;
        limits::within("ef", search.ef, 0, EF_MAX)?;
        let allowed = self.allowed(&ChunkSearch {
            scope: search.scope.clone(),
            filter: search.filter.clone(),
            cancel: search.cancel.clone(),
            ..ChunkSearch::new(String::new())
        })?;
        let column = self.vectors_used(None, None)?.find;
        let accelerator = search.accelerator.as_ref().filter(|device| !device.is_cpu() && self.reads_all(search.scan));
        let of = |vectors: &[Vec<f32>]| {
            let units = vectors.iter().map(|vector| self.unit(vector)).collect::<Result<Vec<_>>>()?.concat();
            let near = self.source.nearest(&DenseQueries {
                vectors: &units,
                scopes: Scopes { of_query: &[], of_all: allowed.scope.as_ref() },
                unit: Unit::Row,
                column,
                depth: search.k,
                scan: search.scan,
                ef: search.ef,
                accelerator,
                cancel: &search.cancel,
            })?;
            near.into_iter().map(|near| self.named_neighbors(near, search.k)).collect::<Result<Vec<_>>>()
        };
        let together = match accelerator {
            Some(_) => SCAN_QUERIES,
            None if self.source.is_far() => VECTORS_TOGETHER,
            None => 1,
        };
        let found = vectors.par_chunks(together).map(of).collect::<Result<Vec<_>>>()?.concat();
        let (n_exact, n_graph) = found.iter().fold((0, 0), |sum, (_, exact, graph)| (sum.0 + exact, sum.1 + graph));
        Ok((found.into_iter().map(|(found, ..)| found).collect(), scanned(n_exact, n_graph)))
    }

    /// The neighbours of a vector, and the segments that were scanned and walked. Where vectors were given, a document
    /// has one chunk, and is named by its own id.
    fn named_neighbors(&self, near: Near, k: usize) -> Result<(VectorNeighbors, usize, usize)> {
        let is_given = self.manifest().config.given.is_some();
        let Near { mut ranking, n_exact, n_graph } = near;
        ranking.truncate(k);
        name(&mut ranking, |chunks| self.source.ids(Unit::Row, chunks))?;
        let named = |(RankedChunk { id, .. }, score)| {
            let id = id?;
            Some((if is_given { document_of(&id, Unit::Row) } else { &*id }.to_owned(), score))
        };
        let (ids, scores) = ranking.into_iter().filter_map(named).unzip();
        Ok((VectorNeighbors { ids, scores }, n_exact, n_graph))
    }

    /// True if all vectors are compared for an answer, and lie here: work for a device.
    pub(crate) fn reads_all(&self, scan: Scan) -> bool {
        !self.source.is_far() && (scan == Scan::Exact || self.source.describe().n_graph_rows == 0)
    }

    /// A vector to search for, of unit length where the order is that of cosines.
    ///
    /// # Errors
    /// [`Error::Setting`] if it has other dimensions than the collection's, a number that is not finite, or no
    /// direction.
    pub(crate) fn unit(&self, vector: &[f32]) -> Result<Vec<f32>> {
        let config = &self.manifest().config;
        let refuse = |value: String, reason: String| Err(Error::Setting { setting: "vector", value, reason });
        if vector.len() != config.query_dimensions() {
            let (n, expected) = (vector.len(), config.query_dimensions());
            return refuse(format!("{n} dimensions"), format!("are not the {expected} of the collection"));
        }
        if let Some(at) = vector.iter().position(|value| !value.is_finite()) {
            return refuse(vector[at].to_string(), format!("at place {at} is not finite"));
        }
        let lift = config.lift();
        match lift.query(vector) {
            None => refuse("0".to_owned(), "is its length: a vector of zeros has no direction".to_owned()),
            Some(unit) if lift == Lift::Cosine => Ok(unit),
            Some(_) => Ok(vector.to_vec()), // the source lifts it
        }
    }

    /// An error if words are to be searched where there are none.
    pub(crate) fn check_words(&self, mode: Mode) -> Result<()> {
        match self.manifest().config.given {
            Some(given) if !given.texts && mode != Mode::Dense => Err(Error::NoWords),
            _ => Ok(()),
        }
    }

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
            let found: Vec<_> = ranking.iter().map(|(ranked, score)| (ranked.chunk, *score)).collect();
            let (column, depth, cancel) = (used.score, request.candidates, &request.cancel);
            ranking = self.source.rescore(&Rescored { vector: query, found: &found, scope, column, depth, cancel })?;
        }
        ranking.truncate(request.candidates);
        Ok(DenseChunks { chunks: ranking, scanned: scanned(n_exact, n_graph), used })
    }
}

/// Vectors that other machines are asked for together.
const VECTORS_TOGETHER: usize = 32;

/// The way segments were searched.
fn scanned(n_exact: usize, n_graph: usize) -> &'static str {
    match (n_exact, n_graph) {
        (_, 0) => "exact",
        (0, _) => "graph",
        _ => "exact and graph",
    }
}
