//! Scope: the documents that may answer a query. Applied before any arm takes its best, never to a finished ranking.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::searcher::Searcher;

/// The rows of some documents, segment by segment.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    rows: Vec<RoaringBitmap>,
}

impl Scope {
    /// The rows of a segment that may answer.
    pub(crate) fn rows(&self, segment: usize) -> &RoaringBitmap {
        &self.rows[segment]
    }
}

/// Where each live document's rows are: made once for a batch of queries.
pub(crate) struct Places<'s> {
    searcher: &'s Searcher,
    rows: BTreeMap<&'s str, (usize, std::ops::Range<u32>)>,
}

impl<'s> Places<'s> {
    /// Looks at every live document once.
    pub(crate) fn new(searcher: &'s Searcher) -> Result<Self> {
        let mut rows = BTreeMap::new();
        for (at, segment) in searcher.snapshot.segments.iter().enumerate() {
            for document in segment.live_documents() {
                let record = segment.document(document)?;
                rows.insert(
                    segment.documents.text(record.id)?,
                    (at, record.first_row..record.first_row + record.n_rows),
                );
            }
        }
        Ok(Self { searcher, rows })
    }

    /// The scope of a list of documents; an id that the collection does not hold is an error that names the nearest.
    pub(crate) fn scope(&self, documents: &[String]) -> Result<Scope> {
        let mut scope = Scope { rows: vec![RoaringBitmap::new(); self.searcher.snapshot.segments.len()] };
        for id in documents {
            let Some((segment, rows)) = self.rows.get(id.as_str()) else {
                let nearest = crate::documents::nearest(&self.searcher.snapshot, id)?;
                return Err(Error::UnknownDocument { nearest, id: id.clone() });
            };
            scope.rows[*segment].insert_range(rows.clone());
        }
        Ok(scope)
    }
}
