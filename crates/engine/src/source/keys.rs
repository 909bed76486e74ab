//! Keys: from rows or units of a collection to a ranking, and the public ids of what is ranked.

use std::sync::Arc;

use cento_collection::format::segment::{ChunkRecord, Segment};
use cento_collection::format::table::Text;
use cento_collection::keep::generation::Generation;
use cento_lexical::Unit;

use crate::error::Result;
use crate::source::ranking::{Ranking, keep_best, sort_ranking};
use crate::source::refs::{ChunkRef, RankedChunk};

/// The (segment, unit, score) that may be among the `depth` best, ranked.
pub(super) fn ranked(
    generation: &Generation,
    unit: Unit,
    mut candidates: Vec<(usize, u32, f64)>,
    depth: usize,
) -> Result<Ranking> {
    keep_best(&mut candidates, depth, |candidate| candidate.2);
    let placed = |(at, unit_or_row, score): (usize, u32, f64)| -> Result<(RankedChunk, f64)> {
        let row = match unit {
            Unit::Row => unit_or_row,
            // A unit here is a document that has rows.
            Unit::Document => {
                let segment = &generation.segments[at];
                segment.document(segment.units()?.documents[unit_or_row as usize])?.first_row
            }
        };
        Ok((ChunkRef::new(at, row).into(), score))
    };
    let mut ranking = candidates.into_iter().map(placed).collect::<Result<Ranking>>()?;
    sort_ranking(&mut ranking, |chunks| ids(generation, unit, chunks))?;
    Ok(ranking)
}

/// The public ids of chunks, or of their documents.
pub(super) fn ids(generation: &Generation, unit: Unit, chunks: &[ChunkRef]) -> Result<Vec<Arc<str>>> {
    // Table by table: a record lies anywhere, and memory is slow to bring one, not to bring many at a time.
    let places = || chunks.iter().map(|chunk| (&generation.segments[chunk.place().0], chunk.place().1));
    let records: Vec<ChunkRecord> =
        places().map(|(segment, row)| segment.chunks.record(row as usize)).collect::<Result<_, _>>()?;
    let documents = places().zip(&records).map(|((segment, _), chunk)| segment.document(chunk.document));
    let texts = documents.map(|document| document.map(|document| document.id)).collect::<Result<Vec<_>, _>>()?;
    let id = |(((segment, _), chunk), text): (((&Segment, u32), &ChunkRecord), Text)| {
        let document = segment.documents.text(text)?;
        Ok(match unit {
            Unit::Row => format!("{document}#{}", chunk.index).into(),
            Unit::Document => document.into(),
        })
    };
    places().zip(&records).zip(texts).map(id).collect()
}
