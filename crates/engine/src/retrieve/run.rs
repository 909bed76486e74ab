//! Batch retrieval: topics → document rankings, as benchmarks want them.
//!
//! Each arm goes from chunks to documents first (dense: a document's best chunk; lexical: BM25 of the whole document),
//! then documents are fused. Vectors are scanned exactly unless asked otherwise, on the encoder's device if that is a
//! GPU.

use cento_assembly::fuse::Fused;
use cento_embedder::Kind;
use cento_lexical::Unit;
use rayon::prelude::*;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::limits::{self, EF_MAX, QUERY_BYTES_MAX};
use crate::retrieve::quoted::Phrases;
use crate::retrieve::request::{Fusion, Links, Mode, Weights, check_k};
use crate::retrieve::rerank::reading::Reranking;
use crate::retrieve::rules::links::Followed;
use crate::retrieve::rules::titles::TITLE_WEIGHT_DEFAULT;
use crate::retrieve::search::{self as retrieve, DENSE, LEXICAL};
use crate::retrieve::searcher::Searcher;
use crate::source::device_scan::SCAN_QUERIES;
use crate::source::filter::Filter;
use crate::source::ranking::{Ranking, name};
use crate::source::refs::RankedChunk;
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
    /// The constants of BM25, and its weight beside vectors.
    pub weights: Weights,
    /// The score of a document by words.
    pub lexical: LexicalScore,
    /// Weight of a title that the query names, in the score by words; see [`TITLE_WEIGHT_DEFAULT`].
    pub title_weight: f64,
    /// The links of the best documents that lift others, where both arms run.
    pub links: Links,
    /// The weight of phrases in quotation marks.
    pub phrases: Phrases,
    /// The way vectors are scanned.
    pub scan: Scan,
    /// Width of the beam that walks a graph; four times `candidates` where that is more.
    pub ef: usize,
    /// Vectors that find documents; see [`Searcher::vectors_used`].
    pub find: Option<VectorColumn>,
    /// The filter that documents, or their chunks, must pass to answer any of the queries; applied where a scope is.
    pub filter: Option<Filter>,
    /// The vectors that are searched for, one for each query, in place of those of their texts.
    pub vectors: Option<Vec<Vec<f32>>>,
    /// The model that reads the best documents again, all of them however long it takes: a document counts as its best
    /// passage. None: the ranking stands.
    pub rerank: Option<Reranking>,
    /// Looked at while documents are reranked.
    pub cancel: Cancel,
}

impl Default for RunRequest {
    fn default() -> Self {
        Self {
            k: CANDIDATE_DEPTH,
            candidates: CANDIDATE_DEPTH,
            mode: Mode::default(),
            fusion: Fusion::default(),
            weights: Weights::default(),
            lexical: LexicalScore::default(),
            title_weight: TITLE_WEIGHT_DEFAULT,
            links: Links::default(),
            phrases: Phrases::default(),
            scan: Scan::Exact,
            ef: 0,
            find: None,
            filter: None,
            vectors: None,
            rerank: None,
            cancel: Cancel::default(),
        }
    }
}

/// The settings of a ranking that do not change which vectors are nearest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSettings {
    /// See [`RunRequest::weights`].
    pub weights: Weights,
    /// See [`RunRequest::lexical`].
    pub lexical: LexicalScore,
    /// See [`RunRequest::title_weight`].
    pub title_weight: f64,
    /// See [`RunRequest::links`].
    pub links: Links,
}

impl RunRequest {
    /// The request's own.
    #[must_use]
    pub fn settings(&self) -> RankSettings {
        let Self { weights, lexical, title_weight, links, .. } = *self;
        RankSettings { weights, lexical, title_weight, links }
    }
}

impl RankSettings {
    fn check(&self) -> Result<()> {
        limits::weight("title-weight", self.title_weight)?;
        self.weights.check()
    }

    /// True if words rank alike under both.
    fn ranks_words_as(&self, other: &Self) -> bool {
        self.weights.bm25() == other.weights.bm25()
            && (self.lexical, self.title_weight) == (other.lexical, other.title_weight)
    }
}

/// A topic's ranking: document ids and scores, best first, ties by id descending.
pub type DocumentRanking = Vec<(String, f64)>;

/// A question whose documents are reranked.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) text: &'a str,
    /// The vector that is searched for in place of the question's.
    pub(crate) vector: Option<&'a Vec<f32>>,
    pub(crate) scope: Option<&'a Scope>,
}

/// The rankings of a batch of queries by words, under each of several settings.
struct ByWords {
    /// For each distinct way of ranking by words, the rankings of the queries.
    rankings: Vec<Vec<Ranking>>,
    /// For each of the settings, which of them.
    of_setting: Vec<usize>,
}

