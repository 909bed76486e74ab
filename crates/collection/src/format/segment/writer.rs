//! Writes a segment: documents, their chunks and the vectors as they come, then what is left of every file.

use std::io;
use std::path::{Path, PathBuf};

use cento_corpus as corpus;
use cento_lexical as lexical;
use cento_vector::file;

use super::column::NewColumn;
use super::contexts::ContextsWriter;
use super::files::{CHUNKS, DOCUMENTS, LEXICAL, LEXICAL_KIND, METADATA, SECTIONS, TEXTS};
use super::links::LinksWriter;
use super::records::{ChunkRecord, DocumentRecord, NO_SOURCE, NONE, SectionRecord};
use crate::error::{AtPath, Result};
use crate::format::config::CollectionConfig;
use crate::format::graph_health::GraphHealth;
use crate::format::layout::SEGMENTS;
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
    /// The context at the end of the header that a language model wrote; empty where it wrote none.
    pub context: &'a str,
}

/// A document on its way into a segment.
pub struct NewDocument<'a> {
    /// The document.
    pub document: &'a corpus::Document,
    /// Its links; `None` if they were not looked for when it was indexed.
    pub links: Option<&'a [corpus::Link]>,
    /// BLAKE3 of everything that shapes its rows and citations.
    pub hash: [u8; 32],
    /// Its chunks, hidden ones counted.
    pub n_chunks: u32,
    /// The chunks that are searched, in order.
    pub chunks: Vec<NewChunk<'a>>,
}

/// The size at which a segment is full, so that the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentLimits {
    /// Bytes of memory that its writer may take. One document may take it over them.
    pub memory_bytes: u64,
    /// Rows.
    pub rows_max: usize,
    /// Rows from which it gets a graph.
    pub graph_rows_min: usize,
}

/// Bytes of memory that a byte of common text takes in postings, both forms of them.
const POSTINGS_PER_TEXT_BYTE: usize = 4;

/// The most values that a document's own fields have.
const BUILT_IN_VALUES_MAX: usize = 8;

/// Gathers documents and vectors and writes the files of one segment.
///
/// Memory: records, metadata and postings, whose bytes are counted; texts and vectors go to their files as they come.
pub struct SegmentWriter<'f> {
    documents: TableWriter<DocumentRecord>,
    sections: TableWriter<SectionRecord>,
    chunks: TableWriter<ChunkRecord>,
    links: LinksWriter,
    contexts: ContextsWriter,
    texts: TextWriter,
    metadata: MetadataWriter,
    lexical: lexical::Writer,
    columns: Vec<NewColumn>,
    name: String,
    number: usize,
    place: Unfinished<'f>,
}

impl<'f> SegmentWriter<'f> {
    /// Starts the `n`-th segment of a generation, in a folder of its own, as [`Unfinished::create`] makes it.
    pub fn create(
        fs: &'f dyn Fs,
        collection: &Path,
        generation: u64,
        n: usize,
        config: &CollectionConfig,
    ) -> Result<Self> {
        let place = Unfinished::create(fs, collection, generation, n)?;
        let (folder, number) = (&place.folder.clone(), place.number);
        Ok(Self {
            documents: TableWriter::new(),
            sections: TableWriter::new(),
            chunks: TableWriter::new(),
            links: LinksWriter::new(),
            contexts: ContextsWriter::new(),
            texts: TextWriter::create(fs, &folder.join(TEXTS))?,
            metadata: MetadataWriter::default(),
            lexical: lexical::Writer::new(&lexical::Analyzer::new(config.language()?))?,
            columns: (config.pooling.columns().iter().enumerate())
                .map(|(at, &vectors)| NewColumn::create(fs, folder, at, vectors, config))
                .collect::<Result<_>>()?,
            name: place.name(),
            number,
            place,
        })
    }

    /// The name of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number among the segments of its generation.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Documents so far.
    pub fn n_documents(&self) -> usize {
        self.documents.len()
    }

    /// Rows so far.
    pub fn n_rows(&self) -> usize {
        self.chunks.len()
    }

    /// True if the document fits beside those before it: into the formats of the files and into the limits. A segment
    /// without documents takes any.
    pub fn has_room(&self, new: &NewDocument<'_>, limits: &SegmentLimits) -> bool {
        self.n_documents() == 0 || self.fits_formats(new) && self.fits(new, limits)
    }

    fn fits_formats(&self, new: &NewDocument<'_>) -> bool {
        let n_sections = self.sections.len() + new.document.sections.len();
        let n_pairs = self.metadata.n_pairs() + n_values(new.document);
        self.lexical.has_room(new.chunks.len(), indexed_bytes(new))
            && n_sections <= u32::MAX as usize
            && n_pairs <= u64::from(u32::MAX)
    }

