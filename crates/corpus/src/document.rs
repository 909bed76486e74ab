//! A document: one canonical text, and everything that is known about places in it.
//!
//! Sections, blocks, sentences, chunks and citations are half-open byte spans of that text; it is stored once.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;
use crate::budget::{BLOCKS_MAX, Excess, FREE_BYTES, HEADERS_PER_BYTE_MAX, HEADING_BYTES_MAX, text_bytes_max, within};
use crate::format::Format;
use crate::links::Link;
use crate::metadata::Metadata;
use crate::section::Section;

/// The id that a record of the JSONL file at `origin` has in a collection. A file holds no files, so no file has it.
pub(crate) fn record_id(origin: &str, own: &str) -> String {
    format!("{origin}/{own}")
}

/// The own id of a record, from that in the collection; none where the two are one, or nothing but a line was its name.
pub fn own_id<'i>(id: &'i str, origin: &str) -> Option<&'i str> {
    id.strip_prefix(origin)?.strip_prefix('/')
}

/// A text with its outline, ready to be cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Public id: root label/relative path for a file; for a record of JSONL that of its file, `/` and its own, or its
    /// own alone in a BEIR corpus.
    pub id: String,
    /// The file it was read from, as root label/relative path, always with `/`.
    pub origin: String,
    /// The format it was read as.
    pub format: Format,
    /// Title for headers and citations; empty where the source has none (a JSONL row without a title).
    pub title: String,
    /// The canonical text.
    pub text: String,
    /// The origin of the canonical text.
    pub kind: TextKind,
    /// Heading tree in preorder; `[0]` is the whole document, level 0, without a heading.
    pub sections: Vec<Section>,
    /// Parts the chunker prefers not to cut, in order; their spans partition the text.
    pub blocks: Vec<Block>,
    /// Front matter, other JSON keys, HTML `meta`.
    pub metadata: Metadata,
    /// Links that its author made, in the order of the text.
    pub links: Vec<Link>,
    /// Oddities of the source, and what was done about them.
    pub warnings: Vec<String>,
}

impl Document {
    /// The headings open in `section`, outermost first; sections without a heading are left out.
    pub fn path(&self, section: u32) -> Vec<&str> {
        self.ancestors(section)
            .iter()
            .map(|section| section.heading.as_str())
            .filter(|heading| !heading.is_empty())
            .collect()
    }

    /// Holds the document, which was read from `n_bytes`, against the budgets that every format shares.
    pub(crate) fn within_budgets(&self, n_bytes: u64) -> Result<(), Excess> {
        let n_text_bytes = self.text.len() as u64;
        within("bytes of text", n_text_bytes, text_bytes_max(n_bytes))?;
        within("bytes of title", self.title.len() as u64, HEADING_BYTES_MAX)?;
        let mut header_bytes: Vec<u64> = Vec::with_capacity(self.sections.len()); // of each section's longest header
        for section in &self.sections {
            let own = section.heading.len() as u64;
            within("bytes in one heading", own, HEADING_BYTES_MAX)?;
            header_bytes.push(own + section.parent.map_or(0, |parent| header_bytes[parent as usize]));
        }
        let runs = self.blocks.chunk_by(|a, b| a.section == b.section);
        let sum = runs.map(|run| header_bytes[run[0].section as usize]).sum();
        let limit = n_text_bytes.saturating_mul(HEADERS_PER_BYTE_MAX).saturating_add(FREE_BYTES);
        within("bytes of headings above its parts", sum, limit)
    }

    /// `section` and the sections around it, outermost first, without the whole document.
    pub(crate) fn ancestors(&self, section: u32) -> Vec<&Section> {
        let mut open = Vec::new();
        let mut at = Some(section);
        while let Some(index) = at.filter(|&index| index > 0) {
            open.push(&self.sections[index as usize]);
            at = self.sections[index as usize].parent;
        }
        open.reverse();
        open
    }
}

/// The kind of a document's canonical text, which a citation's bytes point into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextKind {
    /// The bytes of the file itself.
    Source,
    /// Text extracted from the file.
    Extracted,
}

/// A paragraph, table, fence, row …: the chunker cuts between blocks before it cuts inside one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Bytes of the canonical text, blank lines after it included.
    pub span: Range<usize>,
    /// The way it may be cut.
    pub kind: BlockKind,
    /// Innermost section it belongs to.
    pub section: u32,
    /// Where it begins in the source file; left empty where the text is the source.
    pub anchor: Anchor,
}

/// The way a block may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// At sentences.
    Prose,
    /// A heading: stays with the text that follows it.
    Heading,
    /// At lines, and only if it does not fit the window.
    Table,
    /// At lines, and only if it does not fit the window.
    Code,
    /// One chunk of its own, cut only if it does not fit the window.
    Row,
    /// Front matter: kept in the text, never embedded or delivered.
    Hidden,
}

/// Blocks from `starts`, ascending and each with its kind and section: every block runs to the next, the first from
/// byte 0.
///
/// A block of white space alone joins the one before it in its section, else the one after it.
///
/// # Errors
/// There are more of them than a document may have.
pub(crate) fn blocks_from_starts(text: &str, starts: Vec<(usize, BlockKind, u32)>) -> Result<Vec<Block>, Excess> {
    within("paragraphs", starts.len() as u64, BLOCKS_MAX)?;
    let mut blocks: Vec<Block> = Vec::with_capacity(starts.len());
    let ends: Vec<usize> = starts.iter().skip(1).map(|start| start.0).chain([text.len()]).collect();
    for (i, ((start, kind, section), end)) in starts.into_iter().zip(ends).enumerate() {
        let start = if i == 0 { 0 } else { start };
        if start == end {
            continue;
        }
        let is_blank = |span: Range<usize>| text[span].trim().is_empty();
        match blocks.last_mut().filter(|last| last.section == section) {
            Some(last) if is_blank(start..end) => last.span.end = end,
            Some(last) if is_blank(last.span.clone()) => (last.span.end, last.kind) = (end, kind),
            _ => blocks.push(Block { span: start..end, kind, section, anchor: Anchor::default() }),
        }
    }
    Ok(blocks)
}
