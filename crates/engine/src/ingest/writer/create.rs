//! A new collection without a document: what documents that are handed over later go into.

use std::collections::BTreeMap;
use std::path::Path;

use cento_collection::format::config::CollectionConfig;
use cento_collection::format::manifest::Manifest;
use cento_collection::fs::Fs;
use cento_collection::keep::lock::WriterLock;
use cento_collection::write::commit::{Base, Commit};
use cento_collection::write::create as new;
use roaring::RoaringBitmap;

use super::stop::Stoppable;
use crate::error::{Error, Result};
use crate::ingest::build::calibrate;
use crate::ingest::options::{IndexOptions, chunk_config, load_encoder, settle};
use crate::ingest::vectors::RowVectors;

/// Makes an empty collection at `folder` with the settings of `options`; it has a generation, and answers.
///
/// # Errors
/// [`Error::CollectionTaken`] where something is there; those of the settings, the encoder and the folder,
/// [`Error::Cancelled`].
pub fn create(folder: &Path, options: &IndexOptions, fs: &dyn Fs) -> Result<u64> {
    let name = || folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let taken = || Error::CollectionTaken { name: name() };
    if Manifest::read_if_any(folder)?.is_some() {
        return Err(taken());
    }
    let loaded = load_encoder(None, options)?; // before anything is made
    let config = settle(None, options, &loaded)?;
    chunk_config(&config, &loaded.encoder)?;
    let mut vectors = RowVectors::new(&config, &loaded.encoder, options.cache.as_ref())?;
    vectors.cancel = options.cancel.clone();
    options.cancel.check()?;
    match new::folder(fs, folder) {
        Err(cento_collection::Error::NotACollection { .. }) => return Err(taken()),
        made => made?,
    }
    let lock = match WriterLock::acquire(folder, fs) {
        Err(cento_collection::Error::Locked { .. }) => return Err(taken()), // another one is making it
        lock => lock?,
    };
    if Manifest::read_if_any(folder)?.is_some() {
        return Err(taken()); // another writer may have come before the lock
    }
    new::inner_folders(&lock, folder)?;
    let fs = Stoppable::new(&lock, &options.cancel);
    lock.explained(fs.explained(publish(folder, config, &mut vectors, &fs)))
}

fn publish(folder: &Path, config: CollectionConfig, vectors: &mut RowVectors<'_>, fs: &dyn Fs) -> Result<u64> {
    let mut embed = |texts: &[String]| vectors.of_questions(texts);
    let calibration = calibrate(None, &BTreeMap::new(), folder, &[], &config, &mut embed)?;
    let commit = Commit { config, roots: BTreeMap::new(), new_segments: Vec::new(), deleted: BTreeMap::new() };
    let base = Base {
        manifest: None,
        read: Vec::new(),
        deleted: &|_| RoaringBitmap::new(),
        losses: Vec::new(),
        stale: Vec::new(),
        reports: None,
        calibration: Some(calibration),
        is_answered_alike: false,
    };
    Ok(commit.publish_over(fs, folder, base)?.generation)
}
