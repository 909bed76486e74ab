//! The types a vector can be written in: floats of 32 or 16 bits, integers of 8 bits, single bits.
//!
//! Source: `quantize_embeddings` of sentence-transformers 6. With ranges [min, max] of a dimension, in f32: `q =
//! clip(floor((x - min) / ((max - min) / 255)), 0, 255)`; `uint8` is q, `int8` q - 128. A dimension that never varies
//! has step 1. `ubinary` packs `x > 0` eight to a byte, the first in the highest bit; `binary` is the same minus 128.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use half::f16;
use serde::{Deserialize, Serialize};

use super::{input, npy};
use crate::error::{Error, Result};

/// In what type vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputType {
    /// Four bytes a dimension, exact.
    #[default]
    F32,
    /// Two bytes a dimension, rounded to even.
    F16,
    /// One byte a dimension, -128 to 127, by ranges.
    Int8,
    /// One byte a dimension, 0 to 255, by ranges.
    Uint8,
    /// One bit a dimension, as signed bytes.
    Binary,
    /// One bit a dimension, as unsigned bytes.
    Ubinary,
}

impl OutputType {
    const NAMES: [(&str, Self); 6] = [
        ("f32", Self::F32),
        ("f16", Self::F16),
        ("int8", Self::Int8),
        ("uint8", Self::Uint8),
        ("binary", Self::Binary),
        ("ubinary", Self::Ubinary),
    ];

    /// NumPy's name of the type.
    pub(super) fn descr(self) -> &'static str {
        match self {
            Self::F32 => "<f4",
            Self::F16 => "<f2",
            Self::Int8 | Self::Binary => "|i1",
            Self::Uint8 | Self::Ubinary => "|u1",
        }
    }

    /// Columns of the matrix.
    pub(super) fn n_columns(self, dimensions: usize) -> usize {
        match self {
            Self::Binary | Self::Ubinary => dimensions.div_ceil(8),
            _ => dimensions,
        }
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(self, dimensions: usize) -> usize {
        let value_bytes = match self {
            Self::F32 => 4,
            Self::F16 => 2,
            _ => 1,
        };
        value_bytes * self.n_columns(dimensions)
    }

    /// True if values are placed between the least and the greatest of their dimension.
    pub fn has_ranges(self) -> bool {
        matches!(self, Self::Int8 | Self::Uint8)
    }

    /// Adds a vector to `row`; `ranges` are wanted by the types that have them.
    pub(super) fn encode(self, vector: &[f32], ranges: Option<&Ranges>, row: &mut Vec<u8>) {
        let signed = if matches!(self, Self::Int8 | Self::Binary) { 128u8 } else { 0 };
        match (self, ranges) {
            (Self::F32, _) => row.extend(vector.iter().flat_map(|x| x.to_le_bytes())),
            (Self::F16, _) => row.extend(vector.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes())),
            (Self::Binary | Self::Ubinary, _) => row.extend(vector.chunks(8).map(|eight| {
                let bits = eight.iter().enumerate().map(|(n, x)| u8::from(*x > 0.0) << (7 - n));
                bits.sum::<u8>().wrapping_sub(signed)
            })),
            (Self::Int8 | Self::Uint8, Some(ranges)) => {
                let levels = vector.iter().zip(&ranges.min).zip(&ranges.step);
                row.extend(levels.map(|((x, min), step)| {
                    let level = ((x - min) / step).floor().clamp(0.0, 255.0) as u8;
                    level.wrapping_sub(signed)
                }));
            }
            (Self::Int8 | Self::Uint8, None) => panic!("{self} has no ranges"),
        }
    }
}

impl fmt::Display for OutputType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::NAMES.iter().find(|(_, named)| named == self).expect("every type has a name");
        f.write_str(name)
    }
}

impl FromStr for OutputType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, named)| *named).ok_or_else(|| Error::Setting {
            setting: "output-type",
            value: name.to_owned(),
            reason: "is none of f32, f16, int8, uint8, binary, ubinary".to_owned(),
        })
    }
}

/// The least and the greatest value of each dimension.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ranges {
    min: Vec<f32>,
    max: Vec<f32>,
    step: Vec<f32>,
}

impl Ranges {
    /// Ranges around nothing.
    pub(super) fn empty(dimensions: usize) -> Self {
        Self { min: vec![f32::INFINITY; dimensions], max: vec![f32::NEG_INFINITY; dimensions], step: Vec::new() }
    }

    /// Widens the ranges to hold a vector.
    pub(super) fn extend(&mut self, vector: &[f32]) {
        for ((x, min), max) in vector.iter().zip(&mut self.min).zip(&mut self.max) {
            *min = min.min(*x);
            *max = max.max(*x);
        }
    }

    /// Ready to encode with.
    pub(super) fn finish(self) -> Self {
        let step = |(min, max): (&f32, &f32)| match (max - min) / 255.0 {
            0.0 => 1.0,
            step => step,
        };
        let step = self.min.iter().zip(&self.max).map(step).collect();
        Self { step, ..self }
    }

