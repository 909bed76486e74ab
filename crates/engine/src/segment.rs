//! A segment: everything known about some documents, written once and never changed after a manifest names it.
//!
//! One row number joins all of it: the chunk's record, its vector and its BM25 document have the same number.
//! Writer → files → reader:
//!
//! | file | one record per |
//! |---|---|
//! | `documents.table` | document: id, origin, title, metadata, text range, rows, sections, content hash |
//! | `sections.table` | section: heading, span, level, parent |
//! | `chunks.table` | chunk: document, number, byte span, section, tokens, anchor, hash |
//! | `documents.text` | block of canonical text |
//! | `vectors.rows` | chunk: its unit vector |
//! | `hnsw.graph` | (from [`crate::config::GRAPH_ROWS_MIN`] rows on) frozen neighbour lists |
//! | `lexical/*` | postings and lengths |

use std::collections::BTreeMap;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytemuck::{Pod, Zeroable};
use cento_corpus as corpus;
use cento_lexical::{self as lexical, OwnedBytes};
use cento_vector::{self as vector, file, hnsw};
use roaring::RoaringBitmap;

use crate::error::{AtPath, Error, Result};
use crate::fs::Fs;
use crate::table::{Table, TableWriter, Text};
use crate::text::{TextWriter, Texts};

const DOCUMENTS: ([u8; 8], &str) = (*b"document", "documents.table");
const SECTIONS: ([u8; 8], &str) = (*b"sections", "sections.table");
const CHUNKS: ([u8; 8], &str) = (*b"chunks\0\0", "chunks.table");
const TEXTS: &str = "documents.text";
const VECTORS: &str = "vectors.rows";
const GRAPH: &str = "hnsw.graph";
const LEXICAL: &str = "lexical";
const LEXICAL_KIND: [u8; 8] = *b"lexical\0";
const NONE: u32 = u32::MAX;
const NO_SOURCE: u64 = u64::MAX;

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
}

/// What `sections.table` holds of a section; `parent` counts from the document's first section.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SectionRecord {
    pub(crate) heading: Text,
    pub(crate) sheet: Text,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) level: u32,
    pub(crate) parent: u32,
    pub(crate) line: u32,
    pub(crate) page: u32,
}

/// What `chunks.table` holds of a chunk; `index` is its number within its document, hidden chunks counted.
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
    pub(crate) reserved: u32,
}

/// A chunk that gets a row: its position in the document's chunk list, and the header embedded before it.
pub(crate) struct NewChunk<'a> {
    pub(crate) index: u32,
    pub(crate) chunk: &'a corpus::Chunk,
    pub(crate) header: &'a str,
}

/// A document on its way into a segment.
pub(crate) struct NewDocument<'a> {
    pub(crate) document: &'a corpus::Document,
    pub(crate) hash: [u8; 32],
    pub(crate) n_chunks: u32,
    /// The chunks that are searched, in order.
    pub(crate) chunks: Vec<NewChunk<'a>>,
}

/// Gathers documents, then vectors, and writes the files of one segment.
pub(crate) struct SegmentWriter<'f> {
    fs: &'f dyn Fs,
    folder: PathBuf,
    documents: TableWriter<DocumentRecord>,
    sections: TableWriter<SectionRecord>,
    chunks: TableWriter<ChunkRecord>,
    texts: TextWriter,
    lexical: lexical::Writer,
    dimensions: usize,
    vectors: Vec<f32>,
}

impl<'f> SegmentWriter<'f> {
    /// Starts the segment's folder; what an interrupted run left there is removed first.
    pub(crate) fn create(
        fs: &'f dyn Fs,
        folder: &Path,
        analyzer: &lexical::Analyzer,
        dimensions: usize,
    ) -> Result<Self> {
        if folder.exists() {
            fs.remove_dir(folder).at(folder)?;
        }
        let lexical_folder = folder.join(LEXICAL);
        fs.create_dir(&lexical_folder).at(&lexical_folder)?;
        Ok(Self {
            fs,
            folder: folder.to_owned(),
            documents: TableWriter::new(),
            sections: TableWriter::new(),
            chunks: TableWriter::new(),
            texts: TextWriter::create(fs, &folder.join(TEXTS))?,
            lexical: lexical::Writer::new(analyzer)?,
            dimensions,
            vectors: Vec::new(),
        })
    }

