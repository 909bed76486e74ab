//! Chunks as assembly needs them, and those that stand beside the best ones.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use cento_assembly::policy::normalize_label;
use cento_assembly::{Anchor, Candidate, Extent};
use cento_collection::format::metadata;
use cento_collection::format::segment::{ChunkRecord, DocumentRecord, Segment};
use cento_collection::keep::generation::Generation;
use cento_corpus::Format;
use cento_lexical::Unit;

use crate::error::Result;
use crate::source::keys;
use crate::source::refs::{Around, ChunkKey, ChunkRef};

/// The chunks beside others, each once, in the order of their rows; some may be those that others stand beside.
pub(super) fn around(generation: &Generation, around: &[Around]) -> Result<Vec<ChunkKey>> {
    let mut beside: BTreeSet<(usize, u32)> = BTreeSet::new();
    for Around { chunk, numbers, tokens_max } in around {
        let (number, row) = chunk.place();
        let segment = &generation.segments[number];
        let document = segment.document(segment.chunks.record(row as usize)?.document)?;
        let rows = document.rows();
        let mut walk = |side: &mut dyn Iterator<Item = u32>| -> Result<()> {
            let mut n_tokens = 0_usize;
            for row in side {
                let chunk = segment.chunks.record(row as usize)?;
                if !numbers.contains(&chunk.index) || n_tokens > *tokens_max {
                    break;
                }
                n_tokens = n_tokens.saturating_add(chunk.n_tokens as usize);
                beside.insert((number, row));
            }
            Ok(())
        };
        walk(&mut (rows.start..row).rev())?;
        walk(&mut (row.saturating_add(1)..rows.end))?;
    }
    let chunks: Vec<ChunkRef> = beside.into_iter().map(|(segment, row)| ChunkRef::new(segment, row)).collect();
    let ids = keys::ids(generation, Unit::Row, &chunks)?;
    Ok(chunks.into_iter().zip(ids).map(|(chunk, id)| ChunkKey { id: id.to_string(), chunk }).collect())
}

/// The facts that assembly needs of each chunk, in the order given; texts are read in the order they lie in.
pub(super) fn candidates(generation: &Generation, chunks: &[ChunkRef]) -> Result<Vec<Candidate>> {
    let mut order: Vec<usize> = (0..chunks.len()).collect();
    order.sort_unstable_by_key(|&at| chunks[at].place());
    let mut documents: HashMap<(usize, u32), DocumentFacts> = HashMap::new();
    let mut texts: Vec<_> = generation.segments.iter().map(|segment| segment.texts.reader()).collect();
    let mut candidates = Vec::with_capacity(chunks.len());
    for at in order {
        let (number, row) = chunks[at].place();
        let segment = &generation.segments[number];
        let chunk = segment.chunks.record(row as usize)?;
        let facts = match documents.entry((number, chunk.document)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(DocumentFacts::read(segment, chunk.document)?),
        };
        let text = texts[number].read(facts.record.text(chunk.start..chunk.end))?;
        candidates.push((at, facts.candidate(segment, &chunk, text)?));
    }
    candidates.sort_unstable_by_key(|(at, _)| *at);
    Ok(candidates.into_iter().map(|(_, candidate)| candidate).collect())
}

/// The facts that all candidates of a document share.
struct DocumentFacts {
    record: DocumentRecord,
    id: String,
    title: String,
    types: Vec<String>,
    /// Without headings the whole document is no section.
    has_headings: bool,
    /// Numbers of the chunks of each section that was asked for.
    sections: HashMap<u32, Range<u32>>,
}

impl DocumentFacts {
    fn read(segment: &Segment, document: u32) -> Result<Self> {
        let record = segment.document(document)?;
        let (id, title) =
            (segment.documents.text(record.id)?.to_owned(), segment.documents.text(record.title)?.to_owned());
        let origin = segment.documents.text(record.origin)?;
        let types = record.format().map_or_else(Vec::new, |format| metadata::types(origin, format));
        let (mut has_headings, mut number) = (false, 1); // 0 is the whole document
        while !has_headings && number < record.n_sections {
            let heading = segment.section(&record, number)?.heading; // empty for front matter
            (has_headings, number) = (!segment.sections.text(heading)?.is_empty(), number + 1);
        }
        Ok(Self { record, id, title, types, has_headings, sections: HashMap::new() })
    }

