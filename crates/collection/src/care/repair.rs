//! Repair: what is damaged is set aside, what can be read of it is written anew, and the rest is known by name.
//!
//! A segment in which the [doctor](super::doctor) finds anything is read document by document. Those that are whole go
//! into a new segment with their vectors; vectors that cannot be read come from the embedding cache or, if they are not
//! there, from the encoder; graph and postings are made again. The damaged segment moves to `quarantine/`, where
//! nothing reads it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use roaring::RoaringBitmap;
use serde::Serialize;

use super::doctor::{Check, Examined};
use crate::error::{AtPath, Error, Result, describe};
use crate::format::calibration::Calibration;
use crate::format::deletes;
use crate::format::layout::{CURRENT, GENERATIONS, QUARANTINE, SEGMENTS, SNAPSHOTS};
use crate::format::losses::{Loss, LostDocument};
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::format::segment::{NewDocument, Salvage, SegmentWriter, StoredDocument};
use crate::fs::{Folder, Fs, write_atomically};
use crate::keep::lock::WriterLock;
use crate::keep::named;
use crate::write::commit::{Base, Commit, NewSegment};
use crate::write::compact::Copied;

/// Vectors for rows whose own cannot be read.
pub trait LostVectors {
    /// Why a vector could not be had; refusals of the collection among them.
    type Error: From<crate::Error>;

    /// Gives the rows of a document that was just pushed their vectors, or queues them.
    fn add(
        &mut self,
        writer: &mut SegmentWriter<'_>,
        document: &NewDocument<'_>,
        first_row: u32,
    ) -> Result<(), Self::Error>;

    /// Gives all queued rows of a segment their vectors, and says where those of the segment came from.
    fn finish_segment(&mut self, writer: &mut SegmentWriter<'_>) -> Result<VectorSources, Self::Error>;

    /// Ends the repair; what was noticed.
    fn finish(self) -> Vec<String>;
}

/// Where the vectors of a segment came from that could not be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct VectorSources {
    /// Rows whose vectors were kept elsewhere.
    pub n_from_cache: u64,
    /// Tokens that were embedded for the others.
    pub n_tokens_embedded: u64,
}

/// The treatment of documents that earlier repairs could not keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Losses {
    /// Every answer goes on warning of them.
    #[default]
    Remembered,
    /// Nothing warns of them any more.
    Accepted,
}

/// Settings of a repair.
#[derive(Debug, Clone, Copy)]
pub struct RepairOptions {
    /// Rows from which a segment gets a graph.
    pub graph_rows_min: usize,
    /// The treatment of earlier losses.
    pub losses: Losses,
}

/// The outcome of a repair.
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
    /// Further remarks.
    pub notes: Vec<String>,
}

/// The fate of a damaged segment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RepairedSegment {
    /// Its name; its files are in `quarantine/`.
    pub name: String,
    /// The fault that was found.
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
///
/// # Errors
/// Those of the folder, and those of `vectors`.
pub fn repair<V: LostVectors>(
    folder: &Path,
    options: &RepairOptions,
    fs: &dyn Fs,
    vectors: V,
    progress: &mut dyn FnMut(&Copied),
) -> Result<RepairReport, V::Error> {
    Manifest::read_or_newest(folder)?; // says that there is no collection before a lock file is made
    let lock = WriterLock::acquire(folder, fs)?;
    lock.explained(repair_locked(folder, options, &lock, vectors, progress))
}

fn repair_locked<V: LostVectors>(
    folder: &Path,
    options: &RepairOptions,
    fs: &dyn Fs,
    vectors: V,
    progress: &mut dyn FnMut(&Copied),
) -> Result<RepairReport, V::Error> {
    let mut notes = Vec::new();
    let manifest = restored(fs, folder, &mut notes)?;
    let opened = Folder::open(folder).at(folder)?;
    let examined: Vec<Examined> =
        manifest.segments.iter().map(|entry| Examined::new(&opened, &manifest, entry)).collect();
    let mut repair = Repair {
        fs,
        folder,
        opened,
        manifest: &manifest,
        options,
        vectors,
        state: Copied::default(),
        progress,
        losses: Vec::new(),
        notes,
        next_number: 0,
    };
    let mut segments = Vec::new();
    let mut replacements = Vec::new();
    for (at, (entry, examined)) in manifest.segments.iter().zip(&examined).enumerate() {
        if examined.is_damaged() {
            let (repaired, replacement) = repair.rebuild(at, entry, examined)?;
            segments.push(repaired);
            replacements.push(replacement);
        }
    }
    Ok(repair.finish(segments, replacements, &examined)?)
}

