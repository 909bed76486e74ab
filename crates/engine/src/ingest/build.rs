//! Builds the new segment: rows for new and changed documents, vectors from the log or the encoder, then the commit.

use std::collections::HashMap;
use std::path::Path;

use cento_corpus::{self as corpus, ChunkConfig, ChunkSize, Document, FoundFile, ReadOptions, Root};
use cento_embedder::{Embedder, Kind, cache};
use cento_lexical::Analyzer;
use rayon::prelude::*;

use super::late::LateQueue;
use super::ledger::{ContentHash, Group, Ledger};
use super::options::chunk_config;
use super::{IndexReport, Prepared, Progress, Stage, absolute, prepare};
use crate::cache::CacheOptions;
use crate::commit::{Commit, NewSegment};
use crate::config::{CollectionConfig, VectorColumn};
use crate::embeddings::EmbeddingLog;
use crate::error::{AtPath, Result};
use crate::fs::Fs;
use crate::searcher::Snapshot;
use crate::segment::{NewChunk, NewDocument, SegmentWriter};

/// Texts embedded between two writes of the log; what an interruption loses at most.
pub(super) const EMBED_TEXTS: usize = 512;

/// A row whose vector is not known yet.
struct Pending {
    row: u32,
    key: cache::Key,
    text: String,
}

/// A segment in the making.
pub(super) struct Build<'a> {
    fs: &'a dyn Fs,
    folder: &'a Path,
    config: &'a CollectionConfig,
    pub(super) chunking: ChunkConfig,
    pub(super) encoder: &'a Embedder,
    snapshot: Option<&'a Snapshot>,
    pub(super) ledger: Ledger,
    pub(super) segment: SegmentWriter<'a>,
    segment_name: String,
    pub(super) log: EmbeddingLog,
    /// Where plain vectors are kept in the segment, if they are asked for.
    plain: Option<usize>,
    pending: Vec<Pending>,
    /// The same for late vectors.
    pub(super) late: Option<LateQueue>,
    pub(super) progress: Progress,
}

