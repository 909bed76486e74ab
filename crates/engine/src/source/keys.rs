//! Keys: the public ids of the rows or units of a collection.

use std::fmt::Write as _;

use cento_collection::keep::generation::Generation;
use cento_lexical::Unit;

use crate::error::Result;
use crate::source::ranking::{Ranking, keep_best, sort_ranking};
use crate::source::refs::{ChunkKey, ChunkRef, PublicId};

pub(super) fn chunk_key(generation: &Generation, segment: usize, row: u32) -> Result<ChunkKey> {
    let of = &generation.segments[segment];
    let chunk = of.chunks.record(row as usize)?;
    let id = format!("{}#{}", of.document_id(chunk.document)?, chunk.index);
    Ok(ChunkKey { id: id.into(), chunk: ChunkRef::new(segment, row) })
}

/// The place of what has a key: the segment, the document in it, its first row or that of the chunk, and the number of
/// the chunk.
type Keyed = (usize, u32, u32, Option<u32>);

/// The (segment, unit, score) that may be among the `depth` best, ranked; public ids are made only for those.
pub(super) fn ranked(
    generation: &Generation,
    unit: Unit,
    mut candidates: Vec<(usize, u32, f64)>,
    depth: usize,
) -> Result<Ranking> {
    keep_best(&mut candidates, depth, |candidate| candidate.2);
    let keyed = |&(at, unit_or_row, _): &(usize, u32, f64)| -> Result<Keyed> {
        let segment = &generation.segments[at];
        match unit {
            Unit::Row => {
                let chunk = segment.chunks.record(unit_or_row as usize)?;
                Ok((at, chunk.document, unit_or_row, Some(chunk.index)))
            }
            // A unit here is a document that has rows.
            Unit::Document => {
                let document = segment.units()?.documents[unit_or_row as usize];
                Ok((at, document, segment.document(document)?.first_row, None))
            }
        }
    };
    // What is needed of all of them, table by table: a record lies anywhere, and memory is slow to bring one, not to
    // bring many at a time.
    let keyed: Vec<Keyed> = candidates.iter().map(keyed).collect::<Result<_>>()?;
    let ids = keyed.iter().map(|&(at, document, ..)| generation.segments[at].document(document));
    let ids = ids.map(|document| document.map(|document| document.id)).collect::<std::result::Result<Vec<_>, _>>()?;
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(keyed.len()));
    for (&(at, .., number), id) in keyed.iter().zip(ids) {
        text.push_str(generation.segments[at].documents.text(id)?);
        if let Some(number) = number {
            let _ = write!(text, "#{number}"); // writing into a string does not fail
        }
        ends.push(text.len());
    }
    let keys = keyed.iter().zip(PublicId::several(text, ends));
    let keys = keys.map(|(&(at, _, row, _), id)| ChunkKey { id, chunk: ChunkRef::new(at, row) });
    let mut ranking: Ranking = keys.zip(candidates.iter().map(|candidate| candidate.2)).collect();
    sort_ranking(&mut ranking);
    Ok(ranking)
}
