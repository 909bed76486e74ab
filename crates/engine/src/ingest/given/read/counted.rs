//! The `.fvecs` and `.bvecs` of the benchmarks of nearest neighbours: each row begins with the number of its columns.
//!
//! Source: corpus-texmex.irisa.fr.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use cento_vector::DIMENSIONS_MAX;

use super::rows::{Number, Rows, Shape};
use crate::error::{AtPath, Error, Result};

/// Bytes of the number before a row.
const COUNT_BYTES: usize = 4;

/// The shape of a file of `n_bytes`, by its first row, and its bytes from the first on.
pub(super) fn shape(mut input: Box<dyn Read>, n_bytes: u64, number: Number) -> Result<(Shape, Box<dyn Read>), String> {
    let mut count = [0; COUNT_BYTES];
    input.read_exact(&mut count).map_err(|_| "is cut off: it has no row".to_owned())?;
    let n_columns = u64::from(u32::from_le_bytes(count));
    let row_bytes = COUNT_BYTES as u64 + n_columns * number.n_bytes() as u64;
    if !n_bytes.is_multiple_of(row_bytes) {
        return Err(format!("has {n_bytes} bytes, which are no rows of {n_columns} columns: it is cut off"));
    }
    let shape = Shape { number, n_rows: n_bytes / row_bytes, n_columns };
    Ok((shape, Box::new(Cursor::new(count).chain(input))))
}

/// Rows with the number of their columns before each.
pub(super) struct Counted {
    path: PathBuf,
    input: Box<dyn Read>,
    number: Number,
    n_columns: u32,
    n_read: u64,
    bytes: Vec<u8>,
}

impl Counted {
    pub(super) fn new(path: &Path, input: Box<dyn Read>, shape: Shape) -> Self {
        let n_columns = shape.n_columns.min(DIMENSIONS_MAX as u64) as u32; // more are refused before a row is read
        let bytes = vec![0; n_columns as usize * shape.number.n_bytes()];
        Self { path: path.to_owned(), input, number: shape.number, n_columns, n_read: 0, bytes }
    }
}

impl Rows for Counted {
    fn next(&mut self, row: &mut Vec<f32>) -> Result<()> {
        let mut count = [0; COUNT_BYTES];
        self.input.read_exact(&mut count).at(&self.path)?;
        if count != self.n_columns.to_le_bytes() {
            let reason = format!("row {} has other columns than the first, which has {}", self.n_read, self.n_columns);
            return Err(Error::Vectors { path: self.path.clone(), reason });
        }
        self.input.read_exact(&mut self.bytes).at(&self.path)?;
        row.clear();
        self.number.read(&self.bytes, row);
        self.n_read += 1;
        Ok(())
    }
}
