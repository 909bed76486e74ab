//! Settings of a measurement.

use crate::evaluate::Missing;

/// Default of [`MeasureOptions::document_cutoffs`].
pub const DOCUMENT_CUTOFFS: [usize; 3] = [1, 3, 5];

/// Where the tokens of a text end, in bytes and ascending, for the tokenizer of this name. Together they cover the
/// text: what follows the last end counts as part of the last token.
pub type TokenEnds<'a> =
    dyn Fn(&str, &str) -> std::result::Result<Vec<u64>, Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Settings of a measurement of contexts.
#[derive(Clone)]
pub struct MeasureOptions<'a> {
    /// The tokenizers that the contexts were counted with; called with a text and a name.
    pub tokens: &'a TokenEnds<'a>,
    /// The `k` of `title_precision@k` and the like: documents from the front of the context.
    pub document_cutoffs: Vec<usize>,
    /// The worth of a question without a context: zero for everything that is delivered or not, and never a figure of
    /// size or redundancy.
    pub missing: Missing,
}

impl<'a> MeasureOptions<'a> {
    /// The default: [`DOCUMENT_CUTOFFS`], and a question without a context counts as zero.
    pub fn new(tokens: &'a TokenEnds<'a>) -> Self {
        Self { tokens, document_cutoffs: DOCUMENT_CUTOFFS.to_vec(), missing: Missing::Zero }
    }
}
