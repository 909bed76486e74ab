//! The bytes of a file as text.

use std::path::Path;

use super::encoding::{Bytes, is_utf16, of_utf16, read_whole};
use super::options::ReadOptions;
use crate::document::TextKind;
use crate::error::{Error, Result};

/// A whole file as text.
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) kind: TextKind,
    pub(super) warnings: Vec<String>,
}

impl Decoded {
    pub(super) fn read(file: Bytes, path: &Path, options: &ReadOptions) -> Result<Self> {
        Self::new(read_whole(file, path, options.max_file_bytes)?, path, options)
    }

    pub(super) fn new(bytes: Vec<u8>, path: &Path, options: &ReadOptions) -> Result<Self> {
        if is_utf16(&bytes) {
            let (text, warnings) = of_utf16(&bytes, path, options.not_utf8())?;
            return Ok(Self { text, kind: TextKind::Extracted, warnings });
        }
        match String::from_utf8(bytes) {
            Ok(text) => {
                let warnings = if text.is_empty() { vec!["the file is empty".into()] } else { Vec::new() };
                Ok(Self { text, kind: TextKind::Source, warnings })
            }
            Err(error) if options.lossy => {
                let (text, warning) = decode_lossily(error.as_bytes());
                Ok(Self { text, kind: TextKind::Extracted, warnings: vec![warning] })
            }
            Err(error) => {
                Err(Error::InvalidUtf8 { path: path.into(), offset: error.utf8_error().valid_up_to() as u64 })
            }
        }
    }
}

/// `bytes` with U+FFFD for what is not UTF-8, and the warning that says so.
pub(super) fn decode_lossily(bytes: &[u8]) -> (String, String) {
    let n_invalid = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    let first = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let text = String::from_utf8_lossy(bytes).into_owned();
    (text, format!("invalid UTF-8 in {n_invalid} places, the first at byte {first}, replaced by U+FFFD"))
}

/// The name of the file at `origin` without its extension: the title of last resort.
pub(super) fn file_stem(origin: &str) -> String {
    let name = origin.rsplit('/').next().unwrap_or(origin);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.into(),
        _ => name.into(),
    }
}
