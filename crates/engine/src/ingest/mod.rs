//! Ingest: folders of files → one new segment → one new generation.
//!
//! Documents are read in the order of their origins, whatever order the folders were given in. Unchanged ones (same id, same content hash)
//! keep their rows; changed ones get new rows and their old ones a tombstone; those that vanished from the given roots get
//! a tombstone. Embeddings are kept in the cache as they are made, so that a run that is cut short loses the batch in flight.

mod options;
mod report;
mod ledger;
mod vectors;
mod late;
mod build;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cento_corpus::{self as corpus, Chunk, ChunkConfig, Document, FoundFile, ReadOptions, Root, Tokens};
use cento_embedder::Embedder;
use rayon::prelude::*;

use self::build::Build;
use self::ledger::{ContentHash, Group, Ledger};
pub(crate) use self::options::Encoder;
pub use self::options::IndexOptions;
use self::options::{capped, chunk_config};
pub(crate) use self::options::{load_encoder, settle};
pub use self::report::{IndexReport, Issue, Progress, Stage};
pub(crate) use self::vectors::RowVectors;
use crate::compact::{self, CompactOptions, Merge};
use crate::config::{CollectionConfig, VectorColumn};
use crate::documents::{self, Inspection};
use crate::error::{AtPath, Error, Result};
use crate::fs::Fs;
use crate::lock::WriterLock;
use crate::manifest::{self, Manifest};
use crate::pins::PINS;
use crate::repair::QUARANTINE;
use crate::searcher::Snapshot;
use crate::segment::{NewChunk, NewDocument};
use crate::snapshots::SNAPSHOTS;

/// Indexes the roots into the collection at `folder`, which is made if absent.
pub fn index(
    folder: &Path,
    roots: &[Root],
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    if Manifest::read_if_any(folder)?.is_none() {
        prepare_folder(fs, folder)?;
    }
    let lock = WriterLock::acquire(folder, fs)?;
    lock.explained(index_locked(folder, roots, options, &lock, progress))
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

    let mut report = IndexReport::default();
    let files = find(&roots, &options.read, &mut report)?;
    let encoder = load_encoder(known.as_ref(), options)?;
    let config = settle(known.as_ref().map(|manifest| &manifest.config), options, &encoder)?;
    report.notes.extend(capped(&chunk_config(&config, &encoder.embedder)?));
    let snapshot = known.map(|manifest| Snapshot::open(folder, manifest)).transpose()?;
    let ledger = Ledger::new(snapshot.as_ref(), &roots, &files, report)?;
    let mut build =
        Build::start(fs, folder, &config, &encoder.embedder, snapshot.as_ref(), ledger, options.cache.as_ref())?;
    build.progress.n_bytes_total = files.iter().map(|file| file.n_bytes).sum();
    build.read(&files, &options.read, progress)?;
    let mut report = build.finish(&roots, options.graph_rows_min, progress)?;
    drop(snapshot);
    if options.compact {
        let options = CompactOptions { merge: Merge::Due, graph_rows_min: options.graph_rows_min };
        match compact::compact_locked(folder, &options, fs, progress) {
            Ok(compaction) if compaction.n_merged == 0 => {}
            Ok(compaction) => {
                report.generation = compaction.generation;
                report.notes.extend(compaction.remark.clone());
                report.compaction = Some(compaction);
            }
            Err(error) => report.notes.push(format!("the segments were not merged: {}", crate::describe(&error))),
        }
    }
    Ok(report)
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
    let files = find(roots, &options.read, &mut report)?;
    let encoder = load_encoder(known.as_ref(), options)?;
    let config = settle(known.as_ref().map(|manifest| &manifest.config), options, &encoder)?;
    let chunking = chunk_config(&config, &encoder.embedder)?;
    report.notes.extend(capped(&chunking));
    let snapshot = known.map(|manifest| Snapshot::open(folder, manifest)).transpose()?;
    let mut ledger = Ledger::new(snapshot.as_ref(), roots, &files, report)?;
    let mut state = Progress { n_bytes_total: files.iter().map(|file| file.n_bytes).sum(), ..Progress::default() };
    let mut group = Group::default();
    for file in &files {
        match corpus::read(file, &options.read) {
            Err(error) => ledger.fail(file, &error),
            Ok(mut documents) => {
                while ledger.fill(&mut group, file, &mut documents) {
                    count(group.take(), &config, &chunking, &encoder.embedder, &mut ledger.report);
                }
                ledger.report.notes.extend(documents.notes());
            }
        }
        state.n_bytes += file.n_bytes;
        state.n_documents = ledger.n_documents();
        progress(&state);
    }
    count(group.take(), &config, &chunking, &encoder.embedder, &mut ledger.report);
    ledger.tombstone_vanished();
    Ok(ledger.report)
}

