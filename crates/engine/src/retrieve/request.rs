//! A search as a searcher takes it: its filter read, its scope named, everything settled.

use cento_assembly::fuse::{self, Method, Normalize};
use cento_corpus::LinkKind;
use cento_lexical::{Bm25, DEFAULT_B, DEFAULT_K1, PARAMETER_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::limits::{self, CANDIDATES_MAX, EF_MAX, QUERY_BYTES_MAX};
use crate::retrieve::quoted::Phrases;
use crate::retrieve::rerank::reading::Reranking;
use crate::source::filter::Filter;
use crate::source::seam::Scan;
use cento_collection::format::config::{CANDIDATE_DEPTH, VectorColumn};

/// A search for chunks, its filter read; [`api::SearchRequest`](crate::api::SearchRequest) is what a door takes.
#[derive(Debug, Clone)]
pub struct ChunkSearch {
    /// The question, in plain words.
    pub query: String,
    /// The vector that is searched for, in place of that of the question.
    pub vector: Option<Vec<f32>>,
    /// Results wanted, at most `candidates`.
    pub k: usize,
    /// Candidates each arm contributes; never derived from `k`.
    pub candidates: usize,
    /// The retrievers that run.
    pub mode: Mode,
    /// The way the arms are fused.
    pub fusion: Fusion,
    /// The constants of BM25, and its weight beside vectors.
    pub weights: Weights,
    /// The links of the best documents that lift others, where both arms run.
    pub links: Links,
    /// The weight of phrases in quotation marks.
    pub phrases: Phrases,
    /// Phrases that what answers must have, whatever the query quotes; none: those of the query.
    pub required: Option<Vec<String>>,
    /// The way vectors are scanned.
    pub scan: Scan,
    /// Width of the beam that walks a graph; `candidates` where that is more.
    pub ef: usize,
    /// Vectors that find documents; see [`Searcher::vectors_used`](crate::Searcher::vectors_used).
    pub find: Option<VectorColumn>,
    /// Vectors that score chunks inside a document.
    pub score: Option<VectorColumn>,
    /// Ids of the documents that may answer; `None` for all. Applied before each arm takes its candidates.
    pub scope: Option<Vec<String>>,
    /// The filter that documents, or their chunks, must pass, besides, to answer; applied where the scope is.
    pub filter: Option<Filter>,
    /// Results with a lower likelihood are left out, from 0 to 1; an error where results have none.
    pub min_score: Option<f64>,
    /// The model that reads the best candidates again; none: the ranking stands.
    pub rerank: Option<Reranking>,
    /// The detail in which results explain their BM25 score.
    pub explain: Explain,
    /// Looked at between the stages, and inside those that may take long.
    pub cancel: Cancel,
}

impl ChunkSearch {
    /// The ten best chunks for a query, by every default.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            vector: None,
            k: 10,
            candidates: CANDIDATE_DEPTH,
            mode: Mode::default(),
            fusion: Fusion::default(),
            weights: Weights::default(),
            links: Links::default(),
            phrases: Phrases::default(),
            required: None,
            scan: Scan::default(),
            ef: 0,
            find: None,
            score: None,
            scope: None,
            filter: None,
            min_score: None,
            rerank: None,
            explain: Explain::default(),
            cancel: Cancel::default(),
        }
    }

    /// Holds it against the bounds of every request, whichever door it came through.
    ///
    /// # Errors
    /// [`Error::Setting`], [`Error::EmptyQuery`].
    pub(crate) fn check(&self) -> Result<()> {
        limits::text("query", &self.query, QUERY_BYTES_MAX)?;
        if self.query.trim().is_empty() && (self.vector.is_none() || self.mode != Mode::Dense) {
            return Err(Error::EmptyQuery);
        }
        check_k(1, self.candidates)?; // a context takes all candidates
        limits::within("ef", self.ef, 0, EF_MAX)?;
        self.weights.check()?;
        limits::likelihood("min-score", self.min_score)
    }
}

/// An error unless `k` is from 1 to `depth`, and `depth` within its bounds.
pub(crate) fn check_k(k: usize, depth: usize) -> Result<()> {
    let nothing = |setting, reason: &str| {
        let (value, reason) = ("0".to_owned(), reason.to_owned());
        Err(Error::Setting { setting, value, reason })
    };
    match (k, depth) {
        (0, _) => nothing("k", "asks for nothing; ask for at least one result"),
        (_, 0) => nothing("candidates", "leaves nothing to rank; let an arm contribute at least one"),
        _ if k > depth => Err(Error::TooManyResults { k, depth }),
        _ => limits::within("candidates", depth, 1, CANDIDATES_MAX),
    }
}

/// The detail in which a hit explains its lexical score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Explain {
    /// Contributions of the arms only.
    #[default]
    Arms,
    /// The BM25 terms too.
    Terms,
}

/// The retrievers that run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The links that lift documents in a fused ranking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Links {
    /// A text that has the title of another document, or code that imports or includes it: what the best three name
    /// climbs towards them.
    #[default]
    Named,
    /// A link that an author made, in Markdown, HTML, a wiki or source code: what the best three link to climbs towards
    /// them.
    Authored,
    /// Both.
    All,
    /// Fused scores alone.
    None,
}

impl Links {
    pub(crate) fn none() -> Self {
        Self::None
    }

    /// True if titles in texts count.
    pub(crate) fn count_names(self) -> bool {
        match self {
            Self::Named | Self::All => true,
            Self::Authored | Self::None => false,
        }
    }

    /// True if the links of this kind that authors made count. Code names what it needs by importing it; the links of a
    /// page lead as often to what is merely near.
    pub(crate) fn count_made(self, kind: LinkKind) -> bool {
        match self {
            Self::Authored | Self::All => true,
            Self::Named => matches!(kind, LinkKind::Import | LinkKind::Include),
            Self::None => false,
        }
    }
}

/// The constants of a ranking that judged questions of a collection may move.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Weights {
    /// Weight of words beside the weight 1 of vectors in an adaptive combination, before their contrasts; from 0, where
    /// vectors alone rank, to 100.
    pub lexical: f64,
    /// The slowness with which a repeated term saturates in BM25, from 0 (at once) to 1000.
    pub k1: f64,
    /// The discount of longer texts in BM25: 0 not at all, 1 in full.
    pub b: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { lexical: LEXICAL_WEIGHT, k1: DEFAULT_K1, b: DEFAULT_B }
    }
}

impl Weights {
    /// Holds them against their ranges.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub(crate) fn check(&self) -> Result<()> {
        limits::weight("lexical-weight", self.lexical)?;
        limits::number("k1", self.k1, PARAMETER_MAX)?;
        limits::number("b", self.b, 1.0)
    }

    pub(crate) fn bm25(&self) -> Bm25 {
        Bm25 { k1: self.k1, b: self.b, ..Bm25::default() }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The way two rankings become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

impl Fusion {
    /// The method with its constants.
    pub(crate) fn method(self) -> Method {
        match self {
            Self::Rrf => Method::Rrf { k: fuse::DEFAULT_RRF_K },
            Self::Convex => Method::Convex { normalize: Normalize::MinMax },
            Self::Adaptive => Method::Adaptive { depth: fuse::DEFAULT_CONTRAST_DEPTH },
        }
    }
}

/// Weight of the lexical arm beside the dense arm's 1 in an adaptive combination, before their contrasts.
///
/// Chosen on twelve sets, none of which has a setting of its own; the rules tried and their figures are in
/// `benches/results/`.
pub const LEXICAL_WEIGHT: f64 = 0.55;
