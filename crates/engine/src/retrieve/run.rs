//! Batch retrieval: topics → document rankings, as benchmarks want them.
//!
//! Each arm goes from chunks to documents first (dense: a document's best chunk; lexical: BM25 of the whole document), then
//! documents are fused. Vectors are scanned exactly unless asked otherwise, on the encoder's device if that is a GPU.

use cento_embedder::Kind;
use cento_lexical::Unit;
use cento_vector::exact;
use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::retrieve::dense;
use crate::retrieve::filter::Filter;
use crate::retrieve::scan::{self, SCAN_QUERIES};
use crate::retrieve::scope::Scope;
use crate::retrieve::search::{self as retrieve, DENSE, Fusion, LEXICAL, Mode, Scan};
use crate::retrieve::searcher::Searcher;
use cento_collection::format::config::{CANDIDATE_DEPTH, VectorColumn};
use cento_collection::format::segment::{Column, Segment};

/// Queries scanned together: their distances to all rows are held at once.
const BATCH_QUERIES: usize = 32;

/// Chunks the graph is asked for per candidate document with [`Scan::Auto`]: several may be of one document.
const GRAPH_CHUNKS_PER_DOCUMENT: usize = 4;

/// A query of a batch.
#[derive(Debug, Clone)]
pub struct RunQuery {
    /// The question, in plain words.
    pub text: String,
    /// Ids of the documents that may answer; `None` for all. Applied before each arm takes its candidates.
    pub scope: Option<Vec<String>>,
}

/// How a batch of queries is answered.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Documents wanted per topic, at most `candidates`.
    pub k: usize,
    /// Candidate documents each arm contributes; never derived from `k`.
    pub candidates: usize,
    /// Which arms answer.
    pub mode: Mode,
    /// How the arms are fused.
    pub fusion: Fusion,
    /// How vectors are scanned.
    pub scan: Scan,
    /// Width of the beam that walks a graph; four times `candidates` where that is more.
    pub ef: usize,
    /// Vectors that find documents; see [`Searcher::vectors_used`].
    pub find: Option<VectorColumn>,
    /// What must hold of the documents that may answer any of the queries; applied where a scope is.
    pub filter: Option<Filter>,
}

impl Default for RunRequest {
    fn default() -> Self {
        Self {
            k: CANDIDATE_DEPTH,
            candidates: CANDIDATE_DEPTH,
            mode: Mode::default(),
            fusion: Fusion::default(),
            scan: Scan::Exact,
            ef: 0,
            find: None,
            filter: None,
        }
    }
}

/// A topic's ranking: document ids and scores, best first, ties by id descending.
pub type DocumentRanking = Vec<(String, f64)>;

/// Units of a segment (see [`cento_collection::format::segment::Units`]) and their scores.
type UnitScores = Vec<(u32, f64)>;

/// Which rows may answer the queries of a batch.
struct Scopes<'a> {
    /// Those of each query that has a scope of its own, the filter applied.
    of_query: &'a [Option<Scope>],
    /// Those of the other queries.
    of_all: Option<&'a Scope>,
}

/// A document among the candidates; ordered by its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DocumentKey {
    id: String,
    segment: usize,
    document: u32,
}

impl Searcher {
    /// Ranks documents for each query, within its scope; `done` hears how many queries are ready.
    pub fn run(
        &self,
        queries: &[RunQuery],
        request: &RunRequest,
        done: &mut dyn FnMut(usize),
    ) -> Result<Vec<DocumentRanking>> {
        retrieve::check_k(request.k, request.candidates)?;
        if queries.iter().any(|query| query.text.trim().is_empty()) {
            return Err(Error::EmptyQuery);
        }
        let admitted = request.filter.as_ref().map(|filter| self.filter_scope(filter)).transpose()?;
        let admitted = admitted.map(|(admitted, _)| admitted);
        let unscoped = self.lexical(Unit::Document, admitted.as_ref())?;
        let mut rankings = Vec::with_capacity(queries.len());
        let n_together = match request.mode {
            Mode::Lexical => BATCH_QUERIES,
            _ if self.encoder()?.accelerator().is_cpu() => BATCH_QUERIES,
            _ => SCAN_QUERIES,
        };
        for batch in queries.chunks(n_together) {
            let scope_of = |query: &RunQuery| {
                let scope = query.scope.as_ref().map(|documents| self.scope(documents)).transpose()?;
                Ok(scope.map(|scope| scope.within(admitted.as_ref())))
            };
            let scopes = batch.iter().map(scope_of).collect::<Result<Vec<_>>>()?;
            let dense = match request.mode {
                Mode::Lexical => None,
                _ => Some(self.dense_documents(
                    batch,
                    &Scopes { of_query: &scopes, of_all: admitted.as_ref() },
                    request,
                )?),
            };
            for (n, query) in batch.iter().enumerate() {
                let mut arms = Vec::new();
                if let Some(dense) = &dense {
                    arms.push(retrieve::arm(DENSE, self.best_documents(&dense[n], request.candidates)?));
                }
                if request.mode != Mode::Dense {
                    let scored = match &scopes[n] {
                        Some(scope) => self.lexical(Unit::Document, Some(scope))?.score(&query.text)?,
                        None => unscoped.score(&query.text)?,
                    };
                    let scored = scored
                        .iter()
                        .map(|hits| hits.iter().map(|hit| (hit.unit, hit.score)).collect())
                        .collect::<Vec<_>>();
                    arms.push(retrieve::arm(LEXICAL, self.best_documents(&scored, request.candidates)?));
                }
                let fused = retrieve::fuse_arms(&mut arms, request.fusion)?;
                rankings.push(fused.into_iter().take(request.k).map(|fused| (fused.id.id, fused.score)).collect());
            }
            done(rankings.len());
        }
        Ok(rankings)
    }

