//! An open segment: its files as memory maps, and which of its documents are alive.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use cento_corpus as corpus;
use cento_lexical as lexical;
use cento_vector::file::Mapped;
use roaring::RoaringBitmap;

use super::column::Column;
use super::contexts::Contexts;
use super::files::{CHUNKS, DOCUMENTS, LEXICAL, METADATA, SECTIONS, TEXTS};
use super::lexical_files::LexicalFiles;
use super::links::Links;
use super::records::{ChunkRecord, DocumentRecord, SectionRecord};
use super::stored::{DocumentReader, Tables};
use crate::error::{AtPath, Error, Result};
use crate::format::config::{CollectionConfig, Pooling};
use crate::format::layout;
use crate::format::manifest::SegmentEntry;
use crate::format::metadata::{Described, MetadataColumns, MetadataWriter, read_metadata};
use crate::format::table::Table;
use crate::format::text::Texts;
use crate::fs::Folder;

/// Bytes of memory that a byte of a lexical file takes while it is written anew, both forms of its postings: rather too
/// many than too few, for a merge that is reckoned too small fills up and gives two segments.
const POSTINGS_PER_FILE_BYTE: usize = 6;

/// Bytes of memory that postings take however few they are, both forms: 22 MB were measured.
pub(crate) const POSTINGS_BYTES_MIN: u64 = 24 << 20;

/// An open segment: memory maps, and the set of its rows that are alive.
#[derive(Debug)]
pub struct Segment {
    /// Folder under `segments/`.
    pub name: String,
    /// Its documents.
    pub documents: Table<DocumentRecord>,
    /// Sections of all documents.
    pub sections: Table<SectionRecord>,
    /// Chunks that are searched; a row is a record.
    pub chunks: Table<ChunkRecord>,
    /// Links that authors made.
    pub links: Links,
    contexts: Contexts,
    /// Canonical texts.
    pub texts: Texts,
    /// Columns that filters read.
    pub metadata: MetadataColumns,
    /// The vectors of its chunks, by kind: at least one column.
    pub columns: Vec<Column>,
    /// Postings and lengths.
    pub lexical: lexical::Segment,
    lexical_files: Arc<LexicalFiles>,
    /// Documents that were deleted or replaced.
    pub deleted: RoaringBitmap,
    /// Rows of the other documents; `None` when that is all of them.
    pub live: Option<RoaringBitmap>,
    units: OnceLock<Units>,
}

/// The documents that have rows, numbered without gaps: what ranking documents counts in.
#[derive(Debug)]
pub struct Units {
    /// For each row the unit of its document, ascending.
    pub of_row: Vec<u32>,
    /// For each unit the number of its document.
    pub documents: Vec<u32>,
}

/// Opens the folder of a segment.
pub fn folder(collection: &Folder, name: &str) -> Result<Folder> {
    let name = format!("{}/{name}", layout::SEGMENTS);
    collection.folder(&name).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => {
            Error::Corrupt { path: collection.path().join(name), reason: "the folder is missing".to_owned() }
        }
        _ => Error::Io { path: collection.path().join(name), source },
    })
}

