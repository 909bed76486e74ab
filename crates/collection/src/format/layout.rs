//! The names of what lies in a collection's folder, and how large it is.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{AtPath, Result};

/// The lock of the writer.
pub const LOCK: &str = "LOCK";
/// The current manifest.
pub const CURRENT: &str = "manifest.json";
/// The manifests of the generations that are kept.
pub const GENERATIONS: &str = "manifests";
/// The segments.
pub const SEGMENTS: &str = "segments";
/// The tombstones.
pub const DELETES: &str = "deletes";
/// The reports on files.
pub const REPORTS: &str = "reports";
/// The pins of readers.
pub const PINS: &str = "pins";
/// The generations with a name.
pub const SNAPSHOTS: &str = "snapshots";
/// Damaged segments and snapshots, which nothing reads.
pub const QUARANTINE: &str = "quarantine";

/// All that the folder of a collection may hold.
pub const OURS: [&str; 10] =
    [LOCK, CURRENT, "manifest.json.tmp", GENERATIONS, SEGMENTS, DELETES, REPORTS, PINS, SNAPSHOTS, QUARANTINE];

/// Bytes of the files in a folder and the folders below it.
///
/// # Errors
/// `Io` if something of it cannot be listed.
pub fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut n_bytes = BTreeMap::new();
    add_sizes(folder, &mut n_bytes)?;
    Ok(n_bytes.into_values().sum())
}

/// Adds the bytes of the files in a folder by name; those of a folder in it under its name and a slash.
pub(crate) fn add_sizes(folder: &Path, n_bytes: &mut BTreeMap<String, u64>) -> Result<()> {
    for entry in std::fs::read_dir(folder).at(folder)? {
        let entry = entry.at(folder)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.metadata().at(&entry.path())? {
            metadata if metadata.is_dir() => {
                let mut within = BTreeMap::new();
                add_sizes(&entry.path(), &mut within)?;
                *n_bytes.entry(format!("{name}/")).or_default() += within.values().sum::<u64>();
            }
            metadata => *n_bytes.entry(name).or_default() += metadata.len(),
        }
    }
    Ok(())
}
