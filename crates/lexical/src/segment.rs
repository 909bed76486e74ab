//! One segment, open for reading: postings and lengths of its rows, and the part of them that a snapshot sees.

pub(crate) mod guard;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

use roaring::RoaringBitmap;
use tantivy::index::InvertedIndexReader;
use tantivy::schema::Field;
use tantivy::{Index, SegmentReader};

use crate::directory::{File, Files, ReadOnly};
use crate::lengths::{self, LENGTHS, Lengths, LengthsFile};
use crate::schema::{self, N_FIELDS};
use crate::{Analyzer, Error, Result};
use guard::guarded;

/// Name of the file that holds the fingerprint of the analyser.
pub(crate) const FINGERPRINT: &str = "analyzer";

const META: &str = "meta.json";

/// One immutable segment; `Send` and `Sync`.
pub struct Segment {
    reader: SegmentReader,
    fields: [Field; N_FIELDS],
    lengths: LengthsFile,
    analyzer: Analyzer,
}

/// The unit that is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Rows, by text and header.
    Row,
    /// Documents, by the text of all their rows and the title: BM25 of "title text" as one document.
    Document,
}

/// One segment of the collection, as a snapshot sees it.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Its rows.
    pub segment: &'a Segment,
    /// Rows that exist; `None` for all. Statistics are of these, results are among these.
    pub live: Option<&'a RoaringBitmap>,
    /// Rows that may be results; `None` for all. A document may be one if a live row of it may. Statistics do not
    /// change.
    pub allowed: Option<&'a RoaringBitmap>,
    /// The document of each row: from 0, each as the row before it or the next. Not looked at for [`Unit::Row`].
    pub document_of_row: &'a [u32],
}

impl Segment {
    /// Opens the files of a segment. Reads headers and footers; dictionary and postings when they are first searched.
    ///
    /// # Errors
    ///
    /// [`Error::Analyzer`] if it was written with another analyser; [`Error::Missing`], [`Error::Corrupt`],
    /// [`Error::Io`] and [`Error::Tantivy`] if its files are not what [`Writer`](crate::Writer) made.
    pub fn open(files: Arc<dyn Files>, analyzer: &Analyzer) -> Result<Self> {
        guarded(|| Self::open_unguarded(files, analyzer))
    }

    fn open_unguarded(files: Arc<dyn Files>, analyzer: &Analyzer) -> Result<Self> {
        check_fingerprint(&*open(&*files, FINGERPRINT)?, analyzer)?;
        let lengths = LengthsFile::open(open(&*files, LENGTHS)?)?;

        let index = Index::open(ReadOnly::new(files))?;
        let (schema, fields) = schema::schema();
        if index.schema() != schema {
            return Err(corrupt("its fields are not text, header and title".to_owned()));
        }
        let segments = index.searchable_segments()?;
        let [segment] = &segments[..] else {
            return Err(corrupt(format!("it lists {} segments instead of one", segments.len())));
        };
        let meta = segment.meta();
        if meta.max_doc() != lengths.n_rows() || meta.has_deletes() {
            let (rows, expected) = (meta.num_docs(), lengths.n_rows());
            return Err(corrupt(format!("it lists {rows} rows, the lengths are of {expected}")));
        }
        let reader = SegmentReader::open(segment)?;
        Ok(Self { reader, fields, lengths, analyzer: analyzer.clone() })
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> u32 {
        self.lengths.n_rows()
    }

    /// Reads all postings and compares them with the lengths of the rows.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] where they disagree; [`Error::Io`] and [`Error::Tantivy`] where they cannot be read.
    pub fn verify(&self) -> Result<()> {
        guarded(|| self.lengths.verify(&lengths::of_postings(&self.reader, &self.fields, self.n_rows())?))
    }

    /// The analyser its rows went through.
    #[must_use]
    pub fn analyzer(&self) -> &Analyzer {
        &self.analyzer
    }

    /// Dictionary and postings of a field, by its index in the schema.
    pub(crate) fn inverted(&self, field: usize) -> Result<Arc<InvertedIndexReader>> {
        Ok(self.reader.inverted_index(self.fields[field])?)
    }

    /// The field itself, by its index in the schema.
    pub(crate) fn field(&self, field: usize) -> Field {
        self.fields[field]
    }

    /// Lengths of its rows.
    pub(crate) fn lengths(&self) -> Result<Lengths> {
        self.lengths.read()
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("n_rows", &self.n_rows())
            .field("analyzer", &self.analyzer)
            .finish_non_exhaustive()
    }
}

fn open(files: &dyn Files, name: &str) -> Result<Arc<dyn File>> {
    match files.open(name) {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(Error::Missing { name: name.to_owned() }),
        Err(source) => Err(Error::Io { name: name.to_owned(), source }),
    }
}

fn check_fingerprint(file: &dyn File, analyzer: &Analyzer) -> Result<()> {
    let bytes = file.read(0..file.len()).map_err(|source| Error::Io { name: FINGERPRINT.to_owned(), source })?;
    let indexed = String::from_utf8_lossy(&bytes).into_owned();
    let requested = analyzer.fingerprint();
    if indexed == requested { Ok(()) } else { Err(Error::Analyzer { indexed, requested }) }
}

fn corrupt(reason: String) -> Error {
    Error::Corrupt { name: META.to_owned(), reason }
}
