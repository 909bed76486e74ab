//! Reranking: texts in the order in which they answer a question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parse::Request;
use crate::error::{Error, Result};
use crate::limits::{self, EMBED_TEXTS_MAX, QUERY_BYTES_MAX, RERANK_DEPTH_MAX, TEXT_BYTES_MAX};

/// The name that answers give to [`RerankAnswer::scored_by`] where an encoder scores.
pub const COSINE: &str = "cosine";

/// The name that answers give to it where a reranker scores.
pub const CROSS_ENCODER: &str = "cross-encoder";

/// Candidates that a reranker reads, unless asked otherwise: where the best passages of most questions are, and as many
/// as a processor reads within seconds.
pub const DEFAULT_RERANK_DEPTH: usize = 50;

/// The most seconds that a reranker may be given.
const SECONDS_MAX: f64 = 86_400.0;

/// A model that reads the best candidates of a ranking again, each together with the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rerank {
    /// Its name: of a reranker that the service was given, or of a model that was pulled.
    pub model: String,
    /// Candidates that it reads, the best ones; results do not depend on `k`.
    #[serde(default = "default_depth")]
    pub depth: usize,
    /// Seconds after which it stops; what it did not read stands behind what it read, and the answer says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

fn default_depth() -> usize {
    DEFAULT_RERANK_DEPTH
}

impl Rerank {
    /// A model that reads as many candidates as by default, however long it takes.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), depth: DEFAULT_RERANK_DEPTH, seconds: None }
    }

    /// Holds its values against their ranges.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub fn check(&self) -> Result<()> {
        limits::text("rerank", &self.model, QUERY_BYTES_MAX)?;
        limits::within("rerank-depth", self.depth, 1, RERANK_DEPTH_MAX)?;
        match self.seconds.filter(|seconds| !(*seconds > 0.0 && *seconds <= SECONDS_MAX)) {
            Some(seconds) => {
                let reason = format!("is no time above 0 and up to {SECONDS_MAX} seconds");
                Err(Error::Setting { setting: "rerank-seconds", value: seconds.to_string(), reason })
            }
            None => Ok(()),
        }
    }
}

/// A question, and texts that may answer it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RerankRequest {
    /// The question.
    pub query: String,
    /// The texts.
    pub texts: Vec<String>,
    /// Results wanted; all, if there is none.
    #[serde(default)]
    pub k: Option<usize>,
}

impl Request for RerankRequest {
    fn check(&self) -> Result<()> {
        if self.query.trim().is_empty() {
            return Err(Error::EmptyQuery);
        }
        limits::text("query", &self.query, QUERY_BYTES_MAX)?;
        limits::within("texts", self.texts.len(), 1, EMBED_TEXTS_MAX)?;
        self.texts.iter().try_for_each(|text| limits::text("texts", text, TEXT_BYTES_MAX))
    }
}

/// Texts in the order in which they answer, best first; equal ones as they were given.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RerankAnswer {
    /// Format of this answer.
    pub version: u32,
    /// The model, as the collection names it.
    pub model: String,
    /// Its fingerprint.
    pub model_fingerprint: String,
    /// The way texts are scored: `cosine`, of the encoder's vectors of question and text, or `cross-encoder`, which
    /// reads both together.
    pub scored_by: String,
    /// Tokens that the model read.
    pub n_tokens: u64,
    /// Tokens of a text that it reads at most.
    pub max_tokens: usize,
    /// The ranking.
    pub results: Vec<Reranked>,
}

/// A text in a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Reranked {
    /// The number of the text in the request, from 0.
    pub index: usize,
    /// Its score: a cosine from -1 to 1, or of a cross-encoder the probability that the text answers.
    pub score: f64,
    /// True if the model read its beginning alone.
    pub truncated: bool,
}

impl RerankAnswer {
    /// Puts results in their order and leaves the first `k`.
    pub(crate) fn ranked(mut self, k: usize) -> Self {
        self.results.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
        self.results.truncate(k);
        self
    }
}
