//! The layout of a file: header, blocks, table, as numbers. The table of bytes is in [`super`].

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the header; the payload starts here, on a 64-byte boundary of the mapping.
pub const HEADER_BYTES: usize = 64;

/// Bytes of the file under one checksum: a page, since a walk through a graph touches a few bytes here and there, and
/// reads and verifies whole blocks. The table takes a 512th of the payload.
pub const BLOCK_BYTES: usize = 4096;

/// The newest format version that this build reads, and the one that it writes.
pub const FORMAT_VERSION: u32 = 2;

/// As PNG's: not text, and altered by every tool that takes it for text.
const MAGIC: [u8; 8] = *b"\x89CENTO\r\n";

/// Bytes of one checksum in the table.
pub(super) const CHECKSUM_BYTES: usize = 8;

/// The first 64 bytes of a file, as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) kind: [u8; 8],
    pub(crate) counts: [u64; 2],
    pub(crate) payload_bytes: u64,
    pub(crate) table_checksum: u64,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.kind);
        bytes[24..32].copy_from_slice(&self.counts[0].to_le_bytes());
        bytes[32..40].copy_from_slice(&self.counts[1].to_le_bytes());
        bytes[40..48].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.table_checksum.to_le_bytes());
        let checksum = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header, or the offset and the reason why it is none. A newer version is not looked into: `version` tells.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, (u64, &'static str)> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if bytes.iter().all(|&byte| byte == 0) {
            return Err((0, "the header is all zeros: the file was never finished"));
        }
        if bytes[0..8] != MAGIC {
            return Err((0, "not a file of a Cento collection"));
        }
        if xxh3_64(&bytes[..56]) != number(56) {
            return Err((56, "the header does not match its checksum"));
        }
        let version = half(8);
        if version == 0 {
            return Err((8, "there is no format version 0"));
        }
        if version < FORMAT_VERSION {
            return Err((8, "written by an older Cento: index its documents again"));
        }
        if version == FORMAT_VERSION && half(12) != BLOCK_BYTES as u32 {
            return Err((12, "blocks of an unknown size"));
        }
        Ok(Self {
            version,
            kind: bytes[16..24].try_into().expect("eight bytes"),
            counts: [number(24), number(32)],
            payload_bytes: number(40),
            table_checksum: number(48),
        })
    }
}

/// The block that holds this byte of the payload.
#[inline]
pub(crate) const fn block_of(offset: usize) -> usize {
    (HEADER_BYTES + offset) / BLOCK_BYTES
}

/// The part of the payload in this block; the last one may end before.
pub(crate) const fn block_range(block: usize) -> Range<usize> {
    (block * BLOCK_BYTES).saturating_sub(HEADER_BYTES)..(block + 1) * BLOCK_BYTES - HEADER_BYTES
}

/// Blocks of a payload, or `None` where that overflows.
pub(crate) fn n_blocks(payload_bytes: u64) -> Option<u64> {
    let end = payload_bytes.checked_add(HEADER_BYTES as u64)?;
    Some(if payload_bytes == 0 { 0 } else { end.div_ceil(BLOCK_BYTES as u64) })
}

/// Bytes of the table of a payload, or `None` where they overflow.
pub(crate) fn table_bytes(payload_bytes: u64) -> Option<u64> {
    n_blocks(payload_bytes)?.checked_mul(CHECKSUM_BYTES as u64)
}

/// The checksum of a block.
pub(crate) fn checksum(table: &[u8], block: usize) -> u64 {
    let start = block * CHECKSUM_BYTES;
    u64::from_le_bytes(table[start..start + CHECKSUM_BYTES].try_into().expect("eight bytes"))
}
