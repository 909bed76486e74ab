//! Repair: what is damaged is set aside, what can be read of it is written anew, and the rest is known by name.
//!
//! A segment in which the [doctor](crate::doctor) finds anything is read document by document. Those that are whole go into a new
//! segment with their vectors; vectors that cannot be read come from the embedding cache or, if they are not there, from the
//! encoder; graph and postings are made again. The damaged segment moves to `quarantine/`, where nothing reads it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use roaring::RoaringBitmap;
use serde::Serialize;

use crate::commit::{Base, Commit, NewSegment};
use crate::doctor::Examined;
use crate::error::{AtPath, Error, Result};
use crate::fs::Fs;
use crate::ingest::{Encoder, IndexOptions, Progress, RowVectors, Stage, load_encoder, settle};
use crate::lock::WriterLock;
use crate::losses::{Loss, LostDocument};
use crate::manifest::{CURRENT, GENERATIONS, Manifest, SegmentEntry, replace};
use crate::segment::{Salvage, SegmentWriter, StoredDocument};
use crate::{deletes, describe};

/// Folder of damaged segments.
pub(crate) const QUARANTINE: &str = "quarantine";

/// How to repair.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// Where lost vectors are looked for and how they are embedded: model, device, precision, threads, cache, graph threshold.
    pub index: IndexOptions,
    /// Whether the encoder may be asked for vectors that cannot be read; if not, needing it is an error.
    pub embed: bool,
    /// Give up what earlier repairs could not keep: nothing warns of it any more.
    pub accept_losses: bool,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self { index: IndexOptions::default(), embed: true, accept_losses: false }
    }
}

/// What a repair did.
#[derive(Debug, Clone, Serialize)]
pub struct RepairReport {
    /// Format of this answer.
    pub version: u32,
    /// Generation that answers now.
    pub generation: u64,
    /// The segments that were damaged.
    pub segments: Vec<RepairedSegment>,
    /// Documents that do not answer any more, until they are indexed again.
    pub losses: Vec<Loss>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// What became of a damaged segment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RepairedSegment {
    /// Its name; its files are in `quarantine/`.
    pub name: String,
    /// What was wrong with it.
    pub problems: Vec<String>,
    /// The segment with what could be kept, if there is anything.
    pub replacement: Option<String>,
    /// Documents that were kept.
    pub n_documents: u64,
    /// Rows that were kept.
    pub n_rows: u64,
    /// Of these, rows whose vectors came from the embedding cache.
    pub n_from_cache: u64,
    /// Tokens that were embedded for the others.
    pub n_tokens_embedded: u64,
    /// Documents that could not be kept.
    pub n_lost: u64,
}

