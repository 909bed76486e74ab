//! Batch retrieval: topics → document rankings, as benchmarks want them.
//!
//! Each arm goes from chunks to documents first (dense: a document's best chunk; lexical: BM25 of the whole document),
//! then documents are fused. Vectors are scanned exactly unless asked otherwise, on the encoder's device if that is a
//! GPU.

use cento_embedder::Kind;
use cento_lexical::Unit;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::limits::{self, EF_MAX, QUERY_BYTES_MAX};
use crate::retrieve::request::{Fusion, Links, Mode, check_k};
use crate::retrieve::rules::titles::TITLE_WEIGHT_DEFAULT;
use crate::retrieve::search::{self as retrieve, DENSE, LEXICAL};
use crate::retrieve::searcher::Searcher;
use crate::source::device_scan::SCAN_QUERIES;
use crate::source::filter::Filter;
use crate::source::ranking::Ranking;
use crate::source::refs::ChunkKey;
use crate::source::scope::{Scope, Scopes};
use crate::source::seam::{DenseQueries, LexicalQueries, LexicalScore, Scan};
use cento_collection::format::config::{CANDIDATE_DEPTH, VectorColumn};

/// Queries scanned together: their distances to all rows are held at once.
const BATCH_QUERIES: usize = 32;

/// A query of a batch.
#[derive(Debug, Clone)]
pub struct RunQuery {
    /// The question, in plain words.
    pub text: String,
    /// Ids of the documents that may answer; `None` for all. Applied before each arm takes its candidates.
    pub scope: Option<Vec<String>>,
}

/// The way a batch of queries is answered.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Documents wanted per topic, at most `candidates`.
    pub k: usize,
    /// Candidate documents each arm contributes; never derived from `k`.
    pub candidates: usize,
    /// The retrievers that run.
    pub mode: Mode,
    /// The way the arms are fused.
    pub fusion: Fusion,
    /// The score of a document by words.
    pub lexical: LexicalScore,
    /// Weight of a title that the query names, in the score by words; see [`TITLE_WEIGHT_DEFAULT`].
    pub title_weight: f64,
    /// The links of the best documents that lift others, where both arms run.
    pub links: Links,
    /// The way vectors are scanned.
    pub scan: Scan,
    /// Width of the beam that walks a graph; four times `candidates` where that is more.
    pub ef: usize,
    /// Vectors that find documents; see [`Searcher::vectors_used`].
    pub find: Option<VectorColumn>,
    /// The filter that documents must pass to answer any of the queries; applied where a scope is.
    pub filter: Option<Filter>,
}

impl Default for RunRequest {
    fn default() -> Self {
        Self {
            k: CANDIDATE_DEPTH,
            candidates: CANDIDATE_DEPTH,
            mode: Mode::default(),
            fusion: Fusion::default(),
            lexical: LexicalScore::default(),
            title_weight: TITLE_WEIGHT_DEFAULT,
            links: Links::default(),
            scan: Scan::Exact,
            ef: 0,
            find: None,
            filter: None,
        }
    }
}

/// A topic's ranking: document ids and scores, best first, ties by id descending.
pub type DocumentRanking = Vec<(String, f64)>;

