//! Retrieve: a query → dense and lexical candidates → one ranking.
//!
//! Each arm gives its best candidates to one depth, [`CANDIDATE_DEPTH`](crate::CANDIDATE_DEPTH) unless asked otherwise,
//! whatever `k` is; ties at the cut and in the ranking are broken by public id, descending.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cento_assembly::fuse::{self, Arm, Contribution, Fused};
use cento_assembly::{Anchor, Candidate, Extent};
use cento_lexical::{self as lexical, Statistics, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::limits;
use crate::retrieve::dense::VectorsUsed;
use crate::retrieve::likelihood::{self, NO_LIKELIHOODS, Unlikely};
use crate::retrieve::missing::MissingShard;
use crate::retrieve::queue::turns::Arrival;
use crate::retrieve::request::{ChunkSearch, Explain, Fusion, Links, Mode, check_k};
use crate::retrieve::rerank::reading::RerankedBy;
use crate::retrieve::rules::known::NamedBy;
use crate::retrieve::rules::links::Followed;
use crate::retrieve::scope::{Allowed, Filtered};
use crate::retrieve::searcher::Searcher;
use crate::source::ranking::{Ranking, sort_ranking};
use crate::source::refs::{ChunkRef, RankedChunk};
use crate::source::scope::{Scope, Scopes};
use crate::source::seam::{Counted, LexicalQueries, LexicalScore, Matched};

/// Name of the arm of nearest vectors.
pub(crate) const DENSE: &str = "dense";
/// Name of the arm of BM25.
pub(crate) const LEXICAL: &str = "lexical";

/// The answer to a [`ChunkSearch`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SearchResponse {
    /// Format of this answer.
    pub version: u32,
    /// The query as given.
    pub query: String,
    /// The retrievers that ran.
    pub mode: Mode,
    /// The way they were fused, if there were two.
    pub fusion: Option<Fusion>,
    /// The way vectors were scanned: `exact`, `graph`, `exact and graph`, or `none`.
    pub scanned: &'static str,
    /// The vectors that found documents, and those that scored chunks inside one; nothing if none were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorsUsed>,
    /// The filter, and how many documents it let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filtered>,
    /// Generation of the collection.
    pub generation: u64,
    /// Fingerprint of the encoder.
    pub model_fingerprint: String,
    /// The model that read the best candidates again, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankedBy>,
    /// Warnings about the collection, to whoever asks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Shards that did not answer, where the request allowed it: all else is of a part of the collection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingShard>,
    /// The ranking, best first.
    pub hits: Vec<Hit>,
}

/// A chunk in a ranking.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Hit {
    /// 1 is best.
    pub rank: usize,
    /// Public id: `document#number`.
    pub id: String,
    /// Its document.
    pub document: String,
    /// Title of the document.
    pub title: String,
    /// Headings above the chunk, outermost first.
    pub path: Vec<String>,
    /// Bytes of the chunk in the document's canonical text.
    pub span: [u64; 2],
    /// `source` if that text is the file's bytes, `extracted` if it was extracted from it.
    pub text_kind: &'static str,
    /// Where it begins in the source, `line 12`, `page 3` or `row 7`; may be empty.
    pub anchor: String,
    /// Fused score, or the arm's own when one arm answered. Of what a reranker read, its probability above the best
    /// score of what it did not read.
    pub score: f64,
    /// The likelihood that it answers, in (0, 1), which means the same for every question, unlike the score; nothing
    /// where words alone were searched, or the collection's cosines have no scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<f64>,
    /// The contribution of each arm; the contributions add up to the score. That of a reranker is `rerank`: `rank` is
    /// the place before, `raw` the logit, `normalized` the probability.
    pub contributions: Vec<Contribution>,
    /// The document that named its document or links to it, if that lifted it: the contribution `named` or `linked`,
    /// whose `rank`, `raw` and `normalized` are that document's place and score and the strength of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_by: Option<NamedBy>,
    /// BM25 term by term, when asked for and when the lexical arm found the chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexical: Option<lexical::Explanation>,
    /// The chunk.
    pub text: String,
}

/// Where the time of one query went.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timings {
    /// Embedding the query (and loading the encoder, if this query was the first).
    pub embed: Duration,
    /// The vector scan.
    pub dense: Duration,
    /// BM25.
    pub lexical: Duration,
    /// Fusion.
    pub fuse: Duration,
    /// Reranking, its texts included.
    pub rerank: Duration,
    /// Reading the texts of the results.
    pub texts: Duration,
}

