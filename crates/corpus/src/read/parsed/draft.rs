//! A document in the making, for formats whose text a parser gives piece by piece.
//!
//! The text is the pieces one after another, an empty line between two paragraphs. Every piece is a block, and stands
//! where [`Draft::place`] last said.

use std::ops::Range;

use crate::anchor::Anchor;
use crate::budget::{BLOCKS_MAX, Excess, text_bytes_max, within};
use crate::document::{Block, BlockKind, Document, TextKind};
use crate::format::Format;
use crate::links::{self, Markup};
use crate::metadata::Metadata;
use crate::section::{Outline, Section};

/// The text, its blocks and sections, as far as they are written.
pub(super) struct Draft {
    text: String,
    blocks: Vec<Block>,
    outline: Outline,
    place: Anchor,
    /// Where the open block began, and its kind.
    open: Option<(usize, BlockKind)>,
    text_bytes_max: u64,
    first_heading: Option<(u8, String)>,
    /// Links of the text.
    pub(super) markup: Markup,
}

/// Everything of a document but its text.
#[derive(Default)]
pub(super) struct About {
    /// The title that the file says; none for that of the text, else of the file's name.
    pub(super) title: Option<String>,
    pub(super) metadata: Metadata,
    pub(super) warnings: Vec<String>,
}

impl Draft {
    /// An empty text of a file of so many bytes, which limit its length.
    pub(super) fn new(n_bytes: u64) -> Self {
        Self {
            text: String::new(),
            blocks: Vec::new(),
            outline: Outline::new(),
            place: Anchor::default(),
            open: None,
            text_bytes_max: text_bytes_max(n_bytes),
            first_heading: None,
            markup: Markup::default(),
        }
    }

    /// Places what comes next in the file.
    pub(super) fn place(&mut self, anchor: Anchor) {
        self.place = anchor;
    }

    /// Bytes written so far.
    pub(super) fn n_bytes(&self) -> usize {
        self.text.len()
    }

    /// Everything written so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Opens a section whose heading is part of the text.
    pub(super) fn heading(&mut self, level: u8, heading: &str) -> Result<(), Excess> {
        let heading = one_line(heading);
        if heading.is_empty() {
            return Ok(());
        }
        let start = self.text.len();
        self.first_heading.get_or_insert_with(|| (level, heading.clone()));
        self.outline.open(level, heading.clone(), start..start + heading.len(), start, self.place.clone());
        self.block(BlockKind::Heading, &heading)
    }

    /// Opens a section whose heading is not part of the text, or stands in what comes next.
    pub(super) fn section(&mut self, level: u8, heading: &str, n_bytes_in_text: usize) {
        let start = self.text.len();
        self.outline.open(level, one_line(heading), start..start + n_bytes_in_text, start, self.place.clone());
    }

    /// Writes a block, and an empty line behind it; one without words is nothing.
    pub(super) fn block(&mut self, kind: BlockKind, text: &str) -> Result<(), Excess> {
        self.begin(kind);
        self.write(text);
        self.end("\n\n")
    }

    /// Begins a block that [`Self::write`] fills.
    pub(super) fn begin(&mut self, kind: BlockKind) {
        self.open = Some((self.text.len(), kind));
    }