impl Segment {
    /// Opens the files; reads headers and block tables only.
    pub fn open(
        folder: &Folder,
        name: &str,
        analyzer: &lexical::Analyzer,
        pooling: Pooling,
        deleted: RoaringBitmap,
    ) -> Result<Self> {
        let documents = Table::<DocumentRecord>::open(folder, DOCUMENTS.1, DOCUMENTS.0)?;
        let chunks = Table::open(folder, CHUNKS.1, CHUNKS.0)?;
        let open_column = |at| Column::open(folder, at);
        let columns = (0..pooling.columns().len()).map(open_column).collect::<Result<Vec<_>>>()?;
        let lexical_files = Arc::new(LexicalFiles::open(&folder.folder(LEXICAL).at(&folder.path().join(LEXICAL))?)?);
        let lexical = lexical::Segment::open(lexical_files.clone(), analyzer);
        lexical_files.files().try_for_each(Mapped::check_whole)?; // before an error that their zeros made
        let lexical = lexical.map_err(|error| of_lexical_file(error, &folder.path().join(LEXICAL)))?;
        for column in &columns {
            if column.rows.len() != chunks.len() || lexical.n_rows() as usize != chunks.len() {
                let n_vectors = column.rows.len();
                let reason =
                    format!("{} chunks, {n_vectors} vectors and {} lexical rows", chunks.len(), lexical.n_rows());
                return Err(Error::Corrupt { path: folder.path().to_owned(), reason });
            }
        }
        let contexts = Contexts::open(folder)?;
        contexts.check(chunks.len())?;
        let live = live_rows(&documents, &deleted, chunks.len() as u32)?;
        Ok(Self {
            name: name.to_owned(),
            sections: Table::open(folder, SECTIONS.1, SECTIONS.0)?,
            links: Links::open(folder)?,
            contexts,
            texts: Texts::open(folder, TEXTS)?,
            metadata: MetadataColumns::open(folder, METADATA, documents.len())?,
            documents,
            chunks,
            columns,
            lexical,
            lexical_files,
            deleted,
            live,
            units: OnceLock::new(),
        })
    }

    /// Compares the files with what a manifest says of them.
    pub fn check_counts(&self, entry: &SegmentEntry) -> Result<()> {
        let (n_documents, n_rows) = (self.documents.len(), self.chunks.len());
        if (n_documents as u64, n_rows as u64) == (entry.n_documents, entry.n_rows) {
            return Ok(());
        }
        let SegmentEntry { n_documents: said, n_rows: rows_said, .. } = entry;
        let reason =
            format!("the manifest says {said} documents and {rows_said} rows, the files {n_documents} and {n_rows}");
        Err(Error::Corrupt { path: format!("segments/{}", self.name).into(), reason })
    }

    /// As [`Mapped::renew`], of each of its files.
    pub fn renew(&self, now: Instant) -> Result<()> {
        for file in self.files() {
            file.renew(now)?;
        }
        self.lexical_files.renew(now)
    }

    /// As [`Mapped::check_whole`], of each of its files.
    pub fn check_whole(&self) -> Result<()> {
        for file in self.files().chain(self.lexical_files.files()) {
            file.check_whole()?;
        }
        Ok(())
    }

    /// Its mapped files but those of postings.
    fn files(&self) -> impl Iterator<Item = &Mapped> {
        let tables = [self.documents.file(), self.sections.file(), self.chunks.file()];
        let of_some = self.links.file().into_iter().chain(self.contexts.file());
        let files = tables.into_iter().chain(of_some).chain([self.texts.file(), self.metadata.file()]);
        files.chain(self.columns.iter().flat_map(Column::files))
    }

    /// Rows that answer queries.
    pub fn n_live_rows(&self) -> usize {
        self.live.as_ref().map_or(self.chunks.len(), |live| live.len() as usize)
    }

