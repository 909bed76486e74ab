//! Word processing files and presentations, by anydoc: DOCX, DOC, ODT, RTF, PPTX, PPT, ODP.
//!
//! A heading opens a section; a list item is a paragraph with its mark; a note stands behind the paragraph that calls
//! it. A table is kept whole while a chunk may hold it; each row of a longer one names its columns, so that it can be
//! read alone. Slides are numbered as pages. Images are counted, and their descriptions read.

use std::collections::HashMap;

use anydoc::model::{self, Block, CellSlot, Inline, LinkTarget, Table, TableKind};

use super::draft::{About, Draft, one_line};
use super::figures::completeness;
use super::package::{Package, TextOf};
use super::slides::Slides;
use super::{Fault, Parsed, Part};
use crate::anchor::Anchor;
use crate::budget::Excess;
use crate::document::BlockKind;
use crate::extraction::Extraction;
use crate::format::{Format, Office};
use crate::links::LinkKind;
use crate::read::password::Locked;

const ENGINE: &str = "anydoc 0.2.4";

/// A table of more bytes is cut into chunks.
const WHOLE_TABLE_BYTES: usize = 1_000;

/// Parts of a file inside each other: the parser admits more of XML, and no person writes as many.
const NESTED_MAX: usize = 200;

/// Reads a file as what its bytes say that it is.
pub(super) fn read(part: &Part<'_>, format: Format, kind: Office) -> Result<Parsed, Fault> {
    let document = anydoc::to_document(part.bytes, name(kind)).map_err(fault)?;
    let mut package = Package::open(part.bytes);
    let slides = package.as_mut().filter(|_| kind == Office::Pptx).map(Slides::of);
    let notes = document.notes.iter().map(|note| (note.id.as_str(), note)).collect();
    let draft = Draft::new(part.bytes.len() as u64);
    let n_pages = slides.as_ref().map(Slides::n_slides);
    let mut writer =
        Writer { draft, notes, slides, with_text: Vec::new(), called: Vec::new(), n_tables: 0, n_images: 0, depth: 0 };
    writer.blocks(&document.blocks)?;
    let Writer { draft, with_text, n_tables, n_images, .. } = writer;
    let (about, crude) = match &mut package {
        Some(package) => about(package, kind),
        None => (About::default(), None),
    };
    let completeness = crude.and_then(|crude| completeness(draft.text(), &crude));
    let pages_without_text = (1..=n_pages.unwrap_or(0)).filter(|page| !with_text.contains(page)).collect();
    let extraction = Extraction {
        engine: ENGINE.into(),
        n_pages,
        pages_without_text,
        n_tables,
        n_images,
        completeness,
        ..Extraction::default()
    };
    Ok(Parsed::one(draft.finish(part.id, part.origin, format, part.name(), about), extraction))
}

/// The parser's name of a kind of file.
fn name(kind: Office) -> anydoc::Format {
    match kind {
        Office::Docx => anydoc::Format::Docx,
        Office::Doc => anydoc::Format::Doc,
        Office::Odt => anydoc::Format::Odt,
        Office::Rtf => anydoc::Format::Rtf,
        Office::Pptx => anydoc::Format::Pptx,
        Office::Ppt => anydoc::Format::Ppt,
        Office::Odp => anydoc::Format::Odp,
    }
}

fn fault(error: anydoc::ConvertError) -> Fault {
    match error {
        anydoc::ConvertError::Encrypted => Fault::Encrypted(Locked::Unknown),
        other => Fault::Unparsed { engine: ENGINE, reason: other.to_string() },
    }
}

/// The properties of a package, and the words of a crude reading of its text.
fn about(package: &mut Package<'_>, kind: Office) -> (About, Option<String>) {
    let names = package.names();
    let mut text_of = |is_text: fn(&str) -> bool, of| {
        let parts = names.iter().filter(|name| is_text(name));
        parts.fold(String::new(), |text, name| text + &package.text(name, of) + "\n")
    };
    let (properties, crude) = match kind {
        Office::Docx => {
            let is_text = |name: &str| ["word/document.xml", "word/footnotes.xml", "word/endnotes.xml"].contains(&name);
            ("docProps/core.xml".to_owned(), text_of(is_text, TextOf::Runs))
        }
        Office::Pptx => {
            let is_text = |name: &str| name.starts_with("ppt/slides/slide") && name.ends_with(".xml");
            ("docProps/core.xml".to_owned(), text_of(is_text, TextOf::Runs))
        }
        Office::Odt | Office::Odp => ("meta.xml".to_owned(), text_of(|name| name == "content.xml", TextOf::Body)),
        Office::Doc | Office::Rtf | Office::Ppt => return (About::default(), None),
    };
    let (title, metadata) = package.properties(&properties);
    (About { title, metadata, warnings: Vec::new() }, Some(crude))
}

