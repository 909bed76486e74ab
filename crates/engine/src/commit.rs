//! A commit: segments and tombstones are on the disk, then one manifest names them.
//!
//! Order: files of the segment synced → its folder → `segments/` → tombstones → manifest of the generation → `manifest.json`
//! by rename → the folder synced. Whatever comes first is complete before what names it, so a crash at any point leaves the
//! old generation or the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;

use crate::config::CollectionConfig;
use crate::deletes;
use crate::error::{AtPath, Result};
use crate::fs::Fs;
use crate::manifest::{FORMAT, GENERATIONS, Manifest, SegmentEntry};
use crate::searcher::Snapshot;

/// A segment that was written and is not yet named.
pub(crate) struct NewSegment {
    pub(crate) name: String,
    pub(crate) n_documents: u64,
    pub(crate) n_rows: u64,
}

/// What the next generation has that this one has not.
pub(crate) struct Commit {
    pub(crate) config: CollectionConfig,
    pub(crate) roots: BTreeMap<String, PathBuf>,
    pub(crate) new_segment: Option<NewSegment>,
    /// Documents that die, by the segment's position in the snapshot.
    pub(crate) deleted: BTreeMap<usize, RoaringBitmap>,
}

impl Commit {
    /// Publishes the next generation and says its number; then removes what only older generations named.
    pub(crate) fn publish(self, fs: &dyn Fs, folder: &Path, snapshot: Option<&Snapshot>) -> Result<u64> {
        let segments_folder = folder.join("segments");
        fs.sync_dir(&segments_folder).at(&segments_folder)?;
        let old = snapshot.map(|snapshot| &snapshot.manifest);
        let generation = old.map_or(0, |old| old.generation) + 1;
        let mut segments = Vec::new();
        for (at, segment) in snapshot.iter().flat_map(|snapshot| &snapshot.segments).enumerate() {
            let mut entry = old.expect("a snapshot has a manifest").segments[at].clone();
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
        let deletes_folder = folder.join("deletes");
        fs.sync_dir(&deletes_folder).at(&deletes_folder)?;
        segments.extend(self.new_segment.map(|new| SegmentEntry {
            name: new.name,
            n_documents: new.n_documents,
            n_rows: new.n_rows,
            deletes: None,
        }));
        let mut roots = old.map(|old| old.roots.clone()).unwrap_or_default();
        roots.extend(self.roots);
        let manifest = Manifest {
            format: FORMAT,
            cento: env!("CARGO_PKG_VERSION").to_owned(),
            generation,
            config: self.config,
            roots,
            segments,
        };
        manifest.publish(fs, folder)?;
        collect_garbage(fs, folder, &manifest, old)?;
        Ok(generation)
    }
}

/// Removes files that neither this generation nor the one before it names; the one before stays for readers that open it now.
fn collect_garbage(fs: &dyn Fs, folder: &Path, current: &Manifest, previous: Option<&Manifest>) -> Result<()> {
    let kept: Vec<_> = std::iter::once(current).chain(previous).collect();
    let segments: BTreeSet<_> =
        kept.iter().flat_map(|manifest| &manifest.segments).map(|entry| entry.name.clone()).collect();
    let deletes: BTreeSet<_> =
        kept.iter().flat_map(|manifest| &manifest.segments).filter_map(|entry| entry.deletes.clone()).collect();
    let generations: BTreeSet<_> = kept.iter().map(|manifest| format!("{}.json", manifest.generation)).collect();
    remove_others(fs, &folder.join("segments"), &segments, |path| fs.remove_dir(path))?;
    remove_others(fs, &folder.join("deletes"), &deletes, |path| fs.remove_file(path))?;
    remove_others(fs, &folder.join(GENERATIONS), &generations, |path| fs.remove_file(path))
}

fn remove_others(
    fs: &dyn Fs,
    folder: &Path,
    kept: &BTreeSet<String>,
    remove: impl Fn(&Path) -> std::io::Result<()>,
) -> Result<()> {
    for name in fs.list(folder).at(folder)? {
        if !kept.contains(&name) {
            let path = folder.join(name);
            remove(&path).at(&path)?;
        }
    }
    Ok(())
}
