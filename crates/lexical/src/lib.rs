//! BM25 over one immutable segment, with explanations.
//!
//! tantivy analyses the text and keeps dictionary and postings; scores are computed here, from those postings, in
//! `f64`, with the statistics of the live rows of the whole collection. A ranking therefore does not depend on how the
//! collection is cut into segments, nor on what was deleted from it. Where the collection lies in several places, each
//! is asked for its [`Statistics`] first, and then scores under the sum of all.
//!
//! The flow: [`Analyzer`] → [`Writer`] → named files → [`Segment`] → [`Searcher`].
//!
//! ```
//! use std::sync::Arc;
//! use cento_lexical::{Analyzer, Bm25, Language, Memory, Part, Row, Searcher, Segment, Unit, Writer};
//!
//! let analyzer = Analyzer::new(Language::English);
//! let mut writer = Writer::new(&analyzer)?;
//! writer.add(Row { text: "A cento is made of other poems.", header: "", title: "" })?;
//! writer.add(Row { text: "Homer's poems were often used.", header: "", title: "" })?;
//! let segment = Segment::open(Arc::new(Memory::from(writer.finish()?)), &analyzer)?;
//!
//! let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[0, 0] };
//! let searcher = Searcher::new(vec![part], Unit::Row, Bm25::default())?;
//! let hits = &searcher.score("which poem is by Homer?")?[0];
//! assert_eq!(hits.len(), 2);
//! assert!(hits[1].score > hits[0].score);
//! # Ok::<(), cento_lexical::Error>(())
//! ```

mod analyzer;
mod bm25;
mod directory;
mod error;
mod explain;
mod language;
mod lengths;
mod schema;
mod scored;
mod searcher;
mod segment;
mod statistics;
mod words;
mod writer;

#[cfg(test)]
mod tests;

pub use analyzer::Analyzer;
pub use bm25::{Bm25, DEFAULT_B, DEFAULT_HEADER_WEIGHT, DEFAULT_K1, PARAMETER_MAX};
pub use directory::{File, Files, Memory};
pub use error::{Error, Result};
pub use explain::{Explanation, TermExplanation};
pub use language::Language;
pub use scored::Scored;
pub use searcher::{Found, Searcher, Stop, text_statistics, units_with};
pub use segment::{Part, Segment, Unit};
pub use statistics::{Statistics, Totals};
pub use tantivy::directory::OwnedBytes;
pub use words::TERM_BYTES_MAX;
pub use writer::{ROW_BYTES_MAX, ROWS_MAX, Row, Writer};
