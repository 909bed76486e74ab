//! Nearest neighbours of vectors, many in a request: as JSON, or as bare floats with the rest in the address.

use axum::routing::post;
use cento_engine::api::{self, NeighborsAnswer, NeighborsRequest};
use cento_engine::{Error, bare_vectors};
use serde::Deserialize as _;

use super::route::{Route, Scoped, Verb, json, of};
use crate::ask::{Ask, Asked, Reply};
use crate::refusal::Refusal;
use crate::work::Lane;

/// The type of bare bytes.
const OCTETS: &str = "application/octet-stream";

/// More vectors than this are bulk work.
const QUERY_VECTORS_MAX: usize = 128;

pub(super) fn routes() -> Vec<Route> {
    vec![Route {
        verb: Verb::Post,
        path: "/v1/neighbors",
        about: "The nearest neighbours of vectors; also of bare 32-bit floats, little-endian, sent as \
                application/octet-stream, with k, ef, scan and filter in the address",
        scoped: Scoped::Query,
        request: Some(of::<NeighborsRequest>),
        answer: json::<NeighborsAnswer>(),
        handler: post(neighbors),
    }]
}

async fn neighbors(ask: Ask) -> Result<Reply, Refusal> {
    let is_bare = ask.is_of(OCTETS);
    let request = ask.on_thread(Lane::Query, move |asked| if is_bare { bare(asked) } else { asked.request() }).await?;
    let lane = if request.vectors.len() > QUERY_VECTORS_MAX { Lane::Bulk } else { Lane::Query };
    ask.answer(lane, move |asked| {
        let collection = asked.collection()?;
        let answer = asked.service().neighbors(collection, &request, asked.cancel)?;
        asked.metrics().generation(collection, answer.generation);
        Reply::json(&answer)
    })
    .await
}

/// A request whose body is the vectors alone.
fn bare(asked: &Asked<'_>) -> Result<NeighborsRequest, Refusal> {
    let mut fields = serde_json::Map::new();
    for (name, value) in asked.parameters() {
        let value = match (name.as_str(), value.parse::<u64>()) {
            ("k" | "ef", Ok(number)) => number.into(),
            ("k" | "ef", Err(_)) => return Err(Refusal::value(name, format!("{name}: {value:?} is no number"))),
            ("scan" | "filter", _) => value.as_str().into(),
            _ => {
                let nearest = api::nearest(name, &["k", "ef", "scan", "filter", "collection"]);
                return Err(Error::UnknownField { field: name.clone(), nearest }.into());
            }
        };
        fields.insert(name.clone(), value);
    }
    let read = NeighborsRequest::deserialize(serde_json::Value::Object(fields));
    let request = read.map_err(|error| Refusal::value("query", error.to_string()))?;
    let dimensions = asked.service().query_dimensions(asked.collection()?, asked.cancel)?;
    let vectors = bare_vectors(asked.body(), dimensions).ok_or_else(|| {
        let n_bytes = asked.body().len();
        Refusal::value("vectors", format!("{n_bytes} bytes are no vectors of {dimensions} 32-bit floats"))
    })?;
    let request = NeighborsRequest { vectors, ..request };
    api::Request::check(&request)?;
    Ok(request)
}
