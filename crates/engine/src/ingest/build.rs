//! Builds the new segments: rows for new and changed documents, vectors from the log or the encoder, then the commit.
//!
//! A segment that has taken its share of the memory is finished, and the next one begins; one commit names all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cento_corpus::guard::Reader;
use cento_corpus::{Document, Root};
use cento_lexical::Analyzer;
use rayon::prelude::*;
use roaring::RoaringBitmap;

use super::found::absolute;
use super::ledger::{Group, Ledger};
use super::prepare::ContentHash;
use super::prepare::{Prepared, prepare};
use super::vectors::RowVectors;
use super::{IndexReport, Progress, Stage};
use crate::error::Result;
use crate::ingest::calibration;
use cento_collection::error::AtPath;
use cento_collection::format::calibration::Calibration;
use cento_collection::format::config::CollectionConfig;
use cento_collection::format::segment::{self, NewDocument, Segment, SegmentLimits};
use cento_collection::fs::{Folder, Fs};
use cento_collection::keep::generation::Generation;
use cento_collection::write::commit::{Base, Commit, NewSegment};
use cento_collection::write::memory;
use cento_collection::write::segments::SegmentsWriter;

/// Bytes of memory that a document takes until the run ends: what was read, and what is known of it, in the ledger.
const LEDGER_BYTES: u64 = 112;

/// Bytes of memory that a chunk takes until the run ends: the place of its vector in the cache.
const CACHE_BYTES: u64 = 57;

/// The segments of a run in the making.
pub(super) struct Build<'a> {
    fs: &'a dyn Fs,
    folder: &'a Path,
    config: &'a CollectionConfig,
    snapshot: Option<&'a Generation>,
    pub(super) ledger: Ledger<'a>,
    segments: SegmentsWriter<'a>,
    memory_bytes: u64,
    vectors: RowVectors<'a>,
    pub(super) progress: Progress,
}

impl<'a> Build<'a> {
    /// Nothing is written before a document needs rows. The memory of the limits is that of the whole run.
    pub(super) fn new(
        fs: &'a dyn Fs,
        folder: &'a Path,
        config: &'a CollectionConfig,
        snapshot: Option<&'a Generation>,
        ledger: Ledger<'a>,
        vectors: RowVectors<'a>,
        limits: SegmentLimits,
    ) -> Self {
        let generation = snapshot.map_or(0, |snapshot| snapshot.manifest.generation) + 1;
        Self {
            fs,
            folder,
            config,
            snapshot,
            ledger,
            segments: SegmentsWriter::new(fs, folder, config, generation, limits),
            memory_bytes: limits.memory_bytes,
            vectors,
            progress: Progress::default(),
        }
    }

    pub(super) fn read(&mut self, files: Reader<'_>, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let mut group = Group::default();
        for (file, documents) in files {
            self.vectors.cancel.check()?;
            match documents {
                Err(error) => self.ledger.fail(file, &error),
                Ok(mut documents) => {
                    while self.ledger.fill(&mut group, file, &mut documents)? {
                        self.add(group.take(), progress)?;
                    }
                    self.ledger.was_read(file, &documents);
                }
            }
            self.progress.n_documents = self.ledger.n_documents();
            self.progress.n_bytes += file.n_bytes;
            progress(&self.progress);
        }
        self.add(group.take(), progress)?;
        self.finish_segment(progress)
    }

    /// Takes documents that come from no file.
    pub(super) fn take(&mut self, documents: Vec<Document>, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let mut group = Group::default();
        let mut n_bytes = 0;
        for document in documents {
            self.vectors.cancel.check()?;
            n_bytes += document.text.len() as u64;
            group.extend(self.ledger.take(document)?);
            if group.is_full() {
                self.add(group.take(), progress)?;
                self.progress.n_bytes = n_bytes;
            }
        }
        self.add(group.take(), progress)?;
        self.progress.n_bytes = n_bytes;
        self.finish_segment(progress)
    }

    fn add(&mut self, group: Vec<(Document, ContentHash)>, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let (chunking, encoder) = (&self.vectors.chunking, self.vectors.encoder);
        let mut prepared: Vec<Prepared> =
            group.into_par_iter().map(|(document, hash)| prepare(document, hash, chunking, encoder)).collect();
        if let Some(contexts) = &mut self.vectors.contexts {
            let state = &mut self.progress;
            contexts.fill(&mut prepared, encoder, &self.vectors.cancel, &mut || {
                state.n_contexts += 1;
                progress(state);
            })?;
        }
        self.progress.n_documents = self.ledger.n_documents();
        for prepared in &prepared {
            self.push(&prepared.as_new(), progress)?;
        }
        progress(&self.progress);
        Ok(())
    }

    /// Gives a document its rows, in the next segment where this one has no room for it.
    fn push(&mut self, new: &NewDocument<'_>, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let taken_bytes = LEDGER_BYTES * self.ledger.n_documents() + CACHE_BYTES * self.ledger.report.n_chunks;
        self.segments.limits.memory_bytes = memory::segment_bytes(self.memory_bytes, taken_bytes);
        if !self.segments.has_room(new) {
            self.finish_segment(progress)?;
        }
        let first_row = match self.segments.push(new) {
            Err(error @ cento_collection::Error::DocumentTooLarge { .. }) => {
                self.ledger.refuse(new.document, &error);
                return Ok(());
            }
            pushed => pushed?,
        };
        self.ledger.report.n_chunks += new.chunks.len() as u64;
        let segment = self.segments.open().expect("a document was just added");
        self.vectors.add(segment, new, first_row)?;
        let state = &mut self.progress;
        self.vectors.embed_batches(segment, &mut |n_tokens| {
            state.n_tokens += n_tokens;
            progress(state);
        })
    }

