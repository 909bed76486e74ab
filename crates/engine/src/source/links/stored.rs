//! The stored links of the documents of one collection.

use cento_collection::keep::generation::Generation;

use super::{Heading, Linkers, Linking, headings};
use crate::error::Result;

/// A live document with its links; nothing where there is no such document.
pub(in crate::source) fn linking(generation: &Generation, id: &str) -> Result<Option<Linking>> {
    let Some((at, number)) = generation.find(id)? else { return Ok(None) };
    let segment = &generation.segments[at];
    let record = segment.document(number)?;
    let origin = segment.documents.text(record.origin)?.to_owned();
    Ok(Some(Linking { id: id.to_owned(), origin, links: segment.links.of(number, &record)? }))
}

/// The live documents that link.
pub(in crate::source) fn linkers(generation: &Generation) -> Result<Linkers> {
    let mut linkers = Linkers::default();
    for segment in &generation.segments {
        for number in segment.live_documents() {
            let record = segment.document(number)?;
            match record.n_links() {
                None => linkers.n_unknown += 1,
                Some(0) => {}
                Some(_) => linkers.ids.push(segment.documents.text(record.id)?.to_owned()),
            }
        }
    }
    Ok(linkers)
}

/// The sections of a live document that have a heading; nothing where there is no such document.
pub(in crate::source) fn outline(generation: &Generation, id: &str) -> Result<Option<Vec<Heading>>> {
    let Some((at, number)) = generation.find(id)? else { return Ok(None) };
    let segment = &generation.segments[at];
    headings::read(segment, &segment.document(number)?).map(Some)
}
