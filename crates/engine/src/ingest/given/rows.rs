//! Rows: vectors, ids and texts of a run, read together.

use std::path::{Path, PathBuf};

use cento_collection::fs::read_bounded;
use cento_corpus::{self as corpus, Document, Format, FoundFile, Parts, ReadOptions, RecordIds};

use super::options::GivenOptions;
use super::read::{Matrix, Record};
use crate::error::{AtPath, Error, Result};
use crate::plural::counted;

/// Bytes of a file of ids, at most.
const IDS_BYTES_MAX: u64 = 4 << 30;

/// The first character of many a file of another system's; no part of an id.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Half of BLAKE3 of an id.
pub(super) type IdHash = [u8; 16];

/// A row: a document and its vector.
pub(super) struct One {
    pub(super) document: Document,
    pub(super) vector: Vec<f32>,
}

/// The files of a run, read together.
pub(super) struct Given {
    pub(super) matrix: Matrix,
    vectors: PathBuf,
    /// The name of the file of the vectors, which its documents come from.
    pub(super) origin: String,
    ids: Option<(PathBuf, std::vec::IntoIter<String>)>,
    texts: Option<(FoundFile, corpus::Documents)>,
    row: u64,
    buffer: Vec<f32>,
}

impl Given {
    pub(super) fn open(options: &GivenOptions) -> Result<Self> {
        let matrix = Matrix::open(&options.vectors, options.column.as_deref())?;
        let ids = options.ids.as_deref().map(|path| Ok::<_, Error>((path.to_owned(), read_ids(path)?.into_iter())));
        let ids = ids.transpose()?;
        if let Some((path, ids)) = &ids
            && ids.len() as u64 != matrix.n_rows()
        {
            let reason = format!("has {}, and there are {} vectors", counted(ids.len() as u64, "id"), matrix.n_rows());
            return Err(Error::Vectors { path: path.clone(), reason });
        }
        let texts = options.texts.as_deref().map(|path| {
            let n_bytes = std::fs::metadata(path).at(path)?.len();
            let (path, origin, record_ids) = (path.to_owned(), name_of(path), RecordIds::Own);
            let file = FoundFile { path, origin, format: Format::Jsonl, n_bytes, record_ids };
            let documents = corpus::read(&file, &ReadOptions::default())?;
            Ok::<_, Error>((file, documents))
        });
        Ok(Self {
            matrix,
            vectors: options.vectors.clone(),
            origin: name_of(&options.vectors),
            ids,
            texts: texts.transpose()?,
            row: 0,
            buffer: Vec::new(),
        })
    }

    pub(super) fn refuse(&self, reason: &str) -> Error {
        Error::Vectors { path: self.vectors.clone(), reason: reason.to_owned() }
    }

    /// The next row; none behind the last.
    pub(super) fn next(&mut self) -> Result<Option<One>> {
        if !self.matrix.next(&mut self.buffer)? {
            self.check_texts_ended()?;
            return Ok(None);
        }
        let row = self.row;
        self.row += 1;
        let mut record = self.matrix.record()?;
        let (own, document) = self.text()?;
        let own = own.or(record.id.take());
        let named = match &mut self.ids {
            Some((_, ids)) => ids.next(),
            None => None,
        };
        if let (Some(own), Some(named)) = (&own, &named)
            && own != named
        {
            return Err(self.refuse(&format!("row {row} is {named:?} by its id and {own:?} by its text")));
        }
        let id = match named.or(own) {
            Some(id) => id,
            None if self.matrix.has_ids() => return Err(self.refuse(&format!("row {row} has no id"))),
            None => row.to_string(),
        };
        let mut document = match document {
            Some(document) => document,
            None => self.document(row, &id, record)?,
        };
        document.origin.clone_from(&self.origin);
        document.id = id;
        Ok(Some(One { document, vector: self.buffer.clone() }))
    }

    /// The document of a row that has no text of the file of texts.
    fn document(&self, row: u64, id: &str, record: Record) -> Result<Document> {
        let Record { title, text, metadata, .. } = record;
        let (id, origin) = (id.to_owned(), self.origin.clone());
        if !self.matrix.has_texts() {
            // Of a row without words its id is kept, so that it has something to show.
            let text = id.clone();
            let document =
                corpus::from_parts(Parts { id, origin, format: Format::Text, title: String::new(), text, metadata })?;
            return Ok(Document { title: String::new(), ..document });
        }
        if title.is_none() && text.is_none() {
            return Err(self.refuse(&format!("row {row} has no text")));
        }
        let (title, text) = (title.unwrap_or_default(), text.unwrap_or_default());
        Ok(corpus::from_parts(Parts { id, origin, format: Format::Jsonl, title, text, metadata })?)
    }

    /// True if words can be searched.
    pub(super) fn has_texts(&self) -> bool {
        self.texts.is_some() || self.matrix.has_texts()
    }

    /// The next text, and its own id if it has one.
    fn text(&mut self) -> Result<(Option<String>, Option<Document>)> {
        let n_rows = self.matrix.n_rows();
        let Some((file, documents)) = &mut self.texts else { return Ok((None, None)) };
        let Some(document) = documents.next().transpose()? else {
            let reason = format!("has {}, and there are {n_rows} vectors", counted(self.row - 1, "text"));
            return Err(Error::Vectors { path: file.path.clone(), reason });
        };
        let line = document.blocks.first().and_then(|block| block.anchor.line);
        let is_numbered = line.is_some_and(|line| document.id == format!("{}:{line}", file.origin));
        Ok((Some(document.id.clone()).filter(|_| !is_numbered), Some(document)))
    }

    fn check_texts_ended(&mut self) -> Result<()> {
        let Some((file, documents)) = &mut self.texts else { return Ok(()) };
        match documents.next().transpose()? {
            None => Ok(()),
            Some(_) => {
                let reason = format!("has more texts than the {}", counted(self.row, "vector"));
                Err(Error::Vectors { path: file.path.clone(), reason })
            }
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The ids of a file, a line each.
fn read_ids(path: &Path) -> Result<Vec<String>> {
    let refuse = |reason: String| Error::Vectors { path: path.to_owned(), reason };
    let bytes = read_bounded(path, IDS_BYTES_MAX).at(path)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        refuse(format!("is not UTF-8 from byte {} on; ids are lines of text", error.utf8_error().valid_up_to()))
    })?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    let ids: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    match ids.iter().position(String::is_empty) {
        Some(line) => Err(refuse(format!("line {} is empty; every vector has an id", line + 1))),
        None => Ok(ids),
    }
}

pub(super) fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt()
}

pub(super) fn id_hash(id: &str) -> IdHash {
    let mut hash = IdHash::default();
    hash.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..size_of::<IdHash>()]);
    hash
}
