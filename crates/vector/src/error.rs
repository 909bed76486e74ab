//! What can go wrong between a vector and its neighbours, by what the caller can do about it.

use std::io;
use std::path::PathBuf;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors that arise when a file of a segment is opened, written or searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is not what was written: shorter, longer, or altered. Restore it, or index its documents again.
    #[error("{}: corrupt at byte {offset}: {reason}", path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// The condition that does not hold.
        reason: &'static str,
    },
    /// A part of the file cannot be read: the disk refuses, or the file was cut short while it was open.
    #[error("{}: cannot be read at byte {offset}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The file was written by a newer version of Cento.
    #[error("{}: written by a newer Cento (file format {found}, this one reads up to {supported}): upgrade cento to open it", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format version in its header.
        found: u32,
        /// The newest format version that this build reads.
        supported: u32,
    },
    /// The file is whole, but holds something else than was asked for.
    #[error("{}: holds {found:?}, expected {expected}", path.display())]
    OtherKind {
        /// The file.
        path: PathBuf,
        /// The kind or kinds that would have been right.
        expected: String,
        /// The kind in its header.
        found: String,
    },
    /// A vector or a batch of vectors is of another length than the rows.
    #[error("vector has {received} dimensions, the rows have {expected}")]
    Dimension {
        /// D, or Q × D, or Q × N: what the rows ask for.
        expected: usize,
        /// The length that was given.
        received: usize,
    },
    /// A vector holds a NaN or an infinity.
    #[error("vector {vector} is not finite at dimension {dimension}")]
    NotFinite {
        /// The position of the vector among those given, from 0.
        vector: usize,
        /// The first dimension that is not finite.
        dimension: usize,
    },
    /// A vector is not of unit length. Normalise it first.
    #[error("vector {vector} has length {norm}, expected 1 within {}", crate::UNIT_TOLERANCE)]
    NotUnit {
        /// The position of the vector among those given, from 0.
        vector: usize,
        /// Its Euclidean length.
        norm: f64,
    },
    /// A number is outside the range that it may have.
    #[error("{name} is {value}, allowed is {allowed}")]
    Setting {
        /// The purpose of the number.
        name: &'static str,
        /// The number that was given.
        value: usize,
        /// The range, in words.
        allowed: &'static str,
    },
    /// A graph and the rows that it is searched with are not of the same segment.
    #[error("{}: the graph has {graph} rows, the vectors have {rows}", path.display())]
    OtherRows {
        /// The file of the graph.
        path: PathBuf,
        /// Rows of the graph.
        graph: usize,
        /// Rows of the vectors.
        rows: usize,
    },
    /// `CENTO_SIMD` asks for instructions that do not exist, or that this machine has not.
    #[error("CENTO_SIMD={requested}: not available on this machine, which has {available}")]
    Simd {
        /// The value asked for.
        requested: String,
        /// The values that are accepted.
        available: String,
    },
    /// The system gave no threads.
    #[error("{n_threads} threads could not be started")]
    Threads {
        /// Threads that were asked for.
        n_threads: usize,
        /// The system's error.
        source: rayon::ThreadPoolBuildError,
    },
    /// The caller asked to stop: the answer, or the graph, is not wanted any more.
    #[error("stopped before it was finished")]
    Cancelled,
    /// A file could not be opened or mapped.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The caller's writer failed; the writer knows its path.
    #[error(transparent)]
    Write(#[from] io::Error),
}
