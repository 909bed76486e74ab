//! A table of fixed-size records and the strings they point to, in one memory-mapped file.
//!
//! Layout of the payload: `n` records, then the heap. Record `i` is at `i * size_of::<T>()`; heap offsets count from
//! its start.

use std::io::Write;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;

use bytemuck::{Pod, Zeroable};
use cento_vector::file;

use crate::error::{AtPath, Error, Result};
use crate::fs::{Folder, Fs};

/// A byte range of a table's heap, as it stands in a record.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Text {
    /// First byte, from the start of the heap.
    pub offset: u64,
    /// Length in bytes.
    pub n_bytes: u64,
}

/// Records and heap gathered in memory, then written at once.
#[derive(Debug)]
pub struct TableWriter<T> {
    records: Vec<T>,
    heap: Vec<u8>,
}

impl<T: Pod> TableWriter<T> {
    /// A table without records.
    pub fn new() -> Self {
        Self { records: Vec::new(), heap: Vec::new() }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Bytes of memory that records and strings take.
    pub fn memory_bytes(&self) -> u64 {
        (size_of_val(self.records.as_slice()) + self.heap.len()) as u64
    }

    /// Adds a record.
    pub fn push(&mut self, record: T) {
        self.records.push(record);
    }

    /// Adds a string to the heap.
    pub fn text(&mut self, text: &str) -> Text {
        let offset = self.heap.len() as u64;
        self.heap.extend_from_slice(text.as_bytes());
        Text { offset, n_bytes: text.len() as u64 }
    }

    /// Writes and syncs the file.
    pub fn write(self, fs: &dyn Fs, path: &Path, kind: [u8; 8]) -> Result<()> {
        let mut out = file::Writer::new(fs.create(path).at(path)?, kind).at(path)?;
        out.write_all(bytemuck::cast_slice(&self.records)).at(path)?;
        out.write_all(&self.heap).at(path)?;
        let mut file = out.finish([self.records.len() as u64, self.heap.len() as u64]).at(path)?;
        file.sync().at(path)
    }
}

/// A table opened by memory map; nothing is read until it is asked for.
#[derive(Debug, Clone)]
pub struct Table<T> {
    mapped: file::Mapped,
    n_records: usize,
    heap: Range<usize>,
    record: PhantomData<T>,
}

impl<T: Pod> Table<T> {
    /// Opens the file; reads header and block table only.
    ///
    /// # Errors
    /// `Corrupt` if its counts do not fit its length.
    pub fn open(folder: &Folder, name: &str, kind: [u8; 8]) -> Result<Self> {
        Self::of(folder.map(name, &[kind])?)
    }

    /// The table of a file that is mapped.
    ///
    /// # Errors
    /// `Corrupt` if its counts do not fit its length.
    pub(crate) fn of(mapped: file::Mapped) -> Result<Self> {
        let [n_records, n_heap] = mapped.counts();
        let bounds = || {
            let heap_start = usize::try_from(n_records).ok()?.checked_mul(size_of::<T>())?;
            let heap_end = heap_start.checked_add(usize::try_from(n_heap).ok()?)?;
            (heap_end == mapped.len()).then_some(heap_start..heap_end)
        };
        let heap = bounds().ok_or_else(|| Error::Corrupt {
            path: mapped.path().to_owned(),
            reason: "counts do not fit the length".to_owned(),
        })?;
        Ok(Self { n_records: n_records as usize, heap, mapped, record: PhantomData })
    }

    /// The file it was mapped from.
    pub fn path(&self) -> &Path {
        self.mapped.path()
    }

    /// The mapped file itself.
    pub(crate) fn file(&self) -> &file::Mapped {
        &self.mapped
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.n_records
    }

    /// Bytes of records and strings.
    pub fn n_bytes(&self) -> usize {
        self.mapped.len()
    }

    /// A record by its number, its blocks verified.
    pub fn record(&self, index: usize) -> Result<T> {
        let size = size_of::<T>();
        Ok(bytemuck::pod_read_unaligned(self.mapped.bytes(index * size..(index + 1) * size)?))
    }

    /// Records that follow each other.
    pub fn records(&self, range: Range<usize>) -> Result<Vec<T>> {
        let size = size_of::<T>();
        Ok(bytemuck::pod_collect_to_vec(self.mapped.bytes(range.start * size..range.end * size)?))
    }

    /// A string of the heap.
    pub fn text(&self, text: Text) -> Result<&str> {
        let corrupt = |reason: &str| self.corrupt(reason.to_owned());
        let start = self.heap.start.checked_add(text.offset as usize);
        let end = start.and_then(|start| start.checked_add(text.n_bytes as usize)).filter(|&end| end <= self.heap.end);
        let (Some(start), Some(end)) = (start, end) else { return Err(corrupt("a string lies outside the file")) };
        std::str::from_utf8(self.mapped.bytes(start..end)?).map_err(|_| corrupt("a string is not UTF-8"))
    }

    /// Checks every block of the file.
    pub fn verify(&self) -> Result<()> {
        Ok(self.mapped.verify()?)
    }

    /// An error of what a record says.
    pub fn corrupt(&self, reason: String) -> Error {
        Error::Corrupt { path: self.path().to_owned(), reason }
    }
}
