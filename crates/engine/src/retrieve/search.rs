//! Retrieve: a query → dense and lexical candidates → one ranking.
//!
//! Each arm gives its best candidates to one depth, [`CANDIDATE_DEPTH`] unless asked otherwise, whatever `k` is; ties at the cut and in the ranking are broken by
//! public id, descending. Dense distances (ascending) become scores (descending) here and nowhere else: `score = 1 - distance`,
//! the cosine of unit vectors.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use cento_assembly::fuse::{self, Arm, Contribution, Fused, Method, Normalize};
use cento_embedder::Kind;
use cento_lexical::{self as lexical, Bm25, Part, Unit};
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::retrieve::dense::VectorsUsed;
use crate::retrieve::filter::Filter;
use crate::retrieve::scope::{Filtered, Scope};
use crate::retrieve::searcher::Searcher;
use cento_collection::format::config::{CANDIDATE_DEPTH, VectorColumn};
use cento_collection::format::segment::Segment;

/// Name of the arm of nearest vectors.
pub(crate) const DENSE: &str = "dense";
/// Name of the arm of BM25.
pub(crate) const LEXICAL: &str = "lexical";

/// Which arms answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Both, fused.
    #[default]
    Hybrid,
    /// Nearest vectors alone.
    Dense,
    /// BM25 alone.
    Lexical,
}

/// How two rankings become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fusion {
    /// Reciprocal rank fusion, k = 60.
    Rrf,
    /// Convex combination of min-max normalised scores, half and half.
    Convex,
    /// Convex combination whose weights follow each query: an arm counts for more where its best hits stand out.
    /// See [`Method::Adaptive`]; before that, the lexical arm weighs [`LEXICAL_WEIGHT`] of the dense one.
    #[default]
    Adaptive,
}

/// What the lexical arm weighs beside the dense arm's 1 in an adaptive combination, before their contrasts.
///
/// Chosen on twelve sets, none of which has a setting of its own; the rules tried and their figures are in `benches/results/`.
pub const LEXICAL_WEIGHT: f64 = 0.55;

/// How the nearest vectors are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scan {
    /// By graph where a segment has one.
    #[default]
    Auto,
    /// By reading every row.
    Exact,
}

/// A query over chunks.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    /// The question, in plain words.
    pub query: String,
    /// Results wanted, at most `candidates`.
    pub k: usize,
    /// Candidates each arm contributes; never derived from `k`.
    pub candidates: usize,
    /// Which arms answer.
    pub mode: Mode,
    /// How the arms are fused.
    pub fusion: Fusion,
    /// How vectors are scanned.
    pub scan: Scan,
    /// Width of the beam that walks a graph; `candidates` where that is more.
    pub ef: usize,
    /// Vectors that find documents; see [`Searcher::vectors_used`].
    pub find: Option<VectorColumn>,
    /// Vectors that score chunks inside a document.
    pub score: Option<VectorColumn>,
    /// Ids of the documents that may answer; `None` for all. Applied before each arm takes its candidates.
    pub scope: Option<Vec<String>>,
    /// What must hold of the documents that may answer, besides; applied where the scope is.
    pub filter: Option<Filter>,
    /// Results with a lower score are left out.
    pub min_score: Option<f64>,
    /// Whether results carry the terms of their BM25 score.
    pub explain: Explain,
}

impl SearchRequest {
    /// The ten best chunks for a query, by every default.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            k: 10,
            candidates: CANDIDATE_DEPTH,
            mode: Mode::default(),
            fusion: Fusion::default(),
            scan: Scan::default(),
            ef: 0,
            find: None,
            score: None,
            scope: None,
            filter: None,
            min_score: None,
            explain: Explain::default(),
        }
    }
}

/// Whether a hit explains its lexical score term by term.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Explain {
    /// Contributions of the arms only.
    #[default]
    Arms,
    /// The BM25 terms too.
    Terms,
}

/// The answer to a [`SearchRequest`].
#[derive(Debug, Clone, Serialize)]
pub struct SearchResponse {
    /// Format of this answer.
    pub version: u32,
    /// The query as given.
    pub query: String,
    /// Which arms answered.
    pub mode: Mode,
    /// How they were fused, if there were two.
    pub fusion: Option<Fusion>,
    /// How vectors were scanned: `exact`, `graph`, `exact and graph`, or `none`.
    pub scanned: &'static str,
    /// Which vectors found documents, and which scored chunks inside one; nothing if none were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorsUsed>,
    /// The filter, and how many documents it let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filtered>,
    /// Generation of the collection.
    pub generation: u64,
    /// Fingerprint of the encoder.
    pub model_fingerprint: String,
    /// What whoever asks should know of the collection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The ranking, best first.
    pub hits: Vec<Hit>,
}

