//! What a reader got out of one file, and what it did not: the figures by which a person finds the files that were read
//! badly.

use serde::{Deserialize, Serialize};

/// Figures of the reading of one file. A figure is none where the format has no such thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extraction {
    /// The parser and its version: `pdf_oxide 0.3.78`.
    pub engine: String,
    /// Pages, slides or sheets of the file.
    pub n_pages: Option<u32>,
    /// Pages and slides on which no text was found, from 1: scans, most often. At most [`PAGES_NAMED_MAX`] are named.
    pub pages_without_text: Vec<u32>,
    /// Characters of text that were read.
    pub n_characters: u64,
    /// Characters that the file's fonts or encoding do not map (U+FFFD).
    pub n_unmapped: u64,
    /// Words of more than 25 letters: words that were glued together, most often.
    pub n_long_words: u64,
    /// Tables that were read as rows.
    pub n_tables: u32,
    /// Images, which are not read.
    pub n_images: u32,
    /// Share of the words of a second, crude reading of the same bytes that the first one has too, in [0, 1].
    pub completeness: Option<f64>,
    /// Parts of the file that were not read, and the engine's reason, as sentences. The first [`REMARKS_NAMED_MAX`],
    /// and a sentence that says how many more there are.
    pub unread: Vec<String>,
}

/// Pages that are named in one [`Extraction`].
pub const PAGES_NAMED_MAX: usize = 1_000;

/// Unread parts that are named in one [`Extraction`], and warnings of one document that a parser read.
pub const REMARKS_NAMED_MAX: usize = 100;

/// Longest of these, in bytes; what a parser says behind that is cut off.
pub const REMARK_BYTES_MAX: usize = 1_024;

/// Keeps the first remarks, and says how many more there were.
pub(crate) fn name_first(remarks: &mut Vec<String>) {
    let n_more = remarks.len().saturating_sub(REMARKS_NAMED_MAX);
    if n_more > 0 {
        remarks.truncate(REMARKS_NAMED_MAX);
        remarks.push(format!("and {n_more} more"));
    }
    for remark in remarks.iter_mut().filter(|remark| remark.len() > REMARK_BYTES_MAX) {
        remark.truncate(remark.floor_char_boundary(REMARK_BYTES_MAX - '…'.len_utf8()));
        remark.push('…');
    }
}