    /// Writes into the open block; where the text stands now.
    pub(super) fn write(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    /// Ends the open block with line ends; one of white space alone is taken back.
    pub(super) fn end(&mut self, line_ends: &str) -> Result<(), Excess> {
        let Some((start, kind)) = self.open.take() else { return Ok(()) };
        let n_bytes = self.text[start..].trim_end().len();
        self.text.truncate(start + n_bytes);
        if n_bytes == 0 {
            return Ok(());
        }
        self.text.push_str(line_ends);
        let (section, anchor) = (self.outline.innermost(), self.place.clone());
        self.blocks.push(Block { span: start..self.text.len(), kind, section, anchor });
        within("bytes of text", self.text.len() as u64, self.text_bytes_max)?;
        within("paragraphs", self.blocks.len() as u64, BLOCKS_MAX)
    }

    /// Puts a document that was read from a part of the file behind the text, as paragraphs of its own: its sections
    /// open as its headings would.
    pub(super) fn append(&mut self, part: Document) -> Result<(), Excess> {
        if part.text.is_empty() {
            return Ok(());
        }
        let start = self.text.len();
        let at = |span: &Range<usize>| start + span.start..start + span.end;
        let mut sections = vec![self.outline.innermost()];
        for section in part.sections.iter().skip(1) {
            let Section { level, heading, heading_span, span, .. } = section;
            self.first_heading.get_or_insert_with(|| (*level, heading.clone()));
            let (span, heading_span) = (at(span), at(heading_span));
            sections.push(self.outline.open(*level, heading.clone(), heading_span, span.start, self.place.clone()));
        }
        for block in &part.blocks {
            let (section, anchor) = (sections[block.section as usize], self.place.clone());
            self.blocks.push(Block { span: at(&block.span), kind: block.kind, section, anchor });
        }
        for link in part.links {
            self.markup.add(link.kind, &link.target, start + link.start..start + link.end);
        }
        self.text.push_str(&part.text);
        self.text.push('\n');
        if let Some(last) = self.blocks.last_mut() {
            last.span.end = self.text.len();
        }
        self.end_paragraph();
        within("bytes of text", self.text.len() as u64, self.text_bytes_max)?;
        within("paragraphs", self.blocks.len() as u64, BLOCKS_MAX)
    }

    /// Puts an empty line behind the last block, if there is none.
    pub(super) fn end_paragraph(&mut self) {
        if let Some(last) = self.blocks.last_mut().filter(|_| !self.text.ends_with("\n\n")) {
            self.text.push('\n');
            last.span.end = self.text.len();
        }
    }

    /// The document; `name` is its title of last resort.
    pub(super) fn finish(mut self, id: &str, origin: &str, format: Format, name: String, about: About) -> Document {
        if self.text.ends_with("\n\n") {
            self.text.pop();
        }
        if let Some(last) = self.blocks.last_mut() {
            last.span.end = self.text.len();
        }
        // What opens behind all text, the title of a page without any, stands where the text ends.
        let mut sections = self.outline.finish(self.text.len());
        for Section { span, heading_span, .. } in &mut sections {
            for span in [span, heading_span] {
                *span = span.start.min(self.text.len())..span.end.min(self.text.len());
            }
        }
        let About { title, metadata, warnings } = about;
        let title = title.map(|title| one_line(&title)).filter(|title| !title.is_empty());
        let of_text = self.first_heading.and_then(|(level, heading)| (level == 1).then_some(heading));
        let mut document = Document {
            id: id.to_owned(),
            origin: origin.to_owned(),
            format,
            title: title.or(of_text).unwrap_or(name),
            sections,
            text: self.text,
            kind: TextKind::Extracted,
            blocks: self.blocks,
            metadata,
            links: Vec::new(),
            warnings,
        };
        links::find(&mut document, self.markup);
        document
    }
}

/// A text in one line, single spaces between its words.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_behind_all_text_stand_where_it_ends() {
        let mut draft = Draft::new(100);
        draft.heading(1, "Tides").unwrap();
        draft.block(BlockKind::Prose, "The moon.").unwrap();
        draft.section(1, "Back cover", 0);
        draft.section(2, "Inside", 0);
        let document = draft.finish("id", "id", Format::Pdf, "name".to_owned(), About::default());
        assert_eq!(document.text, "Tides\n\nThe moon.\n");
        let spans = document.sections.iter().map(|section| (section.span.clone(), section.heading_span.clone()));
        let end = document.text.len();
        assert_eq!(spans.collect::<Vec<_>>()[1..], [(0..end, 0..5), (end..end, end..end), (end..end, end..end)]);
    }
}
