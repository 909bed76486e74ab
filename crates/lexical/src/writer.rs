//! Rows in, the files of one segment out: the document id of a row is its number.
//!
//! The same rows give the same bytes: tantivy's random segment id is replaced by a fixed one, in the names of the files
//! and in `meta.json`, and nothing else in them depends on the run.
//! Cost: the postings stay in memory until [`Writer::finish`], which takes as much again for the files.

use tantivy::directory::{OwnedBytes, RamDirectory};
use tantivy::index::{IndexMeta, SegmentId};
use tantivy::schema::Field;
use tantivy::tokenizer::TokenizerManager;
use tantivy::{Directory, Index, IndexSettings, SegmentReader, SingleSegmentIndexWriter, TantivyDocument};

use crate::lengths::{self, LENGTHS};
use crate::schema::{self, ANALYZER, HEADER, N_FIELDS, TEXT, TITLE};
use crate::segment::FINGERPRINT;
use crate::{Analyzer, Error, Result};

/// Most bytes of text, header and title one row may have: even if every pair of its characters is a new term, it fits
/// beside the postings of others into the 4 GiB that tantivy can address.
pub const ROW_BYTES_MAX: usize = 64 << 20;

/// The most rows of one segment.
pub const ROWS_MAX: u32 = i32::MAX as u32;

/// A segment whose postings take more than this in memory is full.
const WRITER_BYTES_MAX: usize = 2 << 30;

/// Memory that tantivy can address.
const ADDRESSED_BYTES: usize = 4 << 30;

/// The most memory that a byte of text takes: every pair of characters is a new term.
const BYTES_PER_TEXT_BYTE: usize = (ADDRESSED_BYTES - WRITER_BYTES_MAX) / ROW_BYTES_MAX;

/// Sizes the table of terms at the start (it grows): small segments should be cheap to begin.
const TABLE_BYTES: usize = 1 << 20;

/// The id of every segment: they are told apart by the folder they are in.
const SEGMENT_ID: &str = "00000000000000000000000000000000";

const META: &str = "meta.json";

/// The indexed text of one chunk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Row<'a> {
    /// The text of the chunk.
    pub text: &'a str,
    /// The header of the chunk: counts when rows are ranked.
    pub header: &'a str,
    /// The title of the document, on its first row and only if its text does not begin with it: counts when documents
    /// are ranked.
    pub title: &'a str,
}

/// Builds one segment.
pub struct Writer {
    writer: SingleSegmentIndexWriter,
    directory: RamDirectory,
    fields: [Field; N_FIELDS],
    fingerprint: String,
    n_rows: u32,
}

impl Writer {
    /// An empty segment.
    ///
    /// # Errors
    ///
    /// [`Error::Tantivy`] if tantivy cannot begin.
    pub fn new(analyzer: &Analyzer) -> Result<Self> {
        let (schema, fields) = schema::schema();
        let tokenizers = TokenizerManager::new();
        tokenizers.register(ANALYZER, analyzer.pipeline());
        let directory = RamDirectory::create();
        let writer = Index::builder()
            .schema(schema)
            .tokenizers(tokenizers)
            .settings(IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() })
            .single_segment_index_writer(directory.clone(), TABLE_BYTES)?;
        Ok(Self { writer, directory, fields, fingerprint: analyzer.fingerprint(), n_rows: 0 })
    }

    /// Appends one row; its number is the count of rows before it.
    ///
    /// # Errors
    ///
    /// [`Error::RowTooLarge`] and [`Error::Full`]; the row is not added then, the rows before it are unharmed.
    pub fn add(&mut self, row: Row<'_>) -> Result<()> {
        let n_bytes = row.text.len() + row.header.len() + row.title.len();
        if n_bytes > ROW_BYTES_MAX {
            return Err(Error::RowTooLarge { row: self.n_rows, n_bytes, max_bytes: ROW_BYTES_MAX });
        }
        if self.n_rows == ROWS_MAX || self.writer.mem_usage() > WRITER_BYTES_MAX {
            return Err(Error::Full { n_rows: self.n_rows });
        }
        let mut document = TantivyDocument::new();
        for (field, text) in [(TEXT, row.text), (HEADER, row.header), (TITLE, row.title)] {
            if !text.is_empty() {
                document.add_text(self.fields[field], text);
            }
        }
        self.writer.add_document(document)?;
        self.n_rows += 1;
        Ok(())
    }

    /// Bytes of memory that the postings take so far.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.writer.mem_usage()
    }

    /// True if rows that have so many bytes of text, headers and titles together are sure to be taken.
    #[must_use]
    pub fn has_room(&self, n_rows: usize, n_bytes: usize) -> bool {
        let n_bytes = n_bytes.saturating_mul(BYTES_PER_TEXT_BYTE).saturating_add(self.memory_bytes());
        n_bytes <= WRITER_BYTES_MAX && n_rows.saturating_add(self.n_rows as usize) <= ROWS_MAX as usize
    }

    /// Rows added so far.
    #[must_use]
    pub fn n_rows(&self) -> u32 {
        self.n_rows
    }

    /// The files of the segment, by name: `(name, bytes)`.
    ///
    /// # Errors
    ///
    /// [`Error::Tantivy`] if tantivy cannot finish.
    pub fn finish(self) -> Result<Vec<(String, OwnedBytes)>> {
        let Self { writer, directory, fields, fingerprint, n_rows } = self;
        let index = writer.finalize()?;
        let mut files = rename(&index, &directory)?;
        let segments = index.searchable_segments()?;
        let lengths = lengths::of_postings(&SegmentReader::open(&segments[0])?, &fields, n_rows)?;
        files.push((LENGTHS.to_owned(), OwnedBytes::new(lengths::encode(&lengths))));
        files.push((FINGERPRINT.to_owned(), OwnedBytes::new(fingerprint.into_bytes())));
        files.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(files)
    }
}

/// The files tantivy wrote, under the fixed segment id.
fn rename(index: &Index, directory: &RamDirectory) -> Result<Vec<(String, OwnedBytes)>> {
    let meta = index.load_metas()?;
    let [segment] = &meta.segments[..] else { panic!("one segment was written, {} are listed", meta.segments.len()) };
    let id =
        SegmentId::from_uuid_string(SEGMENT_ID).unwrap_or_else(|error| panic!("the segment id is an id: {error:?}"));
    let random = segment.id().uuid_string();
    let renamed = IndexMeta { segments: vec![index.new_segment_meta(id, segment.max_doc())], ..meta.clone() };

    let renamed = serde_json::to_vec(&renamed).expect("meta.json was read from JSON");
    let mut files = vec![(META.to_owned(), OwnedBytes::new(renamed))];
    for path in meta.list_segment_files() {
        if directory.exists(&path)? {
            let name = path.to_string_lossy().replace(&random, SEGMENT_ID);
            files.push((name, directory.open_read(&path)?.read_bytes()?)); // shared with the directory, not copied
        }
    }
    Ok(files)
}