/// Repairs the collection at `folder`; nothing is written where nothing is damaged.
pub fn repair(
    folder: &Path,
    options: &RepairOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<RepairReport> {
    Manifest::read_or_newest(folder)?; // says that there is no collection before a lock file is made
    let lock = WriterLock::acquire(folder, fs)?;
    lock.explained(repair_locked(folder, options, &lock, progress))
}

fn repair_locked(
    folder: &Path,
    options: &RepairOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<RepairReport> {
    let mut notes = Vec::new();
    let manifest = restored(fs, folder, &mut notes)?;
    let examined: Vec<Examined> =
        manifest.segments.iter().map(|entry| Examined::new(folder, &manifest, entry)).collect();
    let encoder = OnceCell::new();
    let mut repair = Repair {
        fs,
        folder,
        manifest: &manifest,
        options,
        encoder: &encoder,
        vectors: None,
        state: Progress { stage: Stage::Compacting, ..Progress::default() },
        progress,
        losses: Vec::new(),
        notes,
    };
    let mut segments = Vec::new();
    let mut replacements = Vec::new();
    for (at, (entry, examined)) in manifest.segments.iter().zip(&examined).enumerate() {
        if examined.is_damaged() {
            let (repaired, replacement) = repair.rebuild(at, entry, examined, replacements.len())?;
            segments.push(repaired);
            replacements.push(replacement);
        }
    }
    repair.finish(segments, replacements, &examined)
}

/// The current manifest, which is made again from its copy if it is damaged.
fn restored(fs: &dyn Fs, folder: &Path, notes: &mut Vec<String>) -> Result<Manifest> {
    let (manifest, damage) = Manifest::read_or_newest(folder)?;
    let generation = manifest.generation;
    if let Some(damage) = damage {
        replace(fs, folder, CURRENT, &manifest.seal())?;
        notes.push(format!("{}; generation {generation} was restored from its copy", describe(&damage)));
    }
    if Manifest::read_generation(folder, generation).is_ok_and(|copy| copy == manifest) {
        return Ok(manifest);
    }
    replace(fs, &folder.join(GENERATIONS), &format!("{generation}.json"), &manifest.seal())?;
    notes.push(format!("{GENERATIONS}/{generation}.json was made again"));
    Ok(manifest)
}

struct Repair<'a> {
    fs: &'a dyn Fs,
    folder: &'a Path,
    manifest: &'a Manifest,
    options: &'a RepairOptions,
    /// Loaded when the first vector is missing.
    encoder: &'a OnceCell<Encoder>,
    vectors: Option<RowVectors<'a>>,
    state: Progress,
    progress: &'a mut dyn FnMut(&Progress),
    losses: Vec<Loss>,
    notes: Vec<String>,
}

impl<'a> Repair<'a> {
    /// Writes what can be read of a segment as the `n`-th of the next generation.
    fn rebuild(
        &mut self,
        at: usize,
        entry: &SegmentEntry,
        examined: &Examined,
        n: usize,
    ) -> Result<(RepairedSegment, NewSegment)> {
        let problem = |check: &crate::Check| Some(format!("{}: {}", check.name, check.problem.as_ref()?));
        let mut repaired = RepairedSegment {
            name: entry.name.clone(),
            problems: examined.checks.iter().filter_map(problem).collect(),
            ..RepairedSegment::default()
        };
        let deleted = match &examined.deleted {
            Some(deleted) => deleted.clone(),
            None => self.older_tombstones(entry)?,
        };
        let elsewhere = if examined.deleted.is_some() { HashSet::new() } else { self.live_elsewhere(at)? };
        let config = &self.manifest.config;
        let salvage = Salvage::open(&self.folder.join("segments").join(&entry.name), config);
        let mut reader = salvage.reader(config.header_style()?);
        let name = format!("{}-{n}", self.manifest.generation + 1);
        let mut writer = SegmentWriter::create(self.fs, &self.folder.join("segments").join(&name), config)?;
        let mut loss = Loss { segment: entry.name.clone(), documents: Vec::new(), n_unnamed: 0 };
        for document in (0..entry.n_documents as u32).filter(|document| !deleted.contains(*document)) {
            match reader.as_mut().map(|reader| reader.read(document)) {
                Some(Ok(stored)) if elsewhere.contains(&stored.document.id) => {}
                Some(Ok(stored)) => self.keep(&stored, &salvage, &mut writer)?,
                _ => match salvage.named(document) {
                    Some((id, origin)) => loss.documents.push(LostDocument { id, origin }),
                    None => loss.n_unnamed += 1,
                },
            }
        }
        if let Some(vectors) = &mut self.vectors {
            let before = std::mem::take(&mut vectors.counts);
            vectors.embed_rest(&mut writer, &mut |_| {})?;
            repaired.n_from_cache = before.n_from_log;
            repaired.n_tokens_embedded = before.n_tokens_embedded + vectors.counts.n_tokens_embedded;
            vectors.counts = Default::default();
        }
        (repaired.n_documents, repaired.n_rows) = (writer.n_documents() as u64, writer.n_rows() as u64);
        repaired.n_lost = loss.n_documents();
        repaired.replacement = Some(name.clone()).filter(|_| repaired.n_documents > 0);
        let state = &mut self.state;
        let graphs = writer.finish(self.options.index.graph_rows_min, |n_done| {
            state.n_graph_rows = n_done as u64;
            (self.progress)(state);
        })?;
        self.losses.extend(Some(loss).filter(|loss| loss.n_documents() > 0));
        let (n_documents, n_rows) = (repaired.n_documents, repaired.n_rows);
        Ok((repaired, NewSegment { name, n_documents, n_rows, graphs, replaces: BTreeSet::from([at]) }))
    }

    /// Writes a document with the vectors it had or, if one of them cannot be read, with those of the cache or the encoder.
    fn keep(&mut self, stored: &StoredDocument, salvage: &Salvage, writer: &mut SegmentWriter<'_>) -> Result<()> {
        let new = stored.as_new();
        let first_row = writer.push(&new)?;
        if let Some(columns) = salvage.vectors(stored) {
            for (at, column) in columns.iter().enumerate() {
                for (row, vector) in (first_row..).zip(column) {
                    writer.set_vector(at, row, vector)?;
                }
            }
        } else {
            let vectors = self.vectors()?;
            vectors.add(writer, &new, first_row)?;
            vectors.embed_batches(writer, &mut |_| {})?;
        }
        self.state.n_rows += new.chunks.len() as u64;
        (self.progress)(&self.state);
        Ok(())
    }

    /// The encoder and the cache, held against the collection's.
    fn vectors(&mut self) -> Result<&mut RowVectors<'a>> {
        if self.vectors.is_none() {
            if !self.options.embed {
                return Err(Error::VectorsLost);
            }
            let (options, config) = (&self.options.index, &self.manifest.config);
            let loaded = load_encoder(Some(self.manifest), options)?;
            settle(Some(config), options, &loaded)?;
            let encoder = self.encoder.get_or_init(|| loaded);
            self.vectors = Some(RowVectors::new(self.folder, config, &encoder.embedder, options.cache.as_ref())?);
        }
        Ok(self.vectors.as_mut().expect("made above"))
    }

    /// Tombstones of a segment whose own cannot be read: those of the newest other generation that has any.
    fn older_tombstones(&mut self, entry: &SegmentEntry) -> Result<RoaringBitmap> {
        let place = self.folder.join(GENERATIONS);
        let mut older: Vec<Manifest> = Vec::new();
        for found in std::fs::read_dir(&place).at(&place)? {
            older.extend(Manifest::read_file(&found.at(&place)?.path()).ok());
        }
        older.sort_by_key(|manifest| std::cmp::Reverse(manifest.generation));
        let entries = older.iter().flat_map(|manifest| &manifest.segments);
        let mut same = entries.filter(|older| older.name == entry.name && older.deletes != entry.deletes);
        self.notes.push(format!(
            "which documents of segment {} were deleted cannot be read: some may answer again; `cento index` or `cento delete` them",
            entry.name
        ));
        Ok(same.find_map(|older| deletes::of_entry(self.folder, older).ok()).unwrap_or_default())
    }

    /// Ids that answer from other segments.
    fn live_elsewhere(&self, at: usize) -> Result<HashSet<String>> {
        let mut ids = HashSet::new();
        for (_, entry) in self.manifest.segments.iter().enumerate().filter(|(other, _)| *other != at) {
            let salvage = Salvage::open(&self.folder.join("segments").join(&entry.name), &self.manifest.config);
            let deleted = deletes::of_entry(self.folder, entry).unwrap_or_default();
            let live = (0..entry.n_documents as u32).filter(|document| !deleted.contains(*document));
            ids.extend(live.filter_map(|document| salvage.named(document)).map(|(id, _)| id));
        }
        Ok(ids)
    }

    /// Publishes the generation without the damage and sets the damaged segments aside.
    fn finish(
        mut self,
        segments: Vec<RepairedSegment>,
        new_segments: Vec<NewSegment>,
        examined: &[Examined],
    ) -> Result<RepairReport> {
        let manifest = self.manifest;
        self.notes.extend(self.vectors.map(RowVectors::finish).into_iter().flatten());
        let mut losses = if self.options.accept_losses { Vec::new() } else { manifest.losses.clone() };
        losses.append(&mut self.losses);
        let mut report = RepairReport {
            version: 1,
            generation: manifest.generation,
            segments,
            losses: losses.clone(),
            notes: self.notes,
        };
        if new_segments.is_empty() && losses == manifest.losses {
            return Ok(report);
        }
        let base = Base {
            manifest: Some(manifest),
            deleted: &|at| examined[at].deleted.clone().unwrap_or_default(),
            losses,
            calibration: manifest.calibration.clone(),
            is_answered_alike: false,
        };
        let commit = Commit {
            config: manifest.config.clone(),
            roots: manifest.roots.clone(),
            new_segments,
            deleted: BTreeMap::new(),
        };
        let committed = commit.publish_over(self.fs, self.folder, base)?;
        report.generation = committed.generation;
        report.notes.extend(committed.remark);
        let set_aside = report.segments.iter().try_for_each(|segment| quarantine(self.fs, self.folder, &segment.name));
        report.notes.extend(set_aside.err().map(|error| format!("not set aside: {}", describe(&error))));
        Ok(report)
    }
}

fn quarantine(fs: &dyn Fs, folder: &Path, segment: &str) -> Result<()> {
    let from = folder.join("segments").join(segment);
    if !from.exists() {
        return Ok(()); // that it was gone was the damage
    }
    let place = folder.join(QUARANTINE);
    if !place.is_dir() {
        fs.create_dir(&place).at(&place)?;
        fs.sync_dir(folder).at(folder)?;
    }
    let to = place.join(segment);
    fs.rename(&from, &to).at(&to)?;
    fs.sync_dir(&place).at(&place)
}
