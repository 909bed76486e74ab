//! The open file: what a comparison asks for is found by binary search.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use cento_vector::file;
use roaring::RoaringBitmap;

use super::layout::{ColumnRecord, FieldType, KIND, ValueRecord};
use super::writer::{MetadataWriter, memory_bytes};
use crate::error::{Error, Result};
use crate::fs::Folder;

/// A value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stored<'a> {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A finite number.
    Float(f64),
    /// Microseconds since 1970 at which it starts.
    Date(i64),
    /// A string.
    String(&'a str),
}

/// The order between the values asked for and the value they are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Before it.
    Less,
    /// Before or in it.
    AtMost,
    /// In it.
    Equal,
    /// In or behind it.
    AtLeast,
    /// Behind it.
    Greater,
}

/// The open file.
#[derive(Debug)]
pub struct MetadataColumns {
    mapped: file::Mapped,
    directory: OnceLock<Directory>,
}

/// The columns by field, and where the parts of the payload begin.
#[derive(Debug)]
struct Directory {
    fields: BTreeMap<String, Vec<Column>>,
    values: usize,
    documents: usize,
    heap: usize,
}

#[derive(Debug)]
struct Column {
    kind: FieldType,
    values: Range<usize>,
    documents: Range<usize>,
}

impl MetadataColumns {
    /// The mapped file itself.
    pub(crate) fn file(&self) -> &file::Mapped {
        &self.mapped
    }

    /// Opens the file of a segment with so many documents; reads header and block table only.
    pub fn open(folder: &Folder, name: &str, n_documents: usize) -> Result<Self> {
        let columns = Self { mapped: folder.map(name, &[KIND])?, directory: OnceLock::new() };
        match columns.mapped.counts()[1] == n_documents as u64 {
            true => Ok(columns),
            false => Err(columns.corrupt("counts other documents than the segment has")),
        }
    }

    /// The fields, ascending, each with the types of its values.
    pub fn fields(&self) -> Result<impl Iterator<Item = (&str, impl Iterator<Item = FieldType>)>> {
        let fields = self.directory()?.fields.iter();
        Ok(fields.map(|(name, columns)| (name.as_str(), columns.iter().map(|column| column.kind))))
    }

    /// Every document of the segment, dead ones too.
    pub fn all(&self) -> RoaringBitmap {
        let mut all = RoaringBitmap::new();
        all.insert_range(0..self.n_documents());
        all
    }

    /// The documents that have a field.
    pub fn having(&self, field: &str) -> Result<RoaringBitmap> {
        let mut found = RoaringBitmap::new();
        for column in self.columns(field)? {
            found |= self.documents(column, 0..column.values.len())?;
        }
        Ok(found)
    }