    fn fits(&self, new: &NewDocument<'_>, limits: &SegmentLimits) -> bool {
        let n_rows = self.n_rows() + new.chunks.len();
        if n_rows > limits.rows_max {
            return false;
        }
        // What the document adds is known when it is there; of its postings this is what common text takes.
        let records =
            size_of::<ChunkRecord>() * new.chunks.len() + size_of::<SectionRecord>() * new.document.sections.len();
        let gathered = self.gathered_bytes() + (records + POSTINGS_PER_TEXT_BYTE * indexed_bytes(new)) as u64;
        gathered.saturating_add(self.graph_bytes(n_rows, limits)) <= limits.memory_bytes
    }

    /// Bytes of memory that are taken when the files are written: of the postings there are two forms then.
    pub fn gathered_bytes(&self) -> u64 {
        let tables = self.documents.memory_bytes() + self.sections.memory_bytes() + self.chunks.memory_bytes();
        let tables = tables + self.links.memory_bytes() + self.contexts.memory_bytes();
        tables + self.metadata.memory_bytes() + 2 * self.lexical.memory_bytes() as u64
    }

    /// Bytes of memory that the graph of so many rows takes; columns have theirs one after the other.
    fn graph_bytes(&self, n_rows: usize, limits: &SegmentLimits) -> u64 {
        let row_bytes = self.columns.iter().map(NewColumn::graph_row_bytes).max().unwrap_or(0);
        if n_rows < limits.graph_rows_min { 0 } else { row_bytes.saturating_mul(n_rows as u64) }
    }

    /// Bytes of the vectors that wait for those of rows before theirs.
    pub fn waiting_bytes(&self) -> usize {
        self.columns.iter().map(NewColumn::waiting_bytes).sum()
    }

    /// Adds a document and its chunks; their rows follow each other from the returned one on. Of a document with a row
    /// that is too large nothing is added.
    pub fn push(&mut self, new: &NewDocument<'_>) -> Result<u32> {
        let document = new.document;
        let first_row = self.chunks.len() as u32;
        let rows = lexical_rows(new);
        for (row, &lexical::Row { text, header, title }) in (first_row..).zip(&rows) {
            let n_bytes = text.len() + header.len() + title.len();
            if n_bytes > lexical::ROW_BYTES_MAX {
                let max_bytes = lexical::ROW_BYTES_MAX;
                return Err(lexical::Error::RowTooLarge { row, n_bytes, max_bytes }.into());
            }
        }
        let first_section = self.sections.len() as u32;
        for section in &document.sections {
            self.push_section(section);
        }
        for (chunk, row) in new.chunks.iter().zip(rows) {
            self.lexical.add(row)?;
            self.contexts.push(chunk.context);
            self.chunks.push(chunk_record(self.documents.len() as u32, chunk, row.text));
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
            links: self.links.push(self.documents.len() as u32, new.links),
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
        let place = self.place;
        let (fs, folder) = (place.fs, &place.folder);
        let n_rows = self.chunks.len();
        self.documents.write(fs, &folder.join(DOCUMENTS.1), DOCUMENTS.0)?;
        self.sections.write(fs, &folder.join(SECTIONS.1), SECTIONS.0)?;
        self.chunks.write(fs, &folder.join(CHUNKS.1), CHUNKS.0)?;
        self.links.write(fs, folder)?;
        self.contexts.write(fs, folder)?;
        self.texts.finish()?;
        self.metadata.write(fs, &folder.join(METADATA))?;
        drop(self.metadata);

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
        place.finish();
        Ok(graphs)
    }
}

/// The texts of a document that are indexed for words, a row each.
fn lexical_rows<'a>(new: &NewDocument<'a>) -> Vec<lexical::Row<'a>> {
    let document = new.document;
    let title_in_text = document.text.contains(&document.title);
    let row = |(n, chunk): (usize, &NewChunk<'a>)| lexical::Row {
        text: &document.text[chunk.chunk.span.clone()],
        header: chunk.header,
        title: if n == 0 && !title_in_text { &document.title } else { "" },
    };
    new.chunks.iter().enumerate().map(row).collect()
}

/// Bytes of the texts that are indexed for words.
fn indexed_bytes(new: &NewDocument<'_>) -> usize {
    let of_chunk = |chunk: &NewChunk<'_>| chunk.chunk.span.len() + chunk.header.len();
    new.document.title.len() + new.chunks.iter().map(of_chunk).sum::<usize>()
}

/// Values of a document's fields, at most.
fn n_values(document: &corpus::Document) -> u64 {
    let of_metadata: usize = document.metadata.values().map(|field| field.values().len()).sum();
    (BUILT_IN_VALUES_MAX + of_metadata) as u64
}

/// The folder of a segment in the making. What was written goes with it if it is not finished, since what failed may
/// have been for want of room.
pub(crate) struct Unfinished<'f> {
    fs: &'f dyn Fs,
    generation: u64,
    /// Its number among the segments of its generation.
    pub(crate) number: usize,
    pub(crate) folder: PathBuf,
    is_finished: bool,
}