    pub(crate) fn n_documents(&self) -> usize {
        self.documents.len()
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.chunks.len()
    }

    /// Adds a document and its chunks; their rows follow each other from the returned one on.
    pub(crate) fn push(&mut self, new: &NewDocument<'_>) -> Result<u32> {
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
        self.vectors.resize(self.chunks.len() * self.dimensions, 0.0);
        let metadata = serde_json::to_string(&document.metadata).expect("a map of strings is always JSON");
        let record = DocumentRecord {
            id: self.documents.text(&document.id),
            origin: self.documents.text(&document.origin),
            title: self.documents.text(&document.title),
            metadata: self.documents.text(&metadata),
            text_start: self.texts.push(&document.text)?,
            text_bytes: document.text.len() as u64,
            hash: new.hash,
            first_row,
            n_rows: new.chunks.len() as u32,
            first_section,
            n_sections: document.sections.len() as u32,
            n_chunks: new.n_chunks,
            is_extracted: u32::from(document.kind == corpus::TextKind::Extracted),
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
            level: u32::from(section.level),
            parent: section.parent.unwrap_or(NONE),
            line: section.anchor.line.unwrap_or(NONE),
            page: section.anchor.page.unwrap_or(NONE),
        };
        self.sections.push(record);
    }

    /// The vector of a row; every row must get one before [`SegmentWriter::finish`].
    pub(crate) fn set_vector(&mut self, row: u32, vector: &[f32]) {
        assert_eq!(vector.len(), self.dimensions, "an encoder gives vectors of one length");
        let at = row as usize * self.dimensions;
        self.vectors[at..at + self.dimensions].copy_from_slice(vector);
    }

    /// Writes and syncs every file; the segment is complete but not yet part of the collection.
    pub(crate) fn finish(
        self,
        scalar: vector::Scalar,
        graph_rows_min: usize,
        mut graph_rows_done: impl FnMut(usize),
    ) -> Result<()> {
        let Self { fs, folder, .. } = self;
        self.documents.write(fs, &folder.join(DOCUMENTS.1), DOCUMENTS.0)?;
        self.sections.write(fs, &folder.join(SECTIONS.1), SECTIONS.0)?;
        let n_rows = self.chunks.len();
        self.chunks.write(fs, &folder.join(CHUNKS.1), CHUNKS.0)?;
        self.texts.finish()?;

        let path = folder.join(VECTORS);
        let rows = self.vectors.chunks_exact(self.dimensions);
        let mut file = vector::write_rows(fs.create(&path).at(&path)?, self.dimensions, scalar, rows)?;
        file.sync().at(&path)?;
        drop(self.vectors);

        let lexical_folder = folder.join(LEXICAL);
        for (name, bytes) in self.lexical.finish()? {
            let path = lexical_folder.join(name);
            let mut out = file::Writer::new(fs.create(&path).at(&path)?, LEXICAL_KIND).at(&path)?;
            io::Write::write_all(&mut out, &bytes).at(&path)?;
            out.finish([bytes.len() as u64, 0]).at(&path)?.sync().at(&path)?;
        }
        fs.sync_dir(&lexical_folder).at(&lexical_folder)?;

        if n_rows >= graph_rows_min {
            let rows = vector::Rows::open(file::Mapped::open_any(&path, &vector::Scalar::KINDS)?)?;
            let graph = hnsw::build(&rows, &hnsw::HnswConfig::default(), &mut |n_done| {
                graph_rows_done(n_done);
                ControlFlow::Continue(())
            })?;
            let path = folder.join(GRAPH);
            graph.write(fs.create(&path).at(&path)?)?.sync().at(&path)?;
        }
        fs.sync_dir(&folder).at(&folder)
    }
}