    /// Gives all rows of the open segment their vectors and writes what is left of its files.
    fn finish_segment(&mut self, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let state = &mut self.progress;
        let Some(segment) = self.segments.open() else { return Ok(()) };
        self.vectors.embed_rest(segment, &mut |n_tokens| {
            state.n_tokens += n_tokens;
            progress(state);
        })?;
        state.stage = Stage::Writing;
        progress(state);
        self.segments.finish_segment(&BTreeSet::new(), |n_done| {
            state.n_graph_rows = n_done as u64;
            progress(state);
        })?;
        state.stage = Stage::Embedding;
        Ok(())
    }

    /// Publishes the generation with the segments; does nothing if nothing changed.
    pub(super) fn finish(mut self, roots: &[Root], progress: &mut dyn FnMut(&Progress)) -> Result<IndexReport> {
        let counts = self.vectors.counts;
        let report = &mut self.ledger.report;
        report.n_tokens += counts.n_tokens;
        report.n_tokens_embedded += counts.n_tokens_embedded;
        report.n_from_log += counts.n_from_log;
        report.n_truncated += counts.n_truncated;
        report.contexts = self.vectors.contexts.as_ref().map(|contexts| contexts.counts);
        let written = self.segments.written();
        let is_measured = |generation: &Generation| {
            matches!(generation.manifest.calibration, Some(Calibration::Sample(_))) || generation.n_rows() == 0
        };
        let manifest = self.snapshot.map(|snapshot| &snapshot.manifest);
        let reports = self.ledger.files.as_ref();
        let is_settled = self.snapshot.is_none_or(is_measured)
            && !self.ledger.settles_losses(self.snapshot)
            && reports.is_none_or(|reports| reports.is_kept());
        // A part of the files may hold nothing: then its collection is empty.
        let is_first_part = self.snapshot.is_none() && self.ledger.is_part();
        if written.is_empty() && self.ledger.replaced.is_empty() && is_settled && !is_first_part {
            self.ledger.report.notes.extend(self.vectors.finish());
            let Some(snapshot) = self.snapshot else { return Err(self.ledger.nothing()) };
            snapshot.check_whole()?;
            self.ledger.report.generation = snapshot.manifest.generation;
            return Ok(self.ledger.report);
        }
        let n_segments = written.len();
        self.vectors.confirm()?;
        self.progress.stage = Stage::Writing;
        progress(&self.progress);
        let dying = std::mem::take(&mut self.ledger.replaced);
        let reports = match &self.ledger.files {
            Some(reports) => reports.store(self.fs, self.folder, manifest.map_or(0, |old| old.generation) + 1)?,
            None => manifest.and_then(|manifest| manifest.reports.clone()),
        };
        let vectors = &mut self.vectors;
        let calibration = calibrate(self.snapshot, &dying, self.folder, written, self.config, &mut |texts| {
            vectors.of_questions(texts)
        })?;
        self.ledger.report.notes.extend(self.vectors.finish());
        if n_segments > 1 {
            self.ledger.report.notes.push(format!(
                "written as {n_segments} segments: one would take more than the memory of this run, {} MiB",
                self.memory_bytes >> 20
            ));
        }
        let commit = Commit {
            config: self.config.clone(),
            roots: roots.iter().map(|root| (root.label.clone(), absolute(&root.path))).collect(),
            new_segments: self.segments.finish(),
            deleted: dying,
        };
        let base = Base {
            manifest,
            read: self.snapshot.into_iter().collect(),
            deleted: &|at| self.snapshot.expect("a segment is of a snapshot").segments[at].deleted.clone(),
            losses: manifest.map(|manifest| self.ledger.remaining_losses(manifest)).unwrap_or_default(),
            stale: self.ledger.stale(manifest),
            reports,
            calibration: Some(calibration),
            is_answered_alike: false,
        };
        let committed = commit.publish_over(self.fs, self.folder, base)?;
        self.ledger.report.generation = committed.generation;
        self.ledger.report.notes.extend(committed.remark);
        Ok(self.ledger.report)
    }
}

/// Calibrates the cosines with the new segments, whose files are complete, and without documents that die.
pub(super) fn calibrate(
    snapshot: Option<&Generation>,
    dying: &BTreeMap<usize, RoaringBitmap>,
    folder: &Path,
    new: &[NewSegment],
    config: &CollectionConfig,
    embed: calibration::Embed<'_>,
) -> Result<Calibration> {
    let analyzer = Analyzer::new(config.language()?);
    let folder = Folder::open(folder).at(folder)?;
    let open = |name: &str| {
        Segment::open(&segment::folder(&folder, name)?, name, &analyzer, config.pooling, RoaringBitmap::new())
    };
    let new = new.iter().map(|new| open(&new.name)).collect::<Result<Vec<_>, _>>()?;
    let old = snapshot.map(|generation| calibration::Old { generation, dying });
    let sample = calibration::measure(old, &new, embed);
    new.iter().try_for_each(Segment::check_whole)?;
    Ok(Calibration::Sample(sample?))
}
