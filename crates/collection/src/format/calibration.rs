//! Calibration: what a cosine means in a collection. The figures stand in the manifest; whoever has the encoder
//! measures them.

use serde::{Deserialize, Serialize};

/// The meaning of cosines in a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Sentences that were read.
    pub n_sentences: usize,
    /// Median cosine of a sentence and the chunk it stands in.
    pub cosine_typical: f64,
    /// Mean cosine of two sentences that have nothing to do with each other.
    pub cosine_unrelated: f64,
}
