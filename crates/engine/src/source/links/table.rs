//! Who has a name: the live documents of one collection by all their names.
//!
//! Memory: some 100 bytes a document, and as many a numbered heading once a number was asked for.
//! Cost: ids and titles are read once, when a link is first resolved, headings when a number is; then a look a name.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use cento_collection::format::metadata::{Comparison, Stored};
use cento_collection::keep::generation::Generation;
use cento_corpus::own_id;

use super::headings;
use super::names::{Name, of_document, of_part, parts_of_heading};
use crate::error::Result;
use crate::source::refs::Chunks;
use crate::source::titles::Holder;

/// Documents kept of a name that only one may have for it to mean something.
const SEVERAL: usize = 2;

/// The live documents that have rows, by their names.
#[derive(Debug, Default)]
pub(in crate::source) struct NameTable {
    documents: OnceLock<ByName>,
    /// Those with numbered headings.
    parts: OnceLock<ByName>,
}

/// Segment and number of documents by the hash of a name.
type ByName = HashMap<u64, Vec<(usize, u32)>>;

impl NameTable {
    /// The documents that have a name; of one that says nothing if several have it, two.
    pub(in crate::source) fn holders(&self, generation: &Generation, name: &Name) -> Result<Vec<Holder>> {
        let places = match name {
            Name::Field(field, value) => return of_field(generation, field, value),
            Name::Number { .. } => known(&self.parts, generation, names_of_parts)?.get(&hashed(name)),
            Name::Id(_) | Name::File(_) | Name::Page(_) | Name::Module(_) | Name::Stem(_) | Name::Title(_) => {
                known(&self.documents, generation, names_of_document)?.get(&hashed(name))
            }
        };
        let mut holders = Vec::new();
        for &place in places.into_iter().flatten() {
            let names = match name {
                Name::Number { .. } => names_of_parts(generation, place)?,
                _ => names_of_document(generation, place)?,
            };
            if names.contains(name) {
                holders.extend(holder(generation, place)?); // two names may have one hash
            }
        }
        Ok(holders)
    }
}

/// The table, made when it is first asked for.
fn known<'t>(
    table: &'t OnceLock<ByName>,
    generation: &Generation,
    names: fn(&Generation, (usize, u32)) -> Result<Vec<Name>>,
) -> Result<&'t ByName> {
    if let Some(known) = table.get() {
        return Ok(known);
    }
    let mut by_name = ByName::new();
    for (at, segment) in generation.segments.iter().enumerate() {
        for number in segment.live_documents() {
            if segment.document(number)?.n_rows == 0 {
                continue;
            }
            for name in names(generation, (at, number))? {
                let holders = by_name.entry(hashed(&name)).or_default();
                let says_nothing_twice = matches!(name, Name::Stem(_) | Name::Title(_) | Name::Number { .. });
                let is_there = holders.last() == Some(&(at, number));
                if !is_there && !(says_nothing_twice && holders.len() >= SEVERAL) {
                    holders.push((at, number));
                }
            }
        }
    }
    Ok(table.get_or_init(|| by_name)) // another thread read the same
}

fn names_of_document(generation: &Generation, (at, number): (usize, u32)) -> Result<Vec<Name>> {
    let segment = &generation.segments[at];
    let record = segment.document(number)?;
    let text = |text| segment.documents.text(text);
    let (id, origin, title) = (text(record.id)?, text(record.origin)?, text(record.title)?);
    Ok(of_document(id, own_id(id, origin), title))
}

fn names_of_parts(generation: &Generation, (at, number): (usize, u32)) -> Result<Vec<Name>> {
    let segment = &generation.segments[at];
    let record = segment.document(number)?;
    let (id, origin) = (segment.documents.text(record.id)?, segment.documents.text(record.origin)?);
    let title = segment.documents.text(record.title)?.to_owned();
    let headings = headings::read(segment, &record)?.into_iter().map(|heading| heading.text);
    let parts = headings.chain([title]).flat_map(|heading| parts_of_heading(&heading));
    Ok(parts.flat_map(|part| of_part(id, origin, &part)).collect())
}

/// The documents whose field has a value.
fn of_field(generation: &Generation, field: &str, value: &str) -> Result<Vec<Holder>> {
    let mut holders = Vec::new();
    for (at, segment) in generation.segments.iter().enumerate() {
        let position = |stored: Stored<'_>| match stored {
            Stored::String(known) => Some(known.cmp(value)),
            Stored::Boolean(_) | Stored::Integer(_) | Stored::Float(_) | Stored::Date(_) => None,
        };
        let found = segment.metadata.matching(field, Comparison::Equal, position)? - &segment.deleted;
        for number in found.iter().take(SEVERAL) {
            holders.extend(holder(generation, (at, number))?);
        }
    }
    Ok(holders)
}

/// A document as what a link names; nothing where it has no rows.
fn holder(generation: &Generation, (at, number): (usize, u32)) -> Result<Option<Holder>> {
    let segment = &generation.segments[at];
    let record = segment.document(number)?;
    if record.n_rows == 0 {
        return Ok(None);
    }
    Ok(Some(Holder {
        document: segment.documents.text(record.id)?.to_owned(),
        chunks: Chunks::new(at, record.rows()),
        number: segment.chunks.record(record.first_row as usize)?.index,
    }))
}

fn hashed(name: &Name) -> u64 {
    let mut hasher = DefaultHasher::new(); // the same in one process, and stored nowhere
    name.hash(&mut hasher);
    hasher.finish()
}
