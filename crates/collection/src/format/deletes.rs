//! Tombstones: which documents of a segment no longer answer, one file per generation and segment.

use std::io::Write;
use std::path::Path;

use cento_vector::file;
use roaring::RoaringBitmap;

use crate::error::{AtPath, Error, Result};
use crate::format::layout::DELETES;
use crate::format::manifest::SegmentEntry;
use crate::fs::{Folder, Fs};

const KIND: [u8; 8] = *b"deletes\0";

/// Writes and syncs the set of deleted documents of a segment.
pub fn write(fs: &dyn Fs, path: &Path, deleted: &RoaringBitmap) -> Result<()> {
    let mut bytes = Vec::with_capacity(deleted.serialized_size());
    deleted.serialize_into(&mut bytes).at(path)?;
    let mut out = file::Writer::new(fs.create(path).at(path)?, KIND).at(path)?;
    out.write_all(&bytes).at(path)?;
    out.finish([deleted.len(), bytes.len() as u64]).at(path)?.sync().at(path)
}

/// The deleted documents of a segment, as its entry in a manifest names them.
pub fn of_entry(folder: &Folder, entry: &SegmentEntry) -> Result<RoaringBitmap> {
    let Some(name) = &entry.deletes else { return Ok(RoaringBitmap::new()) };
    let name = format!("{DELETES}/{name}");
    let deleted = read(folder, &name)?;
    match deleted.max() {
        Some(last) if u64::from(last) >= entry.n_documents => {
            let reason = format!("document {last} is deleted, the segment has {}", entry.n_documents);
            Err(Error::Corrupt { path: folder.path().join(name), reason })
        }
        _ => Ok(deleted),
    }
}

/// Reads what [`write`] wrote.
fn read(folder: &Folder, name: &str) -> Result<RoaringBitmap> {
    let mapped = folder.map(name, &[KIND])?;
    let bitmap = RoaringBitmap::deserialize_from(mapped.bytes(0..mapped.len())?);
    mapped.check_whole()?;
    bitmap.map_err(|error| Error::Corrupt { path: mapped.path().to_owned(), reason: error.to_string() })
}
