//! Writes a segment: documents, their chunks and the vectors as they come, then what is left of every file.

use std::io;
use std::path::{Path, PathBuf};

use cento_corpus as corpus;
use cento_lexical as lexical;
use cento_vector::file;

use super::column::NewColumn;
use super::files::{CHUNKS, DOCUMENTS, LEXICAL, LEXICAL_KIND, METADATA, SECTIONS, TEXTS};
use super::records::{ChunkRecord, DocumentRecord, NO_SOURCE, NONE, SectionRecord};
use crate::error::{AtPath, Result};
use crate::format::config::CollectionConfig;
use crate::format::graph_health::GraphHealth;
use crate::format::metadata::{Described, MetadataWriter, write_metadata};
use crate::format::table::TableWriter;
use crate::format::text::TextWriter;
use crate::fs::Fs;

/// A chunk that gets a row: its position in the document's chunk list, and the header embedded before it.
pub struct NewChunk<'a> {
    /// Number in its document, hidden chunks counted.
    pub index: u32,
    /// The chunk.
    pub chunk: &'a corpus::Chunk,
    /// Header that is embedded before it; may be empty.
    pub header: &'a str,
}

/// A document on its way into a segment.
pub struct NewDocument<'a> {
    /// The document.
    pub document: &'a corpus::Document,
    /// BLAKE3 of everything that shapes its rows and citations.
    pub hash: [u8; 32],
    /// Its chunks, hidden ones counted.
    pub n_chunks: u32,
    /// The chunks that are searched, in order.
    pub chunks: Vec<NewChunk<'a>>,
}

/// Gathers documents and vectors and writes the files of one segment.
///
/// Memory: the records and the postings; texts and vectors go to their files as they come.
pub struct SegmentWriter<'f> {
    documents: TableWriter<DocumentRecord>,
    sections: TableWriter<SectionRecord>,
    chunks: TableWriter<ChunkRecord>,
    texts: TextWriter,
    metadata: MetadataWriter,
    lexical: lexical::Writer,
    columns: Vec<NewColumn>,
    place: Unfinished<'f>,
}

impl<'f> SegmentWriter<'f> {
    /// Starts the segment's folder; what an interrupted run left there is removed first.
    pub fn create(fs: &'f dyn Fs, folder: &Path, config: &CollectionConfig) -> Result<Self> {
        if folder.exists() {
            fs.remove_dir(folder).at(folder)?;
        }
        let place = Unfinished { fs, folder: folder.to_owned(), is_finished: false };
        let lexical_folder = folder.join(LEXICAL);
        fs.create_dir(&lexical_folder).at(&lexical_folder)?;
        Ok(Self {
            documents: TableWriter::new(),
            sections: TableWriter::new(),
            chunks: TableWriter::new(),
            texts: TextWriter::create(fs, &folder.join(TEXTS))?,
            metadata: MetadataWriter::default(),
            lexical: lexical::Writer::new(&lexical::Analyzer::new(config.language()?))?,
            columns: (config.pooling.columns().iter().enumerate())
                .map(|(at, &vectors)| NewColumn::create(fs, folder, at, vectors, config))
                .collect::<Result<_>>()?,
            place,
        })
    }

    /// Documents so far.
    pub fn n_documents(&self) -> usize {
        self.documents.len()
    }

    /// Rows so far.
    pub fn n_rows(&self) -> usize {
        self.chunks.len()
    }

    /// Adds a document and its chunks; their rows follow each other from the returned one on.
    pub fn push(&mut self, new: &NewDocument<'_>) -> Result<u32> {
        let document = new.document;
        let first_row = self.chunks.len() as u32;
        let first_section = self.sections.len() as u32;
        for section in &document.sections {
            self.push_section(section);
        }
        let title_in_text = document.text.contains(&document.title);
        for (n, new_chunk) in new.chunks.iter().enumerate() {
            let text = &document.text[new_chunk.chunk.span.clone()];
            let title = if n == 0 && !title_in_text { document.title.as_str() } else { "" };
            self.lexical.add(lexical::Row { text, header: new_chunk.header, title })?;
            self.chunks.push(chunk_record(self.documents.len() as u32, new_chunk, text));
        }
        self.metadata.push(&Described {
            id: &document.id,
            origin: &document.origin,
            title: &document.title,
            format: document.format,
            metadata: &document.metadata,
        });
        let record = DocumentRecord {
            id: self.documents.text(&document.id),
            origin: self.documents.text(&document.origin),
            title: self.documents.text(&document.title),
            metadata: self.documents.text(&write_metadata(&document.metadata)),
            text_start: self.texts.push(&document.text)?,
            text_bytes: document.text.len() as u64,
            hash: new.hash,
            first_row,
            n_rows: new.chunks.len() as u32,
            first_section,
            n_sections: document.sections.len() as u32,
            n_chunks: new.n_chunks,
            is_extracted: u32::from(document.kind == corpus::TextKind::Extracted),
            format: document.format.number(),
            reserved: 0,
        };
        self.documents.push(record);
        Ok(first_row)
    }

