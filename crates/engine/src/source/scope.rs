//! Scope: the chunks that may answer, resolved once for a request. A source makes it and looks inside; others carry it.

use std::sync::Arc;

use cento_lexical::Unit;
use roaring::RoaringBitmap;

use crate::cancel::Cancel;
use crate::source::filter::Filter;
use crate::source::refs::{ChunkRef, Chunks};

/// The documents that a scope is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// All there are.
    All,
    /// Those of these ids.
    Documents(&'a [String]),
    /// Those that a filter admits, which was held against the schema of the whole source before; their chunks that it
    /// admits, where it asks for their place.
    Filter(&'a Filter),
    /// Those that have all of some phrases.
    Phrases(Phrases<'a>),
}

/// Phrases that all must be in a document for it to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phrases<'a> {
    pub(crate) phrases: &'a [String],
    /// Documents answer with all their chunks; chunks, where a phrase stands in them or runs through them.
    pub(crate) unit: Unit,
    pub(crate) cancel: &'a Cancel,
}

/// A scope and what there is to say of it.
#[derive(Debug)]
pub(crate) struct Scoped {
    pub(crate) scope: Scope,
    /// Live documents in it.
    pub(crate) n_documents: u64,
    /// Ids that this source does not have, in the order they were asked for.
    pub(crate) unknown: Vec<String>,
}

/// Rows that may answer: by shard, then by segment.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    shards: Vec<Arc<Vec<RoaringBitmap>>>,
}

impl Scope {
    pub(super) fn new(rows: Vec<RoaringBitmap>) -> Self {
        Self { shards: vec![Arc::new(rows)] }
    }

    /// The scopes of several sources as one.
    pub(super) fn joined(scopes: Vec<Self>) -> Self {
        Self { shards: scopes.into_iter().flat_map(|scope| scope.shards).collect() }
    }

    pub(super) fn of_shard(&self, shard: usize) -> Self {
        Self { shards: vec![Arc::clone(&self.shards[shard])] }
    }

    /// The rows that may answer, by segment, in the scope of a single collection.
    pub(super) fn segments(&self) -> &[RoaringBitmap] {
        &self.shards[0]
    }

    /// The rows of a segment that may answer, in the scope of a single collection.
    pub(super) fn rows(&self, segment: usize) -> &RoaringBitmap {
        &self.shards[0][segment]
    }

    /// The number of chunks that may answer.
    pub(crate) fn n_chunks(&self) -> u64 {
        self.shards.iter().flat_map(|shard| &**shard).map(RoaringBitmap::len).sum()
    }

    pub(crate) fn contains(&self, chunk: ChunkRef) -> bool {
        let (segment, row) = chunk.place();
        self.shards[chunk.shard()][segment].contains(row)
    }

    /// The scope without some chunks.
    pub(crate) fn without(mut self, chunks: &Chunks) -> Self {
        let (shard, segment, rows) = chunks.place();
        Arc::make_mut(&mut self.shards[shard])[segment].remove_range(rows);
        self
    }

    /// These chunks alone, in it or not.
    pub(crate) fn only(mut self, chunks: &Chunks) -> Self {
        for rows in &mut self.shards {
            Arc::make_mut(rows).iter_mut().for_each(RoaringBitmap::clear);
        }
        let (shard, segment, rows) = chunks.place();
        Arc::make_mut(&mut self.shards[shard])[segment].insert_range(rows);
        self
    }

    /// The part that lies within another, if there is one.
    pub(crate) fn within(mut self, other: Option<&Self>) -> Self {
        let others = other.into_iter().flat_map(|other| &other.shards);
        for (own, other) in self.shards.iter_mut().zip(others) {
            Arc::make_mut(own).iter_mut().zip(&**other).for_each(|(own, other)| *own &= other);
        }
        self
    }
}

/// The scopes of a batch of queries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scopes<'a> {
    /// Those of each query that has a scope of its own; shorter than the batch where the rest have none.
    pub(crate) of_query: &'a [Option<Scope>],
    /// That of the other queries.
    pub(crate) of_all: Option<&'a Scope>,
}

impl<'a> Scopes<'a> {
    /// The scope of the query, if it has one of its own.
    pub(crate) fn own(&self, query: usize) -> Option<&'a Scope> {
        self.of_query.get(query).and_then(Option::as_ref)
    }

    pub(crate) fn of(&self, query: usize) -> Option<&'a Scope> {
        self.own(query).or(self.of_all)
    }
}