impl Searcher {
    /// Ranks documents for each query, within its scope; `done` hears how many queries are ready.
    pub fn run(
        &self,
        queries: &[RunQuery],
        request: &RunRequest,
        done: &mut dyn FnMut(usize),
    ) -> Result<Vec<DocumentRanking>> {
        check_k(request.k, request.candidates)?;
        limits::within("ef", request.ef, 0, EF_MAX)?;
        limits::weight("title-weight", request.title_weight)?;
        for query in queries {
            limits::text("query", &query.text, QUERY_BYTES_MAX)?;
            if query.text.trim().is_empty() {
                return Err(Error::EmptyQuery);
            }
        }
        let admitted = request.filter.as_ref().map(|filter| self.filter_scope(filter)).transpose()?;
        let admitted = admitted.map(|(admitted, _)| admitted);
        let mut rankings = Vec::with_capacity(queries.len());
        let n_together = match request.mode {
            Mode::Lexical => BATCH_QUERIES,
            Mode::Dense | Mode::Hybrid if self.encoder()?.accelerator().is_cpu() => BATCH_QUERIES,
            Mode::Dense | Mode::Hybrid => SCAN_QUERIES,
        };
        for batch in queries.chunks(n_together) {
            let scope_of = |query: &RunQuery| {
                let scope = query.scope.as_ref().map(|documents| self.scope(documents)).transpose()?;
                Ok(scope.map(|scope| scope.within(admitted.as_ref())))
            };
            let of_query = batch.iter().map(scope_of).collect::<Result<Vec<Option<Scope>>>>()?;
            let scopes = Scopes { of_query: &of_query, of_all: admitted.as_ref() };
            let texts: Vec<String> = batch.iter().map(|query| query.text.clone()).collect();
            let mut arms: Vec<Vec<_>> = batch.iter().map(|_| Vec::new()).collect();
            let mut give = |name, given: Vec<Ranking>| {
                for (arms, mut ranking) in arms.iter_mut().zip(given) {
                    ranking.truncate(request.candidates);
                    arms.push(retrieve::arm(name, ranking));
                }
            };
            if request.mode != Mode::Lexical {
                give(DENSE, self.dense_documents(&texts, scopes, request)?);
            }
            if request.mode != Mode::Dense {
                let (unit, score, depth) = (Unit::Document, request.lexical, request.candidates);
                let cancel = &Cancel::default();
                let queries = LexicalQueries { texts: &texts, scopes, unit, score, depth, statistics: None, cancel };
                let mut rankings = self.source.lexical(&queries)?;
                if request.title_weight > 0.0 {
                    for (ranking, query) in rankings.iter_mut().zip(&texts) {
                        ranking.truncate(request.candidates);
                        self.add_titles(ranking, query, request.title_weight, cancel)?;
                    }
                }
                give(LEXICAL, rankings);
            }
            for (n, arms) in arms.iter_mut().enumerate() {
                let mut fused = retrieve::fuse_arms::<ChunkKey>(arms, request.fusion)?;
                if (request.mode, request.links) == (Mode::Hybrid, Links::Named) {
                    self.follow_links(&mut fused, Unit::Document, scopes.of(n), &Cancel::default())?;
                }
                rankings.push(fused.into_iter().take(request.k).map(|fused| (fused.id.id, fused.score)).collect());
            }
            done(rankings.len());
        }
        Ok(rankings)
    }

    /// The queries that the encoder reads the beginning of alone.
    ///
    /// # Errors
    /// Those of [`Searcher::encoder`].
    pub fn n_cut(&self, queries: &[RunQuery]) -> Result<usize> {
        let encoder = self.encoder()?;
        let n_tokens = |text: &str| encoder.tokenizer().count(&encoder.bytes_embedded(text, Kind::Query));
        let is_cut = |query: &&RunQuery| n_tokens(&query.text) + encoder.n_special() > encoder.max_tokens();
        Ok(queries.iter().filter(is_cut).count())
    }

    /// For each query the documents by the score of their best chunk.
    fn dense_documents(&self, texts: &[String], scopes: Scopes<'_>, request: &RunRequest) -> Result<Vec<Ranking>> {
        let embeddings = self.encoder()?.embed(texts, Kind::Query)?;
        let vectors: Vec<f32> = embeddings.iter().flat_map(|embedding| embedding.vector.iter().copied()).collect();
        let near = self.source.nearest(&DenseQueries {
            vectors: &vectors,
            scopes,
            unit: Unit::Document,
            column: self.vectors_used(request.find, None)?.find,
            depth: request.candidates,
            scan: request.scan,
            ef: request.ef,
            accelerator: Some(&self.encoder()?.accelerator()),
            cancel: &Cancel::default(),
        })?;
        Ok(near.into_iter().map(|near| near.ranking).collect())
    }
}
