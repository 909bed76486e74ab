//! What the words of several other servers share: the encoder that a model's name means, and texts as it reads them.

use cento_engine::api::TextKind;
use cento_engine::{Embeddings, Which};

use crate::ask::Asked;
use crate::options::LongTexts;
use crate::refusal::Refusal;
use axum::http::StatusCode;

/// An encoder that is served.
pub(super) struct Served {
    /// The name that clients use.
    pub(super) id: String,
    /// A collection that it belongs to.
    pub(super) collection: String,
}

/// The encoders of all collections, by the names of the collections; each once.
pub(super) fn served(asked: &Asked<'_>) -> Result<Vec<Served>, Refusal> {
    let mut fingerprints = Vec::new();
    let mut served = Vec::new();
    for collection in asked.collections.keys() {
        let searcher = asked.service().searcher(Which::Name(collection), asked.cancel)?;
        let config = &searcher.manifest().config;
        if config.given.is_none() && !fingerprints.contains(&config.model_fingerprint) {
            fingerprints.push(config.model_fingerprint.clone());
            served.push(Served { id: id_of(&config.model), collection: collection.to_owned() });
        }
    }
    Ok(served)
}

/// A model's name as clients see it: of a folder of this machine its own name alone.
pub(super) fn id_of(model: &str) -> String {
    let own = model.rsplit(['/', '\\']).find(|part| !part.is_empty());
    own.unwrap_or(model).to_owned()
}

/// True if the name is that of an encoder that is served.
pub(super) fn is_served(asked: &Asked<'_>, name: &str) -> Result<bool, Refusal> {
    Ok(served(asked)?.iter().any(|served| served.id == name))
}

/// The collection whose encoder a name means. Clients send names that they know from elsewhere: where there is one
/// encoder, it answers to any, and the answer says its own.
pub(super) fn collection_of(asked: &Asked<'_>, model: Option<&str>) -> Result<String, Refusal> {
    let mut served = served(asked)?;
    let named = served.iter().position(|served| Some(served.id.as_str()) == model);
    match (named, served.len()) {
        (Some(at), _) => Ok(served.swap_remove(at).collection),
        (None, 1) => Ok(served.swap_remove(0).collection),
        (None, _) => Err(unknown_model(model.unwrap_or_default(), &served)),
    }
}

/// No encoder of that name is served.
pub(super) fn unknown_model(name: &str, served: &[Served]) -> Refusal {
    let known: Vec<&str> = served.iter().map(|served| served.id.as_str()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Refusal::new(StatusCode::NOT_FOUND, "model", format!("no model {name:?}; there are {known}")).of("model")
}

/// The vectors of texts, each of them read whole unless its end may be left out.
pub(super) fn embeddings(
    asked: &Asked<'_>,
    collection: &str,
    texts: &[String],
    kind: TextKind,
    long: LongTexts,
) -> Result<Embeddings, Refusal> {
    let embeddings = asked.service().embeddings(collection, texts, kind, asked.cancel)?;
    asked.metrics().embedded(n_tokens(&embeddings));
    let cut = embeddings.embeddings.iter().position(|embedding| embedding.truncated);
    match cut.filter(|_| long == LongTexts::Refused) {
        Some(index) => Err(too_long(index, embeddings.max_tokens)),
        None => Ok(embeddings),
    }
}

/// A text has more tokens than the encoder reads, and its end was not to be left out.
pub(super) fn too_long(index: usize, max_tokens: usize) -> Refusal {
    let message = format!("text {index} has more than the {max_tokens} tokens that the encoder reads");
    let refusal = Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_long", message).of(&format!("[{index}]"));
    refusal.hint("\"truncate\": true embeds the beginning alone")
}

/// Tokens that the encoder read.
pub(super) fn n_tokens(embeddings: &Embeddings) -> u64 {
    embeddings.embeddings.iter().map(|embedding| u64::from(embedding.n_tokens)).sum()
}

/// The way long texts are taken: as the request says, else as the server does.
pub(super) fn long_texts(asked: &Asked<'_>, truncate: Option<bool>) -> LongTexts {
    match truncate {
        Some(true) => LongTexts::Truncated,
        Some(false) => LongTexts::Refused,
        None => asked.options().long_texts,
    }
}

/// The first values of each vector, of unit length again, where fewer are asked for than there are.
pub(super) fn shortened(embeddings: &mut Embeddings, dimensions: Option<usize>) -> Result<(), Refusal> {
    let own = embeddings.dimensions;
    let Some(wanted) = dimensions.filter(|wanted| *wanted != own) else { return Ok(()) };
    if wanted == 0 || wanted > own {
        return Err(Refusal::value("dimensions", format!("dimensions: {wanted} is not from 1 to {own}")));
    }
    for embedding in &mut embeddings.embeddings {
        embedding.vector.truncate(wanted);
        let length = embedding.vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        if length > 0.0 {
            embedding.vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
        }
    }
    embeddings.dimensions = wanted;
    Ok(())
}
