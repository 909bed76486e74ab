//! Scope: the documents that may answer a query, by their ids or by a filter. Applied before any arm takes its best, never to a
//! finished ranking.

use std::ops::Range;

use roaring::RoaringBitmap;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::retrieve::filter::{Filter, Schema};
use crate::retrieve::searcher::Searcher;
use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;

/// The rows of some documents, segment by segment.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    rows: Vec<RoaringBitmap>,
}

/// A filter and how many documents it lets through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Filtered {
    /// The filter as written.
    pub expression: String,
    /// Documents it admits.
    pub n_admitted: u64,
    /// Documents there are.
    pub n_documents: u64,
}

impl Scope {
    /// All documents.
    pub(crate) fn all(snapshot: &Generation) -> Self {
        let all = |segment: &Segment| RoaringBitmap::from_iter(0..segment.chunks.len() as u32);
        Self { rows: snapshot.segments.iter().map(all).collect() }
    }

    /// It without some rows of a segment.
    pub(crate) fn without(mut self, segment: usize, rows: Range<u32>) -> Self {
        self.rows[segment].remove_range(rows);
        self
    }

    /// Some rows of a segment alone.
    pub(crate) fn only(snapshot: &Generation, segment: usize, rows: Range<u32>) -> Self {
        let mut only = vec![RoaringBitmap::new(); snapshot.segments.len()];
        only[segment].insert_range(rows);
        Self { rows: only }
    }

    /// The rows of a segment that may answer.
    pub(crate) fn rows(&self, segment: usize) -> &RoaringBitmap {
        &self.rows[segment]
    }

    /// What of it lies within another, if there is one.
    pub(crate) fn within(mut self, other: Option<&Self>) -> Self {
        let others = other.into_iter().flat_map(|other| &other.rows);
        self.rows.iter_mut().zip(others).for_each(|(own, other)| *own &= other);
        self
    }
}

/// The fields of the documents of a generation, dead ones too, until their segment goes.
pub(crate) fn schema(generation: &Generation) -> Result<Schema> {
    Ok(Schema::of(generation.segments.iter().map(|segment| &segment.metadata))?)
}

/// The live documents that a filter admits, segment by segment.
pub(crate) fn admitted(generation: &Generation, filter: &Filter) -> Result<Vec<RoaringBitmap>> {
    schema(generation)?.check(filter)?;
    let of_segment = |segment: &Segment| Ok(filter.documents(&segment.metadata)? - &segment.deleted);
    generation.segments.iter().map(of_segment).collect()
}

impl Searcher {
    /// How many documents a filter lets through.
    pub fn filtered(&self, filter: &Filter) -> Result<Filtered> {
        Ok(self.filter_scope(filter)?.1)
    }

    /// The scope of a filter.
    pub(crate) fn filter_scope(&self, filter: &Filter) -> Result<(Scope, Filtered)> {
        let admitted = admitted(&self.snapshot, filter)?;
        let filtered = Filtered {
            expression: filter.as_str().to_owned(),
            n_admitted: admitted.iter().map(RoaringBitmap::len).sum(),
            n_documents: self.snapshot.n_documents(),
        };
        let segments = self.snapshot.segments.iter().zip(&admitted);
        let rows = segments.map(|(segment, documents)| rows_of(segment, documents)).collect::<Result<_>>()?;
        Ok((Scope { rows }, filtered))
    }

    /// The scope of a list of documents; an id that the collection does not hold is an error that names the nearest.
    pub(crate) fn scope(&self, documents: &[String]) -> Result<Scope> {
        let mut numbers = vec![RoaringBitmap::new(); self.snapshot.segments.len()];
        for id in documents {
            let Some((segment, document)) = self.snapshot.find(id)? else {
                let nearest = crate::retrieve::documents::nearest(&self.snapshot, id)?;
                return Err(Error::UnknownDocument { nearest, id: id.clone() });
            };
            numbers[segment].insert(document);
        }
        let segments = self.snapshot.segments.iter().zip(&numbers);
        let rows = segments.map(|(segment, documents)| rows_of(segment, documents)).collect::<Result<_>>()?;
        Ok(Scope { rows })
    }
}

/// The rows of some documents; those of documents that follow each other are one range.
fn rows_of(segment: &Segment, documents: &RoaringBitmap) -> Result<RoaringBitmap> {
    let mut rows = RoaringBitmap::new();
    let mut documents = documents.iter().peekable();
    while let Some(first) = documents.next() {
        let mut last = first;
        while let Some(next) = documents.next_if(|&next| next == last + 1) {
            last = next;
        }
        rows.insert_range(segment.document(first)?.first_row..segment.document(last)?.rows().end);
    }
    Ok(rows)
}
