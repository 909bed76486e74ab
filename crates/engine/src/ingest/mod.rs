//! Ingest: folders of files → new segments, one if the memory is enough → one new generation.
//!
//! Documents are read in the order of their origins, whatever order the folders were given in. Unchanged ones (same
//! id, same content hash) keep their rows; changed ones get new rows and their old ones a tombstone; those that
//! vanished from the given roots get a tombstone, unless they lie where something could not be read. Embeddings are
//! kept in the cache as they are made, so that a run that is cut short loses the batch in flight.

pub(crate) mod cache;
mod kept;
pub(crate) mod calibration;
mod options;
mod report;
mod found;
mod ledger;
mod prepare;
pub(crate) mod contexts;
mod late;
mod vectors;
mod estimate;
mod build;
pub(crate) mod writer;
pub(crate) mod inspect;
pub(crate) mod delete;
pub(crate) mod repair;
pub(crate) mod given;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cento_collection::format::manifest::Manifest;
use cento_collection::write::compact::{self, CompactOptions, CompactReport, Copied};
use cento_collection::write::{create, memory};
use cento_corpus::guard::Reader;
use cento_corpus::{ChunkConfig, Document, Root};
use rayon::prelude::*;

use self::build::Build;
use self::contexts::Contexts;
use self::estimate::Estimating;
pub use self::found::FilePart;
use self::found::{absolute, find};
pub use self::inspect::inspect;
use self::ledger::{Group, Ledger};
pub use self::options::{IndexOptions, Removals};
use self::options::{capped, chunk_config};
pub(crate) use self::options::{load_encoder, other_model, precision_of, settle};
use self::prepare::{ContentHash, Prepared, prepare};
pub use self::report::{IndexReport, Issue, Progress, Stage};
pub(crate) use self::vectors::RowVectors;
use self::writer::stop::Stoppable;
use crate::cancel::Cancel;
use crate::encoder::{Encoder, Remote};
use crate::error::{Error, Result};
use cento_collection::format::config::{CollectionConfig, VectorColumn};
use cento_collection::format::segment::SegmentLimits;
use cento_collection::fs::Fs;
use cento_collection::keep::generation::{Generation, explained};
use cento_collection::keep::lock::WriterLock;

/// Indexes the roots into the collection at `folder`, which is made if absent.
pub fn index(
    folder: &Path,
    roots: &[Root],
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    memory::memory_bytes(options.memory_bytes)?; // too little is refused before anything is made
    let is_new = Manifest::read_if_any(folder)?.is_none();
    if is_new {
        create::folder(fs, folder)?;
    }
    let lock = WriterLock::acquire(folder, fs)?;
    if is_new {
        create::inner_folders(&lock, folder)?;
    }
    let fs = Stoppable::new(&lock, &options.cancel);
    lock.explained(fs.explained(index_locked(folder, roots, options, &fs, progress)))
}

fn index_locked(
    folder: &Path,
    roots: &[Root],
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let known = Manifest::read_if_any(folder)?; // anew: another writer may have come before the lock
    let mut roots = roots.to_vec();
    roots.sort_by(|a, b| a.label.cmp(&b.label));
    check_labels(known.as_ref(), &roots)?;
    let memory_bytes = memory::memory_bytes(options.memory_bytes)?;

    let mut report = IndexReport::default();
    let mut found = find(&roots, known.as_ref(), &options.read, &mut report)?;
    options.part.into_iter().for_each(|part| found.only(part));
    let loaded = load_encoder(known.as_ref(), options)?;
    let config = settle(known.as_ref().map(|manifest| &manifest.config), options, &loaded)?;
    let encoder = &loaded.encoder;
    report.notes.extend(capped(&chunk_config(&config, encoder)?));
    let snapshot = known.map(|manifest| Generation::open(folder, manifest)).transpose()?;
    let contexts = Contexts::open(config.context.as_ref(), options.contexts.clone(), options.cache.as_ref())?;
    report.warn_of(contexts.as_ref());
    let indexed = || -> Result<IndexReport> {
        let ledger = Ledger::new(snapshot.as_ref(), &roots, &found, report)?;
        ledger.check_roots(std::mem::take(&mut found.gone), options.removals)?;
        let mut vectors = RowVectors::new(&config, encoder, options.cache.as_ref())?;
        vectors.cancel = options.cancel.clone();
        vectors.contexts = contexts;
        let limits =
            SegmentLimits { memory_bytes, rows_max: options.segment_rows_max, graph_rows_min: options.graph_rows_min };
        let mut build = Build::new(fs, folder, &config, snapshot.as_ref(), ledger, vectors, limits);
        build.progress.n_bytes_total = found.files.iter().map(|file| file.n_bytes).sum();
        let files = Reader::new(&found.files, &options.read, options.guard.as_ref());
        build.read(files, progress)?;
        build.ledger.tombstone_vanished(options.removals)?;
        build.ledger.settle_files(folder);
        build.finish(&roots, progress)
    };
    let mut report = explained(&snapshot, indexed())?;
    drop(snapshot);
    if options.compact {
        merge_if_due(folder, &options.merging(), fs, progress, &mut report);
    }
    Ok(report)
}

/// Merges segments after a commit, which is there whatever comes of it.
fn merge_if_due(
    folder: &Path,
    options: &CompactOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
    report: &mut IndexReport,
) {
    match compact::compact_locked(folder, options, fs, &mut |copied| progress(&Progress::of_copying(copied))) {
        Ok(compaction) if compaction.n_merged == 0 => {}
        Ok(compaction) => {
            report.generation = compaction.generation;
            report.notes.extend(compaction.remark.clone());
            report.compaction = Some(compaction);
        }
        Err(error) => report.notes.push(format!("the segments were not merged: {}", crate::describe(&error))),
    }
}

