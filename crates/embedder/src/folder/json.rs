//! JSON files of a folder: which are there, which must be.

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::tokens::bounded::read_bounded;

/// The contents of a file that must be there, for that purpose.
pub(super) fn read<T: DeserializeOwned>(path: &Path, purpose: &'static str) -> Result<T> {
    read_optional(path)?.ok_or_else(|| Error::Missing { path: path.to_owned(), purpose })
}

pub(super) fn read_optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let bytes = match read_bounded(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Io { path: path.to_owned(), source }),
    };
    let damaged = |error: serde_json::Error| Error::Damaged { path: path.to_owned(), reason: error.to_string() };
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}
