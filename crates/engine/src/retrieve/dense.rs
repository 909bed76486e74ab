//! The dense arm over chunks: which kind of vector finds documents, and which scores the chunks inside one.
//!
//! With one kind for both a chunk's score is its cosine. With two, documents come from the chunks nearest by the one kind, and
//! inside a document chunks are ordered, and spaced, by the other:
//!
//! `score(chunk) = max over its document of cosine_find + cosine_score(chunk) - max over its document of cosine_score`
//!
//! so that a document's best chunk has the score the document was found with, and every chunk of a document that was found is
//! a candidate. With one kind the formula is the cosine.

use std::collections::BTreeMap;

use cento_collection::format::segment::Column;
use cento_vector::exact;
use cento_vector::hnsw::{self, Found, Path};
use roaring::RoaringBitmap;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::retrieve::scope::Scope;
use crate::retrieve::search::{self as retrieve, ChunkKey, Scan, SearchRequest};
use crate::retrieve::searcher::Searcher;
use cento_collection::format::config::{Pooling, VectorColumn};

/// The kinds of vectors a query is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VectorsUsed {
    /// For finding documents.
    pub find: VectorColumn,
    /// For scoring chunks inside a document.
    pub score: VectorColumn,
}

/// What the dense arm found.
pub(crate) struct DenseChunks {
    pub(crate) chunks: Vec<(ChunkKey, f64)>,
    /// How: `exact`, `graph`, or `exact and graph`.
    pub(crate) scanned: &'static str,
    pub(crate) used: VectorsUsed,
}

/// A document of a segment.
type Place = (usize, u32);

impl Searcher {
    /// The kinds of vectors to use, where `None` means the collection's only one or, with both, [`FIND`] and [`SCORE`].
    ///
    /// [`FIND`]: cento_collection::format::config::FIND
    /// [`SCORE`]: cento_collection::format::config::SCORE
    pub fn vectors_used(&self, find: Option<VectorColumn>, score: Option<VectorColumn>) -> Result<VectorsUsed> {
        let pooling = self.snapshot.manifest.config.pooling;
        let choose = |setting, asked: Option<VectorColumn>, default| match (pooling, asked) {
            (_, Some(asked)) if pooling.columns().contains(&asked) => Ok(asked),
            (_, Some(asked)) => {
                Err(Error::Mismatch { setting, collection: pooling.to_string(), requested: asked.to_string() })
            }
            (Pooling::Both, None) => Ok(default),
            (_, None) => Ok(pooling.columns()[0]),
        };
        Ok(VectorsUsed {
            find: choose("find-vectors", find, cento_collection::format::config::FIND)?,
            score: choose("score-vectors", score, cento_collection::format::config::SCORE)?,
        })
    }

    /// The position in every segment of a kind of vectors that the collection has.
    pub(crate) fn column(&self, vectors: VectorColumn) -> usize {
        let columns = self.snapshot.manifest.config.pooling.columns();
        columns.iter().position(|column| *column == vectors).expect("kinds of vectors are chosen among those there")
    }

    pub(crate) fn dense_chunks(
        &self,
        query: &[f32],
        request: &SearchRequest,
        scope: Option<&Scope>,
    ) -> Result<DenseChunks> {
        let used = self.vectors_used(request.find, request.score)?;
        let (find, depth) = (self.column(used.find), request.candidates);
        let mut found = Vec::new();
        let (mut n_exact, mut n_graph) = (0, 0);
        for (at, segment) in self.snapshot.segments.iter().enumerate() {
            let column = &segment.columns[find];
            let allowed = retrieve::allowed_rows(segment, scope.map(|scope| scope.rows(at)));
            let nearest = nearest(column, query, depth, request.scan, request.ef, allowed.as_deref())?;
            match nearest.path {
                Path::Graph => n_graph += 1,
                Path::Scan => n_exact += 1,
            }
            found.extend(nearest.neighbors.into_iter().map(|near| (at, near.row, retrieve::score(near.distance))));
        }
        if used.find != used.score {
            retrieve::keep_best(&mut found, depth, |candidate| candidate.2);
            found = self.rescored(query, &found, self.column(used.score))?;
        }
        let scanned = match (n_exact, n_graph) {
            (_, 0) => "exact",
            (0, _) => "graph",
            _ => "exact and graph",
        };
        Ok(DenseChunks { chunks: self.best_chunks(found, depth)?, scanned, used })
    }

    /// Every chunk of the documents of `found` (segment, row, score), scored inside its document by another column.
    fn rescored(&self, query: &[f32], found: &[(usize, u32, f64)], column: usize) -> Result<Vec<(usize, u32, f64)>> {
        let mut documents: BTreeMap<Place, f64> = BTreeMap::new();
        for &(at, row, score) in found {
            let document = self.snapshot.segments[at].chunks.record(row as usize)?.document;
            let best = documents.entry((at, document)).or_insert(score);
            *best = best.max(score);
        }
        let mut rescored = Vec::new();
        for (at, segment) in self.snapshot.segments.iter().enumerate() {
            let mut rows = RoaringBitmap::new();
            let of_segment = documents.range((at, 0)..=(at, u32::MAX));
            let records = of_segment.map(|(&(_, document), &best)| Ok((segment.document(document)?, best)));
            let records = records.collect::<Result<Vec<_>>>()?;
            for (record, _) in &records {
                rows.insert_range(record.rows());
            }
            let n_rows = rows.len() as usize;
            let mut near = nearest(&segment.columns[column], query, n_rows, Scan::Exact, 0, Some(&rows))?.neighbors;
            near.sort_unstable_by_key(|near| near.row); // rows of a document follow each other, and documents ascend
            let mut rest = near.as_slice();
            for (record, found_with) in records {
                let (own, after) = rest.split_at(record.n_rows as usize);
                rest = after;
                let best = own.iter().map(|near| retrieve::score(near.distance)).fold(f64::NEG_INFINITY, f64::max);
                let score = |distance| found_with + (retrieve::score(distance) - best);
                rescored.extend(own.iter().map(|near| (at, near.row, score(near.distance))));
            }
        }
        Ok(rescored)
    }
}

/// The `depth` nearest allowed rows of a column, nearest first, and how they were found. A graph is walked with a beam of `ef`, or
/// of `depth` if that is more.
pub(crate) fn nearest(
    column: &Column,
    query: &[f32],
    depth: usize,
    scan: Scan,
    ef: usize,
    allowed: Option<&RoaringBitmap>,
) -> Result<Found> {
    Ok(match (&column.graph, scan) {
        (Some(graph), Scan::Auto) => hnsw::search(graph, &column.rows, query, depth, ef.max(depth), allowed)?,
        (None, Scan::Auto) | (_, Scan::Exact) => {
            Found { neighbors: exact::search(&column.rows, query, depth, allowed)?, path: hnsw::Path::Scan }
        }
    })
}
