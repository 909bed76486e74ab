//! References to chunks. Only a source looks inside one; all others copy and compare them.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use cento_lexical::Unit;
use serde::{Deserialize, Serialize};

/// A chunk of a source. References order as chunks are stored, so chunks of a document follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct ChunkRef {
    shard: u32,
    segment: u32,
    row: u32,
}

/// As another machine names it, which knows nothing of shards.
impl From<(u32, u32)> for ChunkRef {
    fn from((segment, row): (u32, u32)) -> Self {
        Self { shard: 0, segment, row }
    }
}

impl From<ChunkRef> for (u32, u32) {
    fn from(chunk: ChunkRef) -> Self {
        (chunk.segment, chunk.row)
    }
}

impl ChunkRef {
    pub(super) fn new(segment: usize, row: u32) -> Self {
        Self { shard: 0, segment: segment as u32, row }
    }

    #[cfg(test)]
    pub(crate) fn first() -> Self {
        Self::new(0, 0)
    }

    /// Segment and row in the collection.
    pub(super) fn place(self) -> (usize, u32) {
        (self.segment as usize, self.row)
    }

    pub(super) fn shard(self) -> usize {
        self.shard as usize
    }

    pub(super) fn of_shard(self, shard: usize) -> Self {
        Self { shard: shard as u32, ..self }
    }
}

/// Chunks that follow each other in one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunks {
    #[serde(skip)]
    shard: u32,
    segment: u32,
    rows: Range<u32>,
}

impl Chunks {
    pub(super) fn new(segment: usize, rows: Range<u32>) -> Self {
        Self { shard: 0, segment: segment as u32, rows }
    }

    pub(super) fn of_shard(self, shard: usize) -> Self {
        Self { shard: shard as u32, ..self }
    }

    /// Shard, segment and rows.
    pub(super) fn place(&self) -> (usize, usize, Range<u32>) {
        (self.shard as usize, self.segment as usize, self.rows.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn contains(&self, chunk: ChunkRef) -> bool {
        (chunk.shard, chunk.segment) == (self.shard, self.segment) && self.rows.contains(&chunk.row)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ChunkRef> + use<> {
        let Self { shard, segment, .. } = *self;
        self.rows.clone().map(move |row| ChunkRef { shard, segment, row })
    }

    /// The first of them, or where it would be.
    pub(crate) fn start(&self) -> ChunkRef {
        ChunkRef { shard: self.shard, segment: self.segment, row: self.rows.start }
    }

    /// One of them alone.
    pub(crate) fn only(&self, chunk: ChunkRef) -> Self {
        Self { rows: chunk.row..chunk.row + 1, ..*self }
    }
}

/// A chunk with its public id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChunkKey {
    pub(crate) id: String,
    pub(crate) chunk: ChunkRef,
}

/// A chunk in a ranking; of a ranking of documents, the first chunk of one.
#[derive(Debug, Clone)]
pub(crate) struct RankedChunk {
    pub(crate) chunk: ChunkRef,
    /// The public id of chunk or document. It decides between equal scores and stands in answers, for which few of a
    /// ranking are asked: of the others a source gives it only if it lies elsewhere.
    pub(crate) id: Option<Arc<str>>,
}

impl From<ChunkRef> for RankedChunk {
    fn from(chunk: ChunkRef) -> Self {
        Self { chunk, id: None }
    }
}

impl From<ChunkKey> for RankedChunk {
    fn from(ChunkKey { id, chunk }: ChunkKey) -> Self {
        Self { chunk, id: Some(id.into()) }
    }
}

impl PartialEq for RankedChunk {
    fn eq(&self, other: &Self) -> bool {
        self.chunk == other.chunk
    }
}

impl Eq for RankedChunk {}

impl Hash for RankedChunk {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.chunk.hash(state);
    }
}

/// The id of the document of what is ranked.
pub(crate) fn document_of(id: &str, unit: Unit) -> &str {
    match unit {
        Unit::Row => id.rsplit_once('#').map_or(id, |(document, _)| document),
        Unit::Document => id,
    }
}

/// A document by its id.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) chunks: Chunks,
    /// The chunk of the number that was asked for, if it is searched.
    pub(crate) chunk: Option<ChunkRef>,
}

/// Chunks of the document of one chunk, on both sides of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Around {
    pub(crate) chunk: ChunkRef,
    /// Numbers in the document, the chunk's own among them.
    pub(crate) numbers: Range<u32>,
    /// Tokens of a side, as the encoder counts, behind which nothing is wanted.
    pub(crate) tokens_max: usize,
}
