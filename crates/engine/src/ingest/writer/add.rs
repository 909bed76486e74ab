//! Documents that are handed over instead of read: they lie under no root, so that no run over folders removes them.
//!
//! Their origin begins with `/`, as no root's label does. A file whose document would have the id of one of them, or
//! the other way round, is refused as two files of one id are. Handed over again, a document takes the place of itself;
//! it goes when it is deleted.

use std::path::Path;

use cento_collection::format::manifest::Manifest;
use cento_collection::format::segment::SegmentLimits;
use cento_collection::fs::Fs;
use cento_collection::keep::generation::Generation;
use cento_collection::keep::lock::WriterLock;
use cento_collection::write::memory;
use cento_corpus::Document;

use super::stop::Stoppable;
use crate::error::Result;
use crate::ingest::build::Build;
use crate::ingest::found::Found;
use crate::ingest::ledger::Ledger;
use crate::ingest::merge_if_due;
use crate::ingest::options::{IndexOptions, load_encoder, settle};
use crate::ingest::report::{IndexReport, Progress};
use crate::ingest::vectors::RowVectors;

/// The origin of documents that were handed over.
pub const HANDED_OVER: &str = "/uploaded";

/// Adds documents to the collection at `folder`, each in the place of one that has its id already. Their origin is
/// [`HANDED_OVER`], whatever they say.
///
/// # Errors
/// [`IdTaken`](crate::Error::IdTaken) where a file's document has the id, or two of these; those of the folder and the
/// encoder; [`Cancelled`](crate::Error::Cancelled). Nothing is changed then.
pub fn add(
    folder: &Path,
    documents: Vec<Document>,
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    memory::memory_bytes(options.memory_bytes)?; // too little is refused before anything is made
    Manifest::read(folder)?; // says that there is no collection before a lock file is made
    let lock = WriterLock::acquire(folder, fs)?;
    let fs = Stoppable::new(&lock, &options.cancel);
    lock.explained(fs.explained(add_locked(folder, documents, options, &fs, progress)))
}

fn add_locked(
    folder: &Path,
    mut documents: Vec<Document>,
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    documents.iter_mut().for_each(|document| HANDED_OVER.clone_into(&mut document.origin));
    documents.sort_by(|a, b| a.id.cmp(&b.id));
    let known = Manifest::read(folder)?; // anew: another writer may have come before the lock
    let encoder = load_encoder(Some(&known), options)?;
    let config = settle(Some(&known.config), options, &encoder)?;
    let snapshot = Generation::open(folder, known)?;
    let ledger = Ledger::new(Some(&snapshot), &[], &Found::default(), IndexReport::default())?;
    let mut vectors = RowVectors::new(&config, &encoder.embedder, options.cache.as_ref())?;
    vectors.cancel = options.cancel.clone();
    let limits = SegmentLimits {
        memory_bytes: memory::memory_bytes(options.memory_bytes)?,
        rows_max: options.segment_rows_max,
        graph_rows_min: options.graph_rows_min,
    };
    let mut build = Build::new(fs, folder, &config, Some(&snapshot), ledger, vectors, limits);
    build.progress.n_bytes_total = documents.iter().map(|document| document.text.len() as u64).sum();
    build.take(documents, progress)?;
    let mut report = build.finish(&[], progress)?;
    drop(snapshot);
    if options.compact {
        merge_if_due(folder, options, fs, progress, &mut report);
    }
    Ok(report)
}