struct Writer<'d> {
    draft: Draft,
    notes: HashMap<&'d str, &'d model::Note>,
    slides: Option<Slides>,
    /// Slides with text, ascending.
    with_text: Vec<u32>,
    /// Notes that the open paragraph calls.
    called: Vec<&'d str>,
    n_tables: u32,
    n_images: u32,
    depth: usize,
}

impl<'d> Writer<'d> {
    fn blocks(&mut self, blocks: &'d [Block]) -> Result<(), Excess> {
        crate::budget::within("blocks inside each other", self.depth as u64, NESTED_MAX as u64)?;
        self.depth += 1;
        for block in blocks {
            self.block(block)?;
            if self.depth == 1 || matches!(block, Block::Paragraph(_)) {
                self.write_notes()?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn block(&mut self, block: &'d Block) -> Result<(), Excess> {
        match block {
            Block::Heading { level, content, .. } => {
                let (heading, _) = self.inlines(content);
                self.stand(&heading);
                self.draft.heading(*level, &heading)
            }
            Block::Paragraph(content) => self.paragraph("", content),
            Block::List(list) => {
                self.list(list)?;
                self.draft.end_paragraph();
                Ok(())
            }
            Block::Table(table) => self.table(table),
            Block::BlockQuote(blocks) => self.blocks(blocks),
            Block::CodeBlock { text, .. } => {
                self.stand(text);
                let start = self.draft.n_bytes();
                self.draft.block(BlockKind::Code, text)?;
                self.draft.markup.add_code(start..self.draft.n_bytes());
                Ok(())
            }
            Block::Rule => Ok(()),
            Block::Math(formula) => {
                self.stand(formula);
                self.draft.block(BlockKind::Prose, formula)
            }
        }
    }

    /// Places what comes next on the slide that has this text.
    fn stand(&mut self, text: &str) {
        let Some(slides) = &mut self.slides else { return };
        let page = slides.page_of(text);
        if !text.trim().is_empty() && self.with_text.last() != Some(&page) {
            self.with_text.push(page);
        }
        self.draft.place(Anchor { page: Some(page), ..Anchor::default() });
    }

    fn paragraph(&mut self, mark: &str, content: &'d [Inline]) -> Result<(), Excess> {
        let (text, links) = self.inlines(content);
        if text.trim().is_empty() {
            return Ok(());
        }
        self.stand(&text);
        self.draft.begin(BlockKind::Prose);
        self.draft.write(mark);
        let written = self.draft.write(text.trim_start());
        let n_cut = text.len() - written.len();
        let at = |place: usize| (written.start + place.saturating_sub(n_cut)).min(written.end);
        for (target, span) in links {
            self.draft.markup.add(LinkKind::Html, target, at(span.start)..at(span.end));
        }
        self.draft.end(if mark.is_empty() { "\n\n" } else { "\n" })
    }

    fn list(&mut self, list: &'d model::List) -> Result<(), Excess> {
        for (item, number) in list.items.iter().zip(list.start..) {
            let mark = item.marker_label.clone().unwrap_or_else(|| list.marker.label(number));
            let mark = format!("{mark} ");
            match item.blocks.split_first() {
                Some((Block::Paragraph(content), rest)) => {
                    self.paragraph(&mark, content)?;
                    self.blocks(rest)?;
                }
                _ => self.blocks(&item.blocks)?,
            }
        }
        Ok(())
    }

    /// Notes that were called since the last block, each a paragraph.
    fn write_notes(&mut self) -> Result<(), Excess> {
        for id in std::mem::take(&mut self.called) {
            if let Some(note) = self.notes.remove(id) {
                self.blocks(&note.blocks)?;
            }
        }
        Ok(())
    }

    /// The text of inline content, and its links.
    fn inlines(&mut self, content: &'d [Inline]) -> (String, Vec<(&'d str, std::ops::Range<usize>)>) {
        let (mut text, mut links) = (String::new(), Vec::new());
        self.add_inlines(content, &mut text, &mut links);
        (text, links)
    }

    fn add_inlines(
        &mut self,
        content: &'d [Inline],
        text: &mut String,
        links: &mut Vec<(&'d str, std::ops::Range<usize>)>,
    ) {
        for inline in content {
            match inline {
                Inline::Text { text: words, .. } => text.push_str(words),
                Inline::Link { content, target } => {
                    let start = text.len();
                    self.add_inlines(content, text, links);
                    if let LinkTarget::External(target) | LinkTarget::Relative(target) = target {
                        links.push((target.as_str(), start..text.len()));
                    }
                }
                Inline::Image { alt, .. } => {
                    self.n_images += 1;
                    if !alt.is_empty() {
                        text.push_str(&format!(" {alt} ")); // it stands between words, and is part of none
                    }
                }
                Inline::Anchor(_) => {}
                Inline::NoteRef(id) => self.called.push(id),
                Inline::LineBreak => text.push('\n'),
                Inline::Math(formula) => text.push_str(formula),
                Inline::Checkbox(checked) => text.push_str(model::checkbox_text(*checked)),
            }
        }
    }

    fn table(&mut self, table: &'d Table) -> Result<(), Excess> {
        if let ([row], true) = (table.grid.as_slice(), table.is_single_cell() || table.kind == TableKind::Layout) {
            return row.iter().try_for_each(|slot| match slot {
                CellSlot::Origin(cell) => self.blocks(&cell.blocks),
                CellSlot::Covered { .. } => Ok(()),
            });
        }
        self.n_tables += 1;
        let mut rows: Vec<Vec<String>> = Vec::with_capacity(table.grid.len());
        for row in &table.grid {
            let cells = row.iter().map(|slot| match slot {
                CellSlot::Origin(cell) => self.cell(&cell.blocks, 0),
                CellSlot::Covered { .. } => String::new(),
            });
            rows.push(cells.collect());
        }
        self.stand(&rows.iter().flatten().find(|cell| !cell.is_empty()).cloned().unwrap_or_default());
        let n_bytes: usize = rows.iter().flatten().map(String::len).sum();
        let names = rows.first().filter(|_| n_bytes > WHOLE_TABLE_BYTES && table.header_rows > 0).cloned();
        self.draft.begin(BlockKind::Table);
        for (index, row) in rows.iter().enumerate() {
            let names = names.as_deref().filter(|_| index > 0).unwrap_or_default();
            self.draft.write(&row_text(row, names));
        }
        self.draft.end("\n\n")
    }

    /// The text of a cell in one line.
    fn cell(&mut self, blocks: &'d [Block], depth: usize) -> String {
        let mut words = String::new();
        if depth > NESTED_MAX {
            return words;
        }
        for block in blocks {
            let text = match block {
                Block::Heading { content, .. } | Block::Paragraph(content) => self.inlines(content).0,
                Block::List(list) => {
                    list.items.iter().map(|item| self.cell(&item.blocks, depth + 1)).collect::<Vec<_>>().join(" ")
                }
                Block::Table(table) => {
                    let cells = table.grid.iter().flatten().filter_map(|slot| match slot {
                        CellSlot::Origin(cell) => Some(self.cell(&cell.blocks, depth + 1)),
                        CellSlot::Covered { .. } => None,
                    });
                    cells.collect::<Vec<_>>().join(" ")
                }
                Block::BlockQuote(blocks) => self.cell(blocks, depth + 1),
                Block::CodeBlock { text, .. } | Block::Math(text) => text.clone(),
                Block::Rule => continue,
            };
            words.push_str(&text);
            words.push(' ');
        }
        one_line(&words)
    }
}

/// A row in one line: its cells, each behind the name of its column where names are given.
fn row_text(cells: &[String], names: &[String]) -> String {
    let filled = cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
    let named = filled.map(|(column, cell)| match names.get(column).filter(|name| !name.is_empty()) {
        Some(name) => format!("{name}: {cell}"),
        None => cell.clone(),
    });
    let row = named.collect::<Vec<_>>().join(" | ");
    if row.is_empty() { row } else { row + "\n" }
}