/// A chunk in a ranking.
#[derive(Debug, Clone, Serialize)]
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
    /// Whether that text is the file's bytes (`source`) or was extracted from it.
    pub text_kind: &'static str,
    /// Where it begins in the source, `line 12`, `page 3` or `row 7`; may be empty.
    pub anchor: String,
    /// Fused score, or the arm's own when one arm answered.
    pub score: f64,
    /// What each arm gave; the contributions add up to the score.
    pub contributions: Vec<Contribution>,
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
    /// Reading the texts of the results.
    pub texts: Duration,
}

/// A chunk among the candidates; ordered by public id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChunkKey {
    pub(crate) id: String,
    pub(crate) segment: usize,
    pub(crate) row: u32,
}

/// The fused candidates of a query, before `k`.
pub(crate) struct Ranking {
    pub(crate) fused: Vec<Fused<ChunkKey>>,
    pub(crate) scanned: &'static str,
    pub(crate) vectors: Option<VectorsUsed>,
    pub(crate) filter: Option<Filtered>,
}

impl Searcher {
    /// The best chunks for a query.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchResponse> {
        self.search_timed(request).map(|(response, _)| response)
    }

    /// The best chunks for a query, and where the time went.
    pub fn search_timed(&self, request: &SearchRequest) -> Result<(SearchResponse, Timings)> {
        check_k(request.k, request.candidates)?;
        let mut timings = Timings::default();
        let ranking = self.rank(request, &mut timings)?;
        let start = Instant::now();
        let explained = match request.explain {
            Explain::Terms => Some(self.lexical(Unit::Row, None)?),
            Explain::Arms => None,
        };
        let mut hits = Vec::new();
        for (n, fused) in ranking.fused.into_iter().take(request.k).enumerate() {
            if request.min_score.is_some_and(|min_score| fused.score < min_score) {
                break;
            }
            hits.push(self.hit(n + 1, fused, &request.query, explained.as_ref())?);
        }
        timings.texts = start.elapsed();
        let manifest = &self.snapshot.manifest;
        let response = SearchResponse {
            version: 1,
            query: request.query.clone(),
            mode: request.mode,
            fusion: (request.mode == Mode::Hybrid).then_some(request.fusion),
            scanned: ranking.scanned,
            vectors: ranking.vectors,
            filter: ranking.filter,
            generation: manifest.generation,
            model_fingerprint: manifest.config.model_fingerprint.clone(),
            warnings: self.warnings(),
            hits,
        };
        Ok((response, timings))
    }

    /// Every candidate of a query, fused, best first.
    pub(crate) fn rank(&self, request: &SearchRequest, timings: &mut Timings) -> Result<Ranking> {
        let (scope, filter) = self.allowed(request)?;
        let ranking = self.rank_within(request, scope.as_ref(), timings)?;
        Ok(Ranking { filter, ..ranking })
    }

    /// Every candidate within a scope, whatever the request's own scope and filter are; see [`Searcher::rank`].
    pub(crate) fn rank_within(
        &self,
        request: &SearchRequest,
        scope: Option<&Scope>,
        timings: &mut Timings,
    ) -> Result<Ranking> {
        if request.query.trim().is_empty() {
            return Err(Error::EmptyQuery);
        }
        let mut arms = Vec::new();
        let (mut scanned, mut vectors) = ("none", None);
        if request.mode != Mode::Lexical {
            let start = Instant::now();
            let embedding = self.encoder()?.embed(std::slice::from_ref(&request.query), Kind::Query)?;
            timings.embed = start.elapsed();
            let start = Instant::now();
            let found = self.dense_chunks(&embedding[0].vector, request, scope)?;
            timings.dense = start.elapsed();
            (scanned, vectors) = (found.scanned, Some(found.used));
            arms.push(arm(DENSE, found.chunks));
        }
        if request.mode != Mode::Dense {
            let start = Instant::now();
            arms.push(arm(LEXICAL, self.lexical_chunks(request, scope)?));
            timings.lexical = start.elapsed();
        }
        let start = Instant::now();
        let fused = fuse_arms(&mut arms, request.fusion)?;
        timings.fuse = start.elapsed();
        Ok(Ranking { fused, scanned, vectors, filter: None })
    }

    /// What a request's scope and filter let answer; `None` for all.
    pub(crate) fn allowed(&self, request: &SearchRequest) -> Result<(Option<Scope>, Option<Filtered>)> {
        let scope = request.scope.as_ref().map(|documents| self.scope(documents)).transpose()?;
        Ok(match request.filter.as_ref().map(|filter| self.filter_scope(filter)).transpose()? {
            Some((admitted, filtered)) => (Some(admitted.within(scope.as_ref())), Some(filtered)),
            None => (scope, None),
        })
    }

    pub(crate) fn lexical_chunks(
        &self,
        request: &SearchRequest,
        scope: Option<&Scope>,
    ) -> Result<Vec<(ChunkKey, f64)>> {
        let scored = self.lexical(Unit::Row, scope)?.score(&request.query)?;
        let candidates = scored
            .into_iter()
            .enumerate()
            .flat_map(|(at, hits)| hits.into_iter().map(move |hit| (at, hit.unit, hit.score)));
        self.best_chunks(candidates.collect(), request.candidates)
    }

    /// The BM25 searcher over all segments. A scope narrows what is found, not the statistics.
    pub(crate) fn lexical<'s>(&'s self, unit: Unit, scope: Option<&'s Scope>) -> Result<lexical::Searcher<'s>> {
        let part = |(at, segment): (usize, &'s Segment)| -> Result<Part<'s>> {
            Ok(Part {
                segment: &segment.lexical,
                live: segment.live.as_ref(),
                allowed: scope.map(|scope| scope.rows(at)),
                document_of_row: &segment.units()?.of_row,
            })
        };
        let parts = self.snapshot.segments.iter().enumerate().map(part).collect::<Result<Vec<_>>>()?;
        Ok(lexical::Searcher::new(parts, unit, Bm25::default())?)
    }

    /// The `depth` best of (segment, row, score), ties by public id descending; public ids are made only for those.
    pub(crate) fn best_chunks(
        &self,
        mut candidates: Vec<(usize, u32, f64)>,
        depth: usize,
    ) -> Result<Vec<(ChunkKey, f64)>> {
        keep_best(&mut candidates, depth, |candidate| candidate.2);
        let keyed = candidates.into_iter().map(|(segment, row, score)| Ok((self.chunk_key(segment, row)?, score)));
        let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
        sort_ranking(&mut keyed);
        keyed.truncate(depth);
        Ok(keyed)
    }

    pub(crate) fn chunk_key(&self, segment: usize, row: u32) -> Result<ChunkKey> {
        let found = &self.snapshot.segments[segment];
        let chunk = found.chunks.record(row as usize)?;
        Ok(ChunkKey { id: format!("{}#{}", found.document_id(chunk.document)?, chunk.index), segment, row })
    }

    fn hit(
        &self,
        rank: usize,
        fused: Fused<ChunkKey>,
        query: &str,
        explained: Option<&lexical::Searcher<'_>>,
    ) -> Result<Hit> {
        let ChunkKey { id, segment: at, row } = fused.id;
        let segment = &self.snapshot.segments[at];
        let chunk = segment.chunks.record(row as usize)?;
        let document = segment.document(chunk.document)?;
        let lexical = match explained {
            Some(searcher) => Some(searcher.explain(query, at, row)?).filter(|explanation| explanation.score > 0.0),
            None => None,
        };
        Ok(Hit {
            rank,
            id,
            document: segment.documents.text(document.id)?.to_owned(),
            title: segment.documents.text(document.title)?.to_owned(),
            path: crate::context::candidates::heading_path(segment, &document, chunk.section)?,
            span: [chunk.start, chunk.end],
            text_kind: document.text_kind(),
            anchor: crate::context::candidates::anchor(&chunk).to_string(),
            score: fused.score,
            contributions: fused.contributions,
            lexical,
            text: segment.text(&document, chunk.start..chunk.end)?,
        })
    }
}

