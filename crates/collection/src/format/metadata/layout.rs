//! The records of `metadata.columns`, and the types that its values have.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::table::Text;

pub(crate) const KIND: [u8; 8] = *b"metadata";

/// The type of a value of metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// True or false.
    Boolean,
    /// A whole number.
    Integer,
    /// Any other number.
    Float,
    /// A date, alone or with a time.
    Date,
    /// Any other text.
    String,
}

impl FieldType {
    /// Every type, in the order of columns.
    pub const ALL: [Self; 5] = [Self::Boolean, Self::Integer, Self::Float, Self::Date, Self::String];
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Date => "date",
            Self::String => "string",
        })
    }
}

/// Where a column lies.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ColumnRecord {
    pub(crate) name: Text,
    pub(crate) kind: u32,
    pub(crate) reserved: u32,
    pub(crate) first_value: u64,
    pub(crate) n_values: u64,
    pub(crate) first_document: u64,
    pub(crate) n_documents: u64,
}

/// A value: bits of a number, or offset and length of a string; its first document counts from the column's first.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ValueRecord {
    pub(crate) bits: u64,
    pub(crate) n_bytes: u32,
    pub(crate) first_document: u32,
}
