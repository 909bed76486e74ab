//! Vectors to search for, in any form in which they may come.

use std::fs::File;
use std::path::Path;

use super::matrix::{Input, Matrix, extension};
use super::numpy::NUMPY;
use super::rows::Part;
use crate::error::{AtPath, Error, Result};

/// The first bytes of Parquet and of HDF5.
const PARQUET: &[u8] = b"PAR1";
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Reads vectors to search for from what a file holds: a NumPy array, `.fvecs` or `.bvecs`, a JSON list of numbers or
/// of such lists, or bare 32-bit floats, little-endian, whose rows have `dimensions` each.
///
/// # Errors
/// [`Error::Vectors`] if they are none of those.
pub fn read_vectors(path: &Path, bytes: Vec<u8>, dimensions: usize) -> Result<Vec<Vec<f32>>> {
    let refuse = |reason: String| Error::Vectors { path: path.to_owned(), reason };
    let kind = if bytes.starts_with(NUMPY) { "npy" } else { extension(path) };
    if matches!(kind, "npy" | "fvecs" | "bvecs") {
        return rows(Matrix::of(path, kind, Input::Bytes(bytes), None, Part::Queries)?);
    }
    if [PARQUET, HDF5].iter().any(|magic| bytes.starts_with(magic)) {
        return Err(refuse("is read from a file of its own name alone, .parquet or .hdf5".to_owned()));
    }
    if bytes.trim_ascii_start().starts_with(b"[") {
        let rows: Result<Lists, _> = serde_json::from_slice(&bytes);
        return match rows {
            Ok(Lists::Many(rows)) => Ok(rows),
            Ok(Lists::One(row)) => Ok(vec![row]),
            Err(_) => Err(refuse("is no list of numbers, or of lists of numbers".to_owned())),
        };
    }
    bare_vectors(&bytes, dimensions).ok_or_else(|| {
        let n_bytes = bytes.len();
        refuse(format!("has {n_bytes} bytes, which are no vectors of {dimensions} 32-bit floats"))
    })
}

/// Reads vectors to search for from a file of which only they are read: Parquet, or HDF5, where they are the dataset
/// `test`. None for a file of another name, which [`read_vectors`] reads whole.
///
/// # Errors
/// [`Error::Vectors`] if it is no such file, or its vectors would take more than `bytes_max`; [`Error::Io`].
pub fn open_vectors(path: &Path, bytes_max: u64) -> Result<Option<Vec<Vec<f32>>>> {
    let kind = extension(path).to_ascii_lowercase();
    if !matches!(kind.as_str(), "parquet" | "hdf5" | "h5") {
        return Ok(None);
    }
    let matrix = Matrix::of(path, &kind, Input::File(File::open(path).at(path)?), None, Part::Queries)?;
    let n_bytes = matrix.n_rows().saturating_mul((matrix.n_columns * size_of::<f32>()) as u64);
    if n_bytes > bytes_max {
        let reason = format!("has {n_bytes} bytes of vectors; {bytes_max} are searched for at most");
        return Err(Error::Vectors { path: path.to_owned(), reason });
    }
    rows(matrix).map(Some)
}

fn rows(mut matrix: Matrix) -> Result<Vec<Vec<f32>>> {
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    while matrix.next(&mut row)? {
        rows.push(row.clone());
    }
    Ok(rows)
}

/// The rows of bare 32-bit floats, little-endian; none if the bytes are no whole rows.
pub fn bare_vectors(bytes: &[u8], dimensions: usize) -> Option<Vec<Vec<f32>>> {
    let row_bytes = dimensions.max(1) * size_of::<f32>();
    let row = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    (!bytes.is_empty() && bytes.len().is_multiple_of(row_bytes))
        .then(|| bytes.chunks_exact(row_bytes).map(row).collect())
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Lists {
    One(Vec<f32>),
    Many(Vec<Vec<f32>>),
}
