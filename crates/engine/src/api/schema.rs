//! The JSON Schemas of requests and answers, by name.

use schemars::{Schema, schema_for};

use super::{
    AddRequest, AssembleAnswer, AssembleRequest, BatchAnswer, BatchRequest, CollectionList, CompactRequest,
    ContextAnswer, ContextRequest, CreateRequest, CurveAnswer, DeleteRequest, DiffRequest, DocumentList, EmbedAnswer,
    EmbedRequest, Fault, FieldList, FieldsRequest, GetRequest, IndexRequest, LinksRequest, ListRequest,
    NeighborsAnswer, NeighborsRequest, ReassembleAnswer, ReassembleRequest, ReplayAnswer, ReplayRequest, RerankAnswer,
    RerankRequest, SearchRequest, SectionList, SectionsRequest, SnapshotList, StatusRequest, WhyAnswer, WhyNotRequest,
    WhyRequest,
};
use crate::explain::differences::TraceComparison;
use crate::explain::why_not::WhyNot;
use crate::retrieve::links::DocumentLinks;
use crate::retrieve::search::SearchResponse;
use crate::source::documents::Excerpt;
use cento_collection::care::status::Status;

/// Every request and answer, and how its schema is made.
pub const SCHEMAS: &[(&str, fn() -> Schema)] = &[
    ("search-request", || schema_for!(SearchRequest)),
    ("search-answer", || schema_for!(SearchResponse)),
    ("batch-request", || schema_for!(BatchRequest)),
    ("batch-answer", || schema_for!(BatchAnswer)),
    ("neighbors-request", || schema_for!(NeighborsRequest)),
    ("neighbors-answer", || schema_for!(NeighborsAnswer)),
    ("context-request", || schema_for!(ContextRequest)),
    ("context-answer", || schema_for!(ContextAnswer)),
    ("assemble-request", || schema_for!(AssembleRequest)),
    ("assemble-answer", || schema_for!(AssembleAnswer)),
    ("reassemble-request", || schema_for!(ReassembleRequest)),
    ("reassemble-answer", || schema_for!(ReassembleAnswer)),
    ("curve-answer", || schema_for!(CurveAnswer)),
    ("why-request", || schema_for!(WhyRequest)),
    ("why-answer", || schema_for!(WhyAnswer)),
    ("why-not-request", || schema_for!(WhyNotRequest)),
    ("why-not-answer", || schema_for!(WhyNot)),
    ("replay-request", || schema_for!(ReplayRequest)),
    ("replay-answer", || schema_for!(ReplayAnswer)),
    ("diff-request", || schema_for!(DiffRequest)),
    ("diff-answer", || schema_for!(TraceComparison)),
    ("get-request", || schema_for!(GetRequest)),
    ("get-answer", || schema_for!(Excerpt)),
    ("links-request", || schema_for!(LinksRequest)),
    ("links-answer", || schema_for!(DocumentLinks)),
    ("list-request", || schema_for!(ListRequest)),
    ("list-answer", || schema_for!(DocumentList)),
    ("fields-request", || schema_for!(FieldsRequest)),
    ("fields-answer", || schema_for!(FieldList)),
    ("sections-request", || schema_for!(SectionsRequest)),
    ("sections-answer", || schema_for!(SectionList)),
    ("snapshots-answer", || schema_for!(SnapshotList)),
    ("collections-answer", || schema_for!(CollectionList)),
    ("status-request", || schema_for!(StatusRequest)),
    ("status-answer", || schema_for!(Status)),
    ("embed-request", || schema_for!(EmbedRequest)),
    ("embed-answer", || schema_for!(EmbedAnswer)),
    ("rerank-request", || schema_for!(RerankRequest)),
    ("rerank-answer", || schema_for!(RerankAnswer)),
    ("add-request", || schema_for!(AddRequest)),
    ("create-request", || schema_for!(CreateRequest)),
    ("index-request", || schema_for!(IndexRequest)),
    ("delete-request", || schema_for!(DeleteRequest)),
    ("compact-request", || schema_for!(CompactRequest)),
    ("fault", || schema_for!(Fault)),
];

/// The schema of that name.
#[must_use]
pub fn schema(name: &str) -> Option<Schema> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
}
