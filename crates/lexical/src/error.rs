//! What can go wrong when a segment is written, opened or searched.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use tantivy::TantivyError;
use tantivy::directory::error::OpenReadError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The errors that arise when a segment is written, opened or searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The language has no stemmer here.
    #[error("unknown language `{name}`: expected one of {known}")]
    UnknownLanguage {
        /// As given.
        name: String,
        /// Every known name, separated by commas.
        known: String,
    },
    /// The segment was analysed in another way than the query would be, or than another segment was.
    #[error(
        "the segment was analysed with `{indexed}`, but `{requested}` is asked for: use the former, or index again"
    )]
    Analyzer {
        /// Fingerprint stored with the segment.
        indexed: String,
        /// Fingerprint of the analyser given.
        requested: String,
    },
    /// One row holds more text than one segment can be sure to take.
    #[error("row {row} has {n_bytes} bytes of text, more than the {max_bytes} of one row: cut it into smaller chunks")]
    RowTooLarge {
        /// The row that was not added.
        row: u32,
        /// Bytes of its text, header and title.
        n_bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// The segment is full: finish it and go on with a new one.
    #[error("the segment is full at {n_rows} rows: finish it and add further rows to another")]
    Full {
        /// Rows in the segment.
        n_rows: u32,
    },
    /// A file of the segment does not exist.
    #[error("lexical file `{name}` is missing")]
    Missing {
        /// Name of the file within the segment.
        name: String,
    },
    /// The files are not what this version wrote.
    #[error("lexical file `{name}` is corrupt: {reason}")]
    Corrupt {
        /// Name of the file within the segment.
        name: String,
        /// The fault that was found.
        reason: String,
    },
    /// A file of the segment could not be read; the cause is the source.
    #[error("lexical file `{name}`")]
    Io {
        /// Name of the file within the segment.
        name: String,
        /// The file's error.
        source: io::Error,
    },
    /// tantivy refused the segment for another reason.
    #[error("lexical segment")]
    Tantivy {
        /// Its error.
        source: TantivyError,
    },
    /// A parameter of BM25 is outside its range.
    #[error("bm25: {name} is {value}, must be {range}")]
    Parameter {
        /// `k1`, `b` or `header_weight`.
        name: &'static str,
        /// As given.
        value: f64,
        /// The accepted values, in words.
        range: &'static str,
    },
    /// The rows, documents or tombstones given for a part do not fit its segment.
    #[error("part {part}: {reason}")]
    Part {
        /// Number of the part.
        part: usize,
        /// The misfit, with the numbers.
        reason: String,
    },
    /// Statistics from elsewhere are not those of the query.
    #[error("no document frequency was given for the term `{term}`; ask for the statistics of all terms of the query")]
    Statistics {
        /// A term of the query.
        term: String,
    },
    /// The answer is not wanted any more, as the signal to stop said.
    #[error("stopped before all postings were read")]
    Cancelled,
    /// An explanation was asked for a row or document that does not exist or is deleted.
    #[error("part {part} has no live unit {unit}")]
    NoSuchUnit {
        /// Number of the part.
        part: usize,
        /// The row or document asked for.
        unit: u32,
    },
}

/// The failure of a read, with the name of the file; travels through tantivy inside an [`io::Error`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The file reported it.
    #[error("lexical file `{name}`")]
    Read { name: String, source: io::Error },
    /// tantivy asked for bytes that the file does not have.
    #[error("lexical file `{name}`: {reason}")]
    Outside { name: String, reason: String },
}

impl FileError {
    /// `source`, with the name of its file.
    pub(crate) fn read(name: &str, source: io::Error) -> io::Error {
        io::Error::new(source.kind(), Self::Read { name: name.to_owned(), source })
    }

    /// A read of `range` in a file of `n_bytes`.
    pub(crate) fn outside(name: &str, range: &Range<usize>, n_bytes: usize) -> io::Error {
        let reason = format!("it has {n_bytes} bytes, {}..{} are asked for", range.start, range.end);
        io::Error::new(io::ErrorKind::UnexpectedEof, Self::Outside { name: name.to_owned(), reason })
    }
}

/// Where an error that carries no file name is said to come from.
pub(crate) const POSTINGS: &str = "postings";

impl Error {
    /// The error behind an [`io::Error`] that came through tantivy, of the file `name` unless it says so itself.
    fn of_file(name: &str, error: io::Error) -> Self {
        let kind = error.kind();
        match error.downcast::<FileError>() {
            Ok(FileError::Read { name, source }) => Self::Io { name, source },
            Ok(FileError::Outside { name, reason }) => Self::Corrupt { name, reason },
            Err(error) if matches!(kind, io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                Self::Corrupt { name: name.to_owned(), reason: error.to_string() }
            }
            Err(source) => Self::Io { name: name.to_owned(), source },
        }
    }
}

/// The error itself if nobody else holds it, else one that has it as its source.
fn unshare(error: Arc<io::Error>) -> io::Error {
    Arc::try_unwrap(error).unwrap_or_else(|shared| io::Error::new(shared.kind(), shared))
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::of_file(POSTINGS, error)
    }
}

impl From<OpenReadError> for Error {
    fn from(error: OpenReadError) -> Self {
        match error {
            OpenReadError::FileDoesNotExist(path) => Self::Missing { name: path.to_string_lossy().into_owned() },
            OpenReadError::IoError { io_error, filepath } => {
                Self::of_file(&filepath.to_string_lossy(), unshare(io_error))
            }
            source @ OpenReadError::IncompatibleIndex(_) => Self::Tantivy { source: source.into() },
        }
    }
}

impl From<TantivyError> for Error {
    fn from(error: TantivyError) -> Self {
        match error {
            TantivyError::IoError(source) => unshare(source).into(),
            TantivyError::OpenReadError(error) => error.into(),
            source => Self::Tantivy { source },
        }
    }
}
