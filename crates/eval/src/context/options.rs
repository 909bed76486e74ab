//! Settings of a measurement.

use crate::evaluate::Missing;

/// Default of [`MeasureOptions::document_cutoffs`].
pub const DOCUMENT_CUTOFFS: [usize; 3] = [1, 3, 5];

/// Where the tokens of a text end, in bytes and ascending, for the tokenizer of this name. Together they cover the
/// text: what follows the last end counts as part of the last token.
pub type TokenEnds<'a> =
    dyn Fn(&str, &str) -> std::result::Result<Vec<u64>, Box<dyn std::error::Error + Send + Sync>> + 'a;

/// The sentences of a text: bytes, in order.
pub type Sentences<'a> = dyn Fn(&str) -> Vec<std::ops::Range<usize>> + 'a;

/// Settings of a measurement of contexts.
#[derive(Clone)]
pub struct MeasureOptions<'a> {
    /// The tokenizers that the contexts were counted with; called with a text and a name.
    pub tokens: &'a TokenEnds<'a>,
    /// The sentences that delivered pieces may break; none: that is not measured.
    pub sentences: Option<&'a Sentences<'a>>,
    /// The `k` of `title_precision@k` and the like: documents from the front of the context.
    pub document_cutoffs: Vec<usize>,
    /// The worth of a question without a context: zero for everything that is delivered or not, and never a figure of
    /// size or redundancy.
    pub missing: Missing,
}

impl<'a> MeasureOptions<'a> {
    /// The default: [`DOCUMENT_CUTOFFS`], a question without a context counts as zero, and no sentence is looked for.
    pub fn new(tokens: &'a TokenEnds<'a>) -> Self {
        Self { tokens, sentences: None, document_cutoffs: DOCUMENT_CUTOFFS.to_vec(), missing: Missing::Zero }
    }
}