    /// For each query and segment the units and their best chunk's score.
    fn dense_documents(
        &self,
        queries: &[RunQuery],
        scopes: &Scopes<'_>,
        request: &RunRequest,
    ) -> Result<Vec<Vec<UnitScores>>> {
        let texts: Vec<String> = queries.iter().map(|query| query.text.clone()).collect();
        let embeddings = self.encoder()?.embed(&texts, Kind::Query)?;
        let vectors: Vec<f32> = embeddings.iter().flat_map(|embedding| embedding.vector.iter().copied()).collect();
        let find = self.column(self.vectors_used(request.find, None)?.find);
        let mut of_query = vec![Vec::new(); queries.len()];
        let accelerator = self.encoder()?.accelerator();
        for (at, segment) in self.snapshot.segments.iter().enumerate() {
            let column = &segment.columns[find];
            let n_rows = column.rows.len();
            let graph = column.graph.as_ref().filter(|_| request.scan == Scan::Auto);
            if graph.is_none() && !accelerator.is_cpu() && scopes.of_query.iter().all(Option::is_none) {
                let found = scan::best_units(
                    &accelerator,
                    &column.rows,
                    &scan::Units { of_row: &segment.units()?.of_row, n_units: segment.units()?.documents.len() },
                    &vectors,
                    request.candidates,
                    retrieve::allowed_rows(segment, scopes.of_all.map(|scope| scope.rows(at))).as_deref(),
                )?;
                of_query.iter_mut().zip(found).for_each(|(scored, found)| scored.push(found));
                continue;
            }
            let mut distances = Vec::new();
            if graph.is_none() {
                distances.resize(queries.len() * n_rows, 0.0);
                exact::distances(&column.rows, &vectors, &mut distances)?;
            }
            for (n, scored) in of_query.iter_mut().enumerate() {
                let scope = scopes.of_query[n].as_ref().or(scopes.of_all);
                let allowed = retrieve::allowed_rows(segment, scope.map(|scope| scope.rows(at)));
                let allowed = allowed.as_deref();
                let best = match graph {
                    None => retrieve::best_of_units(&distances[n * n_rows..(n + 1) * n_rows], segment, allowed)?,
                    Some(_) => near_units(column, segment, &embeddings[n].vector, request, allowed)?,
                };
                let found =
                    best.into_iter().enumerate().filter_map(|(unit, score)| score.map(|score| (unit as u32, score)));
                scored.push(found.collect());
            }
        }
        Ok(of_query)
    }

    /// The `depth` best documents over all segments, ties by id descending.
    fn best_documents(&self, scored: &[UnitScores], depth: usize) -> Result<Vec<(DocumentKey, f64)>> {
        let mut candidates = Vec::new();
        for (segment, hits) in scored.iter().enumerate() {
            candidates.extend(hits.iter().map(|&(unit, score)| (segment, unit, score)));
        }
        retrieve::keep_best(&mut candidates, depth, |candidate| candidate.2);
        let keyed = candidates.into_iter().map(|(segment, unit, score)| {
            let found = &self.snapshot.segments[segment];
            let document = found.units()?.documents[unit as usize];
            let id = found.document_id(document)?.to_owned();
            Ok((DocumentKey { id, segment, document }, score))
        });
        let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
        retrieve::sort_ranking(&mut keyed);
        keyed.truncate(depth);
        Ok(keyed)
    }
}

/// As [`retrieve::best_of_units`], from the chunks the graph finds.
fn near_units(
    column: &Column,
    segment: &Segment,
    query: &[f32],
    request: &RunRequest,
    allowed: Option<&RoaringBitmap>,
) -> Result<Vec<Option<f64>>> {
    let n_chunks = GRAPH_CHUNKS_PER_DOCUMENT * request.candidates;
    let units = segment.units()?;
    let mut best = vec![None; units.documents.len()];
    for neighbor in dense::nearest(column, query, n_chunks, Scan::Auto, request.ef, allowed)?.neighbors {
        let unit = units.of_row[neighbor.row as usize];
        retrieve::keep_larger(&mut best[unit as usize], retrieve::score(neighbor.distance));
    }
    Ok(best)
}