    fn candidate(&mut self, segment: &Segment, chunk: &ChunkRecord, text: String) -> Result<Candidate> {
        let path = heading_path(segment, &self.record, chunk.section)?;
        let parents = self.parents(segment, chunk.section)?;
        let heading = section_heading(&path, &self.title);
        Ok(Candidate {
            id: format!("{}#{}", self.id, chunk.index),
            document: self.id.clone(),
            types: self.types.clone(),
            title: self.title.clone(),
            index: chunk.index,
            n_chunks: self.record.n_chunks,
            section: format!("{}\u{1f}{heading}", self.id),
            label: normalize_label(heading),
            path,
            span: chunk.start..chunk.end,
            source: self.record.text_kind(),
            anchor: self.anchor(segment, chunk, &text)?,
            text,
            n_tokens: chunk.n_tokens,
            relevance: 0.0,
            arms: Vec::new(),
            is_neighbor: true,
            parents,
        })
    }

    /// Where a chunk is in the file. Its lines can be counted where the text has those of the file.
    fn anchor(&self, segment: &Segment, chunk: &ChunkRecord, text: &str) -> Result<Anchor> {
        let mut anchor = anchor(chunk);
        if chunk.section < self.record.n_sections {
            let sheet = segment.sections.text(segment.section(&self.record, chunk.section)?.sheet)?;
            anchor.sheet = Some(sheet).filter(|sheet| !sheet.is_empty()).map(str::to_owned);
        }
        if self.record.format().is_some_and(Format::has_lines_of_file) {
            anchor.line = anchor.line.map(|line| Extent::lines(line.first, text, 0..text.len()));
        }
        Ok(anchor)
    }

    /// Numbers of the chunks of a section and of those around it, innermost first; of none in a document without
    /// headings.
    fn parents(&mut self, segment: &Segment, section: u32) -> Result<Vec<Range<u32>>> {
        let mut parents = Vec::new();
        let mut next = Some(section).filter(|&section| self.has_headings && section < self.record.n_sections);
        while let Some(number) = next {
            let section = segment.section(&self.record, number)?;
            let chunks = match self.sections.get(&number) {
                Some(chunks) => chunks.clone(),
                None => {
                    let first = self.chunk_at(segment, section.start)?;
                    let chunks = first..self.chunk_at(segment, section.end)?;
                    self.sections.insert(number, chunks.clone());
                    chunks
                }
            };
            parents.push(chunks);
            next = section.parent().filter(|&parent| parent < number);
        }
        Ok(parents)
    }

    /// Number of the first chunk with a row that starts at a byte of the document or behind it; behind the last one if
    /// there is none.
    fn chunk_at(&self, segment: &Segment, byte: u64) -> Result<u32> {
        let Range { start: mut low, end } = self.record.rows();
        let mut high = end;
        while low < high {
            let middle = low + (high - low) / 2;
            if segment.chunks.record(middle as usize)?.start < byte { low = middle + 1 } else { high = middle }
        }
        if low == end {
            return Ok(self.record.n_chunks);
        }
        Ok(segment.chunks.record(low as usize)?.index)
    }
}

/// Where a chunk begins in its source: page, row, or line; a chunk with a row is found by that.
pub(super) fn anchor(chunk: &ChunkRecord) -> Anchor {
    let line = chunk.line().filter(|_| chunk.row().is_none());
    Anchor {
        page: chunk.page().map(Extent::from),
        sheet: None,
        row: chunk.row().map(Extent::from),
        line: line.map(Extent::from),
    }
}

/// Headings above a section, outermost first, its own last.
pub(super) fn heading_path(segment: &Segment, document: &DocumentRecord, section: u32) -> Result<Vec<String>> {
    let mut path = Vec::new();
    let mut next = Some(section).filter(|&section| section < document.n_sections);
    while let Some(number) = next {
        let section = segment.section(document, number)?;
        let heading = segment.sections.text(section.heading)?;
        if !heading.is_empty() {
            path.push(heading.to_owned());
        }
        next = section.parent().filter(|&parent| parent < number); // parents come first: the walk ends
    }
    path.reverse();
    Ok(path)
}

/// The top heading below the document's title; the title itself where there is none.
pub(crate) fn section_heading<'p>(path: &'p [String], title: &'p str) -> &'p str {
    match path {
        [first, second, ..] if first == title => second,
        [first, ..] => first,
        [] => title,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_the_top_heading_below_the_title() {
        let path = |headings: &[&str]| headings.iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>();
        assert_eq!(section_heading(&path(&["Guide", "Install", "Linux"]), "Guide"), "Install");
        assert_eq!(section_heading(&path(&["Guide"]), "Guide"), "Guide");
        assert_eq!(section_heading(&path(&["Part"]), "Guide"), "Part");
        assert_eq!(section_heading(&[], "Guide"), "Guide");
    }
}
