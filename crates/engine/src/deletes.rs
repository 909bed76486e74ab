//! Tombstones: which documents of a segment no longer answer, one file per generation and segment.

use std::io::Write;
use std::path::Path;

use cento_vector::file;
use roaring::RoaringBitmap;

use crate::error::{AtPath, Error, Result};
use crate::fs::Fs;

const KIND: [u8; 8] = *b"deletes\0";

/// Writes and syncs the set of deleted documents of a segment.
pub(crate) fn write(fs: &dyn Fs, path: &Path, deleted: &RoaringBitmap) -> Result<()> {
    let mut bytes = Vec::with_capacity(deleted.serialized_size());
    deleted.serialize_into(&mut bytes).at(path)?;
    let mut out = file::Writer::new(fs.create(path).at(path)?, KIND).at(path)?;
    out.write_all(&bytes).at(path)?;
    out.finish([deleted.len(), bytes.len() as u64]).at(path)?.sync().at(path)
}

/// Reads what [`write`] wrote.
pub(crate) fn read(path: &Path) -> Result<RoaringBitmap> {
    let mapped = file::Mapped::open(path, KIND)?;
    let bitmap = RoaringBitmap::deserialize_from(mapped.bytes(0..mapped.len())?);
    bitmap.map_err(|error| Error::Corrupt { path: path.to_owned(), reason: error.to_string() })
}
