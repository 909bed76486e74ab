//! The embedding log that a collection once had of its own: read as it was written, and never written again.
//!
//! ```text
//! header, 32 bytes   as of the keys of a cache, version 1
//! frame              length u32 | key, 32 bytes | n_tokens u32 | dimensions x f32 | checksum u64     (as often as there are)
//! ```
//!
//! Little endian. A length counts from the key to the end of the checksum; the checksum is XXH3 of all bytes before it in its
//! frame. All frames have one length, so the frames behind a damaged one are found.

use xxhash_rust::xxh3::xxh3_64;

use super::{CHECKSUM_BYTES, HEADER_BYTES, KEY_BYTES, Key, check_header_of, u32_at};
use crate::error::Result;

const VERSION: u32 = 1;

/// Bytes of a frame before its vector: length, key and number of tokens.
pub const VECTOR_OFFSET: usize = 4 + KEY_BYTES + 4;

/// Whether `found` begins a log of vectors with that many dimensions.
///
/// # Errors
/// If it is damaged, of another version, or of vectors with other dimensions.
pub fn check_header(found: &[u8; HEADER_BYTES], dimensions: usize) -> Result<()> {
    check_header_of(VERSION, found, dimensions)
}

/// Bytes of one frame.
pub fn frame_bytes(dimensions: usize) -> usize {
    VECTOR_OFFSET + 4 * dimensions + CHECKSUM_BYTES
}

/// Key and number of tokens of a frame of [`frame_bytes`]; nothing if it is not as it was written.
pub fn decode_frame(frame: &[u8]) -> Option<(Key, u32)> {
    let (body, checksum) = frame.split_last_chunk::<CHECKSUM_BYTES>()?;
    let is_sound = u32_at(frame, 0) as usize == frame.len() - 4 && *checksum == xxh3_64(body).to_le_bytes();
    let key = body[4..].first_chunk::<KEY_BYTES>()?;
    is_sound.then_some((*key, u32_at(frame, 4 + KEY_BYTES)))
}
