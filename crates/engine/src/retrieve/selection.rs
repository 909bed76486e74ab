//! Which documents a command is for: by id, by where their files are, or by a filter.

use cento_corpus as corpus;
use globset::GlobBuilder;
use roaring::RoaringBitmap;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::retrieve::documents::nearest;
use crate::retrieve::filter::Filter;
use crate::retrieve::scope::{admitted, schema};
use crate::retrieve::searcher::Searcher;
use cento_collection::format::metadata::FieldType;
use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;

/// Documents of a collection.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// All there are.
    All,
    /// By their ids; each must be there.
    Documents(Vec<String>),
    /// Those read from a file or from the files of a folder, named by root label and path as ids of files are: `docs/drafts`. Where
    /// there is no such file or folder, those of the files that a glob matches: `docs/**/*.txt`; `*` stops at `/`, `**` does not.
    Path(String),
    /// Those that a filter admits.
    Filter(Filter),
}

/// A document in a list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedDocument {
    /// Its id.
    pub id: String,
    /// The file it came from: root label and relative path.
    pub origin: String,
    /// What it was read as.
    pub r#type: &'static str,
    /// Its title.
    pub title: String,
    /// What its reader knew besides.
    pub metadata: corpus::Metadata,
    /// Chunks that are searched.
    pub n_chunks: u32,
}

/// A field that filters can speak of.
#[derive(Debug, Clone, Serialize)]
pub struct FieldSummary {
    /// Its name in filters.
    pub name: String,
    /// The types of its values.
    pub types: Vec<FieldType>,
    /// Documents that have it.
    pub n_documents: u64,
}

/// The live documents of a selection, segment by segment.
pub(crate) fn select(generation: &Generation, selection: &Selection) -> Result<Vec<RoaringBitmap>> {
    match selection {
        Selection::All => documents_where(generation, |_| true),
        Selection::Documents(ids) => {
            let mut selected = vec![RoaringBitmap::new(); generation.segments.len()];
            for id in ids {
                let Some((segment, document)) = generation.find(id)? else {
                    return Err(Error::UnknownDocument { nearest: nearest(generation, id)?, id: id.clone() });
                };
                selected[segment].insert(document);
            }
            Ok(selected)
        }
        Selection::Path(path) => under(generation, path),
        Selection::Filter(filter) => admitted(generation, filter),
    }
}

fn under(generation: &Generation, path: &str) -> Result<Vec<RoaringBitmap>> {
    let folder = path.trim_end_matches('/');
    let is_under =
        |origin: &str| origin.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let literal = documents_where(generation, is_under)?;
    if folder.is_empty()
        || literal.iter().any(|documents| !documents.is_empty())
        || !path.contains(['*', '?', '[', '{'])
    {
        return Ok(literal);
    }
    let glob = GlobBuilder::new(path).literal_separator(true).build().map_err(|error| Error::Setting {
        setting: "path",
        value: path.to_owned(),
        reason: format!("is no glob: {}", error.kind()),
    })?;
    let matcher = glob.compile_matcher();
    documents_where(generation, |origin| matcher.is_match(origin))
}

/// The live documents of whose files this holds.
fn documents_where(generation: &Generation, holds: impl Fn(&str) -> bool) -> Result<Vec<RoaringBitmap>> {
    let of_segment = |segment: &Segment| {
        let mut selected = RoaringBitmap::new();
        for document in segment.live_documents() {
            if holds(segment.documents.text(segment.document(document)?.origin)?) {
                selected.insert(document);
            }
        }
        Ok(selected)
    };
    generation.segments.iter().map(of_segment).collect()
}

/// The ids of documents given segment by segment, ascending.
pub(crate) fn ids(generation: &Generation, documents: &[RoaringBitmap]) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for (segment, documents) in generation.segments.iter().zip(documents) {
        for document in documents {
            ids.push(segment.document_id(document)?.to_owned());
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

impl Searcher {
    /// The documents of a selection, by id ascending.
    pub fn list(&self, selection: &Selection) -> Result<Vec<ListedDocument>> {
        let mut listed = Vec::new();
        for (segment, documents) in self.snapshot.segments.iter().zip(select(&self.snapshot, selection)?) {
            for document in documents {
                let record = segment.document(document)?;
                let text = |text| segment.documents.text(text).map(str::to_owned);
                listed.push(ListedDocument {
                    id: text(record.id)?,
                    origin: text(record.origin)?,
                    r#type: segment.format(&record)?.name(),
                    title: text(record.title)?,
                    metadata: segment.metadata_of(&record)?,
                    n_chunks: record.n_rows,
                });
            }
        }
        listed.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(listed)
    }

    /// The fields of the documents, by name ascending.
    pub fn fields(&self) -> Result<Vec<FieldSummary>> {
        let schema = schema(&self.snapshot)?;
        let summary = |(name, types): (&String, &std::collections::BTreeSet<FieldType>)| {
            let mut n_documents = 0;
            for segment in &self.snapshot.segments {
                n_documents += (segment.metadata.having(name)? - &segment.deleted).len();
            }
            Ok(FieldSummary { name: name.clone(), types: types.iter().copied().collect(), n_documents })
        };
        schema.fields().iter().map(summary).collect()
    }
}