/// A candidate and its likelihood.
type Likely = (Fused<RankedChunk>, Option<f64>);

/// The fused candidates of a query, before `k`.
pub(crate) struct Retrieved {
    pub(crate) fused: Vec<Fused<RankedChunk>>,
    /// The documents that named what links lifted, by the lifted chunk.
    pub(crate) named: HashMap<ChunkRef, NamedBy>,
    /// The statistics that its words were ranked under, if they are known.
    pub(crate) statistics: Option<Statistics>,
    /// The query's, if it was embedded: \[D\].
    pub(crate) vector: Option<Vec<f32>>,
    pub(crate) scanned: &'static str,
    pub(crate) vectors: Option<VectorsUsed>,
    pub(crate) reranked: Option<RerankedBy>,
    /// The chunks that alone may be delivered; none for all.
    pub(crate) bounds: Option<Scope>,
    /// Warnings about this query, to whoever asks.
    pub(crate) warnings: Vec<String>,
}

impl Searcher {
    /// The best chunks for a query.
    pub fn search(&self, request: &ChunkSearch) -> Result<SearchResponse> {
        self.search_timed(request).map(|(response, _)| response)
    }

    /// The best chunks for a query, and where the time went.
    pub fn search_timed(&self, request: &ChunkSearch) -> Result<(SearchResponse, Timings)> {
        check_k(request.k, request.candidates)?;
        let mut timings = Timings::default();
        let Allowed { scope, filtered: filter, warnings: of_phrases, .. } = self.allowed(request)?;
        let is_cut = request.min_score.is_none() && request.rerank.is_none();
        let n = if is_cut { request.k } else { usize::MAX };
        let mut ranking = self.rank_within(request, scope.as_ref(), n, &mut timings)?;
        self.rerank(request, &mut ranking, &mut timings)?;
        let start = Instant::now();
        let statistics = ranking.statistics.as_ref();
        let (best, unlikely) = self.best(request, ranking.fused, ranking.vector, statistics)?;
        let hits = self.hits(best, ranking.named, request, statistics)?;
        limits::answer(hits.iter().map(|hit| hit.text.len()))?;
        timings.texts = start.elapsed();
        let manifest = self.manifest();
        let response = SearchResponse {
            version: 1,
            query: request.query.clone(),
            mode: request.mode,
            fusion: (request.mode == Mode::Hybrid).then_some(request.fusion),
            scanned: ranking.scanned,
            vectors: ranking.vectors,
            filter,
            generation: manifest.generation,
            model_fingerprint: manifest.config.model_fingerprint.clone(),
            rerank: ranking.reranked,
            missing: self.missing().to_vec(),
            warnings: [self.warnings(), self.warnings_of_missing(), of_phrases, ranking.warnings]
                .into_iter()
                .flatten()
                .chain(unlikely.map(|why| format!("{NO_LIKELIHOODS}: {why}")))
                .collect(),
            hits,
        };
        Ok((response, timings))
    }

    /// The results with their likelihoods, or what to tell whoever asks about why they have none.
    fn best(
        &self,
        request: &ChunkSearch,
        mut fused: Vec<Fused<RankedChunk>>,
        vector: Option<Vec<f32>>,
        statistics: Option<&Statistics>,
    ) -> Result<(Vec<Likely>, Option<Unlikely>)> {
        if request.min_score.is_none() {
            fused.truncate(request.k);
        }
        let likelihoods = match (self.scale(request, vector, statistics)?, request.min_score) {
            (Ok(scale), _) => self.likelihoods(&scale, fused.iter().map(words).collect())?,
            (Err(unlikely), Some(least)) => return Err(likelihood::refused(least, unlikely.to_string())),
            (Err(unlikely), None) => {
                let hits = fused.into_iter().map(|fused| (fused, None)).collect();
                let is_told = !matches!(unlikely, Unlikely::WordsAlone | Unlikely::GivenVectors); // those are as asked
                return Ok((hits, Some(unlikely).filter(|_| is_told)));
            }
        };
        let least = request.min_score.unwrap_or(0.0);
        let likely = fused.into_iter().zip(likelihoods).filter(|(_, likelihood)| *likelihood >= least);
        Ok((likely.map(|(fused, likelihood)| (fused, Some(likelihood))).take(request.k).collect(), None))
    }

