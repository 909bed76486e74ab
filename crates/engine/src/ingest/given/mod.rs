//! Vectors that are given: a matrix, ids and texts become a collection without an encoder.
//!
//! A row is a document with one chunk. The files are read twice: once to see that every vector, id and text can be
//! taken, before anything is written, and once to write them. A document whose id the collection has is replaced if its
//! vector or text is another one; no document goes because it is not among those given.

mod options;
mod read;
mod rows;
mod settle;
mod writing;

use std::path::Path;

use cento_collection::format::config::{CollectionConfig, SEGMENT_ROWS_MAX};
use cento_collection::format::manifest::Manifest;
use cento_collection::fs::Fs;
use cento_collection::keep::generation::{Generation, explained};
use cento_collection::keep::lock::WriterLock;
use cento_collection::write::compact::{CompactOptions, Merge};
use cento_collection::write::{create, memory};

pub use self::options::{GivenOptions, Lengths};
pub use self::read::{bare_vectors, open_vectors, read_vectors};
use self::settle::Examined;
use super::{IndexReport, Progress, merge_if_due};
use crate::error::{Error, Result};

/// Brings the collection at `folder`, which is made if absent, up to date with vectors.
///
/// # Errors
/// [`Error::Vectors`] for a file that cannot be used, named with its row; [`Error::Mismatch`] where the collection has
/// other settings; those of the folder. Nothing is changed then.
pub fn index_vectors(
    folder: &Path,
    options: &GivenOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    memory::memory_bytes(options.memory_bytes)?;
    let known = Manifest::read_if_any(folder)?;
    let config = Examined::new(options)?.settle(known.as_ref(), options)?; // before anything is made
    if known.is_none() {
        create::folder(fs, folder)?;
    }
    let lock = WriterLock::acquire(folder, fs)?;
    if known.is_none() {
        create::inner_folders(&lock, folder)?;
    }
    lock.explained(index_locked(folder, options, &config, &lock, progress))
}

fn index_locked(
    folder: &Path,
    options: &GivenOptions,
    config: &CollectionConfig,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let known = Manifest::read_if_any(folder)?; // anew: another writer may have come before the lock
    if let Some(known) = known.as_ref().filter(|known| known.config != *config) {
        let (collection, requested) = (known.config.model.clone(), config.model.clone());
        return Err(Error::Mismatch { setting: "model", collection, requested });
    }
    let snapshot = known.map(|manifest| Generation::open(folder, manifest)).transpose()?;
    let written = writing::write(folder, options, config, snapshot.as_ref(), fs, progress);
    let mut report = explained(&snapshot, written)?;
    drop(snapshot);
    if options.compact {
        let merge = CompactOptions {
            merge: Merge::Due,
            graph_rows_min: options.graph_rows_min,
            memory_bytes: options.memory_bytes,
            segment_rows_max: SEGMENT_ROWS_MAX,
        };
        merge_if_due(folder, &merge, fs, progress, &mut report);
    }
    Ok(report)
}

#[cfg(test)]
mod tests;
