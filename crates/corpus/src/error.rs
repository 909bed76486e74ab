//! What can go wrong between a path and a document, and the way out where there is one.

use std::io;
use std::path::PathBuf;

use crate::format::Format;
use crate::guard::Failure;
use crate::read::Locked;

/// The result of reading, with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error in walking folders or reading files.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// The file or folder cannot be opened or read.
    #[error("{path}")] // the cause is the source; `{:#}` prints both once
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not UTF-8.
    #[error(
        "{path}: invalid UTF-8 at byte {offset}; convert the file, or have it read lossy: U+FFFD in place of such bytes"
    )]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// First byte that is not UTF-8, from the start of the file.
        offset: u64,
    },
    /// The file is longer than the options allow.
    #[error("{path}: {n_bytes} bytes, the limit is {limit_bytes}; split the file or raise the limit")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size, or how much of it was read before it was given up.
        n_bytes: u64,
        /// The limit of the options.
        limit_bytes: u64,
    },
    /// The document would cost more than one document may; see the constants of [`crate::budget`].
    #[error("{path}{}: {n} {what}, the limit for one document is {limit}", of_line(*line))]
    OverBudget {
        /// The file.
        path: PathBuf,
        /// The line of the document's record, from 1; none where the file is one document.
        line: Option<u64>,
        /// The thing counted.
        what: &'static str,
        /// The count, or how far it got before the document was given up.
        n: u64,
        /// The limit.
        limit: u64,
    },
    /// The file is encrypted.
    #[error("{path}: encrypted: {locked}")]
    Encrypted {
        /// The file.
        path: PathBuf,
        /// Why it was not opened, and the way out.
        locked: Locked,
    },
    /// The parser of a format makes nothing of the file.
    #[error("{path}: {engine} cannot read it: {reason}; open the file in its program and save it anew")]
    Unparsed {
        /// The file.
        path: PathBuf,
        /// The parser and its version.
        engine: &'static str,
        /// Its reason.
        reason: String,
    },
    /// One line of JSONL, or one row of CSV, is longer than any record may be; the rest of it was not kept in memory.
    #[error("{path}: line {line} is longer than {limit_bytes} bytes, the limit for one record")]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The limit, [`crate::LINE_BYTES_MAX`].
        limit_bytes: u64,
    },
    /// A line of JSONL is not JSON.
    #[error("{path}: line {line} is not a JSON object: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Where in the line, and why.
        source: serde_json::Error,
    },
    /// A line of JSONL is JSON but no document.
    #[error("{path}: line {line}: {reason}")]
    Record {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The part missing or of the wrong type.
        reason: String,
    },
    /// The file begins as UTF-16 and does not go on as such.
    #[error("{path}: invalid UTF-16 at byte {offset}; convert the file to UTF-8")]
    InvalidUtf16 {
        /// The file.
        path: PathBuf,
        /// First byte of what is no character, from the start of the file.
        offset: u64,
    },
    /// Two lines of one file have the same id.
    #[error("{path}: line {line}: id {id:?} was given to line {first_line} already")]
    DuplicateId {
        /// The file.
        path: PathBuf,
        /// The id.
        id: String,
        /// The line that had it first; its document stands.
        first_line: u64,
        /// The line that repeats it.
        line: u64,
    },
    /// The child that read the file refused it, or a document in it.
    #[error("{path}: {reason}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// The words of its reader.
        reason: String,
    },
    /// The child that read the file did not end well; what it had read of a file that is one document is not used.
    #[error("{path}: {failure}")]
    Child {
        /// The file.
        path: PathBuf,
        /// The way it ended.
        failure: Failure,
    },
    /// The format is read in a child alone, and nobody said how one is started.
    #[error("{path}: {format} files are read in a child process, and the caller names no command that starts one")]
    NoGuard {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: Format,
    },
    /// The file was another one after it was read than before, each time.
    #[error("{path}: changed while it was read, {n_times} times; index it again when nothing writes to it")]
    Changed {
        /// The file.
        path: PathBuf,
        /// The times it was read.
        n_times: u32,
    },
    /// Nothing under the path can be read.
    #[error("{path}: nothing to read: {reason}")]
    NothingToRead {
        /// The root.
        path: PathBuf,
        /// The number of files met and why they were passed over.
        reason: String,
    },
    /// Files and folders under the path could not be read, and nothing else in it can be.
    #[error("{path}: nothing could be read: {reason}")]
    NothingRead {
        /// The root.
        path: PathBuf,
        /// The first of them, what the system said, and how many more there are.
        reason: String,
    },
    /// A root has no name to put before its documents' ids.
    #[error("{root}: no label can be made from this path; write LABEL=PATH")]
    NoLabel {
        /// The root as given.
        root: String,
    },
    /// A name is none of those known.
    #[error("unknown {what} {value:?}: expected one of {expected}")]
    UnknownName {
        /// The kind of name expected, for example `format`.
        what: &'static str,
        /// The name given.
        value: String,
        /// The names known.
        expected: &'static str,
    },
}

impl Error {
    /// A name of the kind of error that does not change.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl Error {
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }
}

/// The line of a file, in the words that follow its path.
fn of_line(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(": line {line}"))
}
