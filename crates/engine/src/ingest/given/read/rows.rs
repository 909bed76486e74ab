//! Rows of a matrix, as every format gives them.

use half::f16;
use serde_json::{Map, Value};

use crate::error::Result;

/// The numbers of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    U8,
    F16,
    F32,
    F64,
}

impl Number {
    pub(super) fn n_bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    pub(super) fn read(self, bytes: &[u8], values: &mut Vec<f32>) {
        match self {
            Self::U8 => values.extend(bytes.iter().map(|&byte| f32::from(byte))),
            Self::F16 => values.extend(bytes.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32())),
            Self::F32 => values.extend(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
            Self::F64 => values.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as f32)),
        }
    }
}

/// The size of a matrix, and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) number: Number,
    pub(super) n_rows: u64,
    pub(super) n_columns: u64,
}

/// A matrix as its file describes it.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) shape: Shape,
    /// True if every row has an id.
    pub(super) has_ids: bool,
    /// True if every row has a text or a title.
    pub(super) has_texts: bool,
    /// The order that the vectors were made for, by a name of the file's.
    pub(super) distance: Option<String>,
    /// Remarks on what is kept of the file.
    pub(super) notes: Vec<String>,
}

impl Header {
    /// Of a file that holds nothing but numbers.
    pub(super) fn bare(shape: Shape) -> Self {
        Self { shape, has_ids: false, has_texts: false, distance: None, notes: Vec::new() }
    }
}

/// The contents of a row beside its vector.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) metadata: Map<String, Value>,
}

/// The rows of a matrix, in order.
pub(super) trait Rows {
    /// Reads the next row, which is there, in place of what `row` has.
    fn next(&mut self, row: &mut Vec<f32>) -> Result<()>;

    /// The contents of the row that was read last, beside its vector.
    fn record(&mut self) -> Result<Record> {
        Ok(Record::default())
    }
}

/// The part of a file that is read where it has several and none was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Vectors to be searched.
    Rows,
    /// Vectors to search for.
    Queries,
}
