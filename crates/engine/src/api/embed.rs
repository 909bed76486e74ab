//! Embedding: the vectors that a collection's encoder gives to texts.

use cento_embedder::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parse::Request;
use super::version::VERSION;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::limits::{self, EMBED_TEXTS_MAX, TEXT_BYTES_MAX};
use crate::retrieve::searcher::Searcher;

/// Texts to embed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbedRequest {
    /// The texts.
    pub texts: Vec<String>,
    /// The kind of the texts.
    #[serde(default)]
    pub kind: TextKind,
}

/// The kind of a text: some encoders put a prompt before queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextKind {
    /// A question.
    Query,
    /// A text that questions may find.
    #[default]
    Document,
}

impl Request for EmbedRequest {
    fn check(&self) -> Result<()> {
        limits::within("texts", self.texts.len(), 1, EMBED_TEXTS_MAX)?;
        self.texts.iter().try_for_each(|text| limits::text("texts", text, TEXT_BYTES_MAX))
    }
}

/// A vector for each text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EmbedAnswer {
    /// Format of this answer.
    pub version: u32,
    /// The encoder, as the collection names it.
    pub model: String,
    /// Its fingerprint.
    pub model_fingerprint: String,
    /// Length of the vectors.
    pub dimensions: usize,
    /// Vectors of unit length, in the order of the texts.
    pub vectors: Vec<Vec<f32>>,
}

impl EmbedAnswer {
    /// Embeds texts with the encoder of a collection.
    ///
    /// # Errors
    /// Those of [`Searcher::encoder`] and of embedding, [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn new(searcher: &Searcher, request: &EmbedRequest, cancel: &Cancel) -> Result<Self> {
        let kind = match request.kind {
            TextKind::Query => Kind::Query,
            TextKind::Document => Kind::Document,
        };
        let embeddings = searcher.encoder()?.embed_unless(&request.texts, kind, &|| cancel.is_cancelled())?;
        let config = &searcher.manifest().config;
        Ok(Self {
            version: VERSION,
            model: config.model.clone(),
            model_fingerprint: config.model_fingerprint.clone(),
            dimensions: config.dimensions,
            vectors: embeddings.into_iter().map(|embedding| embedding.vector.to_vec()).collect(),
        })
    }
}
