//! Options of given vectors.

use std::path::PathBuf;

use cento_collection::format::config::{Distance, GRAPH_ROWS_MIN};
use cento_lexical::Language;
use cento_vector::Scalar;

/// Files of vectors, and what a collection of them is built with; `None` means what the collection has, or the default
/// for a new one.
#[derive(Debug, Clone)]
pub struct GivenOptions {
    /// The vectors, a row each: `.npy`, `.fvecs`, `.bvecs`, `.parquet` or `.hdf5`.
    pub vectors: PathBuf,
    /// The column or dataset that holds them; none: the only one that can, or the dataset `train`.
    pub column: Option<String>,
    /// The ids, a line each; none: those of the texts or of the vectors' file, or the numbers of the rows.
    pub ids: Option<PathBuf>,
    /// The texts, JSONL, a line each; none: those of the vectors' file, if it has any.
    pub texts: Option<PathBuf>,
    /// The order of neighbours; none: the collection's, or that which the vectors' file names.
    pub distance: Option<Distance>,
    /// The treatment of lengths.
    pub lengths: Lengths,
    /// The greatest length that vectors may ever have, for inner products and distances.
    pub norm_max: Option<f64>,
    /// Language of the lexical analysis.
    pub language: Option<Language>,
    /// Scalar type of stored vectors.
    pub scalar: Option<Scalar>,
    /// Rows from which a segment gets a graph.
    pub graph_rows_min: usize,
    /// Bytes of memory that the run may take; `None` for a quarter of the machine's.
    pub memory_bytes: Option<u64>,
    /// True if segments are merged after the commit when that is due.
    pub compact: bool,
}

impl GivenOptions {
    /// A file of vectors by every default.
    pub fn new(vectors: impl Into<PathBuf>) -> Self {
        Self {
            vectors: vectors.into(),
            column: None,
            ids: None,
            texts: None,
            distance: None,
            lengths: Lengths::default(),
            norm_max: None,
            language: None,
            scalar: None,
            graph_rows_min: GRAPH_ROWS_MIN,
            memory_bytes: None,
            compact: true,
        }
    }
}

/// The treatment of the lengths of vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lengths {
    /// They stay; for the cosine they must be 1.
    #[default]
    Kept,
    /// Every vector is divided by its own.
    Normalized,
}
