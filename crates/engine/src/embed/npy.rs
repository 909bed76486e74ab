//! Matrices as NumPy reads them: `.npy`, format 1.0, C order, little endian; `numpy.load` takes them, memory-mapped
//! too.
//!
//! Source: NEP 1. The header is padded to a fixed length, so that the number of rows can be filled in when it is known.

use std::path::Path;

use cento_collection::fs::read_bounded;

use crate::error::{AtPath, Error, Result};

/// Bytes before the values; a multiple of 64, so that they are aligned in a memory map.
pub(super) const HEADER_BYTES: usize = 128;

const MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";

/// The header of a matrix; `descr` is NumPy's name of the type, such as `<f4`.
pub(super) fn header(descr: &str, n_rows: u64, n_columns: usize) -> [u8; HEADER_BYTES] {
    let dictionary = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({n_rows}, {n_columns}), }}");
    let mut bytes = [b' '; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&((HEADER_BYTES - 10) as u16).to_le_bytes());
    bytes[10..10 + dictionary.len()].copy_from_slice(dictionary.as_bytes()); // 51 characters, a type and two numbers: it fits
    bytes[HEADER_BYTES - 1] = b'\n';
    bytes
}

/// Bytes of the largest matrix that is read whole: the ranges of ten thousand dimensions have a thousandth.
const RANGES_BYTES_MAX: u64 = 256 << 20;

/// A matrix of `<f4`, by rows, and its shape.
///
/// # Errors
/// If the file is anything else.
pub(super) fn read_f32(path: &Path) -> Result<(Vec<f32>, [usize; 2])> {
    let bytes = read_bounded(path, RANGES_BYTES_MAX).at(path)?;
    parse_f32(&bytes).map_err(|reason| Error::Array { path: path.to_owned(), reason })
}

fn parse_f32(bytes: &[u8]) -> Result<(Vec<f32>, [usize; 2]), String> {
    let cut_off = || "is cut off".to_owned();
    if bytes.get(..6) != Some(&MAGIC[..6]) {
        return Err("is not a NumPy array (.npy)".to_owned());
    }
    let (length_bytes, start) = if bytes.get(6).ok_or_else(cut_off)? == &1 { (2, 10_usize) } else { (4, 12) };
    let length = bytes.get(8..8 + length_bytes).ok_or_else(cut_off)?;
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let header = bytes.get(start..start.saturating_add(length)).ok_or_else(cut_off)?;
    let header = String::from_utf8_lossy(header);
    let value = |key: &str| header.split_once(&format!("'{key}':")).map_or("", |(_, rest)| rest.trim_start());
    let descr = value("descr");
    if !descr.starts_with("'<f4'") || !value("fortran_order").starts_with("False") {
        let descr = descr.split(',').next().unwrap_or_default();
        return Err(format!("is of type {descr}; save it as a C-ordered float32 array"));
    }
    let shape = value("shape").strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or("", |(shape, _)| shape);
    let shape: Vec<usize> = shape.split(',').filter_map(|number| number.trim().parse().ok()).collect();
    let [n_rows, n_columns] = shape[..] else { return Err(format!("has shape {shape:?}; two dimensions are wanted")) };
    let values = &bytes[start + length..];
    let n_bytes = n_rows.checked_mul(n_columns).and_then(|n_values| n_values.checked_mul(4));
    if n_bytes != Some(values.len()) {
        return Err(format!("has {} bytes of values, its shape is {n_rows} x {n_columns}", values.len()));
    }
    Ok((values.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(), [n_rows, n_columns]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(descr: &str, n_rows: u64, n_columns: usize, n_values: usize) -> Vec<u8> {
        let mut bytes = header(descr, n_rows, n_columns).to_vec();
        bytes.extend((0..n_values).flat_map(|n| (n as f32 / 3.0).to_le_bytes()));
        bytes
    }

    #[test]
    fn the_header_is_the_one_that_numpy_writes() {
        let text = |n_rows| String::from_utf8_lossy(&header("<f4", n_rows, 384)).into_owned();
        assert!(text(7).contains("{'descr': '<f4', 'fortran_order': False, 'shape': (7, 384), }   "));
        assert!(text(u64::MAX).ends_with("), }\n") || text(u64::MAX).ends_with(" \n"));
        assert_eq!(&header("|i1", 1, 1)[..10], b"\x93NUMPY\x01\x00\x76\x00");
    }

    #[test]
    fn an_array_comes_back_and_another_file_is_refused_in_words() {
        assert_eq!(parse_f32(&array("<f4", 2, 3, 6)).unwrap(), ((0..6).map(|n| n as f32 / 3.0).collect(), [2, 3]));
        for (bytes, words) in [
            (b"minimum,maximum".to_vec(), "not a NumPy array"),
            (b"\x93NUMPY\x01".to_vec(), "cut off"),
            (array("<f4", 2, 3, 6)[..60].to_vec(), "cut off"),
            (array("<f8", 2, 3, 6), "'<f8'"),
            (array("<f4", 2, 3, 5), "20 bytes of values, its shape is 2 x 3"),
            (array("<f4", u64::MAX, 3, 5), "its shape is"),
        ] {
            let reason = parse_f32(&bytes).unwrap_err();
            assert!(reason.contains(words), "{reason}");
        }
    }
}
