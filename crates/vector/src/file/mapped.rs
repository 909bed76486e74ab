//! A file of the container, mapped into memory and verified as it is read.
//!
//! Opening reads the header, the lengths and the table, never the payload. The first read that touches a block has the
//! system bring it into memory, which fails where a touch would end the process by a signal (a bad sector, a file that
//! was cut short), and compares it with its checksum; a bitmap remembers the blocks that were found whole, for an hour.
//!
//! Contract of the mapping: a file is never changed, cut or replaced in place after it was finished. Collections keep
//! it by writing a file whole before any manifest names it, and by removing names only, never bytes. Whoever breaks it
//! by cutting a file, and a verified page that memory was short of, was let go, and cannot be read again, turn bytes
//! that a reader has into zeros (`watched`). [`Mapped::check_whole`] tells it, after what was read is used and before
//! anything that was made of it is given out.
//! Cost: opening, one checksum over 8 bytes for each 4 KiB; reading, one atomic load for each block touched, and for
//! the first touch one system call more; a check of the whole, two loads.
#![expect(unsafe_code, reason = "promises that a mapping stays where it is while a clone of its owner lives")]

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memmap2::Advice;
use stable_deref_trait::{CloneStableDeref, StableDeref};
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{
    BLOCK_BYTES, FORMAT_VERSION, HEADER_BYTES, Header, block_of, block_range, checksum, n_blocks, table_bytes,
};
use super::watched::Watched;
#[cfg(any(test, feature = "testing"))]
use crate::faults::begin;
use crate::{Error, Result};

/// Blocks that the system is asked for at a time.
const READ_AHEAD_BLOCKS: usize = 256;

/// A block is verified again when it is read so long after the file was opened, or verified anew.
const VERIFIED_FOR: Duration = Duration::from_secs(3600);

/// Bytes at the end of a file that tell whether it was cut: what is cut off a page reads as zeros.
const TAIL_BYTES: usize = 8;

/// An error of the disk, as the system numbers it.
const EIO: i32 = 5;

/// Where a test may have a read fail.
#[cfg(not(any(test, feature = "testing")))]
fn begin(_: &Path, _: Range<u64>) -> io::Result<()> {
    Ok(())
}

/// A mapped file. Clones share the mapping and what was verified; dereferencing gives the payload.
///
/// **`Deref` does not verify**, because it cannot fail: it serves owners of byte buffers that want a stable address.
/// Call [`bytes`](Self::bytes) for the range first, then take the same range of the dereferenced slice.
#[derive(Clone)]
pub struct Mapped(Arc<Inner>);

