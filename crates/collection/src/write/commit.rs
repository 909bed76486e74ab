//! A commit: segments and tombstones are on the disk, then one manifest names them.
//!
//! Order: files of the segment synced → its folder → `segments/` → tombstones → the pin of the generation → its
//! manifest → `manifest.json` by rename → the folder synced. Whatever comes first is complete before what names it, so
//! a crash at any point leaves the old generation or the new one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;

use crate::error::{AtPath, Error, Result};
use crate::format::calibration::Calibration;
use crate::format::config::CollectionConfig;
use crate::format::deletes;
use crate::format::graph_health::GraphHealth;
use crate::format::layout::{DELETES, SEGMENTS};
use crate::format::losses::{Loss, Stale};
use crate::format::manifest::{FORMAT, Manifest, SegmentEntry};
use crate::fs::Fs;
use crate::keep::generation::Generation;
use crate::keep::{garbage, pins, reports};

/// A segment that was written and is not yet named.
pub struct NewSegment {
    /// Folder under `segments/`.
    pub name: String,
    /// Documents in it.
    pub n_documents: u64,
    /// Rows in it.
    pub n_rows: u64,
    /// The health of its graphs.
    pub graphs: Vec<GraphHealth>,
    /// Positions, in the generation before, of the segments whose documents it has; it takes the place of the first,
    /// and those with the same positions follow it. A segment of new documents replaces none and comes last.
    pub replaces: BTreeSet<usize>,
    /// Documents in it that are dead already.
    pub deleted: RoaringBitmap,
}

/// Additions of the next generation.
pub struct Commit {
    /// Settings of every row.
    pub config: CollectionConfig,
    /// Label and folder of each root of the run.
    pub roots: BTreeMap<String, PathBuf>,
    /// Segments that were written.
    pub new_segments: Vec<NewSegment>,
    /// Documents that die, by the segment's position in the generation before.
    pub deleted: BTreeMap<usize, RoaringBitmap>,
}

/// The generation that a commit goes out from.
pub struct Base<'a> {
    /// Manifest of that generation; none for a new collection.
    pub manifest: Option<&'a Manifest>,
    /// The open generations that the commit was made of: one that has lost bytes meanwhile ends it.
    pub read: Vec<&'a Generation>,
    /// The documents of a segment that are dead in it, by the segment's position.
    pub deleted: &'a dyn Fn(usize) -> RoaringBitmap,
    /// The losses that the next generation reports.
    pub losses: Vec<Loss>,
    /// The documents that the next generation reports as stale.
    pub stale: Vec<Stale>,
    /// The name of its reports on files.
    pub reports: Option<String>,
    /// The meaning of the next generation's cosines.
    pub calibration: Option<Calibration>,
    /// True if the next generation only lies differently on the disk: then it stands for this one, which need not stay.
    pub is_answered_alike: bool,
}

/// A generation that was published; neither a crash nor a power loss takes it back.
pub struct Committed {
    /// Its number.
    pub generation: u64,
    /// A remark on a later step that failed without harm to the collection.
    pub remark: Option<String>,
}

/// The stale documents of a generation that do not die.
fn stale_without(old: &Generation, dying: &BTreeMap<usize, RoaringBitmap>) -> Result<Vec<Stale>> {
    let mut stale = old.manifest.stale.clone();
    if stale.is_empty() {
        return Ok(stale);
    }
    let mut ids = HashSet::new();
    for (&at, documents) in dying {
        for document in documents {
            ids.insert(old.segments[at].document_id(document)?);
        }
    }
    for stale in &mut stale {
        let n_named = stale.documents.len();
        stale.documents.retain(|id| !ids.contains(id.as_str()));
        stale.n_documents -= (n_named - stale.documents.len()) as u64;
    }
    stale.retain(|stale| stale.n_documents > 0);
    Ok(stale)
}

impl Commit {
    /// Publishes the generation after another; then removes what only older generations named.
    pub fn publish(self, fs: &dyn Fs, folder: &Path, old: Option<&Generation>) -> Result<Committed> {
        let base = Base {
            manifest: old.map(|old| &old.manifest),
            read: old.into_iter().collect(),
            deleted: &|at| old.map(|old| old.segments[at].deleted.clone()).unwrap_or_default(),
            losses: old.map(|old| old.manifest.losses.clone()).unwrap_or_default(),
            stale: old.map(|old| stale_without(old, &self.deleted)).transpose()?.unwrap_or_default(),
            reports: old.map(|old| reports::without(fs, folder, old, &self.deleted)).transpose()?.flatten(),
            calibration: old.map(|old| old.calibration_without(&self.deleted)).transpose()?.flatten(),
            is_answered_alike: false,
        };
        self.publish_over(fs, folder, base)
    }

