//! Garbage: files that no generation worth keeping names.
//!
//! Kept are the current generation, the one before it (for readers that open it now; not if a compaction made its
//! equal), those with a snapshot, and those that a reader holds. Manifests go first, so that nobody opens a generation
//! whose files are being removed; whatever is cut short leaves files that the next collection removes.

use std::collections::BTreeSet;
use std::path::Path;

use super::{named, pins};
use crate::error::{AtPath, Result};
use crate::format::layout::{DELETES, GENERATIONS, SEGMENTS};
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::format::names;
use crate::fs::Fs;

/// Removes what is garbage beside the current generation and, if it is to stay, the one before it.
pub fn collect(fs: &dyn Fs, folder: &Path, current: &Manifest, previous: Option<&Manifest>) -> Result<()> {
    let mut kept: Vec<Manifest> = std::iter::once(current).chain(previous).cloned().collect();
    kept.extend(named::all(folder)?.into_values());
    let generations = |kept: &[Manifest]| kept.iter().map(|manifest| manifest.generation).collect::<BTreeSet<_>>();
    let (held, free) = pins::held(fs, folder, &generations(&kept))?;
    for generation in held {
        kept.push(Manifest::read_generation(folder, generation)?);
    }
    let manifests: BTreeSet<String> =
        generations(&kept).iter().map(|generation| format!("{generation}.json")).collect();
    let entries = || kept.iter().flat_map(|manifest| &manifest.segments);
    let segments: BTreeSet<String> = entries().map(|entry: &SegmentEntry| entry.name.clone()).collect();
    let deletes: BTreeSet<String> = entries().filter_map(|entry| entry.deletes.clone()).collect();
    let place = folder.join(GENERATIONS);
    if remove_others(fs, &place, names::is_manifest, &manifests, |path| fs.remove_file(path))? > 0 {
        fs.sync_dir(&place).at(&place)?;
    }
    remove_others(fs, &folder.join(SEGMENTS), names::is_segment, &segments, |path| fs.remove_dir(path))?;
    remove_others(fs, &folder.join(DELETES), names::is_tombstones, &deletes, |path| fs.remove_file(path))?;
    free.remove(fs)
}

/// Removes what is not kept and has a name that Cento gives; returns how many there were.
fn remove_others(
    fs: &dyn Fs,
    folder: &Path,
    is_ours: fn(&str) -> bool,
    kept: &BTreeSet<String>,
    remove: impl Fn(&Path) -> std::io::Result<()>,
) -> Result<usize> {
    let mut n_removed = 0;
    for name in fs.list(folder).at(folder)? {
        if is_ours(&name) && !kept.contains(&name) {
            let path = folder.join(name);
            remove(&path).at(&path)?;
            n_removed += 1;
        }
    }
    Ok(n_removed)
}