impl Searcher {
    /// Ranks documents for each query, within its scope; `done` hears how many queries are ready.
    pub fn run(
        &self,
        queries: &[RunQuery],
        request: &RunRequest,
        done: &mut dyn FnMut(usize),
    ) -> Result<Vec<DocumentRanking>> {
        let mut rankings = Vec::with_capacity(queries.len());
        self.run_each(queries, request, &[request.settings()], &mut |of_query| {
            rankings.extend(of_query);
            done(rankings.len());
        })?;
        Ok(rankings)
    }

    /// Ranks documents for each query under each of several settings, whatever those of the request are. Vectors are
    /// searched once, words once for each way of scoring by words; `found` hears of each query its rankings, in the
    /// order of the settings.
    pub fn run_each(
        &self,
        queries: &[RunQuery],
        request: &RunRequest,
        settings: &[RankSettings],
        found: &mut dyn FnMut(Vec<DocumentRanking>),
    ) -> Result<()> {
        check_k(request.k, request.candidates)?;
        limits::within("ef", request.ef, 0, EF_MAX)?;
        settings.iter().try_for_each(RankSettings::check)?;
        for query in queries {
            limits::text("query", &query.text, QUERY_BYTES_MAX)?;
            if query.text.trim().is_empty() && (request.vectors.is_none() || request.mode != Mode::Dense) {
                return Err(Error::EmptyQuery);
            }
        }
        self.check_words(request.mode)?;
        if let Some(vectors) = request.vectors.as_ref().filter(|vectors| vectors.len() != queries.len()) {
            let (value, reason) = (vectors.len().to_string(), format!("are not the {} of the queries", queries.len()));
            return Err(Error::Setting { setting: "vectors", value, reason });
        }
        let admitted = request.filter.as_ref().map(|filter| self.filter_scope(filter)).transpose()?;
        let admitted = admitted.map(|(admitted, _)| admitted);
        let n_together = match request.mode {
            Mode::Lexical => BATCH_QUERIES,
            Mode::Dense | Mode::Hybrid if self.source.is_far() => BATCH_QUERIES,
            Mode::Dense | Mode::Hybrid if request.vectors.is_some() => BATCH_QUERIES,
            Mode::Dense | Mode::Hybrid if self.encoder()?.accelerator().is_cpu() => BATCH_QUERIES,
            Mode::Dense | Mode::Hybrid => SCAN_QUERIES,
        };
        for (from, batch) in (0..).step_by(n_together).zip(queries.chunks(n_together)) {
            let scope_of = |query: &RunQuery| self.scope_of(query, admitted.as_ref(), request.phrases);
            let of_query = batch.iter().map(scope_of).collect::<Result<Vec<Option<Scope>>>>()?;
            let scopes = Scopes { of_query: &of_query, of_all: admitted.as_ref() };
            let texts: Vec<String> = batch.iter().map(|query| query.text.clone()).collect();
            let by_vectors = match request.mode {
                Mode::Lexical => None,
                Mode::Dense | Mode::Hybrid => {
                    let vectors = self.query_vectors(&texts, from, request)?;
                    Some(self.dense_documents(&vectors, scopes, request)?)
                }
            };
            let by_words = match request.mode {
                Mode::Dense => None,
                Mode::Lexical | Mode::Hybrid => Some(self.by_words(&texts, scopes, request, settings)?),
            };
            let ranked = |query: usize| {
                let vectors = by_vectors.as_ref().map(|rankings| &rankings[query]);
                let ranked = |(at, setting): (usize, &RankSettings)| {
                    let words = by_words.as_ref().map(|words| &words.rankings[words.of_setting[at]][query]);
                    self.fused_documents([(DENSE, vectors), (LEXICAL, words)], request, setting, scopes.of(query))
                };
                settings.iter().enumerate().map(ranked).collect::<Result<Vec<_>>>()
            };
            let rankings: Vec<_> = (0..batch.len()).into_par_iter().map(ranked).collect::<Result<_>>()?;
            for (at, rankings) in rankings.into_iter().enumerate() {
                let vector = request.vectors.as_ref().map(|vectors| &vectors[from + at]);
                let question = Question { text: &batch[at].text, vector, scope: scopes.of(at) };
                found(self.best_documents(question, rankings, request, settings)?);
            }
        }
        Ok(())
    }

    /// The best documents of the rankings of a question, reranked if that is asked for.
    fn best_documents(
        &self,
        question: Question<'_>,
        rankings: Vec<Vec<Fused<RankedChunk>>>,
        request: &RunRequest,
        settings: &[RankSettings],
    ) -> Result<Vec<DocumentRanking>> {
        let best = |(mut fused, settings): (Vec<Fused<RankedChunk>>, &RankSettings)| {
            if let Some(reranking) = &request.rerank {
                self.rerank_documents(question, &mut fused, reranking, request, settings)?;
            }
            fused.truncate(request.k);
            name(&mut fused, |chunks| self.source.ids(Unit::Document, chunks))?;
            Ok(fused.into_iter().filter_map(|fused| Some((fused.id.id?.to_string(), fused.score))).collect())
        };
        rankings.into_iter().zip(settings).map(best).collect()
    }

