//! The fixed-size records of a segment's tables. Strings are ranges of the table's heap; absent numbers are [`NONE`].

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use cento_corpus::{Format, LinkKind};

use crate::format::table::Text;

/// No such number: a section without parent, an unknown line or page.
pub(crate) const NONE: u32 = u32::MAX;
/// No map to the source file.
pub(crate) const NO_SOURCE: u64 = u64::MAX;

/// A document in `documents.table`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct DocumentRecord {
    /// Public id.
    pub id: Text,
    /// File it came from: root label and relative path.
    pub origin: Text,
    /// Title; may be empty.
    pub title: Text,
    /// Metadata as stored JSON.
    pub metadata: Text,
    /// First byte in the segment's stream of texts.
    pub text_start: u64,
    /// Bytes of its text.
    pub text_bytes: u64,
    /// BLAKE3 of everything that shapes its rows and citations.
    pub hash: [u8; 32],
    /// Its first row.
    pub first_row: u32,
    /// Its rows: the chunks that are searched.
    pub n_rows: u32,
    /// Its first section record.
    pub first_section: u32,
    /// Its sections; section 0 is the whole document.
    pub n_sections: u32,
    /// Its chunks, hidden ones counted.
    pub n_chunks: u32,
    /// 0 where the text is the bytes of the file.
    pub is_extracted: u32,
    /// Number of its format.
    pub format: u32,
    /// 0 where links were not looked for, which older versions did not; else one more than its link records.
    pub links: u32,
}

/// A link in `links.table`, which has those of a document together, in the order of the documents.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct LinkRecord {
    /// Target as written.
    pub target: Text,
    /// First byte in the document's text where it stands; 0, like the end, where it is not part of the text.
    pub start: u64,
    /// Byte behind the last.
    pub end: u64,
    /// Number of its document in the segment.
    pub document: u32,
    /// Number of its kind.
    pub kind: u32,
}

/// The context of a chunk in `contexts.table`, which has one a row, in their order.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ContextRecord {
    /// A line without its end; empty where a model wrote none.
    pub(super) text: Text,
}

/// A section in `sections.table`; `parent` counts from the document's first section.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct SectionRecord {
    /// Heading; empty for the whole document and front matter.
    pub heading: Text,
    /// Sheet it is of; empty if none.
    pub sheet: Text,
    /// First byte in the document's text.
    pub start: u64,
    /// Byte behind the last.
    pub end: u64,
    /// First byte of the heading.
    pub heading_start: u64,
    /// Byte behind the heading.
    pub heading_end: u64,
    /// 1 is the outermost.
    pub level: u32,
    /// Number of the section around it, or `NONE`.
    pub parent: u32,
    /// Line in the source, or `NONE`.
    pub line: u32,
    /// Page in the source, or `NONE`.
    pub page: u32,
}

/// A chunk in `chunks.table`; `index` is its number within its document, hidden chunks counted. Its header
/// is not kept: document, sections and `header_skip` say what it was.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ChunkRecord {
    /// First byte in the document's text.
    pub start: u64,
    /// Byte behind the last.
    pub end: u64,
    /// First byte in the source file, or `NO_SOURCE`.
    pub source_start: u64,
    /// Byte behind the last in the source file, or `NO_SOURCE`.
    pub source_end: u64,
    /// First half of BLAKE3 of its text.
    pub hash: [u8; 16],
    /// Number of its document in the segment.
    pub document: u32,
    /// Number in its document, hidden chunks counted.
    pub index: u32,
    /// Number of its section in the document.
    pub section: u32,
    /// Tokens of its text, as the encoder counts.
    pub n_tokens: u32,
    /// Line in the source, or `NONE`.
    pub line: u32,
    /// Page in the source, or `NONE`.
    pub page: u32,
    /// Row of its sheet or table, or `NONE`.
    pub sheet_row: u32,
    /// Headings that its header leaves out.
    pub header_skip: u32,
}

impl DocumentRecord {
    /// The format the document was read as; `None` if the record is damaged.
    pub fn format(&self) -> Option<Format> {
        Format::of_number(self.format)
    }

    /// The number of its links; `None` if they were not looked for.
    pub fn n_links(&self) -> Option<u32> {
        self.links.checked_sub(1)
    }

    /// Its rows. A record may say anything, and what lies outside a file is noticed where it is read.
    pub fn rows(&self) -> Range<u32> {
        self.first_row..self.first_row.saturating_add(self.n_rows)
    }

    /// Where a span of the document lies in the segment's stream of texts.
    pub fn text(&self, span: Range<u64>) -> Range<u64> {
        self.text_start.saturating_add(span.start)..self.text_start.saturating_add(span.end)
    }

    /// The text that spans point into: the file's own bytes, or text extracted from it.
    pub fn text_kind(&self) -> &'static str {
        match self.is_extracted {
            0 => "source",
            _ => "extracted",
        }
    }
}

impl LinkRecord {
    /// The way it is written; `None` if the record is damaged.
    pub fn kind(&self) -> Option<LinkKind> {
        LinkKind::of_number(self.kind)
    }
}

impl SectionRecord {
    /// Number of the section around it, if there is one.
    pub fn parent(&self) -> Option<u32> {
        some(self.parent)
    }
}

impl ChunkRecord {
    /// The hash by which a chunk's text is known.
    pub fn hash(text: &str) -> [u8; 16] {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        hash
    }

    /// True if this is the text that was indexed.
    pub fn is_of(&self, text: &str) -> bool {
        self.hash == Self::hash(text)
    }

    /// Page of its source on which it begins.
    pub fn page(&self) -> Option<u32> {
        some(self.page)
    }

    /// Row of its sheet or table.
    pub fn row(&self) -> Option<u32> {
        some(self.sheet_row)
    }

    /// Line of its source on which it begins.
    pub fn line(&self) -> Option<u32> {
        some(self.line)
    }

    /// Byte range in the source file, where the reader kept a map to it.
    pub fn source(&self) -> Option<Range<u64>> {
        (self.source_start != NO_SOURCE).then_some(self.source_start..self.source_end)
    }
}

/// A number, if it is there.
pub(crate) fn some(number: u32) -> Option<u32> {
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
