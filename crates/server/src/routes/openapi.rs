//! The description of all routes, OpenAPI 3.1, made of the list that the router is made of and of the types themselves.
//!
//! A generator of schemars fills `components/schemas`; what is left to write is this page, less than a framework that
//! takes over the router and its handlers' types.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::route::{Route, Scoped, Verb};
use crate::refusal::ErrorAnswer;

/// The statuses of refusals, each with what it means.
const REFUSALS: [(&str, &str); 12] = [
    ("400", "The request cannot be understood, or a value in it cannot be used"),
    ("401", "The server asks for a key, and this one is none of its own"),
    ("403", "The host, the origin or the scope of the key is not allowed"),
    ("404", "There is no such collection, document or route"),
    ("408", "The body came too slowly"),
    ("409", "A job is at work on the collection already, or a collection of that name is there"),
    ("413", "The body is too large, or a text is longer than the encoder reads"),
    ("429", "Too many requests wait; Retry-After says when to ask again"),
    ("500", "The server failed; its log says why"),
    ("502", "A server that has a part of the collection gives no answer; the message names it"),
    ("503", "The server is about to end, or a part of the collection was written meanwhile"),
    ("504", "The answer took longer than the server allows; the work was stopped"),
];

/// The description as JSON.
pub(super) fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = SchemaGenerator::new(settings);
    let error = generator.subschema_for::<ErrorAnswer>();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator, error.as_value());
        let path = paths.entry(described(route.path)).or_insert_with(|| json!({}));
        path[route.verb.word()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cento",
            "description": "Search, cited contexts and vectors of collections.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(false),
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{}, { "key": [] }],
    })
}

/// The address as descriptions write it: they have no sign for a rest of several parts.
pub(super) fn described(path: &str) -> String {
    path.replace("{*", "{")
}

fn operation(route: &Route, generator: &mut SchemaGenerator, error: &Value) -> Value {
    let status = match route.scoped {
        Scoped::Begun => "202",
        Scoped::Made => "201",
        Scoped::Query | Scoped::Path => "200",
    };
    let mut responses = json!({
        status: {
            "description": route.about,
            "content": { route.answer.kind: { "schema": (route.answer.schema)(generator) } },
        },
    });
    for (status, about) in REFUSALS {
        responses[status] = json!({ "description": about, "content": { "application/json": { "schema": error } } });
    }
    let mut parameters = Vec::new();
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(|name| name.trim_start_matches('*'));
    parameters.extend(in_path.map(|name| parameter(name, "path", true, json!({ "type": "string" }))));
    if route.scoped == Scoped::Query {
        parameters.push(parameter("collection", "query", false, json!({ "type": "string" })));
    }
    let mut operation = json!({
        "operationId": name(route),
        "summary": route.about,
        "responses": responses,
    });
    match (route.verb, route.request) {
        (Verb::Post | Verb::Put, Some(request)) => {
            let schema = request(generator);
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        (Verb::Get, Some(request)) => parameters.extend(fields(generator, request)),
        (Verb::Put, None) => {
            operation["requestBody"] = json!({ "required": true, "content": { "application/octet-stream": {} } });
        }
        (Verb::Get | Verb::Post, None) | (Verb::Delete, _) => {}
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    operation
}

/// The fields of a type as parameters of an address.
fn fields(generator: &SchemaGenerator, request: super::route::SchemaOf) -> Vec<Value> {
    let mut own = generator.settings().clone().into_generator();
    let _ = request(&mut own);
    let definitions = own.take_definitions(false);
    let Some((_, schema)) = definitions.iter().next() else { return Vec::new() };
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name));
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields.map(|(name, schema)| parameter(name, "query", required(name), schema.clone())).collect()
}

fn parameter(name: &str, place: &str, required: bool, schema: Value) -> Value {
    json!({ "name": name, "in": place, "required": required, "schema": schema })
}

/// A name of its own for each route: the words of its address.
fn name(route: &Route) -> String {
    let words = route.path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(route.verb.word()).chain(words).collect::<Vec<_>>().join("_")
}
