//! The exact length of each field of each row, in terms.
//!
//! File: four `u64` (rows, then the totals of text, header and title), then three `u32` (text, header, title) for each
//! row; all little-endian.
//! Cost: 12 bytes a row.

use std::sync::Arc;

use roaring::RoaringBitmap;
use tantivy::SegmentReader;
use tantivy::directory::OwnedBytes;
use tantivy::schema::{Field, IndexRecordOption};

use crate::directory::File;
use crate::schema::N_FIELDS;
use crate::{Error, Result};

/// Name of the file.
pub(crate) const LENGTHS: &str = "lengths";

const N_HEADER: usize = 1 + N_FIELDS;
const HEADER_BYTES: usize = N_HEADER * size_of::<u64>();
const ROW_BYTES: usize = N_FIELDS * size_of::<u32>();

/// The bytes of the file for these rows.
pub(crate) fn encode(rows: &[[u32; N_FIELDS]]) -> Vec<u8> {
    let mut totals = [0u64; N_FIELDS];
    for row in rows {
        add(&mut totals, row);
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + rows.len() * ROW_BYTES);
    bytes.extend((rows.len() as u64).to_le_bytes());
    bytes.extend(totals.into_iter().flat_map(u64::to_le_bytes));
    bytes.extend(rows.iter().flatten().flat_map(|length| length.to_le_bytes()));
    bytes
}

fn add(totals: &mut [u64; N_FIELDS], row: &[u32; N_FIELDS]) {
    for (total, &length) in totals.iter_mut().zip(row) {
        *total += u64::from(length);
    }
}

/// Lengths as the sums of the frequencies in the postings, so that the two cannot disagree.
pub(crate) fn of_postings(
    reader: &SegmentReader,
    fields: &[Field; N_FIELDS],
    n_rows: u32,
) -> Result<Vec<[u32; N_FIELDS]>> {
    let mut lengths = vec![[0u32; N_FIELDS]; n_rows as usize];
    for (at, &field) in fields.iter().enumerate() {
        let inverted = reader.inverted_index(field)?;
        let mut terms = inverted.terms().stream()?;
        while let Some((_, term)) = terms.next() {
            let mut block = inverted.read_block_postings_from_terminfo(term, IndexRecordOption::WithFreqs)?;
            while !block.docs().is_empty() {
                for (&row, &frequency) in block.docs().iter().zip(block.freqs()) {
                    let length = lengths.get_mut(row as usize);
                    let length = length.ok_or_else(|| corrupt(format!("postings of row {row}, there are {n_rows}")))?;
                    length[at] = length[at].saturating_add(frequency);
                }
                block.advance();
            }
        }
    }
    Ok(lengths)
}

/// The file, its header read.
#[derive(Debug)]
pub(crate) struct LengthsFile {
    file: Arc<dyn File>,
    n_rows: u32,
    totals: [u64; N_FIELDS],
}

impl LengthsFile {
    /// Reads the header and checks that the file holds as many rows as it says.
    pub(crate) fn open(file: Arc<dyn File>) -> Result<Self> {
        let n_bytes = file.len();
        if n_bytes < HEADER_BYTES {
            return Err(corrupt(format!("{n_bytes} bytes are less than its header")));
        }
        let header = read(&*file, 0..HEADER_BYTES)?;
        let mut words = [0u64; N_HEADER];
        for (word, bytes) in words.iter_mut().zip(header.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let [rows, text, header, title] = words;
        let n_rows = u32::try_from(rows).map_err(|_| corrupt(format!("{rows} rows do not fit one segment")))?;
        let expected = HEADER_BYTES as u64 + rows * ROW_BYTES as u64;
        if expected != n_bytes as u64 {
            return Err(corrupt(format!("{n_bytes} bytes, but {rows} rows take {expected}")));
        }
        let totals = [text, header, title];
        if totals.iter().any(|&total| total > rows * u64::from(u32::MAX)) {
            return Err(corrupt(format!("{totals:?} terms do not fit {rows} rows")));
        }
        Ok(Self { file, n_rows, totals })
    }

    pub(crate) fn n_rows(&self) -> u32 {
        self.n_rows
    }

    /// Compares the file with what the postings add up to.
    pub(crate) fn verify(&self, rows: &[[u32; N_FIELDS]]) -> Result<()> {
        if read(&*self.file, 0..self.file.len())?[..] == encode(rows)[..] {
            Ok(())
        } else {
            Err(corrupt("the postings add up to other lengths".to_owned()))
        }
    }

    /// The rows.
    pub(crate) fn read(&self) -> Result<Lengths> {
        Ok(Lengths { bytes: read(&*self.file, HEADER_BYTES..self.file.len())?, totals: self.totals })
    }
}

fn read(file: &dyn File, range: std::ops::Range<usize>) -> Result<OwnedBytes> {
    file.read(range).map_err(|source| Error::Io { name: LENGTHS.to_owned(), source })
}

fn corrupt(reason: String) -> Error {
    Error::Corrupt { name: LENGTHS.to_owned(), reason }
}

/// Lengths by row.
#[derive(Debug)]
pub(crate) struct Lengths {
    bytes: OwnedBytes,
    totals: [u64; N_FIELDS],
}

impl Lengths {
    /// Number of terms of each field.
    pub(crate) fn row(&self, row: u32) -> [u32; N_FIELDS] {
        let start = row as usize * ROW_BYTES;
        let (words, _) = self.bytes[start..start + ROW_BYTES].as_chunks();
        [0, 1, 2].map(|field| u32::from_le_bytes(words[field]))
    }

    /// Number of terms of each field over the live rows. Cost: linear in the deleted rows.
    pub(crate) fn totals(&self, live: Option<&RoaringBitmap>) -> Result<[u64; N_FIELDS]> {
        let mut totals = self.totals;
        let Some(live) = live else { return Ok(totals) };
        let n_rows = (self.bytes.len() / ROW_BYTES) as u32;
        let mut dead = RoaringBitmap::new();
        dead.insert_range(0..n_rows);
        dead -= live;
        let mut lost = [0u64; N_FIELDS];
        for row in dead {
            add(&mut lost, &self.row(row));
        }
        for (total, lost) in totals.iter_mut().zip(lost) {
            let left = total.checked_sub(lost);
            *total = left.ok_or_else(|| corrupt(format!("{lost} terms in deleted rows, {total} in all")))?;
        }
        Ok(totals)
    }
}