/// Compacts the collection at `folder` as [`compact`] does, unless that is cancelled: then it stays as it was.
///
/// # Errors
/// Those of the folder, [`Error::Cancelled`].
pub fn compact_unless(
    folder: &Path,
    options: &CompactOptions,
    cancel: &Cancel,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<CompactReport> {
    Manifest::read(folder)?; // says that there is no collection before a lock file is made
    let lock = WriterLock::acquire(folder, fs)?;
    let fs = Stoppable::new(&lock, cancel);
    let mut copied = |copied: &Copied| progress(&Progress::of_copying(copied));
    lock.explained(fs.explained(compact::compact_locked(folder, options, &fs, &mut copied).map_err(Error::from)))
}

/// Compacts the collection at `folder`, if there is something to merge.
///
/// # Errors
/// Those of the folder.
pub fn compact(
    folder: &Path,
    options: &CompactOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<CompactReport> {
    Ok(compact::compact(folder, options, fs, &mut |copied| progress(&Progress::of_copying(copied)))?)
}

/// Does what [`index`] would do, except to embed and to write: the report says what would change.
pub fn dry_run(
    folder: &Path,
    roots: &[Root],
    options: &IndexOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let known = Manifest::read_if_any(folder)?;
    check_labels(known.as_ref(), roots)?;
    let mut report = IndexReport::default();
    let mut found = find(roots, known.as_ref(), &options.read, &mut report)?;
    options.part.into_iter().for_each(|part| found.only(part));
    let loaded = load_encoder(known.as_ref(), options)?;
    let config = settle(known.as_ref().map(|manifest| &manifest.config), options, &loaded)?;
    let encoder = &loaded.encoder;
    let chunking = chunk_config(&config, encoder)?;
    report.notes.extend(capped(&chunking));
    let snapshot = known.map(|manifest| Generation::open(folder, manifest)).transpose()?;
    let contexts = Contexts::open(config.context.as_ref(), options.contexts.clone(), options.cache.as_ref())?;
    report.warn_of(contexts.as_ref());
    let counted = || -> Result<IndexReport> {
        let mut ledger = Ledger::new(snapshot.as_ref(), roots, &found, report)?;
        ledger.check_roots(std::mem::take(&mut found.gone), options.removals)?;
        let mut state =
            Progress { n_bytes_total: found.files.iter().map(|file| file.n_bytes).sum(), ..Progress::default() };
        let mut group = Group::default();
        let mut counting = Counting {
            config: &config,
            chunking: &chunking,
            encoder,
            contexts,
            asked: Estimating::new(encoder, &config, options.cache.as_ref()),
        };
        for (file, documents) in Reader::new(&found.files, &options.read, options.guard.as_ref()) {
            match documents {
                Err(error) => ledger.fail(file, &error),
                Ok(mut documents) => {
                    while ledger.fill(&mut group, file, &mut documents)? {
                        counting.add(group.take(), &mut ledger.report);
                    }
                    ledger.was_read(file, &documents);
                }
            }
            state.n_bytes += file.n_bytes;
            state.n_documents = ledger.n_documents();
            progress(&state);
        }
        counting.add(group.take(), &mut ledger.report);
        ledger.tombstone_vanished(options.removals)?;
        ledger.report.estimate = counting.asked.map(Estimating::finish);
        ledger.report.notes.extend(encoder.elsewhere().map(Remote::remark));
        ledger.settle_files(folder);
        snapshot.iter().try_for_each(Generation::check_whole)?;
        Ok(ledger.report)
    };
    explained(&snapshot, counted())
}

/// Counts what would be embedded, and the contexts that would be asked for.
struct Counting<'e> {
    config: &'e CollectionConfig,
    chunking: &'e ChunkConfig,
    encoder: &'e Encoder,
    contexts: Option<Contexts>,
    asked: Option<Estimating<'e>>,
}

impl Counting<'_> {
    fn add(&mut self, group: Vec<(Document, ContentHash)>, report: &mut IndexReport) {
        let (chunking, encoder) = (self.chunking, self.encoder);
        let prepare = |(document, hash)| prepare(document, hash, chunking, encoder);
        let mut prepared: Vec<Prepared> = group.into_par_iter().map(prepare).collect();
        if let Some(contexts) = &mut self.contexts {
            contexts.count(&mut prepared, encoder);
            report.contexts = Some(contexts.counts);
        }
        for prepared in &prepared {
            let visible = prepared.chunks.iter().zip(&prepared.headers).filter(|(chunk, _)| !chunk.hidden);
            for (chunk, header) in visible {
                report.n_chunks += 1;
                for vectors in self.config.pooling.columns() {
                    report.n_tokens += u64::from(chunk.n_tokens)
                        + match vectors {
                            VectorColumn::Plain => (encoder.tokenizer().count(header) + encoder.n_special()) as u64,
                            VectorColumn::Late => 0,
                        };
                }
            }
            self.asked.iter_mut().for_each(|asked| asked.add(prepared));
        }
    }
}

/// A label stands for one folder: in this call, and over the life of the collection (unless the folder has moved).
fn check_labels(known: Option<&Manifest>, roots: &[Root]) -> Result<()> {
    let mut labels: BTreeMap<&str, PathBuf> = known
        .map(|manifest| manifest.roots.iter().map(|(label, path)| (label.as_str(), path.clone())).collect())
        .unwrap_or_default();
    for root in roots {
        let given = absolute(&root.path);
        match labels.insert(&root.label, given.clone()) {
            Some(known) if known != given && known.exists() && given.exists() => {
                return Err(Error::LabelTaken { label: root.label.clone(), known, given });
            }
            _ => {}
        }
    }
    Ok(())
}
