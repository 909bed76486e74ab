//! Unit vectors in a mapped file: row after row, each padded with zeros, in 32 or 16 bits an element.
//!
//! A row takes its dimensions rounded up to 32 elements (128 bytes of f32, 64 of f16), so every row starts on a cache
//! line and no kernel has a tail; the models' 384, 768 and 1,024 need no padding. Rows of f16 are widened exactly when
//! they are read.
//!
//! Range: rows are finite and of unit length, checked when they are written; reading trusts the file's checksums.
//! Counts of the header: rows, dimensions.

use std::borrow::Cow;
use std::io::{Seek, Write};
use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::distance::{Element, Kernel, padded, prefetch};
use crate::file::{Mapped, Writer};
use crate::{Error, Result};

/// The largest distance of a vector's length from 1.
pub const UNIT_TOLERANCE: f64 = 1e-3;

/// The most dimensions that a vector may have.
pub const DIMENSIONS_MAX: usize = 65_536;

/// Rounding a component to f16 changes it by at most this share, so it changes a length by no more.
const F16_ROUNDING: f64 = 1.0 / 2048.0;

/// The number type of a row's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// 32 bits: as the encoder made it.
    F32,
    /// 16 bits: half the memory, distances right to about three digits.
    F16,
}

impl Scalar {
    /// The kinds of all files of rows, for [`Mapped::open_any`].
    pub const KINDS: [[u8; 8]; 2] = [Self::F32.kind(), Self::F16.kind()];

    /// The kind of a file of such rows.
    pub const fn kind(self) -> [u8; 8] {
        match self {
            Self::F32 => *b"rows-f32",
            Self::F16 => *b"rows-f16",
        }
    }

    /// Bytes from one row of so many dimensions to the next.
    pub const fn row_bytes(self, dimensions: usize) -> usize {
        padded(dimensions) * self.bytes()
    }

    const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

/// Writes rows one by one.
#[derive(Debug)]
pub struct RowWriter<W: Write + Seek> {
    out: Writer<W>,
    scalar: Scalar,
    dimensions: usize,
    n_rows: usize,
    /// The row as it is written, its padding in place.
    row: Vec<f32>,
    halves: Vec<f16>,
}

impl<W: Write + Seek> RowWriter<W> {
    /// Starts a file of rows.
    ///
    /// # Errors
    /// [`Error::Setting`] for 0 or too many dimensions, [`Error::Write`].
    pub fn new(out: W, dimensions: usize, scalar: Scalar) -> Result<Self> {
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(Error::Setting { name: "dimensions", value: dimensions, allowed: "1 to 65,536" });
        }
        let out = Writer::new(out, scalar.kind())?;
        let row = vec![0.0; padded(dimensions)];
        let halves = vec![f16::ZERO; row.len()];
        Ok(Self { out, scalar, dimensions, n_rows: 0, row, halves })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// [`Error::Dimension`], [`Error::NotFinite`], [`Error::NotUnit`], with nothing written; [`Error::Setting`] when
    /// the file is full; [`Error::Write`].
    pub fn push(&mut self, row: &[f32]) -> Result<()> {
        check_vector(row, self.dimensions, self.n_rows)?;
        if self.n_rows >= u32::MAX as usize {
            return Err(Error::Setting { name: "rows", value: self.n_rows + 1, allowed: "at most 4,294,967,295" });
        }
        self.row[..self.dimensions].copy_from_slice(row);
        match self.scalar {
            Scalar::F32 => self.out.write_all(bytemuck::cast_slice(&self.row))?,
            Scalar::F16 => {
                self.halves.convert_from_f32_slice(&self.row);
                self.out.write_all(bytemuck::cast_slice(&self.halves))?;
            }
        }
        self.n_rows += 1;
        Ok(())
    }

    /// D.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The number type of the elements.
    pub fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// True if there is no row yet.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// Finishes the file and gives the writer back.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(self) -> Result<W> {
        Ok(self.out.finish([self.n_rows as u64, self.dimensions as u64])?)
    }
}

/// Writes a whole file of rows and gives the writer back.
///
/// # Errors
/// Those of [`RowWriter`].
pub fn write_rows<'a, W: Write + Seek>(
    out: W,
    dimensions: usize,
    scalar: Scalar,
    rows: impl IntoIterator<Item = &'a [f32]>,
) -> Result<W> {
    let mut writer = RowWriter::new(out, dimensions, scalar)?;
    for row in rows {
        writer.push(row)?;
    }
    writer.finish()
}

