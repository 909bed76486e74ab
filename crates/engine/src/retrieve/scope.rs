//! Scope: the documents that may answer a query, by their ids or by a filter. Applied before any arm takes its best,
//! never to a finished ranking.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Result;
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::searcher::Searcher;
use crate::source::filter::Filter;
use crate::source::scope::{Scope, Wanted};

/// A filter and how many documents it lets through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Filtered {
    /// The filter as written.
    pub expression: String,
    /// Documents it admits.
    pub n_admitted: u64,
    /// Documents there are.
    pub n_documents: u64,
}

impl Searcher {
    /// The number of documents that a filter lets through.
    pub fn filtered(&self, filter: &Filter) -> Result<Filtered> {
        Ok(self.filter_scope(filter)?.1)
    }

    /// The scope of a filter.
    pub(crate) fn filter_scope(&self, filter: &Filter) -> Result<(Scope, Filtered)> {
        self.source.schema()?.check(filter)?;
        let scoped = self.source.scope(Wanted::Filter(filter))?;
        let filtered = Filtered {
            expression: filter.as_str().to_owned(),
            n_admitted: scoped.n_documents,
            n_documents: self.source.describe().n_documents,
        };
        Ok((scoped.scope, filtered))
    }

    /// The scope of a list of documents, by their ids or, for records of JSONL that one file has, by the records' own.
    /// An id that the collection does not hold is an error that names the nearest.
    pub(crate) fn scope(&self, documents: &[String]) -> Result<Scope> {
        let mut scoped = self.source.scope(Wanted::Documents(documents))?;
        if !scoped.unknown.is_empty() {
            let records = self.of_records(&scoped.unknown)?;
            let ids = documents.iter().map(|id| records.get(id).unwrap_or(id).clone());
            scoped = self.source.scope(Wanted::Documents(&ids.collect::<Vec<_>>()))?;
        }
        match scoped.unknown.first() {
            Some(unknown) => Err(self.unknown(unknown)?),
            None => Ok(scoped.scope),
        }
    }

    /// The documents that a request's scope and filter let answer; `None` for all.
    pub(crate) fn allowed(&self, request: &ChunkSearch) -> Result<(Option<Scope>, Option<Filtered>)> {
        let scope = request.scope.as_ref().map(|documents| self.scope(documents)).transpose()?;
        Ok(match request.filter.as_ref().map(|filter| self.filter_scope(filter)).transpose()? {
            Some((admitted, filtered)) => (Some(admitted.within(scope.as_ref())), Some(filtered)),
            None => (scope, None),
        })
    }
}
