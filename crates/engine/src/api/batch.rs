//! Batches: many questions asked in one way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parse::Request;
use super::search::SearchRequest;
use crate::error::Result;
use crate::limits::{self, IDS_MAX, TEXT_BYTES_MAX};
use crate::retrieve::search::SearchResponse;

/// Questions that are asked in one way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The questions.
    pub queries: Vec<BatchQuery>,
    /// The way they are asked; its own `query` is left out.
    #[serde(default)]
    pub search: SearchRequest,
}

/// A question of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchQuery {
    /// The name that its answer carries.
    pub id: String,
    /// The question, in plain words.
    pub query: String,
}

/// The answer to a question of a batch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BatchAnswer {
    /// The name of the question.
    pub id: String,
    /// The answer that the question alone has.
    pub answer: SearchResponse,
}

impl BatchRequest {
    /// A question of the batch as a request of its own.
    #[must_use]
    pub fn search(&self, query: &BatchQuery) -> SearchRequest {
        SearchRequest { query: query.query.clone(), ..self.search.clone() }
    }
}

impl Request for BatchRequest {
    fn check(&self) -> Result<()> {
        limits::within("queries", self.queries.len(), 1, IDS_MAX)?;
        self.queries.iter().try_for_each(|query| {
            limits::text("id", &query.id, TEXT_BYTES_MAX)?;
            self.search(query).check()
        })
    }
}
