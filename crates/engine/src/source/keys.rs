//! Keys: the public ids of the rows or units of a collection.

use std::fmt::Write as _;

use cento_collection::format::segment::ChunkRecord;
use cento_collection::keep::generation::Generation;
use cento_lexical::Unit;

use crate::error::Result;
use crate::source::ranking::{Ranking, keep_best, sort_ranking};
use crate::source::refs::{ChunkKey, ChunkRef};

/// The most bytes of the number of a chunk and of the sign before it.
const NUMBER_BYTES: usize = 11;

pub(super) fn chunk_key(generation: &Generation, segment: usize, row: u32) -> Result<ChunkKey> {
    let chunk = generation.segments[segment].chunks.record(row as usize)?;
    key_of(generation, segment, row, &chunk)
}

fn key_of(generation: &Generation, segment: usize, row: u32, chunk: &ChunkRecord) -> Result<ChunkKey> {
    let document = generation.segments[segment].document_id(chunk.document)?;
    let mut id = String::with_capacity(document.len() + NUMBER_BYTES);
    id.push_str(document);
    let _ = write!(id, "#{}", chunk.index); // writing into a string does not fail
    Ok(ChunkKey { id, chunk: ChunkRef::new(segment, row) })
}

/// A unit here is a document that has rows.
fn document_key(generation: &Generation, segment: usize, unit: u32) -> Result<ChunkKey> {
    let found = &generation.segments[segment];
    let record = found.document(found.units()?.documents[unit as usize])?;
    let id = found.documents.text(record.id)?.to_owned();
    Ok(ChunkKey { id, chunk: ChunkRef::new(segment, record.first_row) })
}

/// The (segment, unit, score) that may be among the `depth` best, ranked; public ids are made only for those.
pub(super) fn ranked(
    generation: &Generation,
    unit: Unit,
    mut candidates: Vec<(usize, u32, f64)>,
    depth: usize,
) -> Result<Ranking> {
    keep_best(&mut candidates, depth, |candidate| candidate.2);
    let mut keyed = Ranking::with_capacity(candidates.len());
    match unit {
        Unit::Row => {
            // All records first: a row lies anywhere, and memory is slow to bring one, not to bring many at a time.
            let record =
                |&(segment, row, _): &(usize, u32, f64)| generation.segments[segment].chunks.record(row as usize);
            let records = candidates.iter().map(record).collect::<std::result::Result<Vec<_>, _>>()?;
            for ((segment, row, score), record) in candidates.into_iter().zip(records) {
                keyed.push((key_of(generation, segment, row, &record)?, score));
            }
        }
        Unit::Document => {
            for (segment, unit, score) in candidates {
                keyed.push((document_key(generation, segment, unit)?, score));
            }
        }
    }
    sort_ranking(&mut keyed);
    Ok(keyed)
}
