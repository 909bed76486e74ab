//! Matrices of vectors in files: NumPy's `.npy`, and the `.fvecs` and `.bvecs` of the benchmarks of nearest neighbours.
//!
//! Source: NEP 1; corpus-texmex.irisa.fr. A header is held against the length of the file before anything is read, so
//! that a lying one takes no memory. Rows are read one at a time.
//! Shapes: N rows, D columns.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use cento_vector::DIMENSIONS_MAX;
use half::f16;

use crate::error::{AtPath, Error, Result};

/// The longest header of an array that is read; NumPy's has some hundred bytes.
const HEADER_BYTES_MAX: usize = 64 << 10;

const NUMPY: &[u8] = b"\x93NUMPY";

/// The numbers of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    U8,
    F16,
    F32,
    F64,
}

impl Number {
    fn n_bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    fn read(self, bytes: &[u8], values: &mut Vec<f32>) {
        match self {
            Self::U8 => values.extend(bytes.iter().map(|&byte| f32::from(byte))),
            Self::F16 => values.extend(bytes.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32())),
            Self::F32 => values.extend(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
            Self::F64 => values.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as f32)),
        }
    }
}

/// A file of vectors, read row by row.
pub(crate) struct Matrix {
    path: PathBuf,
    input: Box<dyn Read>,
    pub(crate) number: Number,
    /// Each row begins with the number of its columns.
    counted: bool,
    pub(crate) n_rows: u64,
    pub(crate) n_columns: usize,
    n_read: u64,
    bytes: Vec<u8>,
}

/// Four bytes that say how many columns a row of `.fvecs` or `.bvecs` has.
const COUNT_BYTES: usize = 4;

impl Matrix {
    /// Opens a file by its extension; reads its header alone.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Vectors`] if it is no matrix of numbers, or has another length than its header says.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).at(path)?;
        let n_bytes = file.metadata().at(path)?.len();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        Self::of(path, extension, Box::new(BufReader::with_capacity(1 << 20, file)), n_bytes)
    }

    fn of(path: &Path, extension: &str, mut input: Box<dyn Read>, n_bytes: u64) -> Result<Self> {
        let refuse = |reason: String| Error::Vectors { path: path.to_owned(), reason };
        let (number, counted, n_rows, n_columns) = match extension.to_ascii_lowercase().as_str() {
            "npy" => {
                let header = NumpyHeader::read(&mut input).map_err(refuse)?;
                let (n_rows, n_columns) = (header.n_rows, header.n_columns);
                let row_bytes = n_columns.checked_mul(header.number.n_bytes() as u64);
                let values = row_bytes.and_then(|row_bytes| row_bytes.checked_mul(n_rows));
                if values.and_then(|values| values.checked_add(header.n_bytes)) != Some(n_bytes) {
                    let has = n_bytes.saturating_sub(header.n_bytes);
                    return Err(refuse(format!("has {has} bytes of values, its shape is {n_rows} x {n_columns}")));
                }
                (header.number, false, n_rows, n_columns)
            }
            kind @ ("fvecs" | "bvecs") => {
                let number = if kind == "fvecs" { Number::F32 } else { Number::U8 };
                let mut count = [0; COUNT_BYTES];
                input.read_exact(&mut count).map_err(|_| refuse("is cut off: it has no row".to_owned()))?;
                let n_columns = u64::from(u32::from_le_bytes(count));
                let row_bytes = COUNT_BYTES as u64 + n_columns * number.n_bytes() as u64;
                if !n_bytes.is_multiple_of(row_bytes) {
                    let reason =
                        format!("has {n_bytes} bytes, which are no rows of {n_columns} columns: it is cut off");
                    return Err(refuse(reason));
                }
                input = Box::new(Cursor::new(count).chain(input));
                (number, true, n_bytes / row_bytes, n_columns)
            }
            _ => return Err(refuse(other_format(extension))),
        };
        if !(1..=DIMENSIONS_MAX as u64).contains(&n_columns) {
            return Err(refuse(format!("has {n_columns} columns; a vector has 1 to {DIMENSIONS_MAX}")));
        }
        let n_columns = n_columns as usize;
        let row_bytes = n_columns * number.n_bytes() + if counted { COUNT_BYTES } else { 0 };
        let bytes = vec![0; row_bytes];
        Ok(Self { path: path.to_owned(), input, number, counted, n_rows, n_columns, n_read: 0, bytes })
    }

    /// Reads the next row; false behind the last.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Vectors`] for a row of other columns.
    pub(crate) fn next(&mut self, row: &mut Vec<f32>) -> Result<bool> {
        if self.n_read == self.n_rows {
            return Ok(false);
        }
        self.input.read_exact(&mut self.bytes).at(&self.path)?;
        row.clear();
        let values = if self.counted {
            let (count, values) = self.bytes.split_at(COUNT_BYTES);
            if count != (self.n_columns as u32).to_le_bytes() {
                let reason =
                    format!("row {} has other columns than the first, which has {}", self.n_read, self.n_columns);
                return Err(Error::Vectors { path: self.path.clone(), reason });
            }
            values
        } else {
            &self.bytes[..]
        };
        self.number.read(values, row);
        self.n_read += 1;
        Ok(true)
    }
}

