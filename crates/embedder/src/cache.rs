//! The embedding cache: what was embedded once is not embedded again, as bytes; files are the caller's business.
//!
//! A segment is two files, both only ever appended to. Entry `n` of the one belongs to vector `n` of the other:
//!
//! ```text
//! keys      header, 32 bytes     magic "centoemb" | version u32 | dimensions u32 | zeros, 8 bytes | checksum u64
//!           entries, 48 bytes    key, 32 bytes | n_tokens u32 | zeros, 4 bytes | checksum u64
//! vectors   vectors              dimensions x f32
//! ```
//!
//! Little endian. The header's checksum is XXH3 of what stands before it; an entry's is XXH3 of its key, its number of
//! tokens and its vector. So nothing depends on the order in which a disk took the two files: a vector that is missing,
//! torn or altered does not fit its entry, and is not there. Everything has a fixed length, so damage ends with what it
//! hit. Finding out what a cache holds reads 48 bytes a text, however long its vectors are.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, Result};

/// The key a vector is found by: see [`key`].
pub type Key = [u8; 32];

/// Bytes of the header of the keys.
pub const HEADER_BYTES: usize = 32;
/// Bytes of an entry of the keys.
pub const ENTRY_BYTES: usize = 48;

const MAGIC: &[u8; 8] = b"centoemb";
const VERSION: u32 = 2;
const CHECKSUM_BYTES: usize = 8;
const KEY_BYTES: usize = size_of::<Key>();

/// The key of a text: BLAKE3 of the model's fingerprint and the exact bytes embedded (prompt, header and text).
pub fn key(fingerprint: &str, embedded: &str) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(fingerprint.len() as u64).to_le_bytes());
    hasher.update(fingerprint.as_bytes());
    hasher.update(embedded.as_bytes());
    *hasher.finalize().as_bytes()
}

/// Bytes of one vector.
pub fn vector_bytes(dimensions: usize) -> usize {
    4 * dimensions
}

/// Bytes of both files that one text takes.
pub fn text_bytes(dimensions: usize) -> usize {
    ENTRY_BYTES + vector_bytes(dimensions)
}

/// The first bytes of the keys of vectors with that many dimensions.
pub fn header(dimensions: usize) -> [u8; HEADER_BYTES] {
    header_of(VERSION, dimensions)
}

fn header_of(version: u32, dimensions: usize) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[12..16].copy_from_slice(&(dimensions as u32).to_le_bytes());
    let checksum = xxh3_64(&bytes[..HEADER_BYTES - CHECKSUM_BYTES]);
    bytes[HEADER_BYTES - CHECKSUM_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Checks that `found` begins the keys of vectors with that many dimensions.
///
/// # Errors
/// If it is damaged, of another version, or of vectors with other dimensions.
pub fn check_header(found: &[u8; HEADER_BYTES], dimensions: usize) -> Result<()> {
    let refuse = |reason: String| Err(Error::Log { reason });
    if &found[..8] != MAGIC {
        return refuse("the file holds no embeddings of Cento".to_owned());
    }
    let version = u32_at(found, 8);
    if version > VERSION {
        return refuse(format!("version {version} was written by a newer Cento, this one reads up to {VERSION}"));
    }
    if found[HEADER_BYTES - CHECKSUM_BYTES..] != xxh3_64(&found[..HEADER_BYTES - CHECKSUM_BYTES]).to_le_bytes() {
        return refuse("the header is damaged".to_owned());
    }
    if version != VERSION {
        return refuse(format!("version {version} stands where version {VERSION} is expected"));
    }
    let logged = u32_at(found, 12) as usize;
    if logged != dimensions {
        return refuse(format!("its vectors have {logged} dimensions, the model's {dimensions}"));
    }
    Ok(())
}

/// An entry of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Of the text embedded.
    pub key: Key,
    /// Tokens the encoder saw.
    pub n_tokens: u32,
    checksum: u64,
}

impl Entry {
    /// The entry of `vector`.
    pub fn new(key: Key, n_tokens: u32, vector: &[u8]) -> Self {
        Self { key, n_tokens, checksum: checksum(&key, n_tokens, vector) }
    }

    /// As it stands in the file.
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..KEY_BYTES].copy_from_slice(&self.key);
        bytes[KEY_BYTES..KEY_BYTES + 4].copy_from_slice(&self.n_tokens.to_le_bytes());
        bytes[ENTRY_BYTES - CHECKSUM_BYTES..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// From the file. Whether it is sound shows with its vector, in [`Entry::fits`].
    pub fn decode(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let (mut key, mut checksum) = ([0; KEY_BYTES], [0; CHECKSUM_BYTES]);
        key.copy_from_slice(&bytes[..KEY_BYTES]);
        checksum.copy_from_slice(&bytes[ENTRY_BYTES - CHECKSUM_BYTES..]);
        Self { key, n_tokens: u32_at(bytes, KEY_BYTES), checksum: u64::from_le_bytes(checksum) }
    }

    /// True if the vector, as it stands in its file, is the one that was kept, and the entry too.
    pub fn fits(&self, vector: &[u8]) -> bool {
        self.checksum == checksum(&self.key, self.n_tokens, vector)
    }
}

fn checksum(key: &Key, n_tokens: u32, vector: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(key);
    hasher.update(&n_tokens.to_le_bytes());
    hasher.update(vector);
    hasher.digest()
}

/// A vector as it stands in its file.
pub fn encode_vector(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A vector out of its file; `bytes` is a multiple of four.
pub fn decode_vector(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
