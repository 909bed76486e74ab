//! Documents read back as they were pushed: what a segment is copied or rebuilt from.
//!
//! Everything that shapes rows is stored but the headers before their contexts, which follow from title, sections and
//! [`ChunkRecord::header_skip`](super::records::ChunkRecord); they are written again by the rules of
//! [`CHUNKER_VERSION`](crate::format::config::CHUNKER_VERSION).

use cento_corpus::{self as corpus, HeaderStyle};

use super::contexts::{Contexts, with_context};
use super::links::Links;
use super::records::{ChunkRecord, DocumentRecord, SectionRecord, some};
use super::writer::{NewChunk, NewDocument};
use crate::error::Result;
use crate::format::metadata::read_metadata;
use crate::format::table::Table;
use crate::format::text::{TextReader, Texts};

/// Reads documents of one segment.
pub struct DocumentReader<'s> {
    tables: Tables<'s>,
    texts: TextReader<'s>,
    header: HeaderStyle,
    lost_links: LostLinks,
}

/// The open tables of a segment.
#[derive(Clone, Copy)]
pub(super) struct Tables<'s> {
    pub(super) documents: &'s Table<DocumentRecord>,
    pub(super) sections: &'s Table<SectionRecord>,
    pub(super) chunks: &'s Table<ChunkRecord>,
    pub(super) links: &'s Links,
    /// Where headers have contexts.
    pub(super) contexts: Option<&'s Contexts>,
}

/// The treatment of links that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostLinks {
    /// Their document cannot be read either.
    Refused,
    /// Their document is read as one whose links were not looked for.
    LeftOut,
}

/// A document with its chunks that are searched, and their headers.
pub struct StoredDocument {
    /// The document as it was read.
    pub document: corpus::Document,
    /// Its first row in the segment it is stored in.
    pub first_row: u32,
    /// Its links; `None` if they were not looked for when it was indexed.
    links: Option<Vec<corpus::Link>>,
    hash: [u8; 32],
    n_chunks: u32,
    chunks: Vec<StoredChunk>,
}

struct StoredChunk {
    index: u32,
    chunk: corpus::Chunk,
    header: String,
    context: String,
}

impl StoredChunk {
    fn as_new(&self) -> NewChunk<'_> {
        NewChunk { index: self.index, chunk: &self.chunk, header: &self.header, context: &self.context }
    }
}

impl StoredDocument {
    /// Its chunks that are searched.
    pub fn n_rows(&self) -> usize {
        self.chunks.len()
    }

    /// The document on its way into another segment.
    pub fn as_new(&self) -> NewDocument<'_> {
        NewDocument {
            document: &self.document,
            links: self.links.as_deref(),
            hash: self.hash,
            n_chunks: self.n_chunks,
            chunks: self.chunks.iter().map(StoredChunk::as_new).collect(),
        }
    }
}

impl<'s> DocumentReader<'s> {
    /// Reads from the open tables of a segment.
    pub(super) fn new(tables: Tables<'s>, texts: &'s Texts, header: HeaderStyle) -> Self {
        Self { tables, texts: texts.reader(), header, lost_links: LostLinks::Refused }
    }

    /// Reads a document whose links cannot be read as one whose links were not looked for: it is indexed again with
    /// them.
    pub(super) fn without_lost_links(self) -> Self {
        Self { lost_links: LostLinks::LeftOut, ..self }
    }

    /// A document by its number.
    pub fn read(&mut self, document: u32) -> Result<StoredDocument> {
        let record = self.tables.documents.record(document as usize)?;
        let text = |text| self.tables.documents.text(text).map(str::to_owned);
        let corrupt = |reason: String| self.tables.documents.corrupt(format!("document {document}: {reason}"));
        let metadata = read_metadata(self.tables.documents.text(record.metadata)?)
            .map_err(|reason| corrupt(format!("metadata: {reason}")))?;
        let no_format = || corrupt(format!("no format has number {}", record.format));
        let mut stored = StoredDocument {
            document: corpus::Document {
                id: text(record.id)?,
                origin: text(record.origin)?,
                title: text(record.title)?,
                format: record.format().ok_or_else(no_format)?,
                text: self.texts.read(record.text(0..record.text_bytes))?,
                kind: match record.is_extracted {
                    0 => corpus::TextKind::Source,
                    _ => corpus::TextKind::Extracted,
                },
                sections: self.read_sections(&record)?,
                blocks: Vec::new(),
                metadata,
                links: Vec::new(),
                warnings: Vec::new(),
            },
            links: match (self.tables.links.of(document, &record), self.lost_links) {
                (Err(_), LostLinks::LeftOut) => None,
                (links, _) => links?,
            },
            first_row: record.first_row,
            hash: record.hash,
            n_chunks: record.n_chunks,
            chunks: Vec::new(),
        };
        let first_row = record.first_row as usize;
        let headers = corpus::Headers::new(&stored.document, self.header);
        let records = self.tables.chunks.records(first_row..first_row + record.n_rows as usize)?;
        for (row, record) in (first_row..).zip(records) {
            let context = self.tables.contexts.map_or(Ok(""), |contexts| contexts.of(row))?;
            stored.chunks.push(self.read_chunk(&record, context, &stored.document, &headers)?);
        }
        Ok(stored)
    }

    fn read_sections(&self, record: &DocumentRecord) -> Result<Vec<corpus::Section>> {
        let first = record.first_section as usize;
        let records = self.tables.sections.records(first..first + record.n_sections as usize)?;
        let sections = records.into_iter().enumerate().map(|(at, section)| {
            if section.parent().is_some_and(|parent| parent as usize >= at) {
                return Err(self
                    .tables
                    .sections
                    .corrupt(format!("section {at} of a document stands before the one around it")));
            }
            let sheet = self.tables.sections.text(section.sheet)?;
            Ok(corpus::Section {
                level: u8::try_from(section.level)
                    .map_err(|_| self.tables.sections.corrupt(format!("a section of level {}", section.level)))?,
                heading: self.tables.sections.text(section.heading)?.to_owned(),
                heading_span: section.heading_start as usize..section.heading_end as usize,
                span: section.start as usize..section.end as usize,
                parent: section.parent(),
                anchor: corpus::Anchor {
                    line: some(section.line),
                    page: some(section.page),
                    sheet: Some(sheet).filter(|sheet| !sheet.is_empty()).map(str::to_owned),
                    row: None,
                    source: None,
                },
            })
        });
        sections.collect()
    }

    fn read_chunk(
        &self,
        record: &ChunkRecord,
        context: &str,
        document: &corpus::Document,
        headers: &corpus::Headers<'_>,
    ) -> Result<StoredChunk> {
        let span = record.start as usize..record.end as usize;
        let is_intact = document.text.get(span.clone()).is_some_and(|text| record.is_of(text));
        if !is_intact || record.section as usize >= document.sections.len().max(1) {
            let reason = format!("chunk {} of {} is not the text that was indexed", record.index, document.id);
            return Err(self.tables.chunks.corrupt(reason));
        }
        let chunk = corpus::Chunk {
            span,
            section: record.section,
            n_tokens: record.n_tokens,
            hidden: false,
            anchor: corpus::Anchor {
                line: some(record.line),
                page: some(record.page),
                sheet: None,
                row: some(record.sheet_row),
                source: record.source(),
            },
            header_skip: record.header_skip,
        };
        let header = with_context(&headers.of(&chunk), context);
        Ok(StoredChunk { index: record.index, chunk, header, context: context.to_owned() })
    }
}