fn count(
    group: Vec<(Document, ContentHash)>,
    config: &CollectionConfig,
    chunking: &ChunkConfig,
    encoder: &Embedder,
    report: &mut IndexReport,
) {
    let prepare = |(document, hash)| prepare(document, hash, chunking, encoder);
    let prepared: Vec<Prepared> = group.into_par_iter().map(prepare).collect();
    for prepared in &prepared {
        let visible = prepared.chunks.iter().zip(&prepared.headers).filter(|(chunk, _)| !chunk.hidden);
        for (chunk, header) in visible {
            report.n_chunks += 1;
            for vectors in config.pooling.columns() {
                report.n_tokens += u64::from(chunk.n_tokens)
                    + match vectors {
                        VectorColumn::Plain => (encoder.tokenizer().count(header) + encoder.n_special()) as u64,
                        VectorColumn::Late => 0,
                    };
            }
        }
    }
}

/// What the folder of a collection holds.
pub(crate) const OURS: [&str; 10] = [
    "LOCK",
    manifest::CURRENT,
    "manifest.json.tmp",
    manifest::GENERATIONS,
    "segments",
    "deletes",
    PINS,
    SNAPSHOTS,
    QUARANTINE,
    "embeddings",
];

fn prepare_folder(fs: &dyn Fs, folder: &Path) -> Result<()> {
    if folder.exists() {
        let names = fs.list(folder).at(folder)?;
        if names.iter().any(|name| !OURS.contains(&name.as_str())) {
            return Err(Error::NotACollection { path: folder.to_owned() });
        }
    }
    for name in [manifest::GENERATIONS, "segments", "deletes", PINS] {
        let path = folder.join(name);
        fs.create_dir(&path).map_err(|error| Error::writing(&path, error))?;
    }
    let around = absolute(folder).parent().map(Path::to_owned).unwrap_or_default();
    fs.sync_dir(&around).at(&around) // its other entries are synced by the first commit
}

/// A label stands for one folder: in this call, and over the life of the collection (unless the folder has moved).
fn check_labels(known: Option<&Manifest>, roots: &[Root]) -> Result<()> {
    let mut labels: BTreeMap<&str, PathBuf> = known
        .map(|manifest| manifest.roots.iter().map(|(label, path)| (label.as_str(), path.clone())).collect())
        .unwrap_or_default();
    for root in roots {
        let given = absolute(&root.path);
        match labels.insert(&root.label, given.clone()) {
            Some(known) if known != given && known.exists() => {
                return Err(Error::LabelTaken { label: root.label.clone(), known, given });
            }
            _ => {}
        }
    }
    Ok(())
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn find(roots: &[Root], options: &ReadOptions, report: &mut IndexReport) -> Result<Vec<FoundFile>> {
    let mut files = Vec::new();
    for root in roots {
        let walk = corpus::walk(root, options)?;
        files.extend(walk.files);
        report
            .skipped
            .extend(walk.skipped.into_iter().map(|skipped| Issue { path: skipped.path, reason: skipped.reason }));
    }
    files.sort_by(|a, b| a.origin.cmp(&b.origin));
    Ok(files)
}

/// The chunker's view of the encoder's tokenizer.
pub(crate) struct EncoderTokens<'e>(pub(crate) &'e cento_embedder::Tokenizer);

impl Tokens for EncoderTokens<'_> {
    fn ends(&self, text: &str) -> Vec<usize> {
        self.0.ends(text)
    }
}

/// What [`index`] would make of one file or folder, document by document; nothing is embedded or written.
pub fn inspect(root: &Root, options: &IndexOptions) -> Result<Vec<Inspection>> {
    let encoder = load_encoder(None, options)?;
    let config = settle(None, options, &encoder)?;
    let chunking = chunk_config(&config, &encoder.embedder)?;
    let mut inspections = Vec::new();
    for file in corpus::walk(root, &options.read)?.files {
        for document in corpus::read(&file, &options.read)? {
            inspections.push(documents::inspect(&document?, &chunking, encoder.embedder.tokenizer()));
        }
    }
    Ok(inspections)
}

/// A document with its chunks and their headers, ready for its rows.
struct Prepared {
    document: Document,
    hash: ContentHash,
    chunks: Vec<Chunk>,
    headers: Vec<String>,
}

impl Prepared {
    /// The document with the chunks that are searched.
    fn as_new(&self) -> NewDocument<'_> {
        let visible = self.chunks.iter().zip(&self.headers).enumerate().filter(|(_, (chunk, _))| !chunk.hidden);
        NewDocument {
            document: &self.document,
            hash: self.hash,
            n_chunks: self.chunks.len() as u32,
            chunks: visible.map(|(index, (chunk, header))| NewChunk { index: index as u32, chunk, header }).collect(),
        }
    }
}

fn prepare(document: Document, hash: ContentHash, chunking: &ChunkConfig, encoder: &Embedder) -> Prepared {
    let chunks = corpus::chunk(&document, chunking, &EncoderTokens(encoder.tokenizer()));
    let headers = chunks.iter().map(|chunk| corpus::header(&document, chunk, chunking.header)).collect();
    Prepared { document, hash, chunks, headers }
}
