//! References to chunks. Only a source looks inside one; all others copy and compare them.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// A chunk with its public id, by which it is ordered; of a ranking of documents, a document's id and its first chunk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ChunkKey {
    pub(crate) id: PublicId,
    pub(crate) chunk: ChunkRef,
}

/// Keys of one ranking differ in their chunks, which are sooner hashed than ids.
impl Hash for ChunkKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.chunk.hash(state);
    }
}

/// A public id. Those of one ranking stand in one text: a thousand of them are made, kept and freed as one.
#[derive(Clone)]
pub(crate) struct PublicId {
    all: Arc<str>,
    own: Range<usize>,
}

impl PublicId {
    /// The ids that stand one behind the other in a text, by their ends.
    pub(super) fn several(text: String, ends: Vec<usize>) -> impl Iterator<Item = Self> {
        let (all, mut start): (Arc<str>, usize) = (text.into(), 0);
        ends.into_iter().map(move |end| Self { all: Arc::clone(&all), own: std::mem::replace(&mut start, end)..end })
    }
}

impl Deref for PublicId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.all[self.own.clone()]
    }
}

impl From<String> for PublicId {
    fn from(id: String) -> Self {
        let own = 0..id.len();
        Self { all: id.into(), own }
    }
}

impl fmt::Debug for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl PartialEq for PublicId {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for PublicId {}

impl PartialOrd for PublicId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PublicId {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Serialize for PublicId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
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
