//! The JSON Schemas of requests and answers, by name.

use schemars::{Schema, schema_for};

use super::{
    ContextAnswer, ContextRequest, CurveAnswer, DocumentList, EmbedAnswer, EmbedRequest, Fault, FieldList,
    FieldsRequest, GetRequest, ListRequest, SearchRequest, StatusRequest, WhyAnswer, WhyNotRequest,
};
use crate::explain::why_not::WhyNot;
use crate::retrieve::search::SearchResponse;
use crate::source::documents::Excerpt;
use cento_collection::care::status::Status;

/// Every request and answer, and how its schema is made.
pub const SCHEMAS: &[(&str, fn() -> Schema)] = &[
    ("search-request", || schema_for!(SearchRequest)),
    ("search-answer", || schema_for!(SearchResponse)),
    ("context-request", || schema_for!(ContextRequest)),
    ("context-answer", || schema_for!(ContextAnswer)),
    ("curve-answer", || schema_for!(CurveAnswer)),
    ("why-answer", || schema_for!(WhyAnswer)),
    ("why-not-request", || schema_for!(WhyNotRequest)),
    ("why-not-answer", || schema_for!(WhyNot)),
    ("get-request", || schema_for!(GetRequest)),
    ("get-answer", || schema_for!(Excerpt)),
    ("list-request", || schema_for!(ListRequest)),
    ("list-answer", || schema_for!(DocumentList)),
    ("fields-request", || schema_for!(FieldsRequest)),
    ("fields-answer", || schema_for!(FieldList)),
    ("status-request", || schema_for!(StatusRequest)),
    ("status-answer", || schema_for!(Status)),
    ("embed-request", || schema_for!(EmbedRequest)),
    ("embed-answer", || schema_for!(EmbedAnswer)),
    ("fault", || schema_for!(Fault)),
];

/// The schema of that name.
#[must_use]
pub fn schema(name: &str) -> Option<Schema> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
}
