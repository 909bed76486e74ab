//! Collections in the words of OpenAI's vector stores, read-only: listed, looked at, searched.

use axum::routing::{get, post};
use cento_engine::api::SearchRequest;
use cento_engine::{Hit, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::route::{Route, Scoped, Verb, json, of};
use crate::ask::{Ask, Asked, Reply};
use crate::refusal::Refusal;
use crate::work::Lane;

/// Results unless a number is asked for, and at most.
const RESULTS: usize = 10;
const RESULTS_MAX: usize = 50;

/// Conditions within conditions that are read.
const DEPTH_MAX: usize = 16;

/// A collection as a vector store.
#[derive(Debug, Serialize, JsonSchema)]
struct VectorStore {
    /// The name of the collection.
    id: String,
    /// `vector_store`.
    object: &'static str,
    /// The name of the collection.
    name: String,
    /// 0: it is not known when it was made.
    created_at: u64,
    /// `completed`.
    status: &'static str,
    /// Bytes on disk.
    usage_bytes: u64,
    /// The documents.
    file_counts: FileCounts,
}

/// Documents by their state: all of them are indexed.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct FileCounts {
    /// 0.
    in_progress: u64,
    /// Documents.
    completed: u64,
    /// 0.
    failed: u64,
    /// 0.
    cancelled: u64,
    /// Documents.
    total: u64,
}

/// All collections as vector stores.
#[derive(Debug, Serialize, JsonSchema)]
struct VectorStores {
    /// `list`.
    object: &'static str,
    /// The stores, by name.
    data: Vec<VectorStore>,
    /// False: they are all there.
    has_more: bool,
}

/// A search of a vector store.
#[derive(Debug, Deserialize, JsonSchema)]
struct StoreSearch {
    /// The question.
    query: Question,
    /// Conditions on the fields of documents: `{type, key, value}`, or `{type: and|or, filters}`.
    #[serde(default)]
    filters: Option<Value>,
    /// Results wanted.
    #[serde(default)]
    max_num_results: Option<usize>,
    /// The least worth of results.
    #[serde(default)]
    ranking_options: Option<RankingOptions>,
}

/// A question, or its parts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Question {
    /// One.
    One(String),
    /// Parts, which are joined.
    Parts(Vec<String>),
}

/// The least worth of results.
#[derive(Debug, Deserialize, JsonSchema)]
struct RankingOptions {
    /// The least score.
    #[serde(default)]
    score_threshold: Option<f64>,
}

/// A page of results.
#[derive(Debug, Serialize, JsonSchema)]
struct StoreResults {
    /// `vector_store.search_results.page`.
    object: &'static str,
    /// The question.
    search_query: Vec<String>,
    /// The results, best first.
    data: Vec<StoreResult>,
    /// False: there is one page.
    has_more: bool,
    /// Always null.
    next_page: Option<String>,
}

/// A chunk that was found.
#[derive(Debug, Serialize, JsonSchema)]
struct StoreResult {
    /// The id of its document.
    file_id: String,
    /// The title of its document.
    filename: String,
    /// Its score.
    score: f64,
    /// Its own id, and where it stands.
    attributes: Attributes,
    /// Its text.
    content: Vec<StoreContent>,
}

/// Where a chunk stands.
#[derive(Debug, Serialize, JsonSchema)]
struct Attributes {
    /// The id of the chunk.
    chunk: String,
    /// The headings above it.
    headings: String,
    /// Line, page or row; may be empty.
    place: String,
}

/// A text.
#[derive(Debug, Serialize, JsonSchema)]
struct StoreContent {
    /// `text`.
    r#type: &'static str,
    /// The text.
    text: String,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/vector_stores",
            "The collections, as OpenAI's clients list vector stores",
            None,
            json::<VectorStores>(),
            get(list),
        ),
        Route::get(
            "/v1/vector_stores/{collection}",
            "A collection, as OpenAI's clients look at a vector store",
            None,
            json::<VectorStore>(),
            get(one),
        ),
        Route {
            verb: Verb::Post,
            path: "/v1/vector_stores/{collection}/search",
            about: "The best chunks for a query, as OpenAI's clients search a vector store",
            scoped: Scoped::Path,
            request: Some(of::<StoreSearch>),
            answer: json::<StoreResults>(),
            handler: post(search),
        },
    ]
}

fn store(name: &str, status: &Status) -> VectorStore {
    let n = status.n_documents;
    VectorStore {
        id: name.to_owned(),
        object: "vector_store",
        name: name.to_owned(),
        created_at: 0,
        status: "completed",
        usage_bytes: status.n_bytes.values().sum(),
        file_counts: FileCounts { completed: n, total: n, ..FileCounts::default() },
    }
}

async fn list(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let service = asked.service();
        let status = |name: &String| service.status(name.as_str(), asked.cancel);
        let stores = asked.collections.keys().map(|name| Ok(store(name, &status(name)?)));
        let data = stores.collect::<Result<_, Refusal>>()?;
        Reply::json(&VectorStores { object: "list", data, has_more: false })
    })
    .await
}

