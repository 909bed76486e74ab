//! The embedding log: what was embedded once is not embedded again, as bytes; files are the caller's business.
//!
//! ```text
//! header, 32 bytes   magic "centoemb" | version u32 | dimensions u32 | zeros, 8 bytes | checksum u64
//! frame              length u32 | key, 32 bytes | n_tokens u32 | dimensions x f32 | checksum u64     (as often as there are)
//! ```
//!
//! Little endian. A length counts from the key to the end of the checksum; a checksum is XXH3 of all bytes before it in its
//! header or frame. All frames of a log have one length, a multiple of four, so every vector is aligned if the log is.
//!
//! A log is only ever appended to. [`scan`] reads up to the first byte that is not a whole frame, which is what a kill, a full
//! disk or a lost page leaves behind; the writer cuts the log there and goes on.

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// What a frame is found by: see [`key`].
pub type Key = [u8; 32];

/// Bytes of the header.
pub const HEADER_BYTES: usize = 32;

const MAGIC: &[u8; 8] = b"centoemb";
const VERSION: u32 = 1;
const KEY_BYTES: usize = size_of::<Key>();
const CHECKSUM_BYTES: usize = 8;
/// Length and key and number of tokens stand before the vector.
const VECTOR_OFFSET: usize = 4 + KEY_BYTES + 4;

/// The key of a text: BLAKE3 of the model's fingerprint and the exact bytes embedded (prompt, header and text).
pub fn key(fingerprint: &str, embedded: &str) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(fingerprint.len() as u64).to_le_bytes());
    hasher.update(fingerprint.as_bytes());
    hasher.update(embedded.as_bytes());
    *hasher.finalize().as_bytes()
}

/// The first bytes of a log whose vectors have that many dimensions.
pub fn header(dimensions: usize) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&(dimensions as u32).to_le_bytes());
    let checksum = xxh3_64(&bytes[..HEADER_BYTES - CHECKSUM_BYTES]);
    bytes[HEADER_BYTES - CHECKSUM_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// A frame to append. `vector` has the dimensions of the header; `n_tokens` is what the encoder saw.
pub fn encode_frame(key: &Key, n_tokens: u32, vector: &[f32]) -> Vec<u8> {
    let n_bytes = frame_bytes(vector.len());
    let mut frame = Vec::with_capacity(n_bytes);
    frame.extend_from_slice(&((n_bytes - 4) as u32).to_le_bytes());
    frame.extend_from_slice(key);
    frame.extend_from_slice(&n_tokens.to_le_bytes());
    for value in vector {
        frame.extend_from_slice(&value.to_le_bytes());
    }
    frame.extend_from_slice(&xxh3_64(&frame).to_le_bytes());
    frame
}

/// Bytes of one frame of a log with that many dimensions.
pub fn frame_bytes(dimensions: usize) -> usize {
    VECTOR_OFFSET + 4 * dimensions + CHECKSUM_BYTES
}

/// A sound frame of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Of the text embedded.
    pub key: Key,
    /// Tokens the encoder saw.
    pub n_tokens: u32,
    /// Where the vector begins, in bytes from the start of the log.
    pub vector_offset: usize,
    /// Length of the vector.
    pub dimensions: usize,
}

impl Frame {
    /// The vector, out of the log that was scanned.
    pub fn vector(&self, log: &[u8]) -> Vec<f32> {
        let bytes = &log[self.vector_offset..][..4 * self.dimensions];
        bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

/// The sound frames of a log, header included, and the length up to which it is sound. What lies beyond (a frame cut off,
/// altered, zeroed) was never finished and is to be cut away before the log is appended to.
///
/// A log cut off inside its header is an empty one of length 0. A key may occur more than once; its frames are equal.
///
/// # Errors
/// If the header is whole and not that of an embedding log of this version with these dimensions.
pub fn scan(log: &[u8], dimensions: usize) -> Result<(Vec<Frame>, usize)> {
    let Some(found) = log.first_chunk::<HEADER_BYTES>() else { return Ok((Vec::new(), 0)) };
    if found.iter().all(|&byte| byte == 0) {
        return Ok((Vec::new(), 0));
    }
    check_header(found, dimensions)?;
    let n_bytes = frame_bytes(dimensions);
    let mut frames = Vec::new();
    let mut start = HEADER_BYTES;
    while let Some(frame) = log.get(start..start + n_bytes).and_then(|frame| decode_frame(frame, start, dimensions)) {
        frames.push(frame);
        start += n_bytes;
    }
    Ok((frames, start))
}

fn check_header(found: &[u8; HEADER_BYTES], dimensions: usize) -> Result<()> {
    let refuse = |reason: String| Err(Error::Log { reason });
    if &found[..8] != MAGIC {
        return refuse("the file is not an embedding log".to_owned());
    }
    let version = u32_at(found, 8);
    if version > VERSION {
        return refuse(format!("version {version} was written by a newer Cento, this one reads up to {VERSION}"));
    }
    if found[HEADER_BYTES - CHECKSUM_BYTES..] != xxh3_64(&found[..HEADER_BYTES - CHECKSUM_BYTES]).to_le_bytes() {
        return refuse("the header is damaged".to_owned());
    }
    let logged = u32_at(found, 12) as usize;
    if logged != dimensions {
        return refuse(format!("its vectors have {logged} dimensions, the model's {dimensions}"));
    }
    Ok(())
}

fn decode_frame(frame: &[u8], start: usize, dimensions: usize) -> Option<Frame> {
    let (body, checksum) = frame.split_last_chunk::<CHECKSUM_BYTES>()?;
    let sound = u32_at(frame, 0) as usize == frame.len() - 4 && *checksum == xxh3_64(body).to_le_bytes();
    let key = body[4..].first_chunk::<KEY_BYTES>()?;
    let n_tokens = u32_at(frame, 4 + KEY_BYTES);
    sound.then_some(Frame { key: *key, n_tokens, vector_offset: start + VECTOR_OFFSET, dimensions })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
