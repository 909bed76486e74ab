//! A commit: segments and tombstones are on the disk, then one manifest names them.
//!
//! Order: files of the segment synced → its folder → `segments/` → tombstones → the pin of the generation → its manifest →
//! `manifest.json` by rename → the folder synced. Whatever comes first is complete before what names it, so a crash at any
//! point leaves the old generation or the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;

use crate::config::CollectionConfig;
use crate::error::{AtPath, Result};
use crate::fs::Fs;
use crate::health::GraphHealth;
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

/// A generation that was published; neither a crash nor a power loss takes it back.
pub(crate) struct Committed {
    pub(crate) generation: u64,
    /// What did not succeed afterwards and does not matter for what is in the collection.
    pub(crate) remark: Option<String>,
}

impl Commit {
    /// Publishes the next generation; then removes what only older generations named.
    pub(crate) fn publish(mut self, fs: &dyn Fs, folder: &Path, snapshot: Option<&Snapshot>) -> Result<Committed> {
        let segments_folder = folder.join("segments");
        fs.sync_dir(&segments_folder).at(&segments_folder)?;
        let old = snapshot.map(|snapshot| &snapshot.manifest);
        // a generation that only lies differently on the disk stands for the one before it, which need not stay
        let answers_alike = self.deleted.is_empty() && self.new_segments.iter().all(|new| !new.replaces.is_empty());
        let generation = old.map_or(0, |old| old.generation) + 1;
        let segments = self.segments(fs, folder, snapshot, generation)?;
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
        };
        pins::create(fs, folder, generation)?;
        manifest.publish(fs, folder)?;
        let previous = old.filter(|_| !answers_alike);
        let remark = garbage::collect(fs, folder, &manifest, previous).err().map(|error| {
            format!(
                "what is no longer needed was not removed: {}; the next commit tries again",
                crate::describe(&error)
            )
        });
        Ok(Committed { generation, remark })
    }

    /// The segments of the next generation; writes their tombstones.
    fn segments(
        &mut self,
        fs: &dyn Fs,
        folder: &Path,
        snapshot: Option<&Snapshot>,
        generation: u64,
    ) -> Result<Vec<SegmentEntry>> {
        let mut segments = Vec::new();
        let mut new_segments = std::mem::take(&mut self.new_segments);
        for (at, segment) in snapshot.iter().flat_map(|snapshot| &snapshot.segments).enumerate() {
            if let Some(new) = new_segments.iter().position(|new| new.replaces.contains(&at)) {
                let new = &new_segments[new];
                if new.replaces.first() == Some(&at) && new.n_documents > 0 {
                    segments.push(entry(new));
                }
                continue;
            }
            let mut entry = snapshot.expect("it has a segment").manifest.segments[at].clone();
            if let Some(dying) = self.deleted.get(&at) {
                let dead = &segment.deleted | dying;
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