impl<'f> Unfinished<'f> {
    /// Makes the folder of the `n`-th segment of a generation, and the one for postings in it. What an interrupted run
    /// left there is removed first; what may be another machine's stays, and this one gets the next number that is
    /// free.
    pub(crate) fn create(fs: &'f dyn Fs, collection: &Path, generation: u64, n: usize) -> Result<Self> {
        let mut number = n;
        let folder = loop {
            let folder = collection.join(SEGMENTS).join(format!("{generation}-{number}"));
            if !fs.is_contested() && folder.symlink_metadata().is_ok() {
                fs.remove_dir(&folder).at(&folder)?;
            }
            match fs.create_new_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => {
                    made.at(&folder)?;
                    break folder;
                }
            }
        };
        let made = Self { fs, generation, number, folder, is_finished: false };
        let lexical_folder = made.folder.join(LEXICAL);
        fs.create_dir(&lexical_folder).at(&lexical_folder)?;
        Ok(made)
    }

    /// The name of the folder.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.generation, self.number)
    }

    /// Keeps the folder: everything in it is written and synced.
    pub(crate) fn finish(mut self) {
        self.is_finished = true;
    }
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

#[cfg(test)]
mod tests {
    use cento_corpus::{Anchor, Chunk, Document, Format, TextKind};
    use roaring::RoaringBitmap;

    use super::*;
    use crate::format::config::{CHUNKER_VERSION, Pooling};
    use crate::format::segment::{POSTINGS_BYTES_MIN, Segment};
    use crate::fs::{Folder, OsFs};

    fn config() -> CollectionConfig {
        CollectionConfig {
            model: "none".to_owned(),
            model_fingerprint: "f00d".to_owned(),
            dimensions: 2,
            chunk_tokens: "document".to_owned(),
            chunker_version: CHUNKER_VERSION,
            header: "none".to_owned(),
            language: "none".to_owned(),
            vectors: "f32".to_owned(),
            precision: "f32".to_owned(),
            pooling: Pooling::Plain,
            late: None,
            given: None,
            endpoint: None,
            context: None,
            prompt: None,
        }
    }

    /// Documents of 60 words in one chunk; the bytes of memory that they took.
    fn write(folder: &Path, n_documents: usize, config: &CollectionConfig) -> u64 {
        let mut writer = SegmentWriter::create(&OsFs, folder, 1, 0, config).unwrap();
        let mut state = 7_u64;
        for n in 0..n_documents {
            let mut word = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                50_000_f64.powf((state >> 33) as f64 / (1_u64 << 31) as f64) as u64 // Zipf's law
            };
            let text: String = (0..60).map(|_| format!("word{} ", word())).collect();
            let document = Document {
                id: format!("notes/{n}.txt"),
                origin: format!("notes/{n}.txt"),
                title: format!("Note {n}"),
                format: Format::Text,
                kind: TextKind::Source,
                sections: Vec::new(),
                blocks: Vec::new(),
                metadata: Default::default(),
                links: Vec::new(),
                warnings: Vec::new(),
                text,
            };
            let chunk = Chunk {
                span: 0..document.text.len(),
                section: 0,
                n_tokens: 60,
                hidden: false,
                anchor: Anchor::default(),
                header_skip: 0,
            };
            let chunks = vec![NewChunk { index: 0, chunk: &chunk, header: "", context: "" }];
            let row = writer
                .push(&NewDocument { document: &document, links: None, hash: [0; 32], n_chunks: 1, chunks })
                .unwrap();
            writer.set_vector(0, row, &[0.6, 0.8]).unwrap();
        }
        let gathered_bytes = writer.gathered_bytes();
        writer.finish(usize::MAX, |_| {}).unwrap();
        gathered_bytes
    }

    #[test]
    fn the_memory_of_a_merge_is_reckoned_from_files_as_no_less_and_not_much_more() {
        let (folder, config) = (tempfile::tempdir().unwrap(), config());
        let analyzer = lexical::Analyzer::new(config.language().unwrap());
        for n_documents in [10_000, 30_000] {
            let path = folder.path().join(n_documents.to_string());
            std::fs::create_dir_all(path.join(SEGMENTS)).unwrap();
            let gathered = write(&path, n_documents, &config);
            let opened = Folder::open(&path.join(SEGMENTS).join("1-0")).unwrap();
            let segment = Segment::open(&opened, "1-0", &analyzer, config.pooling, RoaringBitmap::new()).unwrap();
            let reckoned = POSTINGS_BYTES_MIN + segment.gathered_bytes().unwrap();
            let ratio = reckoned as f64 / gathered as f64;
            assert!((1.0..2.0).contains(&ratio), "{n_documents} documents: {reckoned} for {gathered}, {ratio:.2}");
        }
    }
}
