//! Search: the best chunks for a query.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parse::Request;
use super::rerank::Rerank;
use crate::error::{Error, Result};
use crate::limits::{self, EF_MAX, QUERY_BYTES_MAX};
use crate::retrieve::missing::Needed;
use crate::retrieve::quoted::Phrases;
use crate::retrieve::request::{ChunkSearch, Explain, Fusion, Links, Mode, Weights, check_k};
use crate::source::filter::{FILTER_BYTES_MAX, Filter};
use crate::source::seam::Scan;
use cento_collection::format::config::{CANDIDATE_DEPTH, VectorColumn};

/// Results unless a number is asked for.
pub const DEFAULT_RESULTS: usize = 10;

/// A query over chunks. Every field but the query may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("anyOf" = [{ "required": ["query"] }, { "required": ["vector"] }]))]
pub struct SearchRequest {
    /// The question, in plain words; may be left out beside a vector, which then ranks alone.
    pub query: String,
    /// The vector that is searched for, in place of the question's: as long as the collection's, of any length but 0
    /// where its order is that of cosines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vec<f32>>,
    /// Results wanted, at most `candidates`.
    pub k: usize,
    /// Candidates that each retriever contributes; results do not depend on `k`.
    pub candidates: usize,
    /// The retrievers that run.
    pub mode: Mode,
    /// The way their rankings are fused.
    pub fusion: Fusion,
    /// The constants of BM25, and its weight beside vectors.
    #[serde(skip_serializing_if = "Weights::is_default")]
    pub weights: Weights,
    /// The links of the best documents that lift others, where both retrievers run.
    pub links: Links,
    /// The weight of phrases in quotation marks.
    #[serde(skip_serializing_if = "is_auto")]
    pub phrases: Phrases,
    /// The way vectors are scanned.
    pub scan: Scan,
    /// Width of the beam that walks a graph, at least `candidates`, which is the default.
    pub ef: Option<usize>,
    /// Vectors that find documents, of a collection with both kinds.
    pub find_vectors: Option<VectorColumn>,
    /// Vectors that score chunks inside a document, of a collection with both kinds.
    pub score_vectors: Option<VectorColumn>,
    /// Ids of the documents that may answer; all, if there is none.
    pub within: Vec<String>,
    /// A filter that documents, or their chunks, must pass, as `type = "pdf" and year >= 2020 and page <= 12`.
    pub filter: Option<String>,
    /// Results with a lower likelihood are left out, from 0 to 1; an error where results have none.
    pub min_score: Option<f64>,
    /// The model that reads the best candidates again; none: the ranking stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<Rerank>,
    /// Results carry the BM25 score term by term.
    pub explain: bool,
    /// Of a collection on several servers, leave out those that do not answer when the request begins, and say in
    /// `missing` which; otherwise that is an error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_partial: bool,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self {
            query: String::new(),
            vector: None,
            k: DEFAULT_RESULTS,
            candidates: CANDIDATE_DEPTH,
            mode: Mode::default(),
            fusion: Fusion::default(),
            weights: Weights::default(),
            links: Links::default(),
            phrases: Phrases::default(),
            scan: Scan::default(),
            ef: None,
            find_vectors: None,
            score_vectors: None,
            within: Vec::new(),
            filter: None,
            min_score: None,
            rerank: None,
            explain: false,
            allow_partial: false,
        }
    }
}

pub(super) fn is_auto(phrases: &Phrases) -> bool {
    *phrases == Phrases::Auto
}

impl SearchRequest {
    /// The best chunks for a query, by every default.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }

    /// The retrievers that run: without a question there are no words to search.
    fn retrievers(&self) -> Mode {
        match self.mode {
            Mode::Hybrid if self.vector.is_some() && self.query.trim().is_empty() => Mode::Dense,
            mode => mode,
        }
    }

    /// The shards that it cannot do without.
    #[must_use]
    pub fn needed(&self) -> Needed {
        if self.allow_partial { Needed::Any } else { Needed::All }
    }

    /// The request as a searcher takes it, but for the reranker, which a service opens.
    ///
    /// # Errors
    /// [`Error::Filter`](crate::Error::Filter) for a filter that is none.
    pub fn resolve(&self) -> Result<ChunkSearch> {
        Ok(ChunkSearch {
            k: self.k,
            candidates: self.candidates,
            mode: self.retrievers(),
            vector: self.vector.clone(),
            fusion: self.fusion,
            weights: self.weights,
            links: self.links,
            phrases: self.phrases,
            scan: self.scan,
            ef: self.ef.unwrap_or_default(),
            find: self.find_vectors,
            score: self.score_vectors,
            scope: (!self.within.is_empty()).then(|| self.within.clone()),
            filter: self.filter.as_deref().map(Filter::parse).transpose()?,
            min_score: self.min_score,
            explain: if self.explain { Explain::Terms } else { Explain::Arms },
            ..ChunkSearch::new(self.query.clone())
        })
    }
}

impl Request for SearchRequest {
    fn check(&self) -> Result<()> {
        limits::text("query", &self.query, QUERY_BYTES_MAX)?;
        limits::vectors("vector", self.vector.as_slice())?;
        if self.vector.is_some() && self.mode == Mode::Lexical {
            let (value, reason) = ("lexical".to_owned(), "searches words alone, and there is a vector".to_owned());
            return Err(Error::Setting { setting: "mode", value, reason });
        }
        check_k(self.k, self.candidates)?;
        limits::likelihood("min-score", self.min_score)?;
        self.rerank.as_ref().map_or(Ok(()), Rerank::check)?;
        self.weights.check()?;
        self.ef.map_or(Ok(()), |ef| limits::within("ef", ef, self.candidates, EF_MAX))?;
        limits::ids("within", &self.within)?;
        self.filter.as_deref().map_or(Ok(()), |filter| limits::text("filter", filter, FILTER_BYTES_MAX))
    }
}