    /// The documents with a value that stands so to what `position` compares with: before it, in it, or after it. Of a
    /// type whose values `position` does not compare there is none.
    pub fn matching(
        &self,
        field: &str,
        comparison: Comparison,
        position: impl Fn(Stored<'_>) -> Option<Ordering>,
    ) -> Result<RoaringBitmap> {
        let mut found = RoaringBitmap::new();
        for column in self.columns(field)? {
            let n_values = column.values.len();
            if n_values == 0 || position(self.value(column, 0)?.1).is_none() {
                continue;
            }
            let start = || self.partition_point(column, |stored| position(stored) == Some(Ordering::Less));
            let end = || self.partition_point(column, |stored| position(stored) != Some(Ordering::Greater));
            let values = match comparison {
                Comparison::Less => 0..start()?,
                Comparison::AtMost => 0..end()?,
                Comparison::Equal => start()?..end()?,
                Comparison::AtLeast => start()?..n_values,
                Comparison::Greater => end()?..n_values,
            };
            found |= self.documents(column, values)?;
        }
        Ok(found)
    }

    /// Bytes of memory that a writer takes to gather the same values.
    pub(crate) fn memory_bytes(&self) -> Result<u64> {
        let directory = self.directory()?;
        let columns = || directory.fields.values().flatten();
        let n_values: usize = columns().map(|column| column.values.len()).sum();
        let n_pairs: usize = columns().map(|column| column.documents.len()).sum();
        Ok(memory_bytes(n_values as u64, (self.mapped.len() - directory.heap) as u64, n_pairs as u64))
    }

    /// Checks every block, and that the columns are those of these documents.
    pub fn verify(&self, documents: &MetadataWriter) -> Result<()> {
        let payload = self.mapped.bytes(0..self.mapped.len())?;
        match payload == documents.payload() {
            true => Ok(()),
            false => Err(self.corrupt("the columns are not those of the documents")),
        }
    }

    fn n_documents(&self) -> u32 {
        self.mapped.counts()[1] as u32 // that of the segment's table, compared when it was opened
    }

    fn columns(&self, field: &str) -> Result<&[Column]> {
        Ok(self.directory()?.fields.get(field).map_or(&[], Vec::as_slice))
    }

    /// The number of values at the start of a column for which `is_before` holds; it holds for none behind them.
    fn partition_point(&self, column: &Column, is_before: impl Fn(Stored<'_>) -> bool) -> Result<usize> {
        let (mut low, mut high) = (0, column.values.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(self.value(column, middle)?.1) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// A value of a column, and where its documents begin among those of the column.
    fn value(&self, column: &Column, at: usize) -> Result<(usize, Stored<'_>)> {
        let directory = self.directory()?;
        let start = directory.values + (column.values.start + at) * size_of::<ValueRecord>();
        let bytes = self.mapped.bytes(start..start + size_of::<ValueRecord>())?;
        let ValueRecord { bits, n_bytes, first_document } = bytemuck::pod_read_unaligned(bytes);
        let stored = match column.kind {
            FieldType::Boolean => Stored::Boolean(bits != 0),
            FieldType::Integer => Stored::Integer(bits as i64),
            FieldType::Float => Stored::Float(f64::from_bits(bits)),
            FieldType::Date => Stored::Date(bits as i64),
            FieldType::String => Stored::String(self.text(directory.heap, bits, u64::from(n_bytes))?),
        };
        Ok((first_document as usize, stored))
    }

    /// The documents of some values of a column.
    fn documents(&self, column: &Column, values: Range<usize>) -> Result<RoaringBitmap> {
        let n_documents = column.documents.len();
        let first = |at: usize| match at < column.values.len() {
            true => self.value(column, at).map(|(first, _)| first),
            false => Ok(n_documents),
        };
        let range = first(values.start)?..first(values.end.max(values.start))?;
        if range.start > range.end || range.end > n_documents {
            return Err(self.corrupt("the documents of a value lie outside their column"));
        }
        let at = |document: usize| {
            self.directory().map(|directory| directory.documents + 4 * (column.documents.start + document))
        };
        let bytes = self.mapped.bytes(at(range.start)?..at(range.end)?)?;
        let mut found: Vec<u32> = bytemuck::pod_collect_to_vec(bytes);
        if values.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        if found.last().is_some_and(|&last| last >= self.n_documents()) {
            return Err(self.corrupt("a document of a value is none of the segment"));
        }
        RoaringBitmap::from_sorted_iter(found).map_err(|_| self.corrupt("the documents of a value do not ascend"))
    }

    /// The directory, read and checked at the first call.
    fn directory(&self) -> Result<&Directory> {
        if self.directory.get().is_none() {
            let _ = self.directory.set(self.read_directory()?); // another thread read the same
        }
        Ok(self.directory.get().expect("set above"))
    }

    fn read_directory(&self) -> Result<Directory> {
        let outside = || self.corrupt("a column lies outside the file");
        let size = |n: u64, bytes: usize| usize::try_from(n).ok()?.checked_mul(bytes);
        let values = size(self.mapped.counts()[0], size_of::<ColumnRecord>()).ok_or_else(outside)?;
        let records: Vec<ColumnRecord> = bytemuck::pod_collect_to_vec(self.mapped.bytes(0..values)?);
        let (mut n_values, mut n_documents) = (0_u64, 0_u64);
        for record in &records {
            if (record.first_value, record.first_document) != (n_values, n_documents) {
                return Err(self.corrupt("the columns do not follow each other"));
            }
            n_values = n_values.checked_add(record.n_values).ok_or_else(outside)?;
            n_documents = n_documents.checked_add(record.n_documents).ok_or_else(outside)?;
        }
        let documents = size(n_values, size_of::<ValueRecord>()).and_then(|bytes| bytes.checked_add(values));
        let documents = documents.ok_or_else(outside)?;
        let heap = size(n_documents, 4).and_then(|bytes| bytes.checked_add(documents));
        let heap = heap.filter(|&heap| heap <= self.mapped.len()).ok_or_else(outside)?;
        let mut fields: BTreeMap<String, Vec<Column>> = BTreeMap::new();
        for record in records {
            let name = self.text(heap, record.name.offset, record.name.n_bytes)?.to_owned();
            let kind = FieldType::ALL.get(record.kind as usize);
            let range = |first: u64, n: u64| first as usize..(first + n) as usize; // within the file, as checked above
            fields.entry(name).or_default().push(Column {
                kind: *kind.ok_or_else(|| self.corrupt("a column of an unknown type"))?,
                values: range(record.first_value, record.n_values),
                documents: range(record.first_document, record.n_documents),
            });
        }
        Ok(Directory { fields, values, documents, heap })
    }

    fn text(&self, heap: usize, offset: u64, n_bytes: u64) -> Result<&str> {
        let start = usize::try_from(offset).ok().and_then(|offset| heap.checked_add(offset));
        let end = start.and_then(|start| start.checked_add(usize::try_from(n_bytes).ok()?));
        let (Some(start), Some(end)) = (start, end) else { return Err(self.corrupt("a string lies outside the file")) };
        std::str::from_utf8(self.mapped.bytes(start..end)?).map_err(|_| self.corrupt("a string is not UTF-8"))
    }

    fn corrupt(&self, reason: &str) -> Error {
        Error::Corrupt { path: self.mapped.path().to_owned(), reason: reason.to_owned() }
    }
}
