//! A file of the container, mapped into memory and verified as it is read.
//!
//! Opening reads the header, the lengths and the table, never the payload. The first read that touches a block compares
//! it with its checksum; a bitmap remembers the blocks that were found whole.
//!
//! Contract of the mapping: a file is never changed, cut or replaced in place after it was finished. Collections keep
//! it by writing a file whole before any manifest names it, and by removing names only, never bytes.
//! Cost: opening, one checksum over 8 bytes for each 4 KiB; reading, one atomic load for each block touched.
#![expect(unsafe_code, reason = "maps a file; the contract above is what keeps the bytes from changing under a reader")]

use std::fmt;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Advice, Mmap};
use stable_deref_trait::{CloneStableDeref, StableDeref};
use xxhash_rust::xxh3::xxh3_64;

use crate::file::{FORMAT_VERSION, HEADER_BYTES, Header, block_of, block_range, checksum, n_blocks, table_bytes};
use crate::{Error, Result};

/// Blocks that the system is asked for at a time.
const READ_AHEAD_BLOCKS: usize = 256;

/// A mapped file. Clones share the mapping and what was verified; dereferencing gives the payload.
///
/// **`Deref` does not verify**, because it cannot fail: it serves owners of byte buffers that want a stable address.
/// Call [`bytes`](Self::bytes) for the range first, then take the same range of the dereferenced slice.
#[derive(Clone)]
pub struct Mapped(Arc<Inner>);

struct Inner {
    path: PathBuf,
    map: Mmap,
    header: Header,
    payload_bytes: usize,
    /// One bit a block: set once the block was found whole.
    verified: Vec<AtomicU64>,
}

impl Mapped {
    /// Opens a file of this kind.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where header, lengths or table do not hold, [`Error::Newer`], [`Error::OtherKind`],
    /// [`Error::Io`].
    pub fn open(path: impl AsRef<Path>, kind: [u8; 8]) -> Result<Self> {
        Self::open_any(path, &[kind])
    }

