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
    /// Parts of the file that were not read, and the engine's reason, as sentences.
    pub unread: Vec<String>,
}

/// Pages that are named in one [`Extraction`].
pub const PAGES_NAMED_MAX: usize = 1_000;
