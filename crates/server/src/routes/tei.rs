//! Embeddings in the words of text-embeddings-inference, as Hugging Face's clients speak them.

use axum::routing::{get, post};
use cento_engine::Which;
use cento_engine::api::TextKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::encoders::{collection_of, embeddings, id_of, long_texts, shortened};
use super::route::{Route, Scoped, Verb, json, of};
use crate::ask::{Ask, Asked, Reply};
use crate::refusal::Refusal;
use crate::work::Lane;

/// Texts to embed.
#[derive(Debug, Deserialize, JsonSchema)]
struct TeiEmbedRequest {
    /// A text or a list of texts.
    inputs: Inputs,
    /// Vectors of unit length; others are not to be had.
    #[serde(default)]
    normalize: Option<bool>,
    /// Embeds the beginning of a text that is too long, which is an error else.
    #[serde(default)]
    truncate: Option<bool>,
    /// The end of a text that is left out: `right` alone.
    #[serde(default)]
    truncation_direction: Option<String>,
    /// The prompt before the texts: `query` or `document`.
    #[serde(default)]
    prompt_name: Option<String>,
    /// Values of each vector, the first ones; all, if there is none.
    #[serde(default)]
    dimensions: Option<usize>,
}

/// A text or a list of texts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Inputs {
    /// A text.
    One(String),
    /// Texts.
    Several(Vec<String>),
}

/// The model and the limits of a server.
#[derive(Debug, Serialize, JsonSchema)]
struct TeiInfo {
    /// The name of the model.
    model_id: String,
    /// Its fingerprint.
    model_sha: String,
    /// The type of its numbers.
    model_dtype: String,
    /// The kind of model.
    model_type: ModelType,
    /// Tokens of a text that are read at most.
    max_input_length: usize,
    /// Requests that wait at most.
    max_concurrent_requests: usize,
    /// Texts of a request at most: as many as its body holds.
    max_client_batch_size: usize,
    /// The version of Cento.
    version: &'static str,
}

/// The kind of a model.
#[derive(Debug, Serialize, JsonSchema)]
struct ModelType {
    /// An encoder.
    embedding: EncoderType,
}

/// The kind of an encoder.
#[derive(Debug, Serialize, JsonSchema)]
struct EncoderType {
    /// `model`: as its own folder says.
    pooling: &'static str,
}

pub(super) fn routes() -> Vec<Route> {
    let embed = |path| Route {
        verb: Verb::Post,
        path,
        about: "The vectors of texts, as clients of text-embeddings-inference ask for them",
        scoped: Scoped::Path,
        request: Some(of::<TeiEmbedRequest>),
        answer: json::<Vec<Vec<f32>>>(),
        handler: post(embed),
    };
    vec![
        embed("/"),
        embed("/embed"),
        Route {
            verb: Verb::Get,
            path: "/info",
            about: "The model and the limits of the server",
            scoped: Scoped::Path,
            request: None,
            answer: json::<TeiInfo>(),
            handler: get(info),
        },
    ]
}

async fn embed(ask: Ask) -> Result<Reply, Refusal> {
    let lane = ask.lane();
    ask.answer(lane, |asked| vectors(asked, asked.foreign()?)).await
}

fn vectors(asked: &Asked<'_>, request: TeiEmbedRequest) -> Result<Reply, Refusal> {
    if request.normalize == Some(false) {
        return Err(Refusal::value("normalize", "normalize: vectors are of unit length here; leave it out"));
    }
    if let Some(direction) = request.truncation_direction.filter(|direction| !direction.eq_ignore_ascii_case("right")) {
        let message = format!("truncation_direction: {direction:?} is not right, where texts end here");
        return Err(Refusal::value("truncation_direction", message));
    }
    let kind = match request.prompt_name.as_deref() {
        Some("query") => TextKind::Query,
        Some("document" | "passage") | None => TextKind::Document,
        Some(other) => {
            let message = format!("prompt_name: {other:?} is neither query nor document");
            return Err(Refusal::value("prompt_name", message));
        }
    };
    let texts = match request.inputs {
        Inputs::One(text) => vec![text],
        Inputs::Several(texts) => texts,
    };
    let (collection, long) = (collection_of(asked, None)?, long_texts(asked, request.truncate));
    let mut embedded = embeddings(asked, &collection, &texts, kind, long)?;
    shortened(&mut embedded, request.dimensions)?;
    Reply::json(&embedded.embeddings.into_iter().map(|embedding| embedding.vector).collect::<Vec<_>>())
}

async fn info(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let collection = collection_of(asked, None)?;
        // No text: the encoder alone, loaded if nobody asked it yet.
        let model = asked.service().embeddings(collection.as_str(), &[], TextKind::Query, asked.cancel)?;
        let searcher = asked.service().searcher(Which::Name(&collection), asked.cancel)?;
        Reply::json(&TeiInfo {
            model_id: id_of(&model.model),
            model_sha: model.model_fingerprint,
            model_dtype: searcher.manifest().config.precision.clone(),
            model_type: ModelType { embedding: EncoderType { pooling: "model" } },
            max_input_length: model.max_tokens,
            max_concurrent_requests: asked.options().queue,
            max_client_batch_size: asked.options().body_bytes,
            version: env!("CARGO_PKG_VERSION"),
        })
    })
    .await
}
