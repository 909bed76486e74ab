//! A segment: everything known about some documents, written once and never changed after a manifest names it.
//!
//! One row number joins all of it: the chunk's record, its vector and its BM25 document have the same number.
//! Writer → files → reader:
//!
//! | file | one record per |
//! |---|---|
//! | `documents.table` | document: id, origin, title, metadata, text range, rows, sections, content hash |
//! | `sections.table` | section: heading, span, level, parent |
//! | `chunks.table` | chunk: document, number, byte span, section, tokens, anchor, hash |
//! | `links.table` | link that an author made: target as written, kind, span; absent where no document has any |
//! | `contexts.table` | row: what a language model wrote of its place in the document; absent where it wrote nothing |
//! | `documents.text` | block of canonical text |
//! | `metadata.columns` | field and type of value: the values in order, and the documents that have each |
//! | `vectors.rows` | chunk: its unit vector |
//! | `hnsw.graph` | (from [`crate::format::config::GRAPH_ROWS_MIN`] rows on) frozen neighbour lists |
//! | `vectors-late.rows`, `hnsw-late.graph` | (in collections with both kinds) the same for late vectors |
//! | `lexical/*` | postings and lengths |

mod files;
mod records;
mod links;
mod contexts;
mod column;
mod lexical_files;
mod writer;
mod copy;
mod stored;
mod open;
mod salvage;

pub use self::column::Column;
pub use self::contexts::with_context;
pub(crate) use self::open::POSTINGS_BYTES_MIN;
pub use self::open::{Segment, Units, folder};
pub use self::records::{ChunkRecord, DocumentRecord, LinkRecord, SectionRecord};
pub use self::salvage::Salvage;
pub use self::stored::{DocumentReader, StoredDocument};
pub(crate) use self::writer::Unfinished;
pub use self::writer::{NewChunk, NewDocument, SegmentLimits, SegmentWriter};