    /// Every candidate of a query, fused and reranked, best first.
    pub(crate) fn rank(&self, request: &ChunkSearch, timings: &mut Timings) -> Result<Retrieved> {
        let Allowed { scope, bounds, warnings, .. } = self.allowed(request)?;
        let mut ranking = self.rank_within(request, scope.as_ref(), usize::MAX, timings)?;
        ranking.bounds = bounds;
        self.rerank(request, &mut ranking, timings)?;
        ranking.warnings.splice(0..0, warnings);
        Ok(ranking)
    }

    /// The `n` best candidates within a scope, fused, whatever the request's own scope, filter and reranker are; see
    /// [`Searcher::rank`].
    pub(crate) fn rank_within(
        &self,
        request: &ChunkSearch,
        scope: Option<&Scope>,
        n: usize,
        timings: &mut Timings,
    ) -> Result<Retrieved> {
        request.check()?;
        self.check_words(request.mode)?;
        let (arrival, mut arms) = (Arrival::now(), Vec::new());
        let (mut scanned, mut vectors, mut embedded, mut statistics) = ("none", None, None, None);
        let mut warnings = Vec::new();
        if request.mode != Mode::Lexical {
            let start = Instant::now();
            let query = match &request.vector {
                Some(vector) => self.unit(vector)?,
                None => {
                    let query = self.embed_query(&request.query, &request.cancel)?;
                    warnings.extend(self.cut(&query)?);
                    query.vector
                }
            };
            timings.embed = start.elapsed();
            embedded = Some(query);
        }
        let _turn = if self.source.is_far() { None } else { arrival.turn(&request.cancel)? };
        if let Some(query) = &embedded {
            let start = Instant::now();
            let found = self.dense_chunks(query, request, scope)?;
            timings.dense = start.elapsed();
            (scanned, vectors) = (found.scanned, Some(found.used));
            arms.push(arm(DENSE, found.chunks));
        }
        request.cancel.check()?;
        if request.mode != Mode::Dense {
            let start = Instant::now();
            let matched = self.lexical_chunks(request, scope)?;
            arms.push(arm(LEXICAL, matched.ranking));
            statistics = matched.statistics;
            timings.lexical = start.elapsed();
        }
        request.cancel.check()?;
        let start = Instant::now();
        let fusion = fuse_arms(&mut arms, request.fusion, request.weights.lexical)?;
        let mut fused = self.fused(&fusion, Unit::Row)?;
        let named = match (request.mode, request.links) {
            (Mode::Hybrid, Links::Named | Links::Authored | Links::All) => {
                let followed = Followed { links: request.links, unit: Unit::Row, scope };
                self.follow_links(&mut fused, followed, &request.cancel)?
            }
            (Mode::Hybrid, Links::None) | (Mode::Dense | Mode::Lexical, _) => HashMap::new(),
        };
        fused.truncate(n);
        for found in &mut fused {
            found.contributions.splice(0..0, fusion.contributions(&found.id));
        }
        timings.fuse = start.elapsed();
        let (vector, reranked, bounds) = (embedded, None, None);
        Ok(Retrieved { fused, named, statistics, vector, scanned, vectors, reranked, bounds, warnings })
    }

    pub(crate) fn lexical_chunks(&self, request: &ChunkSearch, scope: Option<&Scope>) -> Result<Matched> {
        let ranked = self.lexical_chunks_of(std::slice::from_ref(&request.query), request, scope)?;
        Ok(ranked.into_iter().next().unwrap_or_default())
    }

    /// The best chunks by words for each of several texts in place of the request's.
    pub(crate) fn lexical_chunks_of(
        &self,
        texts: &[String],
        request: &ChunkSearch,
        scope: Option<&Scope>,
    ) -> Result<Vec<Matched>> {
        let mut ranked = self.source.lexical(&LexicalQueries {
            texts,
            scopes: Scopes { of_query: &[], of_all: scope },
            unit: Unit::Row,
            score: LexicalScore::default(),
            bm25: request.weights.bm25(),
            depth: request.candidates,
            statistics: None,
            cancel: &request.cancel,
        })?;
        ranked.iter_mut().for_each(|matched| matched.ranking.truncate(request.candidates));
        Ok(ranked)
    }