impl<'a> Build<'a> {
    pub(super) fn start(
        fs: &'a dyn Fs,
        folder: &'a Path,
        config: &'a CollectionConfig,
        encoder: &'a Embedder,
        snapshot: Option<&'a Snapshot>,
        ledger: Ledger,
        cache: Option<&CacheOptions>,
    ) -> Result<Self> {
        let generation = snapshot.map_or(0, |snapshot| snapshot.manifest.generation) + 1;
        let segment_name = format!("{generation}-0");
        let analyzer = Analyzer::new(config.language()?);
        let column = |vectors| config.pooling.columns().iter().position(|column| *column == vectors);
        let late = column(VectorColumn::Late).zip(config.late);
        Ok(Self {
            fs,
            folder,
            config,
            chunking: chunk_config(config, encoder)?,
            encoder,
            snapshot,
            ledger,
            segment: SegmentWriter::create(
                fs,
                &folder.join("segments").join(&segment_name),
                &analyzer,
                config.dimensions,
                config.pooling,
            )?,
            segment_name,
            log: EmbeddingLog::open(&folder.join("embeddings"), cache, config),
            plain: column(VectorColumn::Plain),
            pending: Vec::new(),
            late: late.map(|(column, reading)| LateQueue::new(reading, column, encoder)).transpose()?,
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
        self.embed(progress)?;
        self.embed_late(progress)
    }

    fn add(&mut self, group: Vec<(Document, ContentHash)>, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let (chunking, encoder) = (&self.chunking, self.encoder);
        let prepared: Vec<Prepared> =
            group.into_par_iter().map(|(document, hash)| prepare(document, hash, chunking, encoder)).collect();
        self.progress.n_documents = self.ledger.n_documents();
        for prepared in &prepared {
            self.add_document(prepared)?;
            if self.pending.len() >= EMBED_TEXTS {
                self.embed(progress)?;
            }
            if self.late.as_ref().is_some_and(|late| late.n_rows() >= EMBED_TEXTS) {
                self.embed_late(progress)?;
            }
        }
        progress(&self.progress);
        Ok(())
    }

    fn add_document(&mut self, prepared: &Prepared) -> Result<()> {
        let visible = prepared.chunks.iter().zip(&prepared.headers).enumerate().filter(|(_, (chunk, _))| !chunk.hidden);
        let chunks: Vec<_> =
            visible.map(|(index, (chunk, header))| NewChunk { index: index as u32, chunk, header }).collect();
        let new = NewDocument {
            document: &prepared.document,
            hash: prepared.hash,
            n_chunks: prepared.chunks.len() as u32,
            chunks,
        };
        let first_row = self.segment.push(&new)?;
        let late_known = self.add_late(&new, first_row)?;
        self.ledger.report.n_chunks += new.chunks.len() as u64;
        let Some(column) = self.plain else {
            self.ledger.report.n_from_log += if late_known { new.chunks.len() as u64 } else { 0 };
            return Ok(());
        };
        let window_tokens = self.chunking.window_tokens;
        for (n, new_chunk) in new.chunks.iter().enumerate() {
            let text = format!("{}{}", new_chunk.header, &prepared.document.text[new_chunk.chunk.span.clone()]);
            let row = first_row + n as u32;
            if matches!(self.chunking.size, ChunkSize::Document)
                && self.encoder.tokenizer().count(&text) > window_tokens
            {
                self.ledger.report.n_truncated += 1;
            }
            let key = cache::key(self.encoder.fingerprint(), &self.encoder.bytes_embedded(&text, Kind::Document));
            match self.log.find(&key)? {
                Some(logged) => {
                    self.segment.set_vector(column, row, &logged.vector);
                    self.ledger.report.n_tokens += u64::from(logged.n_tokens);
                    self.ledger.report.n_from_log += u64::from(late_known);
                }
                None => self.pending.push(Pending { row, key, text }),
            }
        }
        Ok(())
    }

    /// Embeds what is pending, logs it, and gives each row its vector. Equal texts are embedded once.
    fn embed(&mut self, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let Some(column) = self.plain else { return Ok(()) };
        for pending in std::mem::take(&mut self.pending).chunks(EMBED_TEXTS) {
            let mut first_with: HashMap<cache::Key, usize> = HashMap::new();
            let mut texts = Vec::new();
            let mut keys = Vec::new();
            for one in pending {
                first_with.entry(one.key).or_insert_with(|| {
                    texts.push(one.text.clone());
                    keys.push(one.key);
                    texts.len() - 1
                });
            }
            let embeddings = self.encoder.embed(&texts, Kind::Document)?;
            self.log.append(&keys, &embeddings)?;
            for one in pending {
                let embedding = &embeddings[first_with[&one.key]];
                self.segment.set_vector(column, one.row, &embedding.vector);
                self.ledger.report.n_tokens += u64::from(embedding.n_tokens);
            }
            let n_tokens: u64 = embeddings.iter().map(|embedding| u64::from(embedding.n_tokens)).sum();
            self.ledger.report.n_tokens_embedded += n_tokens;
            self.progress.n_tokens += n_tokens;
            progress(&self.progress);
        }
        Ok(())
    }

    /// Tombstones what vanished, writes the segment and publishes the generation; does nothing if nothing changed.
    pub(super) fn finish(
        mut self,
        roots: &[Root],
        graph_rows_min: usize,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<IndexReport> {
        self.ledger.tombstone_vanished();
        self.ledger.report.notes.extend(self.log.finish());
        self.ledger.report.notes.extend(self.encoder.device_remark());
        let n_new = self.segment.n_documents();
        let segment_folder = self.folder.join("segments").join(&self.segment_name);
        if n_new == 0 && self.ledger.replaced.is_empty() {
            self.fs.remove_dir(&segment_folder).at(&segment_folder)?;
            let Some(snapshot) = self.snapshot else { return Err(self.ledger.nothing()) };
            self.ledger.report.generation = snapshot.manifest.generation;
            return Ok(self.ledger.report);
        }
        self.progress.stage = Stage::Writing;
        progress(&self.progress);
        let n_rows = self.segment.n_rows() as u64;
        let state = &mut self.progress;
        self.segment.finish(self.config.scalar()?, graph_rows_min, |n_done| {
            state.n_graph_rows = n_done as u64;
            progress(state);
        })?;
        let new_segment = NewSegment { name: self.segment_name, n_documents: n_new as u64, n_rows };
        let commit = Commit {
            config: self.config.clone(),
            roots: roots.iter().map(|root| (root.label.clone(), absolute(&root.path))).collect(),
            new_segment: Some(new_segment).filter(|segment| segment.n_documents > 0),
            deleted: self.ledger.replaced,
        };
        self.ledger.report.generation = commit.publish(self.fs, self.folder, self.snapshot)?;
        Ok(self.ledger.report)
    }
}
