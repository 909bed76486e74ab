//! NumPy's arrays: `.npy`.
//!
//! Source: NEP 1. The header is held against the length of the file before anything is read, so that a lying one takes
//! no memory.

use std::io::Read;

use super::rows::{Number, Shape};

/// The longest header of an array that is read; NumPy's has some hundred bytes.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// The first bytes of an array.
pub(super) const NUMPY: &[u8] = b"\x93NUMPY";

/// Reads the header of an array of `n_bytes`, up to its first value.
pub(super) fn header(input: &mut dyn Read, n_bytes: u64) -> Result<Shape, String> {
    let cut_off = |_| "is cut off in its header".to_owned();
    let mut start = [0; 8];
    input.read_exact(&mut start).map_err(cut_off)?;
    if !start.starts_with(NUMPY) {
        return Err("is not a NumPy array (.npy)".to_owned());
    }
    let length_bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => return Err(format!("is a NumPy array of version {version}; 1, 2 and 3 are read")),
    };
    let mut length = [0; 4];
    input.read_exact(&mut length[..length_bytes]).map_err(cut_off)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > HEADER_BYTES_MAX {
        return Err(format!("has a header of {length} bytes; {HEADER_BYTES_MAX} are read at most"));
    }
    let mut header = vec![0; length];
    input.read_exact(&mut header).map_err(cut_off)?;
    let header = String::from_utf8_lossy(&header).into_owned();
    let value = |key: &str| header.split_once(&format!("'{key}':")).map_or("", |(_, rest)| rest.trim_start());
    let descr = value("descr").split(',').next().unwrap_or_default();
    let number = match descr {
        "'|u1'" => Number::U8,
        "'<f2'" => Number::F16,
        "'<f4'" => Number::F32,
        "'<f8'" => Number::F64,
        _ => return Err(format!("is of type {descr}; save it as float32, float16, float64 or uint8, little-endian")),
    };
    if !value("fortran_order").starts_with("False") {
        return Err("is in Fortran order, column by column; save np.ascontiguousarray of it".to_owned());
    }
    let shape = value("shape").strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or("", |(shape, _)| shape);
    let parts = shape.split(',').map(str::trim).filter(|part| !part.is_empty());
    let shape: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
    let (n_rows, n_columns) = match shape.as_deref() {
        Some(&[n_rows, n_columns]) => (n_rows, n_columns),
        shape => {
            let shape = shape.unwrap_or(&[]);
            return Err(format!("has shape {shape:?}; two dimensions are wanted, a row for each vector"));
        }
    };
    let header_bytes = (8 + length_bytes + length) as u64;
    let row_bytes = n_columns.checked_mul(number.n_bytes() as u64);
    let values = row_bytes.and_then(|row_bytes| row_bytes.checked_mul(n_rows));
    if values.and_then(|values| values.checked_add(header_bytes)) != Some(n_bytes) {
        let has = n_bytes.saturating_sub(header_bytes);
        return Err(format!("has {has} bytes of values, its shape is {n_rows} x {n_columns}"));
    }
    Ok(Shape { number, n_rows, n_columns })
}
