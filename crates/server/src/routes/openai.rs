//! Embeddings in the words of OpenAI: strings or tokens in (`input`), lists or base64 out.

use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cento_engine::api::TextKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::encoders::{collection_of, embeddings, id_of, long_texts, n_tokens, served, shortened, unknown_model};
use super::input::{Input, texts};
use super::route::{Route, Scoped, Verb, json, of};
use crate::ask::{Ask, Asked, Reply};
use crate::refusal::Refusal;
use crate::work::Lane;

/// The field that says how many tokens of a text are embedded, as vLLM's clients send it.
const PROMPT_TOKENS: &str = "truncate_prompt_tokens";

/// The name of the parameter of an address that names a model.
const MODEL: &str = "model";

/// Texts to embed, as OpenAI's clients send them.
#[derive(Debug, Deserialize, JsonSchema)]
struct EmbeddingsRequest {
    /// The model; where one is served, any name will do.
    #[serde(default)]
    model: Option<String>,
    /// A text, a list of texts, or their tokens.
    input: Input,
    /// The form of the vectors.
    #[serde(default)]
    encoding_format: Option<Encoding>,
    /// Values of each vector, the first ones; all, if there is none.
    #[serde(default)]
    dimensions: Option<usize>,
    /// The kind of the texts: some encoders put a prompt before queries.
    #[serde(default)]
    input_type: Option<InputType>,
    /// Embeds the beginning of a text that is too long, which is an error else.
    #[serde(default)]
    truncate: Option<bool>,
    /// Embeds so many tokens of each text at most, the encoder's own marks counted; -1 for as many as it reads.
    #[serde(default)]
    truncate_prompt_tokens: Option<i64>,
}

/// The form of a vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    /// A list of numbers.
    #[default]
    Float,
    /// The bytes of 32-bit floats, little-endian, in base64.
    Base64,
}

/// The kind of texts, in the words of several clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum InputType {
    /// Questions.
    #[serde(alias = "search_query")]
    Query,
    /// Texts that questions may find.
    #[serde(alias = "search_document", alias = "passage")]
    Document,
}

/// A vector for each text.
#[derive(Debug, Serialize, JsonSchema)]
struct EmbeddingsAnswer {
    /// `list`.
    object: &'static str,
    /// The vectors, in the order of the texts.
    data: Vec<EmbeddingObject>,
    /// The model that read the texts.
    model: String,
    /// The tokens it read.
    usage: Usage,
}

/// A vector.
#[derive(Debug, Serialize, JsonSchema)]
struct EmbeddingObject {
    /// `embedding`.
    object: &'static str,
    /// The number of the text, from 0.
    index: usize,
    /// Its vector.
    embedding: Vector,
}

/// A vector in one of its forms.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Vector {
    /// A list of numbers.
    Float(Vec<f32>),
    /// Bytes in base64.
    Base64(String),
}

/// Tokens that were read.
#[derive(Debug, Serialize, JsonSchema)]
struct Usage {
    /// Of the texts.
    prompt_tokens: u64,
    /// Of everything.
    total_tokens: u64,
    /// Texts whose end was left out.
    truncated: usize,
}

/// The models that are served.
#[derive(Debug, Serialize, JsonSchema)]
struct Models {
    /// `list`.
    object: &'static str,
    /// The models.
    data: Vec<Model>,
}

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
struct Model {
    /// Its name.
    id: String,
    /// `model`.
    object: &'static str,
    /// 0: it is not known when it was made.
    created: u64,
    /// `cento`.
    owned_by: &'static str,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route {
            verb: Verb::Post,
            path: "/v1/embeddings",
            about: "The vectors of texts, as OpenAI's clients ask for them",
            scoped: Scoped::Path,
            request: Some(of::<EmbeddingsRequest>),
            answer: json::<EmbeddingsAnswer>(),
            handler: post(embed),
        },
        Route {
            verb: Verb::Get,
            path: "/v1/models",
            about: "The encoders of the collections, as OpenAI's clients ask for them",
            scoped: Scoped::Path,
            request: None,
            answer: json::<Models>(),
            handler: get(models),
        },
        Route {
            verb: Verb::Get,
            path: "/v1/models/{model}",
            about: "An encoder of the collections, as OpenAI's clients ask for it",
            scoped: Scoped::Path,
            request: None,
            answer: json::<Model>(),
            handler: get(model),
        },
    ]
}

async fn models(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let data = served(asked)?.into_iter().map(|served| Model::new(served.id)).collect();
        Reply::json(&Models { object: "list", data })
    })
    .await
}

async fn model(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        asked.no_parameters()?;
        let (name, served) = (asked.in_path(MODEL), served(asked)?);
        match served.iter().find(|served| served.id == name) {
            Some(served) => Reply::json(&Model::new(served.id.clone())),
            None => Err(unknown_model(name, &served)),
        }
    })
    .await
}

impl Model {
    fn new(id: String) -> Self {
        Self { id, object: "model", created: 0, owned_by: "cento" }
    }
}

async fn embed(ask: Ask) -> Result<Reply, Refusal> {
    let lane = ask.lane();
    ask.answer(lane, |asked| answer(asked, asked.foreign()?)).await
}

fn answer(asked: &Asked<'_>, request: EmbeddingsRequest) -> Result<Reply, Refusal> {
    let collection = collection_of(asked, request.model.as_deref())?;
    let mut texts = texts(request.input, request.model.as_deref().unwrap_or_default())?;
    let kind = match request.input_type {
        Some(InputType::Query) => TextKind::Query,
        Some(InputType::Document) | None => TextKind::Document,
    };
    let (n_cut, truncate) = match request.truncate_prompt_tokens {
        Some(-1) => (0, Some(true)),
        Some(tokens) => (cut(asked, &collection, &mut texts, kind, tokens)?, request.truncate),
        None => (0, request.truncate),
    };
    let long = long_texts(asked, truncate);
    let mut embedded = embeddings(asked, &collection, &texts, kind, long)?;
    shortened(&mut embedded, request.dimensions)?;
    let n_tokens = n_tokens(&embedded);
    let truncated = embedded.embeddings.iter().filter(|embedding| embedding.truncated).count() + n_cut;
    let form = |vector: Vec<f32>| match request.encoding_format.unwrap_or_default() {
        Encoding::Float => Vector::Float(vector),
        Encoding::Base64 => {
            Vector::Base64(STANDARD.encode(vector.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()))
        }
    };
    let of = |(index, vector)| EmbeddingObject { object: "embedding", index, embedding: form(vector) };
    let vectors = embedded.embeddings.into_iter().map(|embedding| embedding.vector);
    Reply::json(&EmbeddingsAnswer {
        object: "list",
        data: vectors.enumerate().map(of).collect(),
        model: id_of(&embedded.model),
        usage: Usage { prompt_tokens: n_tokens, total_tokens: n_tokens, truncated },
    })
}

/// Leaves so many tokens of each text, and says of how many texts the end went.
fn cut(
    asked: &Asked<'_>,
    collection: &str,
    texts: &mut [String],
    kind: TextKind,
    tokens: i64,
) -> Result<usize, Refusal> {
    let refused = |error| Refusal::from(error).of(PROMPT_TOKENS);
    let tokens = usize::try_from(tokens).map_err(|_| {
        Refusal::value(PROMPT_TOKENS, format!("{PROMPT_TOKENS}: {tokens} is neither -1 nor a number of tokens"))
    })?;
    asked.service().cut_texts(collection, texts, kind, tokens, asked.cancel).map_err(refused)
}