/// The current manifest, which is made again from its copy if it is damaged.
fn restored(fs: &dyn Fs, folder: &Path, notes: &mut Vec<String>) -> Result<Manifest> {
    let (manifest, damage) = Manifest::read_or_newest(folder)?;
    let generation = manifest.generation;
    if let Some(damage) = damage {
        write_atomically(fs, &folder.join(CURRENT), &manifest.seal())?;
        notes.push(format!("{}; generation {generation} was restored from its copy", describe(&damage)));
    }
    if Manifest::read_generation(folder, generation).is_ok_and(|copy| copy == manifest) {
        return Ok(manifest);
    }
    write_atomically(fs, &folder.join(GENERATIONS).join(format!("{generation}.json")), &manifest.seal())?;
    notes.push(format!("{GENERATIONS}/{generation}.json was made again"));
    Ok(manifest)
}

struct Repair<'a, V> {
    fs: &'a dyn Fs,
    folder: &'a Path,
    /// The folder, to read from.
    opened: Folder,
    manifest: &'a Manifest,
    options: &'a RepairOptions,
    vectors: V,
    state: Copied,
    progress: &'a mut dyn FnMut(&Copied),
    losses: Vec<Loss>,
    notes: Vec<String>,
    /// Of the next segment that is written.
    next_number: usize,
}

