//! What a document is, how each file format becomes one, and how it is cut into sections, sentences and chunks.
//!
//! The flow: [`walk`] lists the files of a [`Root`], [`read`] turns a file into [`Document`]s, [`chunk`] partitions a
//! document's text, [`header`] says where a chunk stands. Every span is a half-open byte range of the one canonical
//! text.
//!
//! ```
//! use cento_corpus::{ChunkConfig, Format, HeaderStyle, Tokens, chunk, header, parse};
//!
//! struct Words; // any tokenizer will do: it says where each token ends
//! impl Tokens for Words {
//!     fn ends(&self, text: &str) -> Vec<usize> {
//!         let start = text.as_ptr() as usize;
//!         text.split_whitespace().map(|word| word.as_ptr() as usize - start + word.len()).collect()
//!     }
//! }
//!
//! let text = "# Guide\n\nRead this first.\n\n## Install\n\nRun one command.\n";
//! let document = parse(text.into(), "docs/guide.md", Format::Markdown).unwrap();
//! let config = ChunkConfig { header: HeaderStyle::Structured, ..ChunkConfig::default() };
//! let chunks = chunk(&document, &config, &Words);
//! assert_eq!(&document.text[chunks[1].span.clone()], "## Install\n\nRun one command.\n");
//! assert_eq!(header(&document, &chunks[1], config.header), "# Document: Guide\n");
//! ```

mod anchor;
pub mod budget;
mod chunk;
mod date;
mod document;
mod error;
mod extraction;
mod folder;
mod header;
mod links;
mod metadata;
mod piece;
mod format;
mod read;
pub mod guard;
mod section;
mod sentence;

pub use anchor::Anchor;
pub use chunk::{CHUNKER_VERSION, Chunk, ChunkConfig, ChunkSize, DEFAULT_CHUNK_TOKENS, chunk, header};
pub use date::Date;
pub use document::{Block, BlockKind, Document, TextKind, own_id};
pub use error::{Error, Result};
pub use extraction::{Extraction, PAGES_NAMED_MAX, REMARK_BYTES_MAX, REMARKS_NAMED_MAX};
pub use folder::{FoundFile, RawText, RecordIds, Root, Skipped, Unread, Walk, walk};
pub use format::{Format, IN_PROCESS_BYTES_MAX, ReadAs};
pub use header::{HeaderStyle, Headers};
pub use links::{Link, LinkKind};
pub use metadata::{Field, Metadata, Value};
pub use piece::{BYTES_PER_TOKEN_MAX, Tokens};
pub use read::parts::{Parts, from_parts};
pub use read::{
    Bytes, Commands, Documents, Gives, ID_KEYS, LINE_BYTES_MAX, Locked, MAX_FILE_BYTES, PASSWORD_FILE_BYTES_MAX,
    Passwords, ReadCommand, ReadOptions, Record, Records, TEXT_KEYS, TITLE_KEYS, parse, read, read_from,
};
pub use section::Section;
pub use sentence::sentences;

#[cfg(test)]
mod tests;
