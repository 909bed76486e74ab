//! `metadata.columns`: for each field its values in order and, for each value, the documents that have it.
//!
//! What a comparison asks for is a run of values, found by binary search, and their documents; no other field is read.
//! The header counts columns and documents of the segment. Payload, little-endian:
//!
//! | part | what |
//! |---|---|
//! | columns | name, type, where its values and its documents lie; ascending by name, then type |
//! | values | of a column in a row, ascending: the bits of a number or the place of a string; its first document |
//! | documents | of a value one after another, ascending: numbers of 32 bits |
//! | heap | names and strings, each once |
//!
//! Cost: a comparison reads two values for each halving, and four bytes for each document it finds.

mod layout;
mod fields;
mod writer;
mod columns;

pub use self::columns::{Comparison, MetadataColumns, Stored};
pub use self::fields::{BUILT_IN, Described, read_metadata, types, write_metadata};
pub use self::layout::FieldType;
pub use self::writer::MetadataWriter;

#[cfg(test)]
mod tests;