fn chunk_record(document: u32, new: &NewChunk<'_>, text: &str) -> ChunkRecord {
    let anchor = &new.chunk.anchor;
    let source = anchor.source.clone().unwrap_or(NO_SOURCE..NO_SOURCE);
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    ChunkRecord {
        start: new.chunk.span.start as u64,
        end: new.chunk.span.end as u64,
        source_start: source.start,
        source_end: source.end,
        hash,
        document,
        index: new.index,
        section: new.chunk.section,
        n_tokens: new.chunk.n_tokens,
        line: anchor.line.unwrap_or(NONE),
        page: anchor.page.unwrap_or(NONE),
        sheet_row: anchor.row.unwrap_or(NONE),
        reserved: 0,
    }
}

/// An open segment: memory maps, and the set of its rows that are alive.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) name: String,
    pub(crate) documents: Table<DocumentRecord>,
    pub(crate) sections: Table<SectionRecord>,
    pub(crate) chunks: Table<ChunkRecord>,
    pub(crate) texts: Texts,
    pub(crate) rows: vector::Rows,
    pub(crate) graph: Option<hnsw::FrozenGraph>,
    pub(crate) lexical: lexical::Segment,
    lexical_files: Arc<LexicalFiles>,
    /// Documents that were deleted or replaced.
    pub(crate) deleted: RoaringBitmap,
    /// Rows of the other documents; `None` when that is all of them.
    pub(crate) live: Option<RoaringBitmap>,
    units: OnceLock<Units>,
}

/// The documents that have rows, numbered without gaps: what ranking documents counts in.
#[derive(Debug)]
pub(crate) struct Units {
    /// For each row the unit of its document, ascending.
    pub(crate) of_row: Vec<u32>,
    /// For each unit the number of its document.
    pub(crate) documents: Vec<u32>,
}

impl Segment {
    /// Opens the files; reads headers and block tables only.
    pub(crate) fn open(
        folder: &Path,
        name: &str,
        analyzer: &lexical::Analyzer,
        deleted: RoaringBitmap,
    ) -> Result<Self> {
        let documents = Table::<DocumentRecord>::open(&folder.join(DOCUMENTS.1), DOCUMENTS.0)?;
        let chunks = Table::open(&folder.join(CHUNKS.1), CHUNKS.0)?;
        let rows = vector::Rows::open(file::Mapped::open_any(folder.join(VECTORS), &vector::Scalar::KINDS)?)?;
        let graph_path = folder.join(GRAPH);
        let graph = match graph_path.exists() {
            true => Some(hnsw::FrozenGraph::open(file::Mapped::open(&graph_path, hnsw::KIND)?)?),
            false => None,
        };
        let lexical_files = Arc::new(LexicalFiles::open(&folder.join(LEXICAL))?);
        let lexical = lexical::Segment::open(lexical_files.clone(), analyzer)?;
        if rows.len() != chunks.len() || lexical.n_rows() as usize != chunks.len() {
            let reason =
                format!("{} chunks, {} vectors and {} lexical rows", chunks.len(), rows.len(), lexical.n_rows());
            return Err(Error::Corrupt { path: folder.to_owned(), reason });
        }
        let live = live_rows(&documents, &deleted, chunks.len() as u32)?;
        Ok(Self {
            name: name.to_owned(),
            sections: Table::open(&folder.join(SECTIONS.1), SECTIONS.0)?,
            texts: Texts::open(&folder.join(TEXTS))?,
            documents,
            chunks,
            rows,
            graph,
            lexical,
            lexical_files,
            deleted,
            live,
            units: OnceLock::new(),
        })
    }

    /// Rows that answer queries.
    pub(crate) fn n_live_rows(&self) -> usize {
        self.live.as_ref().map_or(self.chunks.len(), |live| live.len() as usize)
    }

