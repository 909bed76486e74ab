//! Documents that are handed over instead of read: they lie under no root, so that no run over folders removes them.
//!
//! Their origin begins with `/`, as no root's label does. A file whose document would have the id of one of them, or
//! the other way round, is refused as two files of one id are. Handed over again, a document takes the place of itself;
//! it goes when it is deleted. A file that is handed over is read as one of a root, and its documents lie under
//! [`HANDED_OVER`] by its path.

use std::path::Path;

use cento_collection::format::manifest::Manifest;
use cento_collection::format::segment::SegmentLimits;
use cento_collection::fs::Fs;
use cento_collection::keep::generation::{Generation, explained};
use cento_collection::keep::lock::WriterLock;
use cento_collection::write::memory;
use cento_corpus::guard::Reader;
use cento_corpus::{Document, Root};

use super::stop::Stoppable;
use crate::error::{AtPath as _, Error, Result};
use crate::ingest::build::Build;
use crate::ingest::contexts::Contexts;
use crate::ingest::found::{Found, find};
use crate::ingest::ledger::Ledger;
use crate::ingest::merge_if_due;
use crate::ingest::options::{IndexOptions, Removals, load_encoder, settle};
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
    write(folder, Given::Documents(documents), options, fs, progress)
}

/// Adds the documents of a file that was handed over, read as if it lay at `path`. Their ids and their origin begin
/// with [`HANDED_OVER`]. Documents that the file of this path had before, and has no more, go.
///
/// # Errors
/// [`Error::NothingToIndex`] for a file that is of no kind that is read; those of [`add`]. Nothing is changed then.
pub fn add_file(
    folder: &Path,
    path: &str,
    bytes: &[u8],
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let place = tempfile::tempdir().at(&std::env::temp_dir())?;
    let file = place.path().join(path.rsplit('/').next().unwrap_or(path));
    std::fs::write(&file, bytes).at(&file)?;
    let root = Root { label: format!("{HANDED_OVER}/{path}"), path: file.clone() };
    let named = |text: &str| text.replace(&*file.to_string_lossy(), path);
    let report = write(folder, Given::File(&root), options, fs, progress);
    let mut report = report.map_err(|error| match error {
        Error::Corpus(error) => Error::NothingToIndex { reason: named(&crate::describe(&error)) },
        error => error,
    })?;
    let IndexReport { skipped, unread, failed, .. } = &mut report;
    for issue in [skipped, unread, failed].into_iter().flatten() {
        (issue.path, issue.reason) = (named(&issue.path), named(&issue.reason));
    }
    Ok(report)
}

/// The documents, or the file, that are handed over.
enum Given<'g> {
    Documents(Vec<Document>),
    /// A file, and the origin that its documents have.
    File(&'g Root),
}

fn write(
    folder: &Path,
    given: Given<'_>,
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    memory::memory_bytes(options.memory_bytes)?; // too little is refused before anything is made
    Manifest::read(folder)?; // says that there is no collection before a lock file is made
    let lock = WriterLock::acquire(folder, fs)?;
    let fs = Stoppable::new(&lock, &options.cancel);
    lock.explained(fs.explained(write_locked(folder, given, options, &fs, progress)))
}

fn write_locked(
    folder: &Path,
    given: Given<'_>,
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let known = Manifest::read(folder)?; // anew: another writer may have come before the lock
    let loaded = load_encoder(Some(&known), options)?;
    let config = settle(Some(&known.config), options, &loaded)?;
    let snapshot = Generation::open(folder, known)?;
    let (mut found, mut report) = (Found::default(), IndexReport::default());
    let roots = match &given {
        Given::Documents(_) => &[][..],
        Given::File(root) => std::slice::from_ref(*root),
    };
    let written = || -> Result<IndexReport> {
        if let Given::File(root) = &given {
            found = find(roots, None, &options.read, &mut report)?;
            below(&snapshot, &root.label)?;
        }
        let contexts = Contexts::open(config.context.as_ref(), options.contexts.clone(), options.cache.as_ref())?;
        report.warn_of(contexts.as_ref());
        let ledger = Ledger::new(Some(&snapshot), roots, &found, report)?;
        let mut vectors = RowVectors::new(&config, &loaded.encoder, options.cache.as_ref())?;
        vectors.cancel = options.cancel.clone();
        vectors.contexts = contexts;
        let limits = SegmentLimits {
            memory_bytes: memory::memory_bytes(options.memory_bytes)?,
            rows_max: options.segment_rows_max,
            graph_rows_min: options.graph_rows_min,
        };
        let mut build = Build::new(fs, folder, &config, Some(&snapshot), ledger, vectors, limits);
        match given {
            Given::Documents(mut documents) => {
                documents.iter_mut().for_each(|document| HANDED_OVER.clone_into(&mut document.origin));
                documents.sort_by(|a, b| a.id.cmp(&b.id));
                build.progress.n_bytes_total = documents.iter().map(|document| document.text.len() as u64).sum();
                build.take(documents, progress)?;
            }
            Given::File(_) => {
                build.progress.n_bytes_total = found.files.iter().map(|file| file.n_bytes).sum();
                build.read(Reader::new(&found.files, &options.read, options.guard.as_ref()), progress)?;
                build.ledger.tombstone_vanished(Removals::All)?;
            }
        }
        build.finish(&[], progress)
    };
    let mut report = explained([&snapshot], written())?;
    drop(snapshot);
    if options.compact {
        merge_if_due(folder, &options.merging(), fs, progress, &mut report);
    }
    Ok(report)
}

/// An error if documents were handed over as files in a folder of that name: they would go with a file of that name.
fn below(snapshot: &Generation, origin: &str) -> Result<()> {
    for segment in &snapshot.segments {
        for document in segment.live_documents() {
            let known = segment.documents.text(segment.document(document)?.origin)?;
            if known.strip_prefix(origin).is_some_and(|rest| rest.starts_with('/')) {
                let reason = format!("is the folder of {known}");
                return Err(Error::Setting { setting: "path", value: origin.to_owned(), reason });
            }
        }
    }
    Ok(())
}