/// Says how a file of another format becomes one that is read.
fn other_format(extension: &str) -> String {
    let way = match extension.to_ascii_lowercase().as_str() {
        "parquet" => "; pandas makes an array of it: np.save(\"vectors.npy\", np.stack(frame[\"vector\"]))",
        "hdf5" | "h5" => "; h5py makes an array of it: np.save(\"vectors.npy\", h5py.File(NAME)[\"train\"])",
        _ => "",
    };
    format!("is no file of vectors that is read: .npy, .fvecs or .bvecs{way}")
}

/// The header of a NumPy array.
struct NumpyHeader {
    number: Number,
    n_rows: u64,
    n_columns: u64,
    /// Bytes before the values.
    n_bytes: u64,
}

impl NumpyHeader {
    fn read(input: &mut dyn Read) -> Result<Self, String> {
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
            "'<f2'" => Number::F16,
            "'<f4'" => Number::F32,
            "'<f8'" => Number::F64,
            _ => return Err(format!("is of type {descr}; save it as float32, float16 or float64, little-endian")),
        };
        if !value("fortran_order").starts_with("False") {
            return Err("is in Fortran order, column by column; save np.ascontiguousarray of it".to_owned());
        }
        let shape =
            value("shape").strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or("", |(shape, _)| shape);
        let parts = shape.split(',').map(str::trim).filter(|part| !part.is_empty());
        let shape: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
        match shape.as_deref() {
            Some(&[n_rows, n_columns]) => {
                Ok(Self { number, n_rows, n_columns, n_bytes: (8 + length_bytes + length) as u64 })
            }
            shape => {
                Err(format!("has shape {:?}; two dimensions are wanted, a row for each vector", shape.unwrap_or(&[])))
            }
        }
    }
}

