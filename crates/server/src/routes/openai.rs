//! Embeddings in the words of OpenAI: strings or tokens in, lists or base64 out.
//!
//! Clients of OpenAI tokenize texts themselves, and send the tokens. Those are decoded with the encoding that the
//! model's name has there, else with `cl100k`, as such clients do with names they do not know; the encoder then reads
//! the text.

use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cento_engine::api::TextKind;
use cento_engine::decode_tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

use super::encoders::{collection_of, embeddings, id_of, long_texts, n_tokens, served, shortened};
use super::route::{Route, Scoped, Verb, json, of};
use crate::ask::{Ask, Asked, Reply};
use crate::refusal::Refusal;
use crate::work::Lane;

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
    encoding_format: Encoding,
    /// Values of each vector, the first ones; all, if there is none.
    #[serde(default)]
    dimensions: Option<usize>,
    /// The kind of the texts: some encoders put a prompt before queries.
    #[serde(default)]
    input_type: Option<InputType>,
    /// Embeds the beginning of a text that is too long, which is an error else.
    #[serde(default)]
    truncate: Option<bool>,
}

/// A text, a list of texts, or their tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Input {
    /// A text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// The tokens of a text.
    Tokens(Vec<u32>),
    /// The tokens of texts.
    TokensOfTexts(Vec<Vec<u32>>),
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
    ]
}

async fn models(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let model = |id| Model { id, object: "model", created: 0, owned_by: "cento" };
        let data = served(asked)?.into_iter().map(|served| model(served.id)).collect();
        Reply::json(&Models { object: "list", data })
    })
    .await
}

async fn embed(ask: Ask) -> Result<Reply, Refusal> {
    let lane = ask.lane();
    ask.answer(lane, |asked| answer(asked, asked.foreign()?)).await
}

fn answer(asked: &Asked<'_>, request: EmbeddingsRequest) -> Result<Reply, Refusal> {
    let collection = collection_of(asked, request.model.as_deref())?;
    let texts = texts(request.input, request.model.as_deref().unwrap_or_default())?;
    let kind = match request.input_type {
        Some(InputType::Query) => TextKind::Query,
        Some(InputType::Document) | None => TextKind::Document,
    };
    let long = long_texts(asked, request.truncate);
    let mut embedded = embeddings(asked, &collection, &texts, kind, long)?;
    shortened(&mut embedded, request.dimensions)?;
    let n_tokens = n_tokens(&embedded);
    let truncated = embedded.embeddings.iter().filter(|embedding| embedding.truncated).count();
    let form = |vector: Vec<f32>| match request.encoding_format {
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

/// The texts of an input; there is one at least, and none is empty of tokens alone.
fn texts(input: Input, model: &str) -> Result<Vec<String>, Refusal> {
    let decoded = |tokens: &[Vec<u32>]| {
        let encoding = encoding_of(model)?;
        tokens.iter().map(|tokens| Ok(decode_tokens(encoding, tokens)?)).collect::<Result<Vec<_>, Refusal>>()
    };
    let texts = match input {
        Input::Text(text) => vec![text],
        Input::Texts(texts) => texts,
        Input::Tokens(tokens) if tokens.is_empty() => Vec::new(),
        Input::Tokens(tokens) => decoded(&[tokens])?,
        Input::TokensOfTexts(tokens) => decoded(&tokens)?,
    };
    match texts.is_empty() {
        true => Err(Refusal::value("input", "input: there is no text to embed")),
        false => Ok(texts),
    }
}

/// The encoding whose tokens a client sends for a model.
fn encoding_of(model: &str) -> Result<&'static str, Refusal> {
    match get_tokenizer(model) {
        None | Some(Tokenizer::Cl100kBase) => Ok("cl100k"),
        Some(Tokenizer::O200kBase | Tokenizer::O200kHarmony) => Ok("o200k"),
        Some(_) => {
            let message = format!("input: the tokens of {model:?} cannot be decoded here; send texts");
            Err(Refusal::value("input", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(json: &str) -> Vec<String> {
        texts(serde_json::from_str(json).unwrap(), "any-model").unwrap()
    }

    #[test]
    fn an_input_is_texts_or_their_tokens() {
        assert_eq!(input(r#""a tide""#), ["a tide"]);
        assert_eq!(input(r#"["a", "tide"]"#), ["a", "tide"]);
        assert_eq!(input("[15339, 1917]"), ["hello world"]); // cl100k's
        assert_eq!(input("[[15339], [1917]]"), ["hello", " world"]);
        for none in ["[]", "[[4294967295]]"] {
            assert!(texts(serde_json::from_str(none).unwrap(), "any-model").is_err(), "{none}");
        }
    }

    #[test]
    fn tokens_are_those_of_the_models_name() {
        assert_eq!(encoding_of("text-embedding-3-small").unwrap(), "cl100k");
        assert_eq!(encoding_of("all-minilm-l6-v2").unwrap(), "cl100k");
        assert_eq!(encoding_of("gpt-4o").unwrap(), "o200k");
        assert_eq!(encoding_of("text-davinci-003").unwrap_err().status, 400);
    }
}
