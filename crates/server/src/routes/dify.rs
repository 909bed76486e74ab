//! A collection as an external knowledge base of Dify: `knowledge_id` is its name.

use axum::routing::post;
use cento_engine::api::SearchRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::route::{Route, Scoped, Verb, json, of};
use crate::ask::{Ask, Asked, Reply};
use crate::refusal::Refusal;
use crate::work::Lane;

/// A question to a knowledge base.
#[derive(Debug, Deserialize, JsonSchema)]
struct RetrievalRequest {
    /// The name of the collection.
    knowledge_id: String,
    /// The question.
    query: String,
    /// The number and worth of what is wanted.
    retrieval_setting: RetrievalSetting,
    /// Conditions on metadata, which are not read here: none may be given.
    #[serde(default)]
    metadata_condition: Option<Value>,
}

/// The number and worth of what is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
struct RetrievalSetting {
    /// Results.
    top_k: usize,
    /// The least score.
    #[serde(default)]
    score_threshold: Option<f64>,
}

/// The chunks that were found.
#[derive(Debug, Serialize, JsonSchema)]
struct Records {
    /// The chunks, best first.
    records: Vec<Record>,
}

/// A chunk.
#[derive(Debug, Serialize, JsonSchema)]
struct Record {
    /// Its text.
    content: String,
    /// Its score.
    score: f64,
    /// The title of its document.
    title: String,
    /// Where it stands.
    metadata: RecordMetadata,
}

/// Where a chunk stands.
#[derive(Debug, Serialize, JsonSchema)]
struct RecordMetadata {
    /// The id of the chunk.
    id: String,
    /// The id of its document.
    path: String,
    /// The headings above it.
    description: String,
}

pub(super) fn routes() -> Vec<Route> {
    vec![Route {
        verb: Verb::Post,
        path: "/retrieval",
        about: "The best chunks for a query, as Dify asks an external knowledge base",
        scoped: Scoped::Path,
        request: Some(of::<RetrievalRequest>),
        answer: json::<Records>(),
        handler: post(retrieve),
    }]
}

async fn retrieve(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| records(asked, asked.foreign()?)).await
}

fn records(asked: &Asked<'_>, request: RetrievalRequest) -> Result<Reply, Refusal> {
    if request.metadata_condition.is_some_and(|condition| !condition.is_null()) {
        return Err(Refusal::value("metadata_condition", "metadata_condition: is not read here; leave it out"));
    }
    let RetrievalSetting { top_k: k, score_threshold } = request.retrieval_setting;
    let search = SearchRequest { k, ..SearchRequest::new(request.query) };
    let (found, timings) = asked.service().search_timed(request.knowledge_id.as_str(), &search, asked.cancel)?;
    asked.metrics().searched(&timings);
    let hits = found.hits.into_iter().filter(|hit| score_threshold.is_none_or(|least| hit.score >= least));
    let record = |hit: cento_engine::Hit| Record {
        content: hit.text,
        score: hit.score,
        title: hit.title,
        metadata: RecordMetadata { id: hit.id, path: hit.document, description: hit.path.join(" > ") },
    };
    Reply::json(&Records { records: hits.map(record).collect() })
}
