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
use crate::source::documents::ListedDocument;
use crate::source::filter::{FILTER_BYTES_MAX, Filter};
use crate::source::selected::Selection;

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