/// The rows of a segment that live and lie in scope; `None` for all.
pub(crate) fn allowed_rows<'s>(
    segment: &'s Segment,
    scope: Option<&'s RoaringBitmap>,
) -> Option<Cow<'s, RoaringBitmap>> {
    match (&segment.live, scope) {
        (Some(live), Some(scope)) => Some(Cow::Owned(live & scope)),
        (one, other) => one.as_ref().or(other).map(Cow::Borrowed),
    }
}

/// Cosine from distance: the one place where ascending becomes descending.
pub(crate) fn score(distance: f32) -> f64 {
    1.0 - f64::from(distance)
}

pub(crate) fn check_k(k: usize, depth: usize) -> Result<()> {
    let nothing = |setting, reason: &str| {
        let (value, reason) = ("0".to_owned(), reason.to_owned());
        Err(Error::Setting { setting, value, reason })
    };
    match (k, depth) {
        (0, _) => nothing("k", "asks for nothing; ask for at least one result"),
        (_, 0) => nothing("candidates", "leaves nothing to rank; let an arm contribute at least one"),
        _ if k > depth => Err(Error::TooManyResults { k, depth }),
        _ => Ok(()),
    }
}

/// Keeps everything that can be among the `depth` best: those above the score at the cut, and all ties with it.
pub(crate) fn keep_best<T>(candidates: &mut Vec<T>, depth: usize, score: impl Fn(&T) -> f64) {
    if candidates.len() <= depth {
        return;
    }
    let mut scores: Vec<f64> = candidates.iter().map(&score).collect();
    let (_, cut, _) = scores.select_nth_unstable_by(depth - 1, |a, b| b.total_cmp(a));
    let cut = *cut;
    candidates.retain(|candidate| score(candidate).total_cmp(&cut).is_ge());
}

