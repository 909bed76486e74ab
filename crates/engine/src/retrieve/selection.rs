//! Documents of a searcher in lists, and the fields that filters can speak of.

use std::collections::{BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Result;
use crate::retrieve::searcher::Searcher;
use crate::source::documents::ListedDocument;
use crate::source::filter::Filter;
use crate::source::filter::anchor::{self, Anchor};
use crate::source::scope::Wanted;
use crate::source::selected::{Pick, Selection, resolve};
use cento_collection::format::metadata::FieldType;

/// A field that filters can speak of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FieldSummary {
    /// Its name in filters.
    pub name: String,
    /// The things that have its values.
    pub of: FieldOf,
    /// The types of its values.
    pub types: Vec<FieldType>,
    /// Documents that have it, or chunks with it.
    pub n_documents: u64,
}

/// The things that have the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldOf {
    /// Documents.
    Document,
    /// Chunks, by where they stand in the file of their document.
    Chunk,
}

impl Searcher {
    /// The documents of a selection, by id ascending.
    pub fn list(&self, selection: &Selection) -> Result<Vec<ListedDocument>> {
        let of = |pick: &Pick<'_>| {
            if let Pick::Filter(filter) = pick {
                self.source.schema()?.check(filter)?;
                filter.check_of_documents()?;
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

    /// The fields of the documents and those of the places of chunks that there are, by name ascending.
    pub fn fields(&self) -> Result<Vec<FieldSummary>> {
        let n_documents =
            |filter: &Filter| -> Result<u64> { Ok(self.source.scope(Wanted::Filter(filter))?.n_documents) };
        let summary = |(name, types): (&String, &BTreeSet<FieldType>)| {
            let n_documents = n_documents(&Filter::exists(&anchor::of_documents(name)))?;
            let (name, types) = (name.clone(), types.iter().copied().collect());
            Ok(FieldSummary { name, of: FieldOf::Document, types, n_documents })
        };
        let mut fields = self.source.schema()?.fields().iter().map(summary).collect::<Result<Vec<_>>>()?;
        for anchor in Anchor::ALL {
            let n_documents = n_documents(&anchor.exists())?;
            if n_documents > 0 {
                let (name, types) = (anchor.name().to_owned(), vec![anchor.kind()]);
                fields.push(FieldSummary { name, of: FieldOf::Chunk, types, n_documents });
            }
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(fields)
    }
}