impl<V: LostVectors> Repair<'_, V> {
    /// Writes what can be read of a segment as the next one of the next generation.
    fn rebuild(
        &mut self,
        at: usize,
        entry: &SegmentEntry,
        examined: &Examined,
    ) -> Result<(RepairedSegment, NewSegment), V::Error> {
        let problem = |check: &Check| Some(format!("{}: {}", check.name, check.problem.as_ref()?));
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
        let salvage = Salvage::open(&self.opened, &entry.name, config);
        let mut reader = salvage.reader(config)?;
        let mut writer =
            SegmentWriter::create(self.fs, self.folder, self.manifest.generation + 1, self.next_number, config)?;
        let name = writer.name().to_owned();
        self.next_number = writer.number() + 1;
        let mut loss = Loss { segment: entry.name.clone(), documents: Vec::new(), n_unnamed: 0 };
        for document in (0..entry.n_documents as u32).filter(|document| !deleted.contains(*document)) {
            match reader.as_mut().map(|reader| reader.read(document)) {
                Some(Ok(stored)) if elsewhere.contains(&stored.document.id) => {}
                // Nobody can make a vector again that was given.
                Some(Ok(stored)) if config.given.is_some() && salvage.vectors(&stored).is_none() => {
                    let (id, origin) = (stored.document.id.clone(), stored.document.origin.clone());
                    loss.documents.push(LostDocument { id, origin });
                }
                Some(Ok(stored)) => self.keep(&stored, &salvage, &mut writer)?,
                _ => match salvage.named(document) {
                    Some((id, origin)) => loss.documents.push(LostDocument { id, origin }),
                    None => loss.n_unnamed += 1,
                },
            }
        }
        salvage.check_whole()?; // before vectors are made for what may be zeros
        let sources = self.vectors.finish_segment(&mut writer)?;
        (repaired.n_from_cache, repaired.n_tokens_embedded) = (sources.n_from_cache, sources.n_tokens_embedded);
        (repaired.n_documents, repaired.n_rows) = (writer.n_documents() as u64, writer.n_rows() as u64);
        repaired.n_lost = loss.n_documents();
        repaired.replacement = Some(name.clone()).filter(|_| repaired.n_documents > 0);
        let state = &mut self.state;
        let graphs = writer.finish(self.options.graph_rows_min, |n_done| {
            state.n_graph_rows = n_done as u64;
            (self.progress)(state);
        })?;
        self.losses.extend(Some(loss).filter(|loss| loss.n_documents() > 0));
        let (n_documents, n_rows) = (repaired.n_documents, repaired.n_rows);
        Ok((
            repaired,
            NewSegment {
                name,
                n_documents,
                n_rows,
                graphs,
                replaces: BTreeSet::from([at]),
                deleted: RoaringBitmap::new(),
            },
        ))
    }

    /// Writes a document with the vectors it had or, if one of them cannot be read, with those of the cache or the
    /// encoder.
    fn keep(
        &mut self,
        stored: &StoredDocument,
        salvage: &Salvage,
        writer: &mut SegmentWriter<'_>,
    ) -> Result<(), V::Error> {
        let new = stored.as_new();
        let first_row = writer.push(&new)?;
        if let Some(columns) = salvage.vectors(stored) {
            for (at, column) in columns.iter().enumerate() {
                for (row, vector) in (first_row..).zip(column) {
                    writer.set_vector(at, row, vector)?;
                }
            }
        } else {
            self.vectors.add(writer, &new, first_row)?;
        }
        self.state.n_rows += new.chunks.len() as u64;
        (self.progress)(&self.state);
        Ok(())
    }

    /// Tombstones of a segment whose own cannot be read: those of the newest other generation that has any.
    fn older_tombstones(&mut self, entry: &SegmentEntry) -> Result<RoaringBitmap> {
        let mut older = Manifest::read_generations(self.folder)?;
        older.sort_by_key(|manifest| std::cmp::Reverse(manifest.generation));
        let entries = older.iter().flat_map(|manifest| &manifest.segments);
        let mut same = entries.filter(|older| older.name == entry.name && older.deletes != entry.deletes);
        self.notes.push(format!(
            "which documents of segment {} were deleted cannot be read: some may answer again; index or delete them",
            entry.name
        ));
        Ok(same.find_map(|older| deletes::of_entry(&self.opened, older).ok()).unwrap_or_default())
    }

    /// Ids that answer from other segments.
    fn live_elsewhere(&self, at: usize) -> Result<HashSet<String>> {
        let mut ids = HashSet::new();
        for (_, entry) in self.manifest.segments.iter().enumerate().filter(|(other, _)| *other != at) {
            let salvage = Salvage::open(&self.opened, &entry.name, &self.manifest.config);
            let deleted = deletes::of_entry(&self.opened, entry).unwrap_or_default();
            let live = (0..entry.n_documents as u32).filter(|document| !deleted.contains(*document));
            ids.extend(live.filter_map(|document| salvage.named(document)).map(|(id, _)| id));
            salvage.check_whole()?;
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
        self.notes.extend(self.vectors.finish());
        let mut losses = match self.options.losses {
            Losses::Remembered => manifest.losses.clone(),
            Losses::Accepted => Vec::new(),
        };
        // Chunks that were lost may be in the sample, and nobody can name them all.
        let calibration = match (&manifest.calibration, self.losses.is_empty()) {
            (calibration, true) => calibration.clone(),
            (calibration, false) => calibration.as_ref().and_then(Calibration::of_losses),
        };
        losses.append(&mut self.losses);
        let mut report = RepairReport {
            version: 1,
            generation: manifest.generation,
            segments,
            losses: losses.clone(),
            notes: self.notes,
        };
        if new_segments.is_empty() && losses == manifest.losses {
            report.notes.extend(set_aside_snapshots(self.fs, self.folder)?);
            return Ok(report);
        }
        let base = Base {
            manifest: Some(manifest),
            read: Vec::new(), // what was read was looked at segment by segment
            deleted: &|at| examined[at].deleted.clone().unwrap_or_default(),
            losses,
            stale: manifest.stale.clone(),
            reports: manifest.reports.clone(),
            calibration,
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
        let set_aside = |segment: &RepairedSegment| quarantine(self.fs, self.folder, SEGMENTS, &segment.name);
        let set_aside = report.segments.iter().try_for_each(set_aside);
        report.notes.extend(set_aside.err().map(|error| format!("not set aside: {}", describe(&error))));
        report.notes.extend(set_aside_snapshots(self.fs, self.folder)?);
        Ok(report)
    }
}

/// Sets damaged snapshots aside, after the commit, whose garbage collection still keeps what they may need; what was
/// done.
fn set_aside_snapshots(fs: &dyn Fs, folder: &Path) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let unread = match named::all(folder) {
        Ok(snapshots) => snapshots.unread,
        Err(error) => return Ok(vec![format!("snapshots were not looked at: {}", describe(&error))]),
    };
    for (name, error) in unread {
        let problem = describe(&error);
        if matches!(error, Error::Corrupt { .. }) || error.is_of_the_disk() {
            quarantine(fs, folder, SNAPSHOTS, &format!("{name}.json"))?;
            notes
                .push(format!("snapshot {name} was set aside: {problem}; what only it kept goes with the next commit"));
        } else {
            notes.push(format!("snapshot {name} stays, and so does whatever it may need: {problem}"));
        }
    }
    Ok(notes)
}

/// Moves an entry of a folder of the collection to where nothing reads it.
fn quarantine(fs: &dyn Fs, folder: &Path, of: &str, name: &str) -> Result<()> {
    let from = folder.join(of);
    if !fs.list(&from).at(&from)?.iter().any(|found| found == name) {
        return Ok(()); // that it was gone was the damage
    }
    let place = folder.join(QUARANTINE);
    if !place.is_dir() {
        fs.create_dir(&place).at(&place)?;
        fs.sync_dir(folder).at(folder)?;
    }
    let to = place.join(name);
    fs.rename(&from.join(name), &to).at(&to)?;
    fs.sync_dir(&place).at(&place)?;
    fs.sync_dir(&from).at(&from)
}