    /// Opens a file of one of these kinds; [`kind`](Self::kind) tells which.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_any(path: impl AsRef<Path>, kinds: &[[u8; 8]]) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Self::of(&file, path, kinds)
    }

    /// Maps a file of one of these kinds that was opened before; `path` is what errors name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of(file: &File, path: &Path, kinds: &[[u8; 8]]) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file_bytes = file.metadata().map_err(io)?.len();
        let corrupt = |offset, reason| Error::Corrupt { path: path.to_owned(), offset, reason };
        if file_bytes < HEADER_BYTES as u64 {
            return Err(corrupt(file_bytes, "the file is shorter than its header"));
        }
        // SAFETY: the file is not changed while it is mapped: the contract at the top of this file.
        let map = unsafe { Mmap::map(file) }.map_err(io)?;

        let start = map.first_chunk().ok_or_else(|| corrupt(0, "the file is shorter than its header"))?;
        let header = Header::decode(start).map_err(|(offset, reason)| corrupt(offset, reason))?;
        if header.version > FORMAT_VERSION {
            return Err(Error::Newer { path: path.to_owned(), found: header.version, supported: FORMAT_VERSION });
        }
        if !kinds.contains(&header.kind) {
            let expected = kinds.iter().map(name_of).collect::<Vec<_>>().join(" or ");
            return Err(Error::OtherKind { path: path.to_owned(), expected, found: name_of(&header.kind) });
        }
        let (payload_end, table_end) =
            ends(&header).ok_or_else(|| corrupt(40, "the payload is longer than any file"))?;
        if table_end > map.len() {
            return Err(corrupt(map.len() as u64, "the file is shorter than its header says"));
        }
        if table_end < map.len() {
            return Err(corrupt(table_end as u64, "the file is longer than its header says"));
        }
        if xxh3_64(&map[payload_end..table_end]) != header.table_checksum {
            return Err(corrupt(payload_end as u64, "the table of checksums does not match its own checksum"));
        }
        let n_blocks = n_blocks(header.payload_bytes).unwrap_or(0) as usize;
        let verified = std::iter::repeat_with(AtomicU64::default).take(n_blocks.div_ceil(64)).collect();
        let payload_bytes = payload_end - HEADER_BYTES;
        Ok(Self(Arc::new(Inner { path: path.to_owned(), map, header, payload_bytes, verified })))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The kind of the payload.
    pub fn kind(&self) -> [u8; 8] {
        self.0.header.kind
    }

    /// The two counts of the header; their meaning is the kind's.
    pub fn counts(&self) -> [u64; 2] {
        self.0.header.counts
    }

    /// Bytes of the payload.
    pub fn len(&self) -> usize {
        self.0.payload_bytes
    }

    /// True if the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These bytes of the payload, their blocks verified.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where a block does not match its checksum, or where the range ends past the payload (ranges
    /// often come from other files).
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> Result<&[u8]> {
        let Some(bytes) = self.get(range.clone()) else {
            return Err(self.corrupt(range.start, "the range ends past the payload"));
        };
        if !bytes.is_empty() {
            let last = block_of(range.end - 1);
            for block in block_of(range.start)..=last {
                if !self.is_verified(block) {
                    self.verify_blocks(block, last)?;
                    break;
                }
            }
        }
        Ok(bytes)
    }

    /// Tells the system that small parts will be read, in no order: it shall read no more around a missing page. Longer
    /// ranges are asked for as a whole when they are verified. A hint: what it brings differs, what is read does not.
    pub(crate) fn expect_random_access(&self) {
        // Advice that is refused costs time, nothing else.
        let _ = self.0.map.advise(Advice::Random);
    }

    /// Lets the system begin to read these bytes, if they were not verified yet.
    #[inline]
    pub(crate) fn will_need(&self, range: Range<usize>) {
        if !range.is_empty() && range.end <= self.len() && !self.is_verified(block_of(range.start)) {
            self.read_ahead(range);
        }
    }

    #[cold]
    fn read_ahead(&self, range: Range<usize>) {
        // Advice that is refused costs time, nothing else.
        let _ = self.0.map.advise_range(Advice::WillNeed, HEADER_BYTES + range.start, range.len());
    }

    /// Verifies the whole payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first block that does not match its checksum.
    pub fn verify(&self) -> Result<()> {
        self.bytes(0..self.len()).map(drop)
    }

    /// An error at this offset of the payload.
    pub(crate) fn corrupt(&self, offset: usize, reason: &'static str) -> Error {
        Error::Corrupt {
            path: self.0.path.clone(),
            offset: (HEADER_BYTES as u64).saturating_add(offset as u64),
            reason,
        }
    }

    #[inline]
    fn is_verified(&self, block: usize) -> bool {
        // Relaxed: the bit publishes nothing, the bytes behind it never change.
        self.0.verified[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    #[cold]
    fn verify_blocks(&self, first: usize, last: usize) -> Result<()> {
        let table = &self.0.map[HEADER_BYTES + self.len()..];
        for block in first..=last {
            if (block - first).is_multiple_of(READ_AHEAD_BLOCKS) && last > block {
                let until = block_range(last.min(block + READ_AHEAD_BLOCKS)).end;
                self.read_ahead(block_range(block).start..self.len().min(until));
            }
            let range = block_range(block);
            if xxh3_64(&self[range.start..self.len().min(range.end)]) != checksum(table, block) {
                return Err(self.corrupt(range.start, "a block of 4 KiB does not match its checksum"));
            }
            self.0.verified[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Where payload and table end in the file, or `None` where that overflows.
fn ends(header: &Header) -> Option<(usize, usize)> {
    let payload_end = header.payload_bytes.checked_add(HEADER_BYTES as u64)?;
    let table_end = payload_end.checked_add(table_bytes(header.payload_bytes)?)?;
    Some((payload_end.try_into().ok()?, table_end.try_into().ok()?))
}

/// The kind as text, without its padding.
fn name_of(kind: &[u8; 8]) -> String {
    String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned()
}

impl Deref for Mapped {
    type Target = [u8];

    /// The payload, **not verified**.
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0.map[HEADER_BYTES..HEADER_BYTES + self.0.payload_bytes]
    }
}

// SAFETY: the bytes lie in the mapping, which stays where it is while any clone holds the `Arc`; nothing moves or
// unmaps it.
unsafe impl StableDeref for Mapped {}
// SAFETY: a clone shares the `Arc`, so it dereferences to the same address.
unsafe impl CloneStableDeref for Mapped {}

impl fmt::Debug for Mapped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Mapped").field("path", &self.0.path).field("header", &self.0.header).finish()
    }
}
