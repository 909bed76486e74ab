//! Garbage: files that no generation worth keeping names.
//!
//! Kept are the current generation, the one before it (for readers that open it now; not if a compaction made its
//! equal), those with a snapshot, and those that a reader holds. Manifests go first, so that nobody opens a generation
//! whose files are being removed; whatever is cut short leaves files that the next collection removes.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use super::{named, pins};
use crate::error::{AtPath, Error, Result};
use crate::format::layout::{DELETES, GENERATIONS, REPORTS, SEGMENTS};
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::format::names;
use crate::fs::Fs;

/// Removes what is garbage beside the current generation and, if it is to stay, the one before it. Returns a remark
/// where something was not removed: the commit that this follows is there all the same.
pub fn collected(fs: &dyn Fs, folder: &Path, current: &Manifest, previous: Option<&Manifest>) -> Option<String> {
    match collect(fs, folder, current, previous) {
        Ok(unread) if unread.is_empty() => None,
        Ok(unread) => Some(format!(
            "{}; whatever it may need is kept, until a repair or the removal of the snapshot",
            unread.join("; ")
        )),
        Err(error) => Some(format!(
            "what is no longer needed was not removed: {}; the next commit tries again",
            crate::describe(&error)
        )),
    }
}

/// Returns why manifests that are to be kept cannot be read. They may name whatever a generation up to the current one
/// wrote, so that stays.
fn collect(fs: &dyn Fs, folder: &Path, current: &Manifest, previous: Option<&Manifest>) -> Result<Vec<String>> {
    let mut kept: Vec<Manifest> = std::iter::once(current).chain(previous).cloned().collect();
    let snapshots = named::all(folder)?;
    kept.extend(snapshots.whole.into_values());
    let mut unread: Vec<String> = snapshots.unread.values().map(|error| crate::describe(error)).collect();
    let generations = |kept: &[Manifest]| kept.iter().map(|manifest| manifest.generation).collect::<BTreeSet<_>>();
    let (held, free) = pins::held(fs, folder, &generations(&kept))?;
    let mut stays = generations(&kept);
    for generation in held {
        stays.insert(generation);
        match Manifest::read_generation(folder, generation) {
            Ok(manifest) => kept.push(manifest),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {} // a commit that was cut short
            Err(error) => unread.push(crate::describe(&error)),
        }
    }
    let manifests: BTreeSet<String> = stays.iter().map(|generation| format!("{generation}.json")).collect();
    let entries = || kept.iter().flat_map(|manifest| &manifest.segments);
    let segments: BTreeSet<String> = entries().map(|entry: &SegmentEntry| entry.name.clone()).collect();
    let deletes: BTreeSet<String> = entries().filter_map(|entry| entry.deletes.clone()).collect();
    let may_be_needed = |name: &str| {
        let written_by = names::written_by(name);
        let of_unread = !unread.is_empty() && written_by <= Some(current.generation);
        // A writer on another machine that is still at it began with this generation's number, or a later one.
        of_unread || fs.is_contested() && written_by >= Some(current.generation)
    };
    let place = folder.join(GENERATIONS);
    let is_others = |name: &str| names::is_manifest(name) && !manifests.contains(name);
    if remove(fs, &place, is_others, |path| fs.remove_file(path))? > 0 {
        fs.sync_dir(&place).at(&place)?;
    }
    let is_others = |name: &str| names::is_segment(name) && !segments.contains(name) && !may_be_needed(name);
    remove(fs, &folder.join(SEGMENTS), is_others, |path| fs.remove_dir(path))?;
    let is_others = |name: &str| names::is_tombstones(name) && !deletes.contains(name) && !may_be_needed(name);
    remove(fs, &folder.join(DELETES), is_others, |path| fs.remove_file(path))?;
    let place = folder.join(REPORTS);
    if place.exists() {
        let reports: BTreeSet<&String> = kept.iter().filter_map(|manifest| manifest.reports.as_ref()).collect();
        let is_others = |name: &str| {
            let written_by = names::generation(name);
            let of_unread = !unread.is_empty() && written_by <= Some(current.generation);
            let of_contender = fs.is_contested() && written_by >= Some(current.generation);
            names::is_reports(name) && !reports.contains(&name.to_owned()) && !of_unread && !of_contender
        };
        remove(fs, &place, is_others, |path| fs.remove_file(path))?;
    }
    free.remove(fs)?;
    Ok(unread)
}

/// Removes what is garbage by its name; returns how many there were.
fn remove(
    fs: &dyn Fs,
    folder: &Path,
    is_garbage: impl Fn(&str) -> bool,
    remove: impl Fn(&Path) -> std::io::Result<()>,
) -> Result<usize> {
    let mut n_removed = 0;
    for name in fs.list(folder).at(folder)? {
        if is_garbage(&name) {
            let path = folder.join(name);
            remove(&path).at(&path)?;
            n_removed += 1;
        }
    }
    Ok(n_removed)
}