    /// The documents that may answer a query; none: those that the filter of all queries admits.
    fn scope_of(&self, query: &RunQuery, admitted: Option<&Scope>, phrases: Phrases) -> Result<Option<Scope>> {
        let own = query.scope.as_ref().map(|documents| self.scope(documents)).transpose()?;
        let own = own.map(|scope| scope.within(admitted));
        let required = self.quoted(&query.text, phrases).phrases;
        Ok(match self.having(&required, Unit::Document, &Cancel::default())? {
            Some((having, _)) => Some(having.within(own.as_ref().or(admitted))),
            None => own,
        })
    }

    /// Ranks documents by words under each of several settings.
    fn by_words(
        &self,
        texts: &[String],
        scopes: Scopes<'_>,
        request: &RunRequest,
        settings: &[RankSettings],
    ) -> Result<ByWords> {
        let mut by_words = ByWords { rankings: Vec::new(), of_setting: Vec::with_capacity(settings.len()) };
        let mut distinct: Vec<&RankSettings> = Vec::new();
        for setting in settings {
            let known = distinct.iter().position(|known| known.ranks_words_as(setting));
            by_words.of_setting.push(known.unwrap_or(distinct.len()));
            if known.is_none() {
                distinct.push(setting);
                by_words.rankings.push(self.lexical_documents(texts, scopes, request.candidates, setting)?);
            }
        }
        Ok(by_words)
    }

    fn lexical_documents(
        &self,
        texts: &[String],
        scopes: Scopes<'_>,
        depth: usize,
        settings: &RankSettings,
    ) -> Result<Vec<Ranking>> {
        let (unit, score, bm25) = (Unit::Document, settings.lexical, settings.weights.bm25());
        let cancel = &Cancel::default();
        let queries = LexicalQueries { texts, scopes, unit, score, bm25, depth, statistics: None, cancel };
        let mut rankings: Vec<Ranking> =
            self.source.lexical(&queries)?.into_iter().map(|matched| matched.ranking).collect();
        for (ranking, query) in rankings.iter_mut().zip(texts) {
            ranking.truncate(depth);
            if settings.title_weight > 0.0 {
                self.add_titles(ranking, query, settings.title_weight, cancel)?;
            }
        }
        Ok(rankings)
    }

    /// The ranking of a query from those of its arms.
    fn fused_documents(
        &self,
        arms: [(&'static str, Option<&Ranking>); 2],
        request: &RunRequest,
        settings: &RankSettings,
        scope: Option<&Scope>,
    ) -> Result<Vec<Fused<RankedChunk>>> {
        let arms = arms.into_iter().filter_map(|(name, ranking)| Some(retrieve::arm(name, ranking?.clone())));
        let mut arms: Vec<_> = arms.collect();
        let fusion = retrieve::fuse_arms(&mut arms, request.fusion, settings.weights.lexical)?;
        let mut fused = self.fused(&fusion, Unit::Document)?;
        if request.mode == Mode::Hybrid && settings.links != Links::None {
            let followed = Followed { links: settings.links, unit: Unit::Document, scope };
            self.follow_links(&mut fused, followed, &Cancel::default())?;
        }
        let kept = request.rerank.as_ref().map_or(0, Reranking::depth).max(request.k);
        fused.truncate(kept);
        Ok(fused)
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

    /// The vectors of queries, \[Q, D\]: those of the request, whose queries begin at `from`, or of their texts.
    fn query_vectors(&self, texts: &[String], from: usize, request: &RunRequest) -> Result<Vec<f32>> {
        if let Some(vectors) = &request.vectors {
            let of_batch = vectors[from..from + texts.len()].iter().map(|vector| self.unit(vector));
            return Ok(of_batch.collect::<Result<Vec<_>>>()?.concat());
        }
        let embeddings = self.encoder()?.embed(texts, Kind::Query)?;
        Ok(embeddings.iter().flat_map(|embedding| embedding.vector.iter().copied()).collect())
    }

    /// For each query the documents by the score of their best chunk.
    fn dense_documents(&self, vectors: &[f32], scopes: Scopes<'_>, request: &RunRequest) -> Result<Vec<Ranking>> {
        let accelerator = match request.vectors {
            Some(_) => None,
            None => Some(self.encoder()?.accelerator()),
        };
        let near = self.source.nearest(&DenseQueries {
            vectors,
            scopes,
            unit: Unit::Document,
            column: self.vectors_used(request.find, None)?.find,
            depth: request.candidates,
            scan: request.scan,
            ef: request.ef,
            accelerator: accelerator.as_ref(),
            cancel: &Cancel::default(),
        })?;
        let best = |mut ranking: Ranking| {
            ranking.truncate(request.candidates);
            ranking
        };
        Ok(near.into_iter().map(|near| best(near.ranking)).collect())
    }
}
