//! Rows in, the files of one segment out: the document id of a row is its number.
//!
//! The same rows give the same bytes: tantivy's random segment id is replaced by a fixed one, in the names of the files
//! and in `meta.json`, and nothing else in them depends on the run.
//! Cost: the postings stay in memory until [`Writer::finish`].

use std::path::Path;

use tantivy::directory::RamDirectory;
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

/// A segment whose postings take more than this in memory is full.
const WRITER_BYTES_MAX: usize = 2 << 30;

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
        if self.n_rows == i32::MAX as u32 || self.writer.mem_usage() > WRITER_BYTES_MAX {
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
    pub fn finish(self) -> Result<Vec<(String, Vec<u8>)>> {
        let Self { writer, directory, fields, fingerprint, n_rows } = self;
        let index = writer.finalize()?;
        let mut files = rename(&index, &directory)?;
        let segments = index.searchable_segments()?;
        let lengths = lengths::of_postings(&SegmentReader::open(&segments[0])?, &fields, n_rows)?;
        files.push((LENGTHS.to_owned(), lengths::encode(&lengths)));
        files.push((FINGERPRINT.to_owned(), fingerprint.into_bytes()));
        files.sort();
        Ok(files)
    }
}

/// The files tantivy wrote, under the fixed segment id.
fn rename(index: &Index, directory: &RamDirectory) -> Result<Vec<(String, Vec<u8>)>> {
    let meta = index.load_metas()?;
    let [segment] = &meta.segments[..] else { panic!("one segment was written, {} are listed", meta.segments.len()) };
    let id =
        SegmentId::from_uuid_string(SEGMENT_ID).unwrap_or_else(|error| panic!("the segment id is an id: {error:?}"));
    let random = segment.id().uuid_string();
    let renamed = IndexMeta { segments: vec![index.new_segment_meta(id, segment.max_doc())], ..meta.clone() };

    let mut files = vec![(META.to_owned(), serde_json::to_vec(&renamed).expect("meta.json was read from JSON"))];
    for path in meta.list_segment_files() {
        if directory.exists(&path)? {
            let name = path.to_string_lossy().replace(&random, SEGMENT_ID);
            files.push((name, read(directory, &path)?));
        }
    }
    Ok(files)
}

fn read(directory: &RamDirectory, path: &Path) -> Result<Vec<u8>> {
    Ok(directory.open_read(path)?.read_bytes()?.to_vec())
}