    /// From a matrix of two rows; a reason if it cannot be one.
    pub(super) fn from_rows(
        values: &[f32],
        [n_rows, n_columns]: [usize; 2],
        dimensions: usize,
    ) -> Result<Self, String> {
        if (n_rows, n_columns) != (2, dimensions) {
            return Err(format!("has shape {n_rows} x {n_columns}; the ranges of this model are 2 x {dimensions}"));
        }
        let (min, max) = values.split_at(n_columns);
        let is_range = |(min, max): (&f32, &f32)| min.is_finite() && max.is_finite() && min <= max;
        match min.iter().zip(max).position(|range| !is_range(range)) {
            Some(column) => Err(format!("dimension {column} has the range {} to {}", min[column], max[column])),
            None => Ok(Self { min: min.to_vec(), max: max.to_vec(), step: Vec::new() }.finish()),
        }
    }

    /// Both rows, least values first.
    pub(super) fn rows(&self) -> impl Iterator<Item = &f32> {
        self.min.iter().chain(&self.max)
    }
}

/// Ranges out of a file.
pub(super) struct GivenRanges {
    pub(super) ranges: Ranges,
    /// Hexadecimal BLAKE3 of the file.
    pub(super) blake3: String,
}

impl GivenRanges {
    pub(super) fn read(path: &Path, dimensions: usize) -> Result<Self> {
        let (values, shape) = npy::read_f32(path)?;
        let ranges = Ranges::from_rows(&values, shape, dimensions)
            .map_err(|reason| Error::Array { path: path.to_owned(), reason })?;
        Ok(Self { ranges, blake3: input::hash(path)?.blake3 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What sentence-transformers 6.2 makes of these vectors (`quantize_embeddings`, NumPy 2); the third dimension
    /// never varies.
    const VECTORS: [[f32; 9]; 4] = [
        [0.1, -0.2, 0.25, 0.0, 0.7, -0.6, 0.01, 0.3, -0.1],
        [-0.3, 0.4, 0.25, 0.5, -0.1, 0.2, -0.02, 0.6, 0.2],
        [0.5, 0.1, 0.25, -0.4, 0.3, 0.05, 0.0, -0.5, 0.3],
        [0.05, -0.25, 0.25, 0.15, -0.35, 0.45, 0.65, -0.15, 1e-8],
    ];
    const INT8: [[i8; 9]; 4] = [
        [-1, -109, -128, -15, 127, -128, -117, 57, -128],
        [-128, 127, -128, 127, -68, 66, -128, 127, 63],
        [127, 9, -128, -128, 29, 29, -121, -128, 127],
        [-17, -128, -128, 27, -128, 127, 127, -47, -65],
    ];
    const UBINARY: [[u8; 2]; 4] = [[171, 0], [117, 128], [236, 128], [182, 128]];

    fn encoded(output: OutputType, ranges: Option<&Ranges>) -> Vec<u8> {
        let mut bytes = Vec::new();
        VECTORS.iter().for_each(|vector| output.encode(vector, ranges, &mut bytes));
        bytes
    }

    fn ranges() -> Ranges {
        let mut ranges = Ranges::empty(9);
        VECTORS.iter().for_each(|vector| ranges.extend(vector));
        ranges.finish()
    }

    #[test]
    fn integers_and_bits_are_those_of_sentence_transformers() {
        let ranges = ranges();
        let int8: Vec<u8> = INT8.iter().flatten().map(|value| *value as u8).collect();
        assert_eq!(encoded(OutputType::Int8, Some(&ranges)), int8);
        let uint8: Vec<u8> = int8.iter().map(|value| value.wrapping_add(128)).collect();
        assert_eq!(encoded(OutputType::Uint8, Some(&ranges)), uint8);
        assert_eq!(encoded(OutputType::Ubinary, None), UBINARY.concat());
        let binary: Vec<u8> = UBINARY.iter().flatten().map(|value| value.wrapping_sub(128)).collect();
        assert_eq!(encoded(OutputType::Binary, None), binary);
    }

    #[test]
    fn what_lies_outside_the_ranges_is_clipped() {
        let narrow = Ranges::from_rows(&[[-0.01; 9], [0.01; 9]].concat(), [2, 9], 9).unwrap();
        let levels = encoded(OutputType::Uint8, Some(&narrow));
        assert_eq!((levels[0], levels[1], levels[3]), (255, 0, 127));
    }

    #[test]
    fn halves_are_rounded_to_even() {
        let mut bytes = Vec::new();
        OutputType::F16.encode(&[1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, -0.1], None, &mut bytes);
        assert_eq!(bytes, [0x00, 0x3c, 0x02, 0x3c, 0x66, 0xae]);
    }

    #[test]
    fn every_type_has_its_name_and_its_row() {
        for (name, output) in OutputType::NAMES {
            assert_eq!((name.parse::<OutputType>().unwrap(), output.to_string().as_str()), (output, name));
            let mut row = Vec::new();
            output.encode(&VECTORS[0], Some(&ranges()), &mut row);
            assert_eq!(row.len(), output.row_bytes(9), "{name}");
        }
        assert!("float32".parse::<OutputType>().unwrap_err().to_string().contains("ubinary"));
    }

    #[test]
    fn ranges_that_cannot_be_are_refused() {
        let refused = |rows: &[f32], shape, words: &str| {
            let reason = Ranges::from_rows(rows, shape, 2).unwrap_err();
            assert!(reason.contains(words), "{reason}");
        };
        refused(&[0.0; 6], [2, 3], "2 x 3; the ranges of this model are 2 x 2");
        refused(&[0.0, 1.0, 1.0, 0.5], [2, 2], "dimension 1 has the range 1 to 0.5");
        refused(&[0.0, f32::NAN, 1.0, 2.0], [2, 2], "dimension 1");
    }
}