    fn push_section(&mut self, section: &corpus::Section) {
        let record = SectionRecord {
            heading: self.sections.text(&section.heading),
            sheet: self.sections.text(section.anchor.sheet.as_deref().unwrap_or_default()),
            start: section.span.start as u64,
            end: section.span.end as u64,
            heading_start: section.heading_span.start as u64,
            heading_end: section.heading_span.end as u64,
            level: u32::from(section.level),
            parent: section.parent.unwrap_or(NONE),
            line: section.anchor.line.unwrap_or(NONE),
            page: section.anchor.page.unwrap_or(NONE),
        };
        self.sections.push(record);
    }

    /// The vector of a row in a column; every row must get one in each before [`SegmentWriter::finish`].
    pub fn set_vector(&mut self, column: usize, row: u32, vector: &[f32]) -> Result<()> {
        self.columns[column].set(row, vector)
    }

    /// Writes and syncs every file; the segment is complete but not yet part of the collection. A column of at least
    /// `graph_rows_min` rows gets a graph; how good each is comes back.
    pub fn finish(self, graph_rows_min: usize, mut graph_rows_done: impl FnMut(usize)) -> Result<Vec<GraphHealth>> {
        let mut place = self.place;
        let (fs, folder) = (place.fs, &place.folder);
        let n_rows = self.chunks.len();
        self.documents.write(fs, &folder.join(DOCUMENTS.1), DOCUMENTS.0)?;
        self.sections.write(fs, &folder.join(SECTIONS.1), SECTIONS.0)?;
        self.chunks.write(fs, &folder.join(CHUNKS.1), CHUNKS.0)?;
        self.texts.finish()?;
        self.metadata.write(fs, &folder.join(METADATA))?;

        let lexical_folder = folder.join(LEXICAL);
        for (name, bytes) in self.lexical.finish()? {
            let path = lexical_folder.join(name);
            let mut out = file::Writer::new(fs.create(&path).at(&path)?, LEXICAL_KIND).at(&path)?;
            io::Write::write_all(&mut out, &bytes).at(&path)?;
            out.finish([bytes.len() as u64, 0]).at(&path)?.sync().at(&path)?;
        }
        fs.sync_dir(&lexical_folder).at(&lexical_folder)?;

        let mut graphs = Vec::new();
        for column in self.columns {
            graphs.extend(column.finish(fs, folder, n_rows, graph_rows_min, &mut graph_rows_done)?);
        }
        fs.sync_dir(folder).at(folder)?;
        place.is_finished = true;
        Ok(graphs)
    }
}

/// The folder of a segment in the making. What was written goes with it if it is not finished, since what failed may
/// have been for want of room.
struct Unfinished<'f> {
    fs: &'f dyn Fs,
    folder: PathBuf,
    is_finished: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.fs.remove_dir(&self.folder); // or with the next commit
        }
    }
}

fn chunk_record(document: u32, new: &NewChunk<'_>, text: &str) -> ChunkRecord {
    let anchor = &new.chunk.anchor;
    let source = anchor.source.clone().unwrap_or(NO_SOURCE..NO_SOURCE);
    ChunkRecord {
        start: new.chunk.span.start as u64,
        end: new.chunk.span.end as u64,
        source_start: source.start,
        source_end: source.end,
        hash: ChunkRecord::hash(text),
        document,
        index: new.index,
        section: new.chunk.section,
        n_tokens: new.chunk.n_tokens,
        line: anchor.line.unwrap_or(NONE),
        page: anchor.page.unwrap_or(NONE),
        sheet_row: anchor.row.unwrap_or(NONE),
        header_skip: new.chunk.header_skip,
    }
}