    /// Publishes the generation after `base`; then removes what only older generations named.
    pub fn publish_over(mut self, fs: &dyn Fs, folder: &Path, base: Base<'_>) -> Result<Committed> {
        check_base(folder, base.manifest)?;
        let segments_folder = folder.join(SEGMENTS);
        fs.sync_dir(&segments_folder).at(&segments_folder)?;
        let old = base.manifest;
        let generation = old.map_or(0, |old| old.generation) + 1;
        let segments = self.segments(fs, folder, &base, generation)?;
        let deletes_folder = folder.join(DELETES);
        fs.sync_dir(&deletes_folder).at(&deletes_folder)?;
        let mut roots = old.map(|old| old.roots.clone()).unwrap_or_default();
        roots.append(&mut self.roots);
        let manifest = Manifest {
            format: FORMAT,
            cento: env!("CARGO_PKG_VERSION").to_owned(),
            generation,
            config: self.config,
            roots,
            segments,
            losses: base.losses,
            stale: base.stale,
            reports: base.reports,
            calibration: base.calibration,
        };
        pins::create(fs, folder, generation)?;
        base.read.iter().try_for_each(|read| read.check_whole())?;
        check_base(folder, old)?;
        manifest.publish(fs, folder)?;
        let previous = old.filter(|_| !base.is_answered_alike);
        Ok(Committed { generation, remark: garbage::collected(fs, folder, &manifest, previous) })
    }

    /// The segments of the next generation; writes their tombstones.
    fn segments(&mut self, fs: &dyn Fs, folder: &Path, base: &Base<'_>, generation: u64) -> Result<Vec<SegmentEntry>> {
        let mut segments = Vec::new();
        let mut new_segments = std::mem::take(&mut self.new_segments);
        for (at, old) in base.manifest.iter().flat_map(|manifest| &manifest.segments).enumerate() {
            if new_segments.iter().any(|new| new.replaces.contains(&at)) {
                let instead =
                    new_segments.iter().filter(|new| new.replaces.first() == Some(&at) && new.n_documents > 0);
                for new in instead {
                    segments.push(entry(fs, folder, generation, new)?);
                }
                continue;
            }
            let mut entry = old.clone();
            if let Some(dying) = self.deleted.get(&at) {
                let dead = (base.deleted)(at) | dying;
                if dead.len() == entry.n_documents {
                    continue; // nothing in it answers any more
                }
                entry.deletes = Some(write_deletes(fs, folder, generation, &entry.name, &dead)?);
            }
            segments.push(entry);
        }
        new_segments.retain(|new| new.replaces.is_empty());
        for new in &new_segments {
            segments.push(entry(fs, folder, generation, new)?);
        }
        Ok(segments)
    }
}

/// Refuses where the collection is at another generation than the one that the commit goes out from: another writer
/// has come between, whose commit this one would take back.
fn check_base(folder: &Path, base: Option<&Manifest>) -> Result<()> {
    let expected = base.map(|base| base.generation);
    match Manifest::read_if_any(folder)?.map(|current| current.generation) {
        current if current == expected => Ok(()),
        current => Err(Error::Overtaken {
            path: folder.to_owned(),
            expected: expected.unwrap_or_default(),
            found: current.unwrap_or_default(),
        }),
    }
}

/// The segment as a manifest names it; writes its tombstones, if it has any.
fn entry(fs: &dyn Fs, folder: &Path, generation: u64, new: &NewSegment) -> Result<SegmentEntry> {
    let has_dead = !new.deleted.is_empty();
    let deletes = has_dead.then(|| write_deletes(fs, folder, generation, &new.name, &new.deleted)).transpose()?;
    let NewSegment { name, n_documents, n_rows, graphs, .. } = new;
    Ok(SegmentEntry { name: name.clone(), n_documents: *n_documents, n_rows: *n_rows, deletes, graphs: graphs.clone() })
}

/// Writes the dead documents of a segment; the name of the file.
fn write_deletes(fs: &dyn Fs, folder: &Path, generation: u64, segment: &str, dead: &RoaringBitmap) -> Result<String> {
    let name = format!("{generation}-{segment}");
    deletes::write(fs, &folder.join(DELETES).join(&name), dead)?;
    Ok(name)
}