    /// Numbers of the documents that are alive.
    pub(crate) fn live_documents(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.documents.len() as u32).filter(|&document| !self.deleted.contains(document))
    }

    /// The documents that have rows.
    pub(crate) fn units(&self) -> Result<&Units> {
        if self.units.get().is_none() {
            let mut units = Units { of_row: Vec::with_capacity(self.chunks.len()), documents: Vec::new() };
            for chunk in self.chunks.records(0..self.chunks.len())? {
                if units.documents.last() != Some(&chunk.document) {
                    units.documents.push(chunk.document);
                }
                units.of_row.push(units.documents.len() as u32 - 1);
            }
            let _ = self.units.set(units); // another thread computed the same
        }
        Ok(self.units.get().expect("set above"))
    }

    pub(crate) fn document(&self, document: u32) -> Result<DocumentRecord> {
        self.documents.record(document as usize)
    }

    pub(crate) fn document_id(&self, document: u32) -> Result<&str> {
        self.documents.text(self.document(document)?.id)
    }

    /// A document's whole text.
    pub(crate) fn document_text(&self, record: &DocumentRecord) -> Result<String> {
        self.texts.read(record.text_start..record.text_start + record.text_bytes)
    }

    /// The text of a byte range of a document.
    pub(crate) fn text(&self, record: &DocumentRecord, span: Range<u64>) -> Result<String> {
        self.texts.read(record.text_start + span.start..record.text_start + span.end)
    }

    /// A section of a document, by its number there.
    pub(crate) fn section(&self, record: &DocumentRecord, section: u32) -> Result<SectionRecord> {
        self.sections.record((record.first_section + section) as usize)
    }

    /// The file groups of the segment with each one checked; used by `doctor`.
    pub(crate) fn verify(&self) -> Vec<(&'static str, Result<()>)> {
        let graph = self.graph.as_ref().map_or(Ok(()), |graph| graph.verify().map_err(Error::from));
        vec![
            (DOCUMENTS.1, self.documents.verify()),
            (SECTIONS.1, self.sections.verify()),
            (CHUNKS.1, self.chunks.verify()),
            (TEXTS, self.texts.verify()),
            (VECTORS, self.rows.verify().map_err(Error::from)),
            (GRAPH, graph),
            (LEXICAL, self.lexical_files.verify()),
        ]
    }
}

impl DocumentRecord {
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
    /// Where the chunk stands in its source, in words: `page 3`, `row 12`, `line 40`; empty when nothing is known.
    pub(crate) fn anchor(&self) -> String {
        match (some(self.page), some(self.sheet_row), some(self.line)) {
            (Some(page), _, _) => format!("page {page}"),
            (_, Some(row), _) => format!("row {row}"),
            (_, _, Some(line)) => format!("line {line}"),
            _ => String::new(),
        }
    }

    /// Byte range in the source file, where the reader kept a map to it.
    pub(crate) fn source(&self) -> Option<Range<u64>> {
        (self.source_start != NO_SOURCE).then_some(self.source_start..self.source_end)
    }
}

fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

fn live_rows(documents: &Table<DocumentRecord>, deleted: &RoaringBitmap, n_rows: u32) -> Result<Option<RoaringBitmap>> {
    if deleted.is_empty() {
        return Ok(None);
    }
    let mut live = RoaringBitmap::new();
    live.insert_range(0..n_rows);
    for document in deleted {
        let record = documents.record(document as usize)?;
        live.remove_range(record.first_row..record.first_row + record.n_rows);
    }
    Ok(Some(live))
}

/// The files of a lexical segment, each in the checksummed container.
#[derive(Debug)]
struct LexicalFiles {
    files: BTreeMap<String, Arc<LexicalFile>>,
}

#[derive(Debug)]
struct LexicalFile(file::Mapped);

impl LexicalFiles {
    fn open(folder: &Path) -> Result<Self> {
        let entries = std::fs::read_dir(folder).at(folder)?;
        let mut files = BTreeMap::new();
        for entry in entries {
            let path = entry.at(folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.insert(name, Arc::new(LexicalFile(file::Mapped::open(&path, LEXICAL_KIND)?)));
        }
        Ok(Self { files })
    }

    fn verify(&self) -> Result<()> {
        self.files.values().try_for_each(|file| Ok(file.0.verify()?))
    }
}

impl lexical::Files for LexicalFiles {
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn lexical::File>>> {
        Ok(self.files.get(name).map(|file| file.clone() as Arc<dyn lexical::File>))
    }

    fn names(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }
}

impl lexical::File for LexicalFile {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.0.bytes(range.clone()).map_err(io::Error::other)?; // verifies the blocks of the range
        Ok(OwnedBytes::new(self.0.clone()).slice(range))
    }
}
