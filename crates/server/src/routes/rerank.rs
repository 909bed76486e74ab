//! Reranking in the words of Cohere and Jina (`documents`) and of text-embeddings-inference (`texts`).
//!
//! The scores are probabilities of a reranker, or cosines of an encoder's vectors where no reranker is served or an
//! encoder is named; the answers say which: in `meta`, and in a header where there is no room for it.

use axum::http::HeaderValue;
use axum::routing::post;
use cento_engine::api::{COSINE, CROSS_ENCODER, Request as _, RerankAnswer, RerankRequest, Reranked};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::encoders::{collection_of, id_of, is_served, long_texts, too_long};
use super::route::{Route, Scoped, Verb, json, of};
use crate::ask::{Ask, Asked, Reply};
use crate::options::LongTexts;
use crate::refusal::Refusal;

/// The header that says how texts were scored.
const SCORED_BY: &str = "x-cento-scored-by";

/// A question, and texts that may answer it.
#[derive(Debug, Deserialize, JsonSchema)]
struct Reranking {
    /// The model: a reranker, or an encoder; where one is served, any name will do.
    #[serde(default)]
    model: Option<String>,
    /// The question.
    query: String,
    /// The texts, of Cohere's and Jina's clients; a text too long is scored by its beginning.
    #[serde(default)]
    documents: Option<Vec<Document>>,
    /// Results wanted of `documents`; all, if there is none.
    #[serde(default)]
    top_n: Option<usize>,
    /// Results of `documents` carry the text.
    #[serde(default)]
    return_documents: Option<bool>,
    /// The texts, of clients of text-embeddings-inference.
    #[serde(default)]
    texts: Option<Vec<String>>,
    /// Results of `texts` carry the text.
    #[serde(default)]
    return_text: Option<bool>,
    /// Scores one of `texts` that is too long by its beginning, which is an error else.
    #[serde(default)]
    truncate: Option<bool>,
}

/// A text, alone or in an object.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Document {
    /// The text.
    Text(String),
    /// An object with it.
    Object(DocumentText),
}

/// The text of a document.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct DocumentText {
    /// The text.
    text: String,
}

/// The answer for `documents`; for `texts` it is the bare list of `{index, score}`.
#[derive(Debug, Serialize, JsonSchema)]
struct RerankingAnswer {
    /// A name of this answer.
    id: String,
    /// The model that scored.
    model: String,
    /// The ranking, best first.
    results: Vec<Ranked>,
    /// The way it came about.
    meta: Meta,
    /// The tokens that were read.
    usage: RerankUsage,
}

/// A document in a ranking.
#[derive(Debug, Serialize, JsonSchema)]
struct Ranked {
    /// Its number in the request, from 0.
    index: usize,
    /// Its score.
    relevance_score: f64,
    /// Its text, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<DocumentText>,
}

/// The way a ranking came about.
#[derive(Debug, Serialize, JsonSchema)]
struct Meta {
    /// `cosine`, of an encoder's vectors of question and text, or `cross-encoder`, which reads both together.
    scored_by: String,
    /// Texts of which the beginning alone was read.
    truncated: usize,
}

/// Tokens that were read.
#[derive(Debug, Serialize, JsonSchema)]
struct RerankUsage {
    /// Of question and texts.
    total_tokens: u64,
}

/// A text in a ranking of text-embeddings-inference.
#[derive(Debug, Serialize)]
struct Scored<'a> {
    index: usize,
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

pub(super) fn routes() -> Vec<Route> {
    let route = |path| Route {
        verb: Verb::Post,
        path,
        about: "Texts in the order in which they answer a question, by a reranker or by cosine",
        scoped: Scoped::Path,
        request: Some(of::<Reranking>),
        answer: json::<RerankingAnswer>(),
        handler: post(rerank),
    };
    vec![route("/v1/rerank"), route("/v2/rerank"), route("/rerank")]
}

async fn rerank(ask: Ask) -> Result<Reply, Refusal> {
    let lane = ask.lane();
    ask.answer(lane, |asked| {
        let request: Reranking = asked.foreign()?;
        let (reply, answer) = match (&request.documents, &request.texts) {
            (Some(documents), None) => {
                let texts: Vec<String> = documents.iter().map(Document::text).collect();
                let answer = scored(asked, &request, &texts, request.top_n)?;
                (ranked(&request, &texts, &answer)?, answer)
            }
            (None, Some(texts)) => {
                let answer = scored(asked, &request, texts, None)?;
                (listed(asked, &request, texts, &answer)?, answer)
            }
            (Some(_), Some(_)) => return Err(Refusal::value("texts", "texts: give either documents or texts")),
            (None, None) => return Err(Refusal::value("documents", "documents: there is nothing to rank")),
        };
        let by = if answer.scored_by == CROSS_ENCODER { CROSS_ENCODER } else { COSINE };
        Ok(reply.remark(SCORED_BY, HeaderValue::from_static(by)))
    })
    .await
}

impl Document {
    fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Object(DocumentText { text }) => text.clone(),
        }
    }
}

/// By the reranker that is named; by the encoder that is named; by the first reranker; by the encoder.
fn scored(
    asked: &Asked<'_>,
    Reranking { model, query, .. }: &Reranking,
    texts: &[String],
    k: Option<usize>,
) -> Result<RerankAnswer, Refusal> {
    let request = RerankRequest { query: query.clone(), texts: texts.to_vec(), k };
    request.check()?;
    let (service, model) = (asked.service(), model.as_deref());
    let named = match model {
        Some(name) => service.rerank_by(Some(name), &request, asked.cancel)?,
        None => None,
    };
    let first = match (named, model) {
        (None, Some(name)) if is_served(asked, name)? => None,
        (None, _) => service.rerank_by(None, &request, asked.cancel)?,
        (named, _) => named,
    };
    let answer = match first {
        Some(answer) => answer,
        None => service.rerank(collection_of(asked, model)?.as_str(), &request, asked.cancel)?,
    };
    asked.metrics().embedded(answer.n_tokens);
    Ok(answer)
}

/// As Cohere and Jina answer.
fn ranked(request: &Reranking, texts: &[String], answer: &RerankAnswer) -> Result<Reply, Refusal> {
    let with_text = request.return_documents == Some(true);
    let one = |result: &Reranked| Ranked {
        index: result.index,
        relevance_score: result.score,
        document: with_text.then(|| DocumentText { text: texts[result.index].clone() }),
    };
    let truncated = answer.results.iter().filter(|result| result.truncated).count();
    Reply::json(&RerankingAnswer {
        id: Uuid::new_v4().to_string(),
        model: id_of(&answer.model),
        results: answer.results.iter().map(one).collect(),
        meta: Meta { scored_by: answer.scored_by.clone(), truncated },
        usage: RerankUsage { total_tokens: answer.n_tokens },
    })
}

/// As text-embeddings-inference answers.
fn listed(asked: &Asked<'_>, request: &Reranking, texts: &[String], answer: &RerankAnswer) -> Result<Reply, Refusal> {
    let long = long_texts(asked, request.truncate);
    let cut = answer.results.iter().find(|result| result.truncated && long == LongTexts::Refused);
    if let Some(cut) = cut {
        return Err(too_long(cut.index, answer.max_tokens));
    }
    let with_text = request.return_text == Some(true);
    let one = |result: &Reranked| Scored {
        index: result.index,
        score: result.score,
        text: with_text.then(|| texts[result.index].as_str()),
    };
    Reply::json(&answer.results.iter().map(one).collect::<Vec<_>>())
}
