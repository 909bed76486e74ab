//! Budgets: what one document may cost, so that none takes down a run.
//!
//! They count bytes, levels and parts, never time: the same file is read, or refused, on every machine. A document over
//! a budget is refused by name, and the others are read. What a person writes stays far below each of them.

use std::path::Path;

use crate::error::Error;

/// Bytes of extracted text for each byte of the file: the names of columns stand with every row, and a table of
/// one-digit cells under names of sixty characters is that much longer than its file.
pub const TEXT_PER_BYTE_MAX: u64 = 32;

/// Bytes of headers over all sections for each byte of text: sections of two lines under three headings stay below it.
pub const HEADERS_PER_BYTE_MAX: u64 = 16;

/// Bytes that a small file may become, whatever its length.
pub const FREE_BYTES: u64 = 1 << 20;

/// Longest heading or title, in bytes. A paragraph that an underline turned into a heading is shorter; every answer
/// from below a heading repeats it.
pub const HEADING_BYTES_MAX: u64 = 16 * 1024;

/// Longest name of a record, field or column, in bytes: that of the longest path.
pub const NAME_BYTES_MAX: u64 = 4096;

/// Fields of metadata that a document may have; each is a column of the collection.
pub const FIELDS_MAX: u64 = 4096;

/// Values of a JSON object, lists counted item by item: ten vectors of the longest kind, and not the memory of a run.
pub const VALUES_MAX: u64 = 1 << 16;

/// Paragraphs, items or rows of a document: the rows of a worksheet.
pub const BLOCKS_MAX: u64 = 1 << 20;

/// Lines of a Markdown file, each of which the parser holds as several nodes.
pub const MARKDOWN_LINES_MAX: u64 = 1 << 22;

/// Elements of HTML inside each other: twice what browsers keep. The parser looks through the open ones at every tag.
pub const NESTED_ELEMENTS_MAX: u64 = 1024;

/// Attributes of one HTML element, each of which the parser compares with those before it.
pub const ATTRIBUTES_MAX: u64 = 4096;

/// Nodes of an HTML tree for each byte of the file: a tag has three, and only repeated formatting makes more of it.
pub const NODES_PER_BYTE_MAX: u64 = 1;

/// Longest file of source code that is read by its syntax. Longer ones were written by programs.
pub const CODE_BYTES_MAX: u64 = 8 << 20;

/// Functions and classes of a file of source code: each is a section. Files that people keep have a few hundred.
pub const ITEMS_MAX: u64 = 1 << 16;

/// Classes and modules of source code inside each other.
pub const NESTED_ITEMS_MAX: u64 = 32;

/// Steps of the parser of source code for each byte of a file: code takes less than one, and what is none far more
/// than it is worth.
pub const PARSER_STEPS_PER_BYTE_MAX: u64 = 8;

/// Steps of that parser that a small file may take.
pub const PARSER_STEPS_FREE: u64 = 1 << 16;

/// Links of a document. What stands behind them is left out, with a warning: a list of more says little of each.
pub const LINKS_MAX: usize = 4096;

/// Longest target of a link, in bytes.
pub const TARGET_BYTES_MAX: usize = 2048;

/// A budget that a document exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    /// The thing counted, in words that follow a number.
    pub(crate) what: &'static str,
    /// The count, or how far it got before the document was given up.
    pub(crate) n: u64,
    pub(crate) limit: u64,
}

impl Excess {
    /// The error of a document at `path`, or of the one on a line of it.
    pub(crate) fn at(self, path: &Path, line: Option<u64>) -> Error {
        let Self { what, n, limit } = self;
        Error::OverBudget { path: path.to_owned(), line, what, n, limit }
    }
}

/// An excess if there are more than `limit` of something.
pub(crate) fn within(what: &'static str, n: u64, limit: u64) -> Result<(), Excess> {
    if n > limit { Err(Excess { what, n, limit }) } else { Ok(()) }
}

/// Bytes of text that a file of `n_bytes` may become.
pub(crate) fn text_bytes_max(n_bytes: u64) -> u64 {
    n_bytes.saturating_mul(TEXT_PER_BYTE_MAX).saturating_add(FREE_BYTES)
}
