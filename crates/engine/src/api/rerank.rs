//! Reranking: texts in the order in which they answer a question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parse::Request;
use crate::error::{Error, Result};
use crate::limits::{self, EMBED_TEXTS_MAX, QUERY_BYTES_MAX, TEXT_BYTES_MAX};

/// The name that answers give to [`RerankAnswer::scored_by`] where an encoder scores.
pub const COSINE: &str = "cosine";

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
    /// The way texts are scored: `cosine`, of the encoder's vectors of question and text.
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
    /// Its score, from -1 to 1.
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