    /// Numbers of the documents that are alive.
    pub fn live_documents(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.documents.len() as u32).filter(|&document| !self.deleted.contains(document))
    }

    /// The documents that have rows.
    pub fn units(&self) -> Result<&Units> {
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

    /// Bytes of memory that a writer takes to gather its documents again, reckoned from its files, dead ones too;
    /// beside [`POSTINGS_BYTES_MIN`], which all documents of a writer share.
    pub(crate) fn gathered_bytes(&self) -> Result<u64> {
        let tables = self.documents.n_bytes() + self.sections.n_bytes() + self.chunks.n_bytes() + self.links.n_bytes();
        let tables = tables + self.contexts.n_bytes();
        Ok((tables + POSTINGS_PER_FILE_BYTE * self.lexical_files.n_bytes()) as u64 + self.metadata.memory_bytes()?)
    }

    /// Bytes of memory that a row takes while a graph is built; columns have theirs one after the other.
    pub(crate) fn graph_row_bytes(&self) -> u64 {
        self.columns.iter().map(Column::graph_row_bytes).max().unwrap_or(0)
    }

    /// The record of a document.
    pub fn document(&self, document: u32) -> Result<DocumentRecord> {
        self.documents.record(document as usize)
    }

    /// The public id of a document.
    pub fn document_id(&self, document: u32) -> Result<&str> {
        self.documents.text(self.document(document)?.id)
    }

    /// The file that a document came from: root label and relative path.
    pub fn origin(&self, document: u32) -> Result<&str> {
        self.documents.text(self.document(document)?.origin)
    }

    /// Everything a document's reader knew of it besides its text.
    pub fn metadata_of(&self, record: &DocumentRecord) -> Result<corpus::Metadata> {
        let read = read_metadata(self.documents.text(record.metadata)?);
        read.map_err(|reason| self.corrupt_documents(format!("metadata: {reason}")))
    }

    /// The format a document was read as.
    pub fn format(&self, record: &DocumentRecord) -> Result<corpus::Format> {
        record.format().ok_or_else(|| self.corrupt_documents(format!("no format has number {}", record.format)))
    }

    /// A document's whole text.
    pub fn document_text(&self, record: &DocumentRecord) -> Result<String> {
        self.texts.read(record.text(0..record.text_bytes))
    }

    /// The text of a byte range of a document.
    pub fn text(&self, record: &DocumentRecord, span: Range<u64>) -> Result<String> {
        self.texts.read(record.text(span))
    }

    /// Reads whole documents; cheap if they are asked for in order.
    ///
    /// # Errors
    /// If the header style of the collection is none.
    pub fn reader(&self, config: &CollectionConfig) -> Result<DocumentReader<'_>> {
        let (documents, sections, chunks) = (&self.documents, &self.sections, &self.chunks);
        let contexts = config.context.is_some().then_some(&self.contexts);
        let links = &self.links;
        let header = config.header_style()?;
        Ok(DocumentReader::new(Tables { documents, sections, chunks, links, contexts }, &self.texts, header))
    }

    /// A section of a document, by its number there.
    pub fn section(&self, record: &DocumentRecord, section: u32) -> Result<SectionRecord> {
        self.sections.record(record.first_section as usize + section as usize)
    }

    /// The file groups of the segment with each one checked; used by `doctor`.
    pub fn verify(&self) -> Vec<(&'static str, Result<()>)> {
        let mut checks = vec![
            (DOCUMENTS.1, self.documents.verify()),
            (SECTIONS.1, self.sections.verify()),
            (CHUNKS.1, self.chunks.verify()),
            (TEXTS, self.texts.verify()),
            (METADATA, self.verify_metadata()),
        ];
        checks.extend(self.links.verify());
        checks.extend(self.contexts.verify());
        checks.extend(self.columns.iter().flat_map(Column::verify));
        checks.push((LEXICAL, self.lexical_files.verify()));
        checks
    }

    /// Checks that the columns of metadata are those of the documents.
    fn verify_metadata(&self) -> Result<()> {
        let mut columns = MetadataWriter::default();
        for document in 0..self.documents.len() as u32 {
            let record = self.document(document)?;
            columns.push(&Described {
                id: self.documents.text(record.id)?,
                origin: self.documents.text(record.origin)?,
                title: self.documents.text(record.title)?,
                format: self.format(&record)?,
                metadata: &self.metadata_of(&record)?,
            });
        }
        self.metadata.verify(&columns)
    }

    fn corrupt_documents(&self, reason: String) -> Error {
        Error::Corrupt { path: self.documents.path().to_owned(), reason }
    }
}

/// The error with the path of the file that is missing.
fn of_lexical_file(error: lexical::Error, folder: &Path) -> Error {
    match error {
        lexical::Error::Missing { name } => {
            Error::Corrupt { path: folder.join(name), reason: "the file is missing".to_owned() }
        }
        other => Error::Lexical(other),
    }
}

fn live_rows(documents: &Table<DocumentRecord>, deleted: &RoaringBitmap, n_rows: u32) -> Result<Option<RoaringBitmap>> {
    if deleted.is_empty() {
        return Ok(None);
    }
    let mut live = RoaringBitmap::new();
    live.insert_range(0..n_rows);
    for document in deleted {
        live.remove_range(documents.record(document as usize)?.rows());
    }
    Ok(Some(live))
}