async fn one(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let name = asked.collection()?;
        Reply::json(&store(name, &asked.service().status(name, asked.cancel)?))
    })
    .await
}

async fn search(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| answer(asked, &asked.foreign()?)).await
}

fn answer(asked: &Asked<'_>, request: &StoreSearch) -> Result<Reply, Refusal> {
    let k = request.max_num_results.unwrap_or(RESULTS);
    if !(1..=RESULTS_MAX).contains(&k) {
        let message = format!("max_num_results: {k} is not from 1 to {RESULTS_MAX}");
        return Err(Refusal::value("max_num_results", message));
    }
    let search_query = match &request.query {
        Question::One(query) => vec![query.clone()],
        Question::Parts(parts) => parts.clone(),
    };
    let filter = request.filters.as_ref().map(|filter| expression(filter, 0)).transpose()?;
    let search = SearchRequest { k, filter, ..SearchRequest::new(search_query.join(" ")) };
    let (found, timings) = asked.service().search_timed(asked.collection()?, &search, asked.cancel)?;
    asked.metrics().searched(&timings);
    let least = request.ranking_options.as_ref().and_then(|options| options.score_threshold);
    let hits = found.hits.iter().filter(|hit| least.is_none_or(|least| hit.score >= least));
    let (data, object) = (hits.map(result).collect(), "vector_store.search_results.page");
    Reply::json(&StoreResults { object, search_query, data, has_more: false, next_page: None })
}

fn result(hit: &Hit) -> StoreResult {
    StoreResult {
        file_id: hit.document.clone(),
        filename: hit.title.clone(),
        score: hit.score,
        attributes: Attributes { chunk: hit.id.clone(), headings: hit.path.join(" > "), place: hit.anchor.clone() },
        content: vec![StoreContent { r#type: "text", text: hit.text.clone() }],
    }
}

/// A condition as a filter is written here.
fn expression(filter: &Value, depth: usize) -> Result<String, Refusal> {
    let wrong = |message: &str| Refusal::value("filters", format!("filters: {message}"));
    let (Some(kind), true) = (filter["type"].as_str(), depth < DEPTH_MAX) else {
        return Err(wrong("expected {type, key, value}, or {type: and|or, filters}, not too deep"));
    };
    if let "and" | "or" = kind {
        let parts = filter["filters"].as_array().filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| wrong("and, or: expected a list of filters"))?;
        let parts = parts.iter().map(|part| expression(part, depth + 1)).collect::<Result<Vec<_>, _>>()?;
        return Ok(format!("({})", parts.join(&format!(" {kind} "))));
    }
    let operator = match kind {
        "eq" => "=",
        "ne" => "!=",
        "gt" => ">",
        "gte" => ">=",
        "lt" => "<",
        "lte" => "<=",
        "in" => "in",
        "nin" => "not in",
        other => return Err(wrong(&format!("no type {other:?}"))),
    };
    let key = filter["key"].as_str().filter(|key| !key.is_empty() && !key.contains('`'));
    let key = key.ok_or_else(|| wrong("key: expected the name of a field"))?;
    let written = match (&filter["value"], kind) {
        (Value::Array(values), "in" | "nin") if !values.is_empty() => {
            let values = values.iter().map(literal).collect::<Option<Vec<_>>>();
            values.map(|values| format!("({})", values.join(", ")))
        }
        (_, "in" | "nin") => None,
        (value, _) => literal(value),
    };
    let written = written.ok_or_else(|| wrong("value: expected a string, a number, or true or false"))?;
    Ok(format!("`{key}` {operator} {written}"))
}

/// A value as filters write it.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
            Some(format!("\"{escaped}\""))
        }
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use cento_engine::Filter;
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_become_a_filter() {
        let of = |filter: Value| expression(&filter, 0).unwrap();
        let one = json!({"type": "eq", "key": "type", "value": "a \"md\"\n"});
        assert_eq!(of(one.clone()), "`type` = \"a \\\"md\\\"\\n\"");
        let two = json!({"type": "nin", "key": "year", "value": [2020, 2021.5]});
        assert_eq!(of(two.clone()), "`year` not in (2020, 2021.5)");
        let both = of(
            json!({"type": "or", "filters": [one, {"type": "and", "filters": [two, {"type": "gte", "key": "x y", "value": true}]}]}),
        );
        assert!(Filter::parse(&both).is_ok(), "{both}");
    }

    #[test]
    fn conditions_that_are_none_are_refused() {
        let mut deep = json!({"type": "eq", "key": "a", "value": 1});
        for _ in 0..40 {
            deep = json!({"type": "and", "filters": [deep]});
        }
        for wrong in [
            json!(7),
            json!({}),
            json!({"type": "like", "key": "a", "value": "b"}),
            json!({"type": "and", "filters": []}),
            json!({"type": "eq", "key": "a` = 1 or `b", "value": 1}),
            json!({"type": "eq", "key": "a", "value": null}),
            json!({"type": "in", "key": "a", "value": "b"}),
            json!({"type": "in", "key": "a", "value": [[1]]}),
            deep,
        ] {
            assert_eq!(expression(&wrong, 0).unwrap_err().status, 400, "{wrong}");
        }
    }
}
