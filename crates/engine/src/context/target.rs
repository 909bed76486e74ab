//! Target: the chunks that an id names, of a document or one alone.

use crate::error::{Error, Result};
use crate::retrieve::searcher::Searcher;
use crate::source::refs::{ChunkKey, ChunkRef, Chunks};

/// The chunks that were asked for.
#[derive(Debug)]
pub(crate) struct Target {
    /// As it was asked for.
    pub(crate) id: String,
    pub(crate) document: String,
    pub(crate) chunks: Chunks,
}

impl Target {
    pub(crate) fn has(&self, key: &ChunkKey) -> bool {
        self.chunks.contains(key.chunk)
    }
}

impl Searcher {
    /// The chunks that an id names: a document's, or one. An id that holds `#` itself is tried first as it stands.
    pub(crate) fn target(&self, id: &str) -> Result<Target> {
        match self.source.find(id, None)? {
            None => self.chunk_target(id).map(|(target, _)| target),
            Some(named) if named.chunks.is_empty() => {
                let has = "none that is searched".to_owned();
                Err(Error::OutOfRange { id: id.to_owned(), what: "chunk".to_owned(), has })
            }
            Some(named) => Ok(Target { id: id.to_owned(), document: id.to_owned(), chunks: named.chunks }),
        }
    }

    /// A chunk by its public id.
    pub(crate) fn chunk_target(&self, id: &str) -> Result<(Target, ChunkRef)> {
        let chunk = id.rsplit_once('#').and_then(|(document, index)| Some((document, index.parse::<u32>().ok()?)));
        let (document, index) = chunk.unwrap_or((id, 0));
        let Some(named) = self.source.find(document, Some(index))? else { return Err(self.unknown(document)?) };
        match named.chunk {
            Some(chunk) => {
                let chunks = named.chunks.only(chunk);
                Ok((Target { id: id.to_owned(), document: document.to_owned(), chunks }, chunk))
            }
            None => Err(Error::OutOfRange {
                id: document.to_owned(),
                what: format!("chunk {index}"),
                has: format!("{} that can be searched", named.chunks.len()),
            }),
        }
    }

    /// A chunk of a document by its number.
    pub(crate) fn chunk(&self, document: &str, number: u32) -> Result<Option<ChunkRef>> {
        Ok(self.source.find(document, Some(number))?.and_then(|named| named.chunk))
    }
}
