//! The container of every file of a collection: a header, the payload, and a checksum for each block of the payload.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | magic |
//! | 8..12 | format version |
//! | 12..16 | bytes of a block |
//! | 16..24 | kind: what the payload is |
//! | 24..40 | two counts, whose meaning is the kind's |
//! | 40..48 | bytes of the payload |
//! | 48..56 | checksum of the table |
//! | 56..64 | checksum of bytes 0..56 |
//! | 64.. | payload |
//! | then | table: one checksum for each block of payload |
//!
//! Blocks are counted from the start of the file, so that each is one page of memory and of the disk: the first holds
//! 64 bytes less of the payload, the last may be shorter.
//!
//! Numbers are little-endian, checksums are xxh3 of 64 bits. The header has this shape in every version, so that an
//! older Cento can tell a newer file from a damaged one. It is written last: a file whose writer died has a header of
//! zeros.

mod layout;
mod watched;
mod mapped;
mod writer;
#[cfg(test)]
mod tests;

pub use self::layout::{BLOCK_BYTES, FORMAT_VERSION, HEADER_BYTES};
pub use self::mapped::Mapped;
pub use self::writer::Writer;
