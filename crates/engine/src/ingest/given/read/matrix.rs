//! A matrix: one file of vectors of any format, read row by row.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use cento_vector::DIMENSIONS_MAX;

use super::rows::{Header, Number, Part, Record, Rows, Shape};
use super::{counted, hdf5, numpy, parquet};
use crate::error::{AtPath, Error, Result};

/// A file of vectors, read row by row.
pub(crate) struct Matrix {
    header: Header,
    rows: Box<dyn Rows>,
    pub(crate) n_columns: usize,
    n_read: u64,
}

impl Matrix {
    /// Opens a file by its extension; `column` names the column or dataset of the vectors where there are several.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Vectors`] if it is no matrix of numbers, or has another length than its header says.
    pub(crate) fn open(path: &Path, column: Option<&str>) -> Result<Self> {
        let input = Input::File(File::open(path).at(path)?);
        Self::of(path, extension(path), input, column, Part::Rows)
    }

    pub(super) fn of(path: &Path, extension: &str, input: Input, column: Option<&str>, part: Part) -> Result<Self> {
        let refuse = |reason: String| Error::Vectors { path: path.to_owned(), reason };
        let extension = extension.to_ascii_lowercase();
        if let (Some(column), "npy" | "fvecs" | "bvecs") = (column, extension.as_str()) {
            return Err(refuse(format!("is one matrix, and has no column or dataset {column:?}")));
        }
        let (header, rows): (Header, Box<dyn Rows>) = match extension.as_str() {
            "npy" => {
                let (mut input, n_bytes) = input.reader(path)?;
                let shape = numpy::header(&mut input, n_bytes).map_err(refuse)?;
                (Header::bare(shape), Box::new(Plain::new(path, input, shape)))
            }
            kind @ ("fvecs" | "bvecs") => {
                let (input, n_bytes) = input.reader(path)?;
                let number = if kind == "fvecs" { Number::F32 } else { Number::U8 };
                let (shape, input) = counted::shape(input, n_bytes, number).map_err(refuse)?;
                (Header::bare(shape), Box::new(counted::Counted::new(path, input, shape)))
            }
            "parquet" => parquet::ParquetRows::open(path, input.file(path)?, column)?,
            "hdf5" | "h5" => hdf5::open(path, input.file(path)?, column, part)?,
            _ => {
                let reason = "is no file of vectors that is read: .npy, .fvecs, .bvecs, .parquet or .hdf5";
                return Err(refuse(reason.to_owned()));
            }
        };
        let n_columns = header.shape.n_columns;
        if !(1..=DIMENSIONS_MAX as u64).contains(&n_columns) && (header.shape.n_rows > 0 || n_columns > 0) {
            return Err(refuse(format!("has {n_columns} columns; a vector has 1 to {DIMENSIONS_MAX}")));
        }
        Ok(Self { header, rows, n_columns: n_columns as usize, n_read: 0 })
    }

    pub(crate) fn n_rows(&self) -> u64 {
        self.header.shape.n_rows
    }

    /// True if the file names its rows.
    pub(crate) fn has_ids(&self) -> bool {
        self.header.has_ids
    }

    /// True if the file has a text for each row.
    pub(crate) fn has_texts(&self) -> bool {
        self.header.has_texts
    }

    /// The order that the file says its vectors were made for.
    pub(crate) fn distance(&self) -> Option<&str> {
        self.header.distance.as_deref()
    }

    /// Remarks on what is kept of the file.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.header.notes.clone();
        if self.header.shape.number == Number::F64 {
            notes.push("64-bit numbers are kept in 32 bits".to_owned());
        }
        notes
    }

    /// Reads the next row; false behind the last.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Vectors`] for a row of other columns.
    pub(crate) fn next(&mut self, row: &mut Vec<f32>) -> Result<bool> {
        if self.n_read == self.n_rows() {
            return Ok(false);
        }
        self.rows.next(row)?;
        self.n_read += 1;
        Ok(true)
    }

    /// The contents of the row that was read last, beside its vector.
    ///
    /// # Errors
    /// [`Error::Vectors`] for a text that is none.
    pub(crate) fn record(&mut self) -> Result<Record> {
        self.rows.record()
    }
}

pub(super) fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// A file, or its bytes.
pub(super) enum Input {
    File(File),
    Bytes(Vec<u8>),
}

impl Input {
    /// The file, for formats that are not read from their beginning.
    fn file(self, path: &Path) -> Result<File> {
        match self {
            Self::File(file) => Ok(file),
            Self::Bytes(_) => {
                let reason = "is read from a file of its own name alone".to_owned();
                Err(Error::Vectors { path: path.to_owned(), reason })
            }
        }
    }

    /// The bytes from the first on, and their number.
    fn reader(self, path: &Path) -> Result<(Box<dyn Read>, u64)> {
        Ok(match self {
            Self::File(file) => {
                let n_bytes = file.metadata().at(path)?.len();
                (Box::new(BufReader::with_capacity(1 << 20, file)), n_bytes)
            }
            Self::Bytes(bytes) => {
                let n_bytes = bytes.len() as u64;
                (Box::new(Cursor::new(bytes)), n_bytes)
            }
        })
    }
}

/// Rows one behind the other, and nothing else.
struct Plain {
    path: PathBuf,
    input: Box<dyn Read>,
    number: Number,
    bytes: Vec<u8>,
}

impl Plain {
    fn new(path: &Path, input: Box<dyn Read>, shape: Shape) -> Self {
        let n_columns = shape.n_columns.min(DIMENSIONS_MAX as u64) as usize; // more are refused before a row is read
        Self { path: path.to_owned(), input, number: shape.number, bytes: vec![0; n_columns * shape.number.n_bytes()] }
    }
}

impl Rows for Plain {
    fn next(&mut self, row: &mut Vec<f32>) -> Result<()> {
        self.input.read_exact(&mut self.bytes).at(&self.path)?;
        row.clear();
        self.number.read(&self.bytes, row);
        Ok(())
    }
}