/// Rows of a mapped file. Clones share the mapping.
#[derive(Debug, Clone)]
pub struct Rows {
    file: Mapped,
    kernel: Kernel,
    scalar: Scalar,
    n_rows: usize,
    dimensions: usize,
}

/// A query that fits the rows: right length, finite, of unit length, padded.
pub(crate) struct Query(Vec<f32>);

impl Query {
    pub(crate) fn padded(&self) -> &[f32] {
        &self.0
    }
}

impl Rows {
    /// The rows of this file, compared with the instructions of [`Kernel::active`].
    ///
    /// # Errors
    /// [`Error::OtherKind`]; [`Error::Corrupt`] where the counts do not fit the payload; [`Error::Simd`].
    pub fn open(file: Mapped) -> Result<Self> {
        Self::with_kernel(file, Kernel::active()?)
    }

    /// The rows of this file, compared with these instructions.
    ///
    /// # Errors
    /// [`Error::OtherKind`]; [`Error::Corrupt`] where the counts do not fit the payload.
    pub fn with_kernel(file: Mapped, kernel: Kernel) -> Result<Self> {
        let Some(scalar) = [Scalar::F32, Scalar::F16].into_iter().find(|scalar| scalar.kind() == file.kind()) else {
            let found = String::from_utf8_lossy(&file.kind()).into_owned();
            return Err(Error::OtherKind { path: file.path().to_owned(), expected: "rows".to_owned(), found });
        };
        let [n_rows, dimensions] = file.counts();
        let header_is = |reason| Error::Corrupt { path: file.path().to_owned(), offset: 24, reason };
        if !(1..=DIMENSIONS_MAX as u64).contains(&dimensions) {
            return Err(header_is("rows of no or of too many dimensions"));
        }
        let dimensions = dimensions as usize;
        let row_bytes = (padded(dimensions) * scalar.bytes()) as u64;
        if n_rows > u64::from(u32::MAX) || n_rows.checked_mul(row_bytes) != Some(file.len() as u64) {
            return Err(header_is("the number of rows does not fit the payload"));
        }
        file.expect_random_access();
        Ok(Self { file, kernel, scalar, n_rows: n_rows as usize, dimensions })
    }

    /// N.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// D.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The number type of the elements.
    pub fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// The instructions that distances are computed with.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The file.
    pub fn file(&self) -> &Mapped {
        &self.file
    }

