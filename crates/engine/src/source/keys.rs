//! Keys: the public ids of the rows or units of a collection.

use cento_collection::keep::generation::Generation;
use cento_lexical::Unit;

use crate::error::Result;
use crate::source::ranking::{Ranking, keep_best, sort_ranking};
use crate::source::refs::{ChunkKey, ChunkRef};

pub(super) fn chunk_key(generation: &Generation, segment: usize, row: u32) -> Result<ChunkKey> {
    let found = &generation.segments[segment];
    let chunk = found.chunks.record(row as usize)?;
    let id = format!("{}#{}", found.document_id(chunk.document)?, chunk.index);
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
    let keyed = candidates.into_iter().map(|(segment, at, score)| {
        let key = match unit {
            Unit::Row => chunk_key(generation, segment, at)?,
            Unit::Document => document_key(generation, segment, at)?,
        };
        Ok((key, score))
    });
    let mut keyed = keyed.collect::<Result<Ranking>>()?;
    sort_ranking(&mut keyed);
    Ok(keyed)
}
