//! Documents: one of them or a part of it, a list of them, their fields, and the collection as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parse::Request;
use super::version::VERSION;
use crate::error::Result;
use crate::limits::{self, TEXT_BYTES_MAX};
use crate::retrieve::scope::Filtered;
use crate::retrieve::searcher::Searcher;
use crate::retrieve::selection::FieldSummary;
use crate::source::documents::{DocumentSection, ListedDocument};
use crate::source::filter::{FILTER_BYTES_MAX, Filter};
use crate::source::selected::Selection;
use cento_collection::keep::snapshots::{NamedGeneration, UnreadSnapshot};

/// A document, or the part of it that a citation names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetRequest {
    /// `DOC`, `DOC#chunk` or `DOC:from-to`, in bytes.
    pub citation: String,
}

impl Request for GetRequest {
    fn check(&self) -> Result<()> {
        limits::text("citation", &self.citation, TEXT_BYTES_MAX)
    }
}

/// The links of a document, or of the part of it that a citation names, and those of others to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinksRequest {
    /// `DOC`, `DOC#chunk` or `DOC:from-to`, in bytes.
    pub citation: String,
}

impl Request for LinksRequest {
    fn check(&self) -> Result<()> {
        limits::text("citation", &self.citation, TEXT_BYTES_MAX)
    }
}

/// The documents there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListRequest {
    /// A filter that documents must pass, as `type = "md" and year >= 2020`.
    pub filter: Option<String>,
}

impl Request for ListRequest {
    fn check(&self) -> Result<()> {
        self.filter.as_deref().map_or(Ok(()), |filter| limits::text("filter", filter, FILTER_BYTES_MAX))
    }
}

/// The fields that filters can speak of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldsRequest {}

impl Request for FieldsRequest {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The contents of a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusRequest {}

impl Request for StatusRequest {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The sections of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SectionsRequest {
    /// The id of the document.
    pub document: String,
}

impl Request for SectionsRequest {
    fn check(&self) -> Result<()> {
        limits::text("document", &self.document, TEXT_BYTES_MAX)
    }
}

/// A list of documents, by id ascending.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DocumentList {
    /// Format of this answer.
    pub version: u32,
    /// Generation of the collection.
    pub generation: u64,
    /// The filter, and how many documents passed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filtered>,
    /// The documents.
    pub documents: Vec<ListedDocument>,
}

impl DocumentList {
    /// The documents that a request asks for.
    ///
    /// # Errors
    /// [`Error::Filter`](crate::Error::Filter) for a filter that is none, or asks for what the collection does not
    /// have.
    pub fn new(searcher: &Searcher, request: &ListRequest) -> Result<Self> {
        let filter = request.filter.as_deref().map(Filter::parse).transpose()?;
        Ok(Self {
            version: VERSION,
            generation: searcher.manifest().generation,
            filter: filter.as_ref().map(|filter| searcher.filtered(filter)).transpose()?,
            documents: searcher.list(&filter.map_or(Selection::All, Selection::Filter))?,
        })
    }
}

/// The fields of a collection, by name ascending.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FieldList {
    /// Format of this answer.
    pub version: u32,
    /// Generation of the collection.
    pub generation: u64,
    /// The fields.
    pub fields: Vec<FieldSummary>,
}

impl FieldList {
    /// The fields of an open collection.
    ///
    /// # Errors
    /// Those of [`Searcher::fields`].
    pub fn new(searcher: &Searcher) -> Result<Self> {
        Ok(Self { version: VERSION, generation: searcher.manifest().generation, fields: searcher.fields()? })
    }
}

/// The sections of a document, in the order of its text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SectionList {
    /// Format of this answer.
    pub version: u32,
    /// Generation of the collection.
    pub generation: u64,
    /// Id of the document.
    pub document: String,
    /// The sections.
    pub sections: Vec<DocumentSection>,
}

impl SectionList {
    /// The sections of a document of an open collection.
    ///
    /// # Errors
    /// Those of [`Searcher::sections`].
    pub fn new(searcher: &Searcher, request: &SectionsRequest) -> Result<Self> {
        let sections = searcher.sections(&request.document)?;
        let generation = searcher.manifest().generation;
        Ok(Self { version: VERSION, generation, document: request.document.clone(), sections })
    }
}

/// The snapshots of a collection, by name ascending.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SnapshotList {
    /// Format of this answer.
    pub version: u32,
    /// The snapshots.
    pub snapshots: Vec<NamedGeneration>,
    /// Those that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadSnapshot>,
    /// A remark on what was done to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

impl SnapshotList {
    /// These snapshots.
    #[must_use]
    pub fn new(snapshots: Vec<NamedGeneration>, unread: Vec<UnreadSnapshot>) -> Self {
        Self { version: VERSION, snapshots, unread, remark: None }
    }
}

/// The collections of a service, by name ascending.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CollectionList {
    /// Format of this answer.
    pub version: u32,
    /// Their names.
    pub collections: Vec<String>,
}