    /// The vector of a row, `[D]`; borrowed where it is stored in f32.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where its block is damaged or the row does not exist (row numbers come from other files).
    pub fn row(&self, row: u32) -> Result<Cow<'_, [f32]>> {
        let row = row as usize;
        let rows = row..row.saturating_add(1);
        Ok(match self.scalar {
            Scalar::F32 => Cow::Borrowed(&self.elements::<f32>(rows)?[..self.dimensions]),
            Scalar::F16 => Cow::Owned(self.elements::<f16>(rows)?[..self.dimensions].to_f32_vec()),
        })
    }

    /// Reads everything: block checksums, then that each row is finite, of unit length and padded with zeros.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first that is not.
    pub fn verify(&self) -> Result<()> {
        let tolerance = match self.scalar {
            Scalar::F32 => UNIT_TOLERANCE,
            Scalar::F16 => UNIT_TOLERANCE + 2.0 * F16_ROUNDING,
        };
        let mut wide = vec![0.0; self.stride()];
        for row in 0..self.n_rows {
            let values = match self.scalar {
                Scalar::F32 => self.elements::<f32>(row..row + 1)?,
                Scalar::F16 => {
                    self.elements::<f16>(row..row + 1)?.convert_to_f32_slice(&mut wide);
                    &wide
                }
            };
            let (vector, padding) = values.split_at(self.dimensions);
            let length = norm(vector);
            // A NaN or an infinity gives a length that is in no range.
            if !((1.0 - tolerance..=1.0 + tolerance).contains(&length) && padding.iter().all(|&value| value == 0.0)) {
                let offset = row * self.stride() * self.scalar.bytes();
                return Err(self.file.corrupt(offset, "a row is not a vector of unit length"));
            }
        }
        Ok(())
    }

    /// Some rows as they lie in the file, verified: [`Rows::stride`] elements each, of which those beyond the
    /// dimensions are zero.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn bytes(&self, rows: Range<usize>) -> Result<&[u8]> {
        let row_bytes = self.stride() * self.scalar.bytes();
        self.file.bytes(rows.start.saturating_mul(row_bytes)..rows.end.saturating_mul(row_bytes))
    }

    /// Elements from one row to the next.
    pub fn stride(&self) -> usize {
        padded(self.dimensions)
    }

    /// The padded elements of these rows, their blocks verified; E is what [`scalar`](Self::scalar) says.
    #[inline]
    pub(crate) fn elements<E: Element>(&self, rows: Range<usize>) -> Result<&[E]> {
        debug_assert_eq!(size_of::<E>(), self.scalar.bytes());
        let row_bytes = self.stride() * size_of::<E>();
        let bytes = self.file.bytes(rows.start.saturating_mul(row_bytes)..rows.end.saturating_mul(row_bytes))?;
        // The payload starts on a 64-byte boundary and rows are multiples of 64 bytes, so the cast cannot fail.
        Ok(bytemuck::cast_slice(bytes))
    }

    /// Checks and pads a query, the `position`-th of its batch.
    pub(crate) fn query(&self, vector: &[f32], position: usize) -> Result<Query> {
        check_vector(vector, self.dimensions, position)?;
        let mut values = vec![0.0; self.stride()];
        values[..vector.len()].copy_from_slice(vector);
        Ok(Query(values))
    }

    /// A row as a query, as it is stored: in f16 its length may be off by more than a query's from outside.
    pub(crate) fn row_as_query(&self, row: u32) -> Result<Query> {
        let mut values = self.row(row)?.into_owned();
        values.resize(self.stride(), 0.0);
        Ok(Query(values))
    }

    /// Appends the distances of these rows from the query, in their order.
    pub(crate) fn distances(&self, query: &Query, rows: &[u32], out: &mut Vec<f32>) -> Result<()> {
        match self.scalar {
            Scalar::F32 => self.distances_of::<f32>(query, rows, out),
            Scalar::F16 => self.distances_of::<f16>(query, rows, out),
        }
    }

    fn distances_of<E: Element>(&self, query: &Query, rows: &[u32], out: &mut Vec<f32>) -> Result<()> {
        /// Rows that share a pass over the query.
        const GROUP: usize = 4;
        let (groups, rest) = rows.as_chunks::<GROUP>();
        rows.iter().take(GROUP).for_each(|&row| self.prefetch(row));
        for (n, &group) in groups.iter().enumerate() {
            rows.iter().skip((n + 1) * GROUP).take(GROUP).for_each(|&row| self.prefetch(row));
            out.extend(self.gathered::<E, GROUP>(query, group)?);
        }
        for &row in rest {
            out.extend(self.gathered::<E, 1>(query, [row])?);
        }
        Ok(())
    }

    /// Begins to load a row.
    #[inline]
    fn prefetch(&self, row: u32) {
        let row_bytes = self.stride() * self.scalar.bytes();
        let start = (row as usize).saturating_mul(row_bytes);
        self.file.will_need(start..start.saturating_add(row_bytes));
        prefetch(self.file.get(start..start.saturating_add(row_bytes)).unwrap_or_default());
    }

    #[inline]
    fn gathered<E: Element, const R: usize>(&self, query: &Query, rows: [u32; R]) -> Result<[f32; R]> {
        let mut vectors: [&[E]; R] = [&[]; R];
        for (vector, row) in vectors.iter_mut().zip(rows) {
            *vector = self.elements(row as usize..row as usize + 1)?;
        }
        Ok(self.kernel.dots(vectors, [query.padded()]).map(|[dot]| 1.0 - dot))
    }
}

fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt()
}

/// The boundary: what is not a finite vector of unit length and of this many dimensions goes no further.
fn check_vector(vector: &[f32], dimensions: usize, position: usize) -> Result<()> {
    if vector.len() != dimensions {
        return Err(Error::Dimension { expected: dimensions, received: vector.len() });
    }
    if let Some(dimension) = vector.iter().position(|value| !value.is_finite()) {
        return Err(Error::NotFinite { vector: position, dimension });
    }
    let norm = norm(vector);
    if (norm - 1.0).abs() > UNIT_TOLERANCE {
        return Err(Error::NotUnit { vector: position, norm });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
