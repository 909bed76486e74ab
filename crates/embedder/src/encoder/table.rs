//! A table of vectors, one a token: an encoder without layers. The mean of its tokens' rows is a text's vector.
//!
//! Source: `StaticModel` of model2vec 0.10; `StaticEmbedding` of sentence-transformers 6.
//! Shapes: V tokens, R rows of H values; the row of a token is `embeddings[mapping[token]] * weights[token]`. Without a
//! mapping R is V and the row `embeddings[token]`; without weights nothing is multiplied.
//! Differs: rows are put together once, in f32, when the table is loaded; model2vec does it for each text, in the wider
//! of the types of the two tensors. Its vectors of a table of 16-bit floats are 16-bit floats, too; ours are f32.
//! Cost: H additions a token, which is little beside making tokens of the text.

use candle_core::Tensor;
use serde::Serialize;

use super::settings::Shape;
use super::transformer::Transformer;
use crate::error::{Error, Result};
use crate::layers::embedding::Embedding;
use crate::precision::Precision;
use crate::weights::Weights;

/// Names of the tensor with the rows, in files of model2vec and of sentence-transformers.
pub(crate) const ROWS: [&str; 2] = ["embeddings", "embedding.weight"];
/// The row of each token.
pub(crate) const MAPPING: &str = "mapping";
/// The factor of each token's row.
pub(crate) const WEIGHTS: &str = "weights";

/// The settings of a table, as its folder has them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TableConfig {
    /// V and H; no layers.
    pub(crate) shape: Shape,
    /// R.
    pub(crate) n_rows: usize,
    /// Tokens of a text that are read.
    pub(crate) max_tokens: usize,
    pub(crate) unknown: Unknown,
}

/// The treatment of the token for unknown text in a text that also has others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Unknown {
    /// It is a token like any other (sentence-transformers).
    Counted,
    /// It is left out (model2vec).
    LeftOut,
}

impl TableConfig {
    /// A table of `n_rows` rows of `hidden` values for `vocab_size` tokens.
    pub(crate) fn new([n_rows, hidden]: [usize; 2], vocab_size: usize, max_tokens: usize, unknown: Unknown) -> Self {
        let shape = Shape { vocab_size, hidden, n_layers: 0, n_heads: 1, inner: 0, epsilon: 0.0 };
        Self { shape, n_rows, max_tokens, unknown }
    }
}

pub(super) fn load(config: &TableConfig, weights: &Weights, precision: Precision) -> Result<Transformer> {
    if precision != Precision::F32 {
        let reason = "a table of vectors has no products to compute in it; use f32";
        return Err(Error::Precision { precision: precision.to_string(), reason });
    }
    let TableConfig { shape: Shape { vocab_size, hidden, .. }, n_rows, .. } = *config;
    let name = ROWS.into_iter().find(|name| weights.has(name)).unwrap_or(ROWS[0]);
    let mut rows = weights.small_vector(name, [n_rows, hidden])?;
    if weights.has(MAPPING) {
        let of_tokens = weights.row_numbers(MAPPING, vocab_size, n_rows)?;
        rows = of_tokens.iter().flat_map(|&row| &rows[row * hidden..][..hidden]).copied().collect();
    }
    if weights.has(WEIGHTS) {
        let factors = weights.vector(WEIGHTS, [vocab_size])?;
        for (row, factor) in rows.chunks_exact_mut(hidden).zip(factors) {
            row.iter_mut().for_each(|value| *value *= factor);
        }
    }
    weights.check_all_taken()?;
    let words = Tensor::from_vec(rows, (vocab_size, hidden), weights.device())?;
    let embedding = Embedding::new(&words, None, None, precision)?;
    Ok(Transformer { embedding, embedding_norm: None, layers: Vec::new(), final_norm: None })
}
