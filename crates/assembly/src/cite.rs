//! Citations: from a mark `[n]` in the delivered text back to the bytes it stands for.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What one mark of the context cites. The delivered text of the piece is exactly these bytes of the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Citation {
    /// The number in the mark, from 1 in the order of the context.
    pub n: usize,
    /// Id of the document.
    pub document: String,
    /// Headings open at the start of the piece, outermost first.
    pub path: Vec<String>,
    /// Bytes of the document's canonical text.
    pub span: Range<u64>,
    /// What the span points into: `source` or `extracted`.
    pub source: String,
    /// Where it is in the file, `line 12` or `row 3`; may be empty. Of the chunk in which the piece starts.
    pub anchor: String,
    /// Ids of the chunks it is made of, in order.
    pub chunks: Vec<String>,
    /// Whether the piece is a part of its chunk, cut to fit the budget.
    pub cut: bool,
}
