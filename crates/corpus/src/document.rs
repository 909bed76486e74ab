//! A document: one canonical text, and everything that is known about places in it.
//!
//! Sections, blocks, sentences, chunks and citations are half-open byte spans of that text; it is stored once.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;
use crate::format::Format;
use crate::metadata::Metadata;
use crate::section::Section;

/// A text with its outline, ready to be cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Public id: root label/relative path for a file, the row's own id for a JSONL row.
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
pub(crate) fn blocks_from_starts(text: &str, starts: Vec<(usize, BlockKind, u32)>) -> Vec<Block> {
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
    blocks
}
