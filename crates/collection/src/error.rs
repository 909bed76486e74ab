//! What can go wrong in a collection's folder, and what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the disk, as the system numbers it.
const EIO: i32 = 5;

/// Every way a collection can refuse; the variants follow what a caller can do next.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{path}")]
    Io {
        /// The file or folder of the operation.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A part of a file cannot be read: the disk refuses, or the file was cut short while it was open.
    #[error("{path}: cannot be read at byte {offset}: {source}")]
    Unreadable {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The folder holds no collection.
    #[error("{path}: no collection here")]
    NotFound {
        /// The folder that was to be opened.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("{path}: is not empty and holds no collection; choose another folder")]
    NotACollection {
        /// The folder that was to be created.
        path: PathBuf,
    },
    /// A file of the collection is not what was written.
    #[error("{path}: corrupt: {reason}")]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// The condition that does not hold.
        reason: String,
    },
    /// The collection was written by a newer Cento.
    #[error("{path}: collection format {found} is newer than {supported}, the newest this cento reads; update cento")]
    NewerFormat {
        /// The manifest.
        path: PathBuf,
        /// Format number in the manifest.
        found: u32,
        /// Format number of this build.
        supported: u32,
    },
    /// The collection was written by an older Cento, in a format that is no longer read.
    #[error(
        "{path}: collection format {found} is older than {supported}, the one this cento reads; move the collection away and index again: what was embedded comes from the cache"
    )]
    OlderFormat {
        /// The manifest.
        path: PathBuf,
        /// Format number in the manifest.
        found: u32,
        /// Format number of this build.
        supported: u32,
    },
    /// The system lets nobody write to the collection, or not this user.
    #[error(
        "{path}: cannot be written: {reason}; such a collection answers searches, but to change it, get the right to write or copy it to where you have it"
    )]
    ReadOnly {
        /// The file or folder to be written.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Another process is writing to the collection.
    #[error("{path}: another process is writing to this collection; wait for it to end, readers are not affected")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// Another writer committed while this one was at work; what this one did is not there.
    #[error(
        "{path}: another writer committed generation {found} while this one went out from {expected}, where locks are not seen from other machines; run the command again"
    )]
    Overtaken {
        /// The collection.
        path: PathBuf,
        /// Generation that this writer read; 0 for none.
        expected: u64,
        /// Generation that is there; 0 for none.
        found: u64,
    },
    /// A collection that is to be adopted was built with other settings.
    #[error(
        "{path}: {setting} is {found}, and {expected} in {of}; only segments that were built with the same settings go together: build these again with those of {of}"
    )]
    Differs {
        /// The collection that is to be adopted.
        path: PathBuf,
        /// The setting.
        setting: String,
        /// Its value there.
        found: String,
        /// The value that it has to have.
        expected: String,
        /// The collection that has it.
        of: PathBuf,
    },
    /// All documents of a collection that is to be adopted are there already, with the same content.
    #[error("{path}: all its documents are in {by} already, with the same content; leave it out")]
    AdoptedAlready {
        /// The collection that is to be adopted.
        path: PathBuf,
        /// The collection that has its documents.
        by: PathBuf,
    },
    /// Two collections that are to be one have a document of the same id.
    #[error(
        "document {id:?} is in {one} and in {other}; delete it from one of them, or give their folders other labels"
    )]
    DocumentTwice {
        /// Its id.
        id: String,
        /// One collection.
        one: PathBuf,
        /// The other one.
        other: PathBuf,
    },
    /// A collection that is to be adopted has lost documents to damage.
    #[error("{path}: {n_documents} of its documents were damaged and do not answer; index them there again first")]
    Damaged {
        /// The collection that is to be adopted.
        path: PathBuf,
        /// Documents that it lost.
        n_documents: u64,
    },
    /// A graph came out too bad to be searched.
    #[error(
        "the graph over {n_rows} rows of {vectors} vectors would lose answers: {figure} is {value:.4}, below the floor of {floor}; have them scanned exactly"
    )]
    GraphHealth {
        /// The vectors it links.
        vectors: crate::format::config::VectorColumn,
        /// Rows of the segment.
        n_rows: usize,
        /// The measured value.
        figure: &'static str,
        /// Its value.
        value: f64,
        /// The value it has to reach.
        floor: f64,
    },
    /// No generation of that number.
    #[error("no generation {asked} in this collection; there are {known}")]
    UnknownGeneration {
        /// The value asked for.
        asked: String,
        /// The generations that can be opened.
        known: String,
    },
    /// No snapshot of that name.
    #[error("no snapshot {name:?} in this collection; there are {known}")]
    UnknownSnapshot {
        /// The value asked for.
        name: String,
        /// The snapshots there are.
        known: String,
    },
    /// A snapshot of that name is there already.
    #[error("snapshot {name:?} is there already, of generation {generation}; choose another name, or remove it first")]
    SnapshotTaken {
        /// The name.
        name: String,
        /// The generation that it names.
        generation: u64,
    },
    /// A setting whose value cannot be used.
    #[error("{setting}: {value:?} {reason}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// No segment takes a document.
    #[error("the document is too large for a segment")]
    DocumentTooLarge {
        /// The measure that is exceeded.
        source: cento_lexical::Error,
    },
    /// A query does not fit the vectors, or a setting the graph; damage is [`Error::Corrupt`].
    #[error(transparent)]
    Vector(cento_vector::Error),
    /// A lexical segment is damaged, or was written by another analyser.
    #[error(transparent)]
    Lexical(#[from] cento_lexical::Error),
}

impl Error {
    /// A name of the kind of error that does not change.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// True if the disk does not give back what was written: a repair goes on without it.
    pub fn is_of_the_disk(&self) -> bool {
        match self {
            Self::Unreadable { .. } => true,
            Self::Io { source, .. } => source.raw_os_error() == Some(EIO),
            _ => false,
        }
    }

    /// The message about a collection's file or folder that could not be made.
    pub fn writing(path: &Path, reason: io::Error) -> Self {
        let path = path.to_owned();
        match reason.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, reason },
            _ => Self::Io { path, source: reason },
        }
    }
}

impl From<cento_vector::Error> for Error {
    fn from(error: cento_vector::Error) -> Self {
        match error {
            cento_vector::Error::Corrupt { path, offset, reason } => {
                Self::Corrupt { path, reason: format!("at byte {offset}: {reason}") }
            }
            cento_vector::Error::Unreadable { path, offset, source } => Self::Unreadable { path, offset, source },
            cento_vector::Error::OtherKind { path, expected, found } => {
                Self::Corrupt { path, reason: format!("holds {found:?}, expected {expected}") }
            }
            cento_vector::Error::Io { path, source } if source.kind() == io::ErrorKind::NotFound => {
                Self::Corrupt { path, reason: "the file is missing".to_owned() }
            }
            other => Self::Vector(other),
        }
    }
}

/// The result of an operation on a collection.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the path to an error of the operating system.
pub trait AtPath<T> {
    /// The result with `path` in its error.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), source })
    }
}

/// An error with its causes on one line, as users see it.
pub fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
