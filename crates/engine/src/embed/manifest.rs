//! The manifest of a matrix, and the plan of its rows that two runs must share.

use std::path::Path;

use cento_collection::fs::read_bounded;
use serde::{Deserialize, Serialize};

use super::quantize::OutputType;

/// A longer manifest or plan is none.
pub(super) const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// Contents of `OUT.json`: what the matrix is and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the manifest.
    pub version: u32,
    /// Version of Cento.
    pub cento: String,
    /// Card or folder of the encoder.
    pub model: String,
    /// Of the encoder; vectors of different fingerprints are not comparable.
    pub model_fingerprint: String,
    /// `document` or `query`.
    pub kind: String,
    /// The prefix of each text.
    pub prompt: String,
    /// Length of a vector.
    pub dimensions: usize,
    /// Tokens read of a text.
    pub max_tokens: usize,
    /// `truncate` or `error`.
    pub too_long: String,
    /// Number type of the encoder.
    pub precision: String,
    /// Where it ran.
    pub device: String,
    /// Vectors have length one, before they are written in another type.
    pub normalized: bool,
    /// File name of the matrix.
    pub array: String,
    /// File name of the lines that name its rows.
    pub ids: String,
    /// Type of the matrix.
    pub output_type: OutputType,
    /// Its rows.
    pub n_rows: u64,
    /// Its columns; bits are packed eight to a column.
    pub n_columns: usize,
    /// File name of the ranges of `int8` and `uint8`.
    pub ranges: Option<String>,
    /// Hash of the ranges, where they were given.
    pub(super) ranges_given: Option<String>,
    /// Tokens the encoder saw.
    pub n_tokens: u64,
    /// Texts whose end was left out.
    pub n_truncated: u64,
    /// Lines that held no text to embed.
    pub n_failed: u64,
    /// The input.
    pub input: ManifestInput,
}

/// The input of a matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestInput {
    /// As it was given.
    pub path: String,
    /// Its size.
    pub n_bytes: u64,
    /// Hexadecimal BLAKE3 of its bytes.
    pub blake3: String,
    /// The part of a file that it is, `i/n`; size and hash are the part's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

impl Manifest {
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&read_bounded(path, MANIFEST_BYTES_MAX).ok()?).ok()
    }

    /// The plan of its rows.
    pub(super) fn plan(&self) -> Plan {
        Plan {
            model_fingerprint: self.model_fingerprint.clone(),
            prompt: self.prompt.clone(),
            kind: self.kind.clone(),
            dimensions: self.dimensions,
            max_tokens: self.max_tokens,
            too_long: self.too_long.clone(),
            output_type: self.output_type,
            ranges: self.ranges_given.clone(),
            precision: self.precision.clone(),
            device: self.device.clone(),
            part: self.input.part.clone(),
        }
    }
}

/// Settings of every row of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) model_fingerprint: String,
    /// The prefix of each text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) prompt: String,
    pub(super) kind: String,
    pub(super) dimensions: usize,
    pub(super) max_tokens: usize,
    pub(super) too_long: String,
    pub(super) output_type: OutputType,
    /// Hexadecimal BLAKE3 of the ranges given.
    pub(super) ranges: Option<String>,
    pub(super) precision: String,
    pub(super) device: String,
    /// The part of the file that is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<String>,
}
