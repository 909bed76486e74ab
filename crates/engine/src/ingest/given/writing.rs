//! Writing: new and changed rows become segments, and the segments a generation.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use cento_collection::format::config::{CollectionConfig, SEGMENT_ROWS_MAX};
use cento_collection::format::segment::{NewChunk, NewDocument, SegmentLimits};
use cento_collection::fs::Fs;
use cento_collection::keep::generation::Generation;
use cento_collection::write::commit::{Base, Commit};
use cento_collection::write::memory;
use cento_collection::write::segments::SegmentsWriter;
use cento_corpus::{Anchor, Chunk};
use cento_vector::Lift;
use roaring::RoaringBitmap;

use super::options::{GivenOptions, Lengths};
use super::rows::{Given, IdHash, One, id_hash, length};
use crate::error::Result;
use crate::ingest::{IndexReport, Progress, Stage};

/// Bytes of memory that a document takes until the run ends.
const LEDGER_BYTES: u64 = 64;

/// Documents between two reports of progress.
const PROGRESS_DOCUMENTS: u64 = 4096;

/// Writes new and changed documents, and publishes the generation with them.
pub(super) fn write(
    folder: &Path,
    options: &GivenOptions,
    config: &CollectionConfig,
    snapshot: Option<&Generation>,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let memory_bytes = memory::memory_bytes(options.memory_bytes)?;
    let limits = SegmentLimits { memory_bytes, rows_max: SEGMENT_ROWS_MAX, graph_rows_min: options.graph_rows_min };
    let generation = snapshot.map_or(0, |snapshot| snapshot.manifest.generation) + 1;
    let known = snapshot.map(known_documents).transpose()?.unwrap_or_default();
    let mut writing = Writing {
        segments: SegmentsWriter::new(fs, folder, config, generation, limits),
        lift: config.lift(),
        memory_bytes,
        snapshot,
        known,
        seen: HashSet::new(),
        replaced: BTreeMap::new(),
        report: IndexReport::default(),
        state: Progress::default(),
    };
    let mut given = Given::open(options)?;
    let notes = given.matrix.notes().into_iter().map(|note| format!("{}: {note}", given.origin));
    writing.report.notes.extend(notes);
    while let Some(mut one) = given.next()? {
        if options.lengths == Lengths::Normalized {
            let length = length(&one.vector);
            one.vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
        }
        writing.add(one, progress)?;
    }
    writing.finish_segment(progress)?;
    writing.publish(folder, config, fs)
}

/// The segments of a run in the making.
struct Writing<'a> {
    segments: SegmentsWriter<'a>,
    lift: Lift,
    memory_bytes: u64,
    snapshot: Option<&'a Generation>,
    known: HashMap<IdHash, (usize, u32)>,
    seen: HashSet<IdHash>,
    replaced: BTreeMap<usize, RoaringBitmap>,
    report: IndexReport,
    state: Progress,
}

impl Writing<'_> {
    fn add(&mut self, one: One, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        self.state.n_documents += 1;
        if self.state.n_documents.is_multiple_of(PROGRESS_DOCUMENTS) {
            progress(&self.state);
        }
        let id = id_hash(&one.document.id);
        self.seen.insert(id);
        let hash = content_hash(&one);
        match self.known.get(&id) {
            Some(&(segment, document)) => {
                let snapshot = self.snapshot.expect("what is known is of a snapshot");
                if snapshot.segments[segment].document(document)?.hash == hash {
                    self.report.n_unchanged += 1;
                    return Ok(());
                }
                self.replaced.entry(segment).or_default().insert(document);
                self.report.n_changed += 1;
            }
            None => self.report.n_added += 1,
        }
        let n_tokens = one.document.text.split_whitespace().count() as u32;
        let chunk = Chunk {
            span: 0..one.document.text.len(),
            section: 0,
            n_tokens,
            hidden: false,
            anchor: one.document.blocks.first().map_or_else(Anchor::default, |block| block.anchor.clone()),
            header_skip: 0,
        };
        let chunks = vec![NewChunk { index: 0, chunk: &chunk, header: "", context: "" }];
        let new = NewDocument { document: &one.document, links: Some(&one.document.links), hash, n_chunks: 1, chunks };
        let taken_bytes = LEDGER_BYTES * (self.known.len() + self.seen.len()) as u64;
        self.segments.limits.memory_bytes = memory::segment_bytes(self.memory_bytes, taken_bytes);
        if !self.segments.has_room(&new) {
            self.finish_segment(progress)?;
        }
        let row = self.segments.push(&new)?;
        let segment = self.segments.open().expect("a document was just added");
        segment.set_vector(0, row, &self.lift.row(&one.vector))?;
        self.report.n_chunks += 1;
        Ok(())
    }

    fn finish_segment(&mut self, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        self.state.stage = Stage::Writing;
        progress(&self.state);
        let state = &mut self.state;
        self.segments.finish_segment(&BTreeSet::new(), |n_done| {
            state.n_graph_rows = n_done as u64;
            progress(state);
        })?;
        self.state.stage = Stage::Embedding;
        Ok(())
    }

    /// Publishes the generation with the segments; does nothing if nothing changed.
    fn publish(mut self, folder: &Path, config: &CollectionConfig, fs: &dyn Fs) -> Result<IndexReport> {
        let manifest = self.snapshot.map(|snapshot| &snapshot.manifest);
        let mut losses = manifest.map(|manifest| manifest.losses.clone()).unwrap_or_default();
        for loss in &mut losses {
            loss.documents.retain(|document| !self.seen.contains(&id_hash(&document.id)));
        }
        losses.retain(|loss| loss.n_documents() > 0);
        let is_settled = manifest.is_none_or(|manifest| manifest.losses == losses);
        if let Some(manifest) = manifest.filter(|_| is_settled && self.segments.written().is_empty()) {
            self.snapshot.map_or(Ok(()), Generation::check_whole)?;
            self.report.generation = manifest.generation;
            return Ok(self.report);
        }
        let commit = Commit {
            config: config.clone(),
            roots: BTreeMap::new(),
            new_segments: self.segments.finish(),
            deleted: self.replaced,
        };
        let base = Base {
            manifest,
            read: self.snapshot.into_iter().collect(),
            deleted: &|at| self.snapshot.expect("a segment is of a snapshot").segments[at].deleted.clone(),
            losses,
            stale: manifest.map(|manifest| manifest.stale.clone()).unwrap_or_default(),
            reports: manifest.and_then(|manifest| manifest.reports.clone()),
            calibration: None,
            is_answered_alike: false,
        };
        let committed = commit.publish_over(fs, folder, base)?;
        self.report.generation = committed.generation;
        self.report.notes.extend(committed.remark);
        Ok(self.report)
    }
}

fn known_documents(snapshot: &Generation) -> Result<HashMap<IdHash, (usize, u32)>> {
    let mut known = HashMap::new();
    for (at, segment) in snapshot.segments.iter().enumerate() {
        for document in segment.live_documents() {
            known.insert(id_hash(segment.document_id(document)?), (at, document));
        }
    }
    Ok(known)
}

/// Everything of a row that shapes the collection.
fn content_hash(one: &One) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for value in &one.vector {
        hasher.update(&value.to_le_bytes());
    }
    for part in [&one.document.text, &one.document.title] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let metadata = serde_json::to_vec(&one.document.metadata).expect("metadata is always JSON");
    *hasher.update(&metadata).finalize().as_bytes()
}