/// Reads vectors to search for: a NumPy array or `.fvecs` file, a JSON list of numbers or of such lists, or bare 32-bit
/// floats, little-endian, whose rows have `dimensions` each.
///
/// # Errors
/// [`Error::Vectors`] if they are none of those.
pub fn read_vectors(path: &Path, bytes: Vec<u8>, dimensions: usize) -> Result<Vec<Vec<f32>>> {
    let refuse = |reason: String| Error::Vectors { path: path.to_owned(), reason };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let extension = if bytes.starts_with(NUMPY) { "npy" } else { extension };
    if matches!(extension, "npy" | "fvecs" | "bvecs") {
        let n_bytes = bytes.len() as u64;
        let mut matrix = Matrix::of(path, extension, Box::new(Cursor::new(bytes)), n_bytes)?;
        let (mut rows, mut row) = (Vec::new(), Vec::new());
        while matrix.next(&mut row)? {
            rows.push(row.clone());
        }
        return Ok(rows);
    }
    if bytes.trim_ascii_start().starts_with(b"[") {
        let rows: Result<Rows, _> = serde_json::from_slice(&bytes);
        return match rows {
            Ok(Rows::Many(rows)) => Ok(rows),
            Ok(Rows::One(row)) => Ok(vec![row]),
            Err(_) => Err(refuse("is no list of numbers, or of lists of numbers".to_owned())),
        };
    }
    bare_vectors(&bytes, dimensions).ok_or_else(|| {
        let n_bytes = bytes.len();
        refuse(format!("has {n_bytes} bytes, which are no vectors of {dimensions} 32-bit floats"))
    })
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
enum Rows {
    One(Vec<f32>),
    Many(Vec<Vec<f32>>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(descr: &str, order: &str, shape: &str, n_bytes: usize) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = [NUMPY, b"\x01\x00", &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
        bytes.resize(bytes.len() + n_bytes, 0);
        bytes
    }

    fn rows(extension: &str, bytes: Vec<u8>) -> Result<Vec<Vec<f32>>> {
        read_vectors(Path::new(&format!("v.{extension}")), bytes, 2)
    }

    #[test]
    fn every_format_gives_its_rows() {
        let two = vec![vec![0.5, -1.0], vec![3.0, 4.0]];
        let mut numpy = array("<f4", "False", "(2, 2)", 0);
        numpy.extend(two.iter().flatten().flat_map(|value: &f32| value.to_le_bytes()));
        assert_eq!(rows("npy", numpy.clone()).unwrap(), two);
        assert_eq!(rows("any", numpy).unwrap(), two, "an array is known by its first bytes");
        let mut halves = array("<f2", "False", "(2, 2)", 0);
        halves.extend(two.iter().flatten().flat_map(|value| f16::from_f32(*value).to_le_bytes()));
        assert_eq!(rows("npy", halves).unwrap(), two);
        let mut doubles = array("<f8", "False", "(2, 2)", 0);
        doubles.extend(two.iter().flatten().flat_map(|value| f64::from(*value).to_le_bytes()));
        assert_eq!(rows("npy", doubles).unwrap(), two);
        let row =
            |values: &[f32]| [2_u32.to_le_bytes().to_vec(), values.iter().flat_map(|v| v.to_le_bytes()).collect()];
        let fvecs: Vec<u8> = two.iter().flat_map(|values| row(values).concat()).collect();
        assert_eq!(rows("fvecs", fvecs).unwrap(), two);
        assert_eq!(rows("bvecs", vec![2, 0, 0, 0, 7, 255]).unwrap(), [[7.0, 255.0]]);
        assert_eq!(rows("json", b" [[0.5, -1], [3, 4]]".to_vec()).unwrap(), two);
        assert_eq!(rows("json", b"[0.5, -1]".to_vec()).unwrap(), two[..1]);
        assert_eq!(rows("f32", two.iter().flatten().flat_map(|value| value.to_le_bytes()).collect()).unwrap(), two);
    }

    #[test]
    fn what_is_no_matrix_is_refused_in_words_and_takes_no_memory() {
        let huge = format!("({}, 2)", u64::MAX);
        for (extension, bytes, words) in [
            ("npy", b"minimum,maximum".to_vec(), "not a NumPy array"),
            ("npy", NUMPY.to_vec(), "cut off"),
            ("npy", array("<f4", "False", "(2, 2)", 0)[..40].to_vec(), "cut off"),
            ("npy", array(">f4", "False", "(2, 2)", 16), "'>f4'"),
            ("npy", array("<i8", "False", "(2, 2)", 32), "'<i8'"),
            ("npy", array("<f4", "True", "(2, 2)", 16), "Fortran"),
            ("npy", array("<f4", "False", "(2,)", 8), "two dimensions"),
            ("npy", array("<f4", "False", "(2, -2)", 16), "two dimensions"),
            ("npy", array("<f4", "False", "(2, 2)", 15), "15 bytes of values"),
            ("npy", array("<f4", "False", &huge, 16), "16 bytes of values"),
            ("npy", array("<f4", "False", "(2, 0)", 0), "0 columns"),
            ("npy", array("<f4", "False", "(0, 99999999)", 0), "99999999 columns"),
            ("fvecs", vec![2, 0, 0], "no row"),
            ("fvecs", vec![255, 255, 255, 255, 0], "cut off"),
            ("bvecs", vec![2, 0, 0, 0, 7, 9, 1, 0, 0, 0, 7, 9], "row 1"),
            ("json", b"[[1, \"x\"]]".to_vec(), "no list of numbers"),
            ("f32", vec![0; 9], "no vectors of 2"),
            ("f32", Vec::new(), "no vectors of 2"),
        ] {
            let reason = rows(extension, bytes).unwrap_err().to_string();
            assert!(reason.contains(words), "{reason}");
        }
        for (name, words) in [("v.parquet", "np.stack"), ("v.hdf5", "h5py"), ("v.txt", ".fvecs")] {
            let path = Path::new(name);
            let reason = Matrix::of(path, &name[2..], Box::new(std::io::empty()), 0).err().unwrap().to_string();
            assert!(reason.contains(words), "{reason}");
        }
    }
}