struct Inner {
    path: PathBuf,
    map: Watched,
    header: Header,
    payload_bytes: usize,
    /// The checksums of the blocks, a 512th of the payload: read, not mapped, so that no check of a block can fail by
    /// what the disk has since made of them.
    table: Vec<u8>,
    /// The last bytes of the file.
    tail: [u8; TAIL_BYTES],
    /// One bit a block: set once the block was found whole.
    verified: Vec<AtomicU64>,
    opened: Instant,
    /// Seconds after `opened` at which `verified` is emptied.
    verified_until: AtomicU64,
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
        let mut start = [0; HEADER_BYTES];
        let read = begin(path, 0..HEADER_BYTES as u64).and_then(|()| file.read_exact_at(&mut start, 0));
        read.map_err(|source| Error::Unreadable { path: path.to_owned(), offset: 0, source })?;
        let header = Header::decode(&start).map_err(|(offset, reason)| corrupt(offset, reason))?;
        if header.version > FORMAT_VERSION {
            return Err(Error::Newer { path: path.to_owned(), found: header.version, supported: FORMAT_VERSION });
        }
        if !kinds.contains(&header.kind) {
            let expected = kinds.iter().map(name_of).collect::<Vec<_>>().join(" or ");
            return Err(Error::OtherKind { path: path.to_owned(), expected, found: name_of(&header.kind) });
        }
        let map = Watched::map(file).map_err(io)?;
        let (payload_end, table_end) =
            ends(&header).ok_or_else(|| corrupt(40, "the payload is longer than any file"))?;
        if table_end > map.len() {
            return Err(corrupt(map.len() as u64, "the file is shorter than its header says"));
        }
        if table_end < map.len() {
            return Err(corrupt(table_end as u64, "the file is longer than its header says"));
        }
        let mut table = vec![0; table_end - payload_end];
        let read = begin(path, payload_end as u64..table_end as u64)
            .and_then(|()| file.read_exact_at(&mut table, payload_end as u64));
        read.map_err(|source| Error::Unreadable { path: path.to_owned(), offset: payload_end as u64, source })?;
        if xxh3_64(&table) != header.table_checksum {
            return Err(corrupt(payload_end as u64, "the table of checksums does not match its own checksum"));
        }
        let n_blocks = n_blocks(header.payload_bytes).unwrap_or(0) as usize;
        // Of a file without payload, the header's.
        let tail = *table.last_chunk().or(start.last_chunk()).expect("a header is longer");
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            tail,
            table,
            map,
            header,
            payload_bytes: payload_end - HEADER_BYTES,
            verified: std::iter::repeat_with(AtomicU64::default).take(n_blocks.div_ceil(64)).collect(),
            opened: Instant::now(),
            verified_until: AtomicU64::new(VERIFIED_FOR.as_secs()),
        })))
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
            if let Some(first) = self.first_unverified(block_of(range.start), last) {
                self.verify_blocks(first, last)?;
            }
        }
        Ok(bytes)
    }

    /// Looks, before a query at the time `now`, whether the file is [whole](Self::check_whole), and lets blocks be
    /// verified anew that were verified an hour ago. Tells whether it did the latter.
    ///
    /// # Errors
    /// As [`check_whole`](Self::check_whole).
    pub fn renew(&self, now: Instant) -> Result<bool> {
        self.check_whole()?;
        let inner = &*self.0;
        let seconds = now.saturating_duration_since(inner.opened).as_secs();
        let is_over = seconds >= inner.verified_until.load(Ordering::Relaxed);
        if is_over {
            inner.verified_until.store(seconds + VERIFIED_FOR.as_secs(), Ordering::Relaxed);
            inner.verified.iter().for_each(|blocks| blocks.store(0, Ordering::Relaxed));
        }
        Ok(is_over)
    }

    /// Looks, after a use of its bytes, whether they were there all the time: nothing that was made of them may be
    /// given out otherwise. Once that is so it stays so.
    ///
    /// # Errors
    /// [`Error::Unreadable`] where a page could not be read since the file was opened, or the file was cut short.
    #[inline]
    pub fn check_whole(&self) -> Result<()> {
        let map = &self.0.map;
        let tail = map.len() - TAIL_BYTES;
        let is_whole = map.now(tail) == self.0.tail;
        match map.bad() {
            None if is_whole => Ok(()),
            bad => Err(self.unreadable(bad)),
        }
    }

    /// The error where bytes that were there are gone.
    #[cold]
    fn unreadable(&self, bad: Option<usize>) -> Error {
        let (path, map) = (self.0.path.clone(), &self.0.map);
        // What only the last bytes tell is a cut, and stays one if they come back: zeros may have been read meanwhile.
        let is_cut = bad.is_none() || is_shorter(&path, map.len());
        let offset = map.turn_bad(bad.unwrap_or(map.len() - TAIL_BYTES)) as u64;
        let source = match is_cut {
            true => io::Error::new(io::ErrorKind::UnexpectedEof, CUT),
            false => io::Error::from_raw_os_error(EIO),
        };
        Error::Unreadable { path, offset, source }
    }

    /// Tells the system that small parts will be read, in no order: it shall read no more around a missing page. Longer
    /// ranges are asked for as a whole when they are verified. A hint: what it brings differs, what is read does not.
    pub(crate) fn expect_random_access(&self) {
        // Advice that is refused costs time, nothing else.
        let _ = self.0.map.mapping().advise(Advice::Random);
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
        let _ = self.0.map.mapping().advise_range(Advice::WillNeed, HEADER_BYTES + range.start, range.len());
    }

    /// Verifies the whole payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first block that does not match its checksum.
    pub fn verify(&self) -> Result<()> {
        self.bytes(0..self.len()).map(drop)
    }

    /// The blocks that were verified so far: those that were read.
    #[cfg(test)]
    pub(crate) fn n_verified(&self) -> usize {
        self.0.verified.iter().map(|blocks| blocks.load(Ordering::Relaxed).count_ones() as usize).sum()
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

    /// The first of these blocks that is not known to be whole.
    #[inline]
    fn first_unverified(&self, first: usize, last: usize) -> Option<usize> {
        if first == last {
            return (!self.is_verified(first)).then_some(first);
        }
        (first / 64..=last / 64).find_map(|word| {
            let missing = !self.0.verified[word].load(Ordering::Relaxed);
            let missing = if word == first / 64 { missing & (u64::MAX << (first % 64)) } else { missing };
            let block = word * 64 + missing.trailing_zeros() as usize;
            (missing != 0 && block <= last).then_some(block)
        })
    }

    #[cold]
    fn verify_blocks(&self, first: usize, last: usize) -> Result<()> {
        let bytes_of = |block| {
            let range = block_range(block);
            range.start..self.len().min(range.end)
        };
        for start in (first..=last).step_by(READ_AHEAD_BLOCKS) {
            let end = last.min(start + READ_AHEAD_BLOCKS - 1);
            let range = bytes_of(start).start..bytes_of(end).end;
            if end > start {
                self.read_ahead(range.clone());
            }
            bring_in(&self.0.map, &self.0.path, HEADER_BYTES + range.start..HEADER_BYTES + range.end)?;
            for block in start..=end {
                let range = bytes_of(block);
                if xxh3_64(&self[range.clone()]) != checksum(&self.0.table, block) {
                    self.check_whole()?;
                    return Err(self.corrupt(range.start, "a block of 4 KiB does not match its checksum"));
                }
                self.0.verified[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// The reason where a file lost its end.
const CUT: &str = "the file was cut short after it was opened";

/// Has the system bring these bytes of a file into memory: what cannot be read is an error here, and would be a signal
/// that ends the process where it is touched.
fn bring_in(map: &Watched, path: &Path, range: Range<usize>) -> Result<()> {
    if range.is_empty() || populate(map, path, range.clone()).is_ok() {
        return Ok(());
    }
    // Page by page, to say where.
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min((start / BLOCK_BYTES + 1) * BLOCK_BYTES);
        if let Err(source) = populate(map, path, start..end) {
            let is_cut = is_shorter(path, end);
            let source = if is_cut { io::Error::new(io::ErrorKind::UnexpectedEof, CUT) } else { source };
            return Err(Error::Unreadable { path: path.to_owned(), offset: start as u64, source });
        }
        start = end;
    }
    Ok(())
}

/// True if there is a file of fewer bytes at the path.
fn is_shorter(path: &Path, n_bytes: usize) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() < n_bytes as u64)
}

fn populate(map: &Watched, path: &Path, range: Range<usize>) -> io::Result<()> {
    begin(path, range.start as u64..range.end as u64)?;
    #[cfg(target_os = "linux")]
    match map.mapping().advise_range(Advice::PopulateRead, range.start, range.len()) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {} // a kernel before 5.14
        Err(_) => return Err(io::Error::from_raw_os_error(EIO)),        // it says EFAULT, whatever the reason
    }
    let _ = map;
    read_through(path, range)
}

/// Reads bytes of a file to nowhere, so that the system has them. A file that is no longer at its path stays unread:
/// the mapping has it still.
#[cold]
fn read_through(path: &Path, range: Range<usize>) -> io::Result<()> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    let (file, mut page) = (File::open(path)?, [0; BLOCK_BYTES]);
    for start in range.clone().step_by(BLOCK_BYTES) {
        let page = &mut page[..BLOCK_BYTES.min(range.end - start)];
        file.read_exact_at(page, start as u64)?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn reading_through_says_what_a_touch_would_have_died_of() {
        let folder = Folder::new();
        let path = folder.path("file");
        fs_err::write(&path, [7; 3 * BLOCK_BYTES]).unwrap();
        read_through(&path, 5..3 * BLOCK_BYTES).unwrap();
        assert!(read_through(&path, 5..3 * BLOCK_BYTES + 1).is_err());
        read_through(&folder.path("moved"), 0..1).expect("the mapping has it still");
    }
}
