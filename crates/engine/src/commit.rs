//! A commit: segments and tombstones are on the disk, then one manifest names them.
//!
//! Order: files of the segment synced → its folder → `segments/` → tombstones → the pin of the generation → its manifest →
//! `manifest.json` by rename → the folder synced. Whatever comes first is complete before what names it, so a crash at any
//! point leaves the old generation or the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;

use crate::calibration::Calibration;
use crate::config::CollectionConfig;
use crate::error::{AtPath, Result};
use crate::fs::Fs;
use crate::health::GraphHealth;
use crate::losses::Loss;
use crate::manifest::{FORMAT, Manifest, SegmentEntry};
use crate::searcher::Snapshot;
use crate::{deletes, garbage, pins};

/// A segment that was written and is not yet named.
pub(crate) struct NewSegment {
    pub(crate) name: String,
    pub(crate) n_documents: u64,
    pub(crate) n_rows: u64,
    pub(crate) graphs: Vec<GraphHealth>,
    /// Positions in the snapshot of the segments whose documents it has; it takes the place of the first. A segment of new
    /// documents replaces none and comes last.
    pub(crate) replaces: BTreeSet<usize>,
}

/// What the next generation has that this one has not.
pub(crate) struct Commit {
    pub(crate) config: CollectionConfig,
    pub(crate) roots: BTreeMap<String, PathBuf>,
    pub(crate) new_segments: Vec<NewSegment>,
    /// Documents that die, by the segment's position in the snapshot.
    pub(crate) deleted: BTreeMap<usize, RoaringBitmap>,
}

/// The generation that a commit goes out from.
pub(crate) struct Base<'a> {
    pub(crate) manifest: Option<&'a Manifest>,
    /// The documents of a segment that are dead in it, by the segment's position.
    pub(crate) deleted: &'a dyn Fn(usize) -> RoaringBitmap,
    /// What the next generation says it lost.
    pub(crate) losses: Vec<Loss>,
    /// What the cosines of the next generation mean.
    pub(crate) calibration: Option<Calibration>,
    /// Whether the next generation only lies differently on the disk: then it stands for this one, which need not stay.
    pub(crate) is_answered_alike: bool,
}

/// A generation that was published; neither a crash nor a power loss takes it back.
pub(crate) struct Committed {
    pub(crate) generation: u64,
    /// What did not succeed afterwards and does not matter for what is in the collection.
    pub(crate) remark: Option<String>,
}

impl Commit {
    /// Publishes the generation after a snapshot; then removes what only older generations named.
    pub(crate) fn publish(self, fs: &dyn Fs, folder: &Path, snapshot: Option<&Snapshot>) -> Result<Committed> {
        let base = Base {
            manifest: snapshot.map(|snapshot| &snapshot.manifest),
            deleted: &|at| snapshot.expect("a segment is of a snapshot").segments[at].deleted.clone(),
            losses: snapshot.map(|snapshot| snapshot.manifest.losses.clone()).unwrap_or_default(),
            calibration: snapshot.and_then(|snapshot| snapshot.manifest.calibration.clone()),
            is_answered_alike: false,
        };
        self.publish_over(fs, folder, base)
    }

    /// Publishes the generation after `base`; then removes what only older generations named.
    pub(crate) fn publish_over(mut self, fs: &dyn Fs, folder: &Path, base: Base<'_>) -> Result<Committed> {
        let segments_folder = folder.join("segments");
        fs.sync_dir(&segments_folder).at(&segments_folder)?;
        let old = base.manifest;
        let generation = old.map_or(0, |old| old.generation) + 1;
        let segments = self.segments(fs, folder, &base, generation)?;
        let deletes_folder = folder.join("deletes");
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
            calibration: base.calibration,
        };
        pins::create(fs, folder, generation)?;
        manifest.publish(fs, folder)?;
        let previous = old.filter(|_| !base.is_answered_alike);
        let remark = garbage::collect(fs, folder, &manifest, previous).err().map(|error| {
            format!(
                "what is no longer needed was not removed: {}; the next commit tries again",
                crate::describe(&error)
            )
        });
        Ok(Committed { generation, remark })
    }

    /// The segments of the next generation; writes their tombstones.
    fn segments(&mut self, fs: &dyn Fs, folder: &Path, base: &Base<'_>, generation: u64) -> Result<Vec<SegmentEntry>> {
        let mut segments = Vec::new();
        let mut new_segments = std::mem::take(&mut self.new_segments);
        for (at, old) in base.manifest.iter().flat_map(|manifest| &manifest.segments).enumerate() {
            if let Some(new) = new_segments.iter().position(|new| new.replaces.contains(&at)) {
                let new = &new_segments[new];
                if new.replaces.first() == Some(&at) && new.n_documents > 0 {
                    segments.push(entry(new));
                }
                continue;
            }
            let mut entry = old.clone();
            if let Some(dying) = self.deleted.get(&at) {
                let dead = (base.deleted)(at) | dying;
                if dead.len() == entry.n_documents {
                    continue; // nothing in it answers any more
                }
                let name = format!("{generation}-{}", entry.name);
                let path = folder.join("deletes").join(&name);
                deletes::write(fs, &path, &dead)?;
                entry.deletes = Some(name);
            }
            segments.push(entry);
        }
        new_segments.retain(|new| new.replaces.is_empty());
        segments.extend(new_segments.iter().map(entry));
        Ok(segments)
    }
}

fn entry(new: &NewSegment) -> SegmentEntry {
    SegmentEntry {
        name: new.name.clone(),
        n_documents: new.n_documents,
        n_rows: new.n_rows,
        deletes: None,
        graphs: new.graphs.clone(),
    }
}
