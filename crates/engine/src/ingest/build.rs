//! Builds the new segment: rows for new and changed documents, vectors from the log or the encoder, then the commit.

use std::collections::BTreeSet;
use std::path::Path;

use cento_corpus::{self as corpus, Document, FoundFile, ReadOptions, Root};
use cento_embedder::Embedder;
use cento_lexical::Analyzer;
use rayon::prelude::*;
use roaring::RoaringBitmap;

use super::found::absolute;
use super::ledger::{ContentHash, Group, Ledger};
use super::prepare::{Prepared, prepare};
use super::vectors::RowVectors;
use super::{IndexReport, Progress, Stage};
use crate::error::Result;
use crate::ingest::cache::CacheOptions;
use crate::ingest::calibration;
use cento_collection::error::AtPath;
use cento_collection::format::calibration::Calibration;
use cento_collection::format::config::CollectionConfig;
use cento_collection::format::segment::{self, Segment, SegmentWriter};
use cento_collection::fs::{Folder, Fs};
use cento_collection::keep::generation::Generation;
use cento_collection::write::commit::{Base, Commit, NewSegment};

/// A segment in the making.
pub(super) struct Build<'a> {
    fs: &'a dyn Fs,
    folder: &'a Path,
    config: &'a CollectionConfig,
    snapshot: Option<&'a Generation>,
    pub(super) ledger: Ledger,
    segment: SegmentWriter<'a>,
    segment_name: String,
    vectors: RowVectors<'a>,
    pub(super) progress: Progress,
}

impl<'a> Build<'a> {
    pub(super) fn start(
        fs: &'a dyn Fs,
        folder: &'a Path,
        config: &'a CollectionConfig,
        encoder: &'a Embedder,
        snapshot: Option<&'a Generation>,
        ledger: Ledger,
        cache: Option<&CacheOptions>,
    ) -> Result<Self> {
        let generation = snapshot.map_or(0, |snapshot| snapshot.manifest.generation) + 1;
        let segment_name = format!("{generation}-0");
        Ok(Self {
            fs,
            folder,
            config,
            snapshot,
            ledger,
            segment: SegmentWriter::create(fs, &folder.join("segments").join(&segment_name), config)?,
            segment_name,
            vectors: RowVectors::new(config, encoder, cache)?,
            progress: Progress::default(),
        })
    }

    pub(super) fn read(
        &mut self,
        files: &[FoundFile],
        options: &ReadOptions,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<()> {
        let mut group = Group::default();
        for file in files {
            match corpus::read(file, options) {
                Err(error) => self.ledger.fail(file, &error),
                Ok(mut documents) => {
                    while self.ledger.fill(&mut group, file, &mut documents) {
                        self.add(group.take(), progress)?;
                    }
                    self.ledger.report.notes.extend(documents.notes());
                }
            }
            self.progress.n_documents = self.ledger.n_documents();
            self.progress.n_bytes += file.n_bytes;
            progress(&self.progress);
        }
        self.add(group.take(), progress)?;
        let state = &mut self.progress;
        self.vectors.embed_rest(&mut self.segment, &mut |n_tokens| {
            state.n_tokens += n_tokens;
            progress(state);
        })
    }

    fn add(&mut self, group: Vec<(Document, ContentHash)>, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let (chunking, encoder) = (&self.vectors.chunking, self.vectors.encoder);
        let prepared: Vec<Prepared> =
            group.into_par_iter().map(|(document, hash)| prepare(document, hash, chunking, encoder)).collect();
        self.progress.n_documents = self.ledger.n_documents();
        let state = &mut self.progress;
        for prepared in &prepared {
            let new = prepared.as_new();
            let first_row = self.segment.push(&new)?;
            self.ledger.report.n_chunks += new.chunks.len() as u64;
            self.vectors.add(&mut self.segment, &new, first_row)?;
            self.vectors.embed_batches(&mut self.segment, &mut |n_tokens| {
                state.n_tokens += n_tokens;
                progress(state);
            })?;
        }
        progress(state);
        Ok(())
    }

    /// Writes the segment and publishes the generation; does nothing if nothing changed.
    pub(super) fn finish(
        mut self,
        roots: &[Root],
        graph_rows_min: usize,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<IndexReport> {
        let (counts, encoder) = (self.vectors.counts, self.vectors.encoder);
        let report = &mut self.ledger.report;
        report.n_tokens += counts.n_tokens;
        report.n_tokens_embedded += counts.n_tokens_embedded;
        report.n_from_log += counts.n_from_log;
        report.n_truncated += counts.n_truncated;
        report.notes.extend(self.vectors.finish());
        let n_new = self.segment.n_documents();
        if n_new == 0 && self.ledger.replaced.is_empty() && !self.ledger.settles_losses(self.snapshot) {
            let Some(snapshot) = self.snapshot else { return Err(self.ledger.nothing()) };
            self.ledger.report.generation = snapshot.manifest.generation;
            return Ok(self.ledger.report);
        }
        self.progress.stage = Stage::Writing;
        progress(&self.progress);
        let n_rows = self.segment.n_rows() as u64;
        let state = &mut self.progress;
        let graphs = self.segment.finish(graph_rows_min, |n_done| {
            state.n_graph_rows = n_done as u64;
            progress(state);
        })?;
        let new = (n_new > 0).then_some(self.segment_name.as_str());
        let calibration = calibrate(self.snapshot, self.folder, new, self.config, encoder)?;
        let new = NewSegment {
            name: self.segment_name,
            n_documents: n_new as u64,
            n_rows,
            graphs,
            replaces: BTreeSet::new(),
        };
        let commit = Commit {
            config: self.config.clone(),
            roots: roots.iter().map(|root| (root.label.clone(), absolute(&root.path))).collect(),
            new_segments: Some(new).into_iter().filter(|segment| segment.n_documents > 0).collect(),
            deleted: std::mem::take(&mut self.ledger.replaced),
        };
        let manifest = self.snapshot.map(|snapshot| &snapshot.manifest);
        let base = Base {
            manifest,
            deleted: &|at| self.snapshot.expect("a segment is of a snapshot").segments[at].deleted.clone(),
            losses: manifest.map(|manifest| self.ledger.remaining_losses(manifest)).unwrap_or_default(),
            calibration,
            is_answered_alike: false,
        };
        let committed = commit.publish_over(self.fs, self.folder, base)?;
        self.ledger.report.generation = committed.generation;
        self.ledger.report.notes.extend(committed.remark);
        Ok(self.ledger.report)
    }
}

/// Calibrates the cosines with the new segment, whose files are complete; documents that die with this commit are still
/// looked at.
fn calibrate(
    snapshot: Option<&Generation>,
    folder: &Path,
    new: Option<&str>,
    config: &CollectionConfig,
    encoder: &Embedder,
) -> Result<Option<Calibration>> {
    let analyzer = Analyzer::new(config.language()?);
    let folder = Folder::open(folder).at(folder)?;
    let open = |name: &str| {
        Segment::open(&segment::folder(&folder, name)?, name, &analyzer, config.pooling, RoaringBitmap::new())
    };
    let new = new.map(open).transpose()?;
    let old = snapshot.iter().flat_map(|snapshot| &snapshot.segments);
    calibration::measure(&old.chain(&new).collect::<Vec<_>>(), encoder)
}
