//! Documents of a searcher in lists, and the fields that filters can speak of.

use std::collections::{BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Result;
use crate::retrieve::searcher::Searcher;
use crate::source::documents::ListedDocument;
use crate::source::filter::Filter;
use crate::source::scope::Wanted;
use crate::source::selected::{Pick, Selection, resolve};
use cento_collection::format::metadata::FieldType;

/// A field that filters can speak of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FieldSummary {
    /// Its name in filters.
    pub name: String,
    /// The types of its values.
    pub types: Vec<FieldType>,
    /// Documents that have it.
    pub n_documents: u64,
}

impl Searcher {
    /// The documents of a selection, by id ascending.
    pub fn list(&self, selection: &Selection) -> Result<Vec<ListedDocument>> {
        let of = |pick: &Pick<'_>| {
            if let Pick::Filter(filter) = pick {
                self.source.schema()?.check(filter)?;
            }
            let listed = self.source.documents(pick)?;
            if let Pick::Documents(ids) = pick {
                let known: HashSet<&str> = listed.iter().map(|document| document.id.as_str()).collect();
                if let Some(unknown) = ids.iter().find(|id| !known.contains(id.as_str())) {
                    return Err(self.unknown(unknown)?);
                }
            }
            Ok(listed)
        };
        resolve(selection, of, Vec::is_empty)
    }

    /// The fields of the documents, by name ascending.
    pub fn fields(&self) -> Result<Vec<FieldSummary>> {
        let summary = |(name, types): (&String, &BTreeSet<FieldType>)| {
            let n_documents = self.source.scope(Wanted::Filter(&Filter::exists(name)))?.n_documents;
            Ok(FieldSummary { name: name.clone(), types: types.iter().copied().collect(), n_documents })
        };
        self.source.schema()?.fields().iter().map(summary).collect()
    }
}