/// Score descending, then id descending.
pub(crate) fn sort_ranking<I: Ord>(ranking: &mut [(I, f64)]) {
    ranking.sort_unstable_by(|(a_id, a), (b_id, b)| b.total_cmp(a).then_with(|| b_id.cmp(a_id)));
}

pub(crate) fn arm<I>(name: &'static str, hits: Vec<(I, f64)>) -> Arm<I> {
    Arm { name: name.to_owned(), weight: 1.0, hits }
}

/// Fuses two arms; a single arm keeps its own scores.
pub(crate) fn fuse_arms<I: Ord + Clone>(arms: &mut [Arm<I>], fusion: Fusion) -> Result<Vec<Fused<I>>> {
    if let [only] = arms {
        return Ok(only.hits.iter().enumerate().map(|(n, (id, score))| alone(only, n, id, *score)).collect());
    }
    let method = match fusion {
        Fusion::Rrf => Method::Rrf { k: fuse::DEFAULT_RRF_K },
        Fusion::Convex => Method::Convex { normalize: Normalize::MinMax },
        Fusion::Adaptive => Method::Adaptive { depth: fuse::DEFAULT_CONTRAST_DEPTH },
    };
    for arm in &mut *arms {
        arm.weight = match (fusion, arm.name.as_str()) {
            (Fusion::Adaptive, LEXICAL) => LEXICAL_WEIGHT,
            (Fusion::Adaptive, _) => 1.0,
            _ => 0.5,
        };
    }
    Ok(fuse::fuse(arms, &method)?)
}

fn alone<I: Clone>(arm: &Arm<I>, n: usize, id: &I, score: f64) -> Fused<I> {
    let contribution = Contribution {
        arm: arm.name.clone(),
        rank: Some(n + 1),
        raw: Some(score),
        normalized: Some(score),
        weight: 1.0,
        contribution: score,
    };
    Fused { id: id.clone(), score, contributions: vec![contribution] }
}

/// For each unit (document with rows) of a segment the score of its best allowed row; `None` where it has none.
pub(crate) fn best_of_units(
    distances: &[f32],
    segment: &Segment,
    allowed: Option<&RoaringBitmap>,
) -> Result<Vec<Option<f64>>> {
    let units = segment.units()?;
    let mut best = vec![None; units.documents.len()];
    for (row, (&distance, &unit)) in distances.iter().zip(&units.of_row).enumerate() {
        if allowed.is_none_or(|allowed| allowed.contains(row as u32)) {
            keep_larger(&mut best[unit as usize], score(distance));
        }
    }
    Ok(best)
}

pub(crate) fn keep_larger(best: &mut Option<f64>, score: f64) {
    if best.is_none_or(|known| score > known) {
        *best = Some(score);
    }
}