    /// The idf of each term as the analyser gives it, by the live chunks whose text has it.
    pub(crate) fn idfs(&self, terms: &[String]) -> Result<Vec<f64>> {
        let statistics = self.source.statistics(Counted::Texts, terms, &Cancel::default())?;
        Ok(terms.iter().map(|term| statistics.idf(term).unwrap_or_default()).collect())
    }

    fn hits(
        &self,
        best: Vec<Likely>,
        mut named: HashMap<ChunkRef, NamedBy>,
        request: &ChunkSearch,
        statistics: Option<&Statistics>,
    ) -> Result<Vec<Hit>> {
        let mut explained = match request.explain {
            Explain::Terms => {
                let chunks: Vec<ChunkRef> = best.iter().map(|(fused, _)| fused.id.chunk).collect();
                self.source.explain(&request.query, &chunks, request.weights.bm25(), statistics)?
            }
            Explain::Arms => Vec::new(),
        }
        .into_iter();
        let chunks = self.read(best.iter().map(|(fused, _)| &fused.id))?;
        let ranked = best.into_iter().zip(chunks).enumerate();
        let hit = |(n, ((fused, likelihood), chunk)): (usize, (Likely, Candidate))| Hit {
            rank: n + 1,
            named_by: named.remove(&fused.id.chunk),
            id: chunk.id,
            document: chunk.document,
            title: chunk.title,
            path: chunk.path,
            span: [chunk.span.start, chunk.span.end],
            text_kind: chunk.source,
            anchor: beginning(chunk.anchor).to_string(),
            score: fused.score,
            likelihood,
            contributions: fused.contributions,
            lexical: explained.next().filter(|explanation| explanation.score > 0.0),
            text: chunk.text,
        };
        Ok(ranked.map(hit).collect())
    }

    /// Reads ranked chunks.
    ///
    /// # Errors
    /// [`Error::Shard`] for a chunk that its shard ranked by another id; those of the source.
    pub(crate) fn read<'r>(&self, ranked: impl Iterator<Item = &'r RankedChunk> + Clone) -> Result<Vec<Candidate>> {
        let chunks: Vec<ChunkRef> = ranked.clone().map(|ranked| ranked.chunk).collect();
        let read = self.source.chunks(&chunks)?;
        for (RankedChunk { chunk, id }, candidate) in ranked.zip(&read) {
            if let Some(id) = id.as_deref().filter(|id| *id != candidate.id) {
                let reason = format!("its answers cannot be: {id} is {} too", candidate.id);
                return Err(Error::Shard { shard: self.source.whose(*chunk), reason });
            }
        }
        Ok(read)
    }

    /// The ranking of what was fused, without contributions.
    pub(crate) fn fused(&self, fusion: &fuse::Fusion<'_, RankedChunk>, unit: Unit) -> Result<Vec<Fused<RankedChunk>>> {
        let mut fused = fusion.ranking()?;
        sort_ranking(&mut fused, |chunks| self.source.ids(unit, chunks))?;
        Ok(fused)
    }
}

/// A candidate with its BM25 score, if words found it.
fn words(fused: &Fused<RankedChunk>) -> (ChunkRef, Option<f64>) {
    let lexical = fused.contributions.iter().find(|part| part.arm == LEXICAL);
    (fused.id.chunk, lexical.and_then(|part| part.raw))
}

/// Where a candidate begins, as an answer says it: page, row or line, without the sheet.
fn beginning(anchor: Anchor) -> Anchor {
    let line = anchor.line.map(|line| Extent::from(line.first));
    Anchor { sheet: None, line, ..anchor }
}

pub(crate) fn arm(name: &'static str, hits: Ranking) -> Arm<RankedChunk> {
    Arm { name: name.into(), weight: 1.0, hits }
}

/// Fuses two arms; a single arm keeps its own scores.
///
/// `lexical_weight` is that of [`Weights`](crate::Weights).
pub(crate) fn fuse_arms(
    arms: &mut [Arm<RankedChunk>],
    fusion: Fusion,
    lexical_weight: f64,
) -> Result<fuse::Fusion<'_, RankedChunk>> {
    if let [only] = arms {
        return Ok(fuse::Fusion::alone(only)?);
    }
    for arm in &mut *arms {
        arm.weight = match (fusion, &*arm.name) {
            (Fusion::Adaptive, LEXICAL) => lexical_weight,
            (Fusion::Adaptive, _) => 1.0,
            _ => 0.5,
        };
    }
    Ok(fuse::Fusion::new(arms, &fusion.method())?)
}
