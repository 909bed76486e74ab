//! Target: the rows that an id names, of a document or of one chunk.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::retrieve::search::ChunkKey;
use crate::retrieve::searcher::Searcher;

/// The rows that were asked for.
#[derive(Debug)]
pub(crate) struct Target {
    /// As it was asked for.
    pub(crate) id: String,
    pub(crate) document: String,
    pub(crate) segment: usize,
    pub(crate) rows: Range<u32>,
}

impl Target {
    pub(crate) fn has(&self, key: &ChunkKey) -> bool {
        key.segment == self.segment && self.rows.contains(&key.row)
    }
}

impl Searcher {
    /// The rows that an id names: a document's, or the one of a chunk. An id that holds `#` itself is tried first as it stands.
    pub(crate) fn target(&self, id: &str) -> Result<Target> {
        match self.document_target(id, id)? {
            None => self.chunk_target(id),
            Some(target) if target.rows.is_empty() => {
                let has = "none that is searched".to_owned();
                Err(Error::OutOfRange { id: id.to_owned(), what: "any chunk".to_owned(), has })
            }
            Some(target) => Ok(target),
        }
    }

    /// The row of a chunk by its public id.
    pub(crate) fn chunk_target(&self, id: &str) -> Result<Target> {
        let chunk = id.rsplit_once('#').and_then(|(document, index)| Some((document, index.parse::<u32>().ok()?)));
        let (document, index) = chunk.unwrap_or((id, 0));
        let Some(target) = self.document_target(document, id)? else {
            let nearest = crate::retrieve::documents::nearest(&self.snapshot, document)?;
            return Err(Error::UnknownDocument { nearest, id: document.to_owned() });
        };
        match self.row(&target, index)? {
            Some(row) => Ok(Target { rows: row..row + 1, ..target }),
            None => Err(Error::OutOfRange {
                id: document.to_owned(),
                what: format!("chunk {index}"),
                has: format!("{} that can be searched", target.rows.len()),
            }),
        }
    }

    /// The rows of a document, possibly none; nothing where there is no such document.
    pub(crate) fn document_target(&self, document: &str, id: &str) -> Result<Option<Target>> {
        let Some((segment, number)) = self.snapshot.find(document)? else { return Ok(None) };
        let rows = self.snapshot.segments[segment].document(number)?.rows();
        Ok(Some(Target { id: id.to_owned(), document: document.to_owned(), segment, rows }))
    }

    /// The row of a chunk by its number in the document.
    pub(crate) fn row(&self, target: &Target, index: u32) -> Result<Option<u32>> {
        let chunks = &self.snapshot.segments[target.segment].chunks;
        for row in target.rows.clone() {
            if chunks.record(row as usize)?.index == index {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
