//! The fixed-size records of a segment's tables. Strings are ranges of the table's heap; absent numbers are [`NONE`].

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use cento_assembly::{Anchor, Extent};
use cento_corpus::Format;

use crate::table::Text;

/// No such number: a section without parent, an unknown line or page.
pub(crate) const NONE: u32 = u32::MAX;
/// No map to the source file.
pub(crate) const NO_SOURCE: u64 = u64::MAX;

/// What `documents.table` holds of a document.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct DocumentRecord {
    pub(crate) id: Text,
    pub(crate) origin: Text,
    pub(crate) title: Text,
    pub(crate) metadata: Text,
    pub(crate) text_start: u64,
    pub(crate) text_bytes: u64,
    pub(crate) hash: [u8; 32],
    pub(crate) first_row: u32,
    pub(crate) n_rows: u32,
    pub(crate) first_section: u32,
    pub(crate) n_sections: u32,
    pub(crate) n_chunks: u32,
    pub(crate) is_extracted: u32,
    pub(crate) format: u32,
    pub(crate) reserved: u32,
}

/// What `sections.table` holds of a section; `parent` counts from the document's first section.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SectionRecord {
    pub(crate) heading: Text,
    pub(crate) sheet: Text,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) heading_start: u64,
    pub(crate) heading_end: u64,
    pub(crate) level: u32,
    pub(crate) parent: u32,
    pub(crate) line: u32,
    pub(crate) page: u32,
}

/// What `chunks.table` holds of a chunk; `index` is its number within its document, hidden chunks counted. Its header is not
/// kept: document, sections and `header_skip` say what it was.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ChunkRecord {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) source_start: u64,
    pub(crate) source_end: u64,
    pub(crate) hash: [u8; 16],
    pub(crate) document: u32,
    pub(crate) index: u32,
    pub(crate) section: u32,
    pub(crate) n_tokens: u32,
    pub(crate) line: u32,
    pub(crate) page: u32,
    pub(crate) sheet_row: u32,
    pub(crate) header_skip: u32,
}

/// The formats by the number that records have for them.
const FORMATS: [Format; 5] = [Format::Markdown, Format::Text, Format::Html, Format::Jsonl, Format::Csv];

/// The number of a format in records; a document has a format of its own, never that of a folder or none.
pub(crate) fn format_number(format: Format) -> u32 {
    FORMATS.iter().position(|known| *known == format).expect("documents are read as one of the formats") as u32
}

impl DocumentRecord {
    /// What the document was read as; `None` if the record is damaged.
    pub(crate) fn format(&self) -> Option<Format> {
        FORMATS.get(self.format as usize).copied()
    }

    /// Its rows. A record may say anything, and what lies outside a file is noticed where it is read.
    pub(crate) fn rows(&self) -> Range<u32> {
        self.first_row..self.first_row.saturating_add(self.n_rows)
    }

    /// Where a span of the document lies in the segment's stream of texts.
    pub(crate) fn text(&self, span: Range<u64>) -> Range<u64> {
        self.text_start.saturating_add(span.start)..self.text_start.saturating_add(span.end)
    }

    /// Which text spans point into: the file's own bytes, or text extracted from it.
    pub(crate) fn text_kind(&self) -> &'static str {
        match self.is_extracted {
            0 => "source",
            _ => "extracted",
        }
    }
}

impl SectionRecord {
    pub(crate) fn parent(&self) -> Option<u32> {
        some(self.parent)
    }
}

impl ChunkRecord {
    /// What a chunk's text is known by.
    pub(crate) fn hash(text: &str) -> [u8; 16] {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        hash
    }

    /// Whether this is the text that was indexed.
    pub(crate) fn is_of(&self, text: &str) -> bool {
        self.hash == Self::hash(text)
    }

    /// Where the chunk begins in its source: page, row, or line; what has a row is found by that.
    pub(crate) fn anchor(&self) -> Anchor {
        let (page, row) = (some(self.page), some(self.sheet_row));
        let line = some(self.line).filter(|_| row.is_none());
        Anchor { page: page.map(Extent::from), sheet: None, row: row.map(Extent::from), line: line.map(Extent::from) }
    }

    /// Byte range in the source file, where the reader kept a map to it.
    pub(crate) fn source(&self) -> Option<Range<u64>> {
        (self.source_start != NO_SOURCE).then_some(self.source_start..self.source_end)
    }
}

/// A number, if it is there.
pub(super) fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_any_bytes_has_ranges() {
        let record: DocumentRecord = bytemuck::pod_read_unaligned(&[0xff; size_of::<DocumentRecord>()]);
        assert_eq!((record.rows(), record.text(0..1)), (u32::MAX..u32::MAX, u64::MAX..u64::MAX));
    }
}
