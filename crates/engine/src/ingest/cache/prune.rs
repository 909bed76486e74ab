//! Keeps the cache small: removes what was used longest ago, and what is damaged or kept twice.
//!
//! Segments that a process writes to are left alone. Compaction writes a new segment, waits until it is on the disk,
//! renames it into place and then removes the old ones: a crash leaves the old ones, or both, and then one is dropped
//! the next time.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cento_embedder::cache::{self, Key};
use serde::Serialize;

use super::CacheOptions;
use super::model::{ModelFile, models};
use super::segment::{self, Lock, SEGMENT_BYTES_MAX, Segment, SegmentWriter};
use crate::error::{Error, Result};

/// Segments smaller than this are merged.
const SMALL_BYTES: u64 = 32 << 20;
/// A run that leaves more small segments of a model than this merges them.
const SMALL_SEGMENTS_MAX: usize = 16;
/// Rows copied at a time.
const COPY_ROWS: usize = 4096;

/// A prune request.
#[derive(Debug, Clone, Default)]
pub struct CachePrune {
    /// Bytes that the chosen models may keep together, in place of the cache's limit.
    pub max_bytes: Option<u64>,
    /// Only the models of this name, or whose fingerprint begins so.
    pub model: Option<String>,
    /// Everything goes.
    pub all: bool,
    /// Nothing is changed.
    pub dry_run: bool,
}

/// A prune's result.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CachePruned {
    /// Format of this answer.
    pub version: u32,
    /// True if nothing was changed, only counted.
    pub dry_run: bool,
    /// Bytes of the chosen models, before.
    pub n_bytes_before: u64,
    /// And after.
    pub n_bytes_after: u64,
    /// Embeddings used longest ago, or all of them.
    pub n_removed: u64,
    /// Embeddings that were not what was kept.
    pub n_damaged: u64,
    /// Embeddings kept twice.
    pub n_twice: u64,
    /// Segments left alone because another process uses them.
    pub n_busy: u64,
}

/// Removes what the request names, and compacts what stays.
///
/// # Errors
/// If no model of the cache has the name asked for, or the cache cannot be written.
pub fn prune(options: &CacheOptions, request: &CachePrune) -> Result<CachePruned> {
    let models = chosen(options, request.model.as_deref())?;
    let mut pruned = CachePruned { version: 1, dry_run: request.dry_run, ..CachePruned::default() };
    if !request.dry_run {
        models.iter().try_for_each(|(_, folder)| sweep_model(folder))?;
    }
    let found = survey(&models)?;
    pruned.n_bytes_before = found.iter().map(|found| found.n_bytes).sum();
    pruned.n_bytes_after = pruned.n_bytes_before;
    let max_bytes = if request.all { 0 } else { request.max_bytes.unwrap_or(options.max_bytes) };
    let evicted = evict(found, max_bytes, &mut pruned)?;
    for (model, folder) in &models {
        compact(folder, model.dimensions, Depth::Whole, &evicted, &mut pruned)?;
        if request.all && !request.dry_run && segment::list(folder)?.is_empty() {
            let _ = std::fs::remove_dir_all(folder); // the name of the model; a run that begins meanwhile makes it again
        }
    }
    Ok(pruned)
}

/// After a run that wrote: sweeps, removes what is above the limit, merges segments that have become many.
pub(super) fn keep_within(options: &CacheOptions) -> Result<()> {
    let models = models(&options.folder)?;
    models.iter().try_for_each(|(_, folder)| segment::sweep(folder))?;
    let mut pruned = CachePruned::default();
    let evicted = evict(survey(&models)?, options.max_bytes, &mut pruned)?;
    for (model, folder) in &models {
        compact(folder, model.dimensions, Depth::Small, &evicted, &mut pruned)?;
    }
    Ok(())
}

fn chosen(options: &CacheOptions, name: Option<&str>) -> Result<Vec<(ModelFile, PathBuf)>> {
    let all = models(&options.folder)?;
    let Some(name) = name else { return Ok(all) };
    let known: Vec<String> = all.iter().map(|(model, _)| model.model.clone()).collect();
    let is_named = |model: &ModelFile| model.model == name || (!name.is_empty() && model.fingerprint.starts_with(name));
    let chosen: Vec<_> = all.into_iter().filter(|(model, _)| is_named(model)).collect();
    match chosen.is_empty() {
        true => Err(Error::NotCached { model: name.to_owned(), known }),
        false => Ok(chosen),
    }
}

/// Sweeps, and removes segments whose header cannot be read: nothing in them will ever be found.
fn sweep_model(folder: &Path) -> Result<()> {
    segment::sweep(folder)?;
    let Some(model) = ModelFile::read(folder) else { return Ok(()) };
    for path in segment::list(folder)? {
        if let Err(Error::Embedder(_)) = Segment::open(&path, model.dimensions)
            && let Some(lock) = segment::lock_at(&path)?
        {
            segment::remove(&path, &lock)?;
        }
    }
    Ok(())
}

/// A segment of the cache, by when it was used.
struct Found {
    last_use: SystemTime,
    segment: Segment,
    n_bytes: u64,
}

/// Every segment that can be read, used longest ago first; those used at once in the order in which they were made.
fn survey(models: &[(ModelFile, PathBuf)]) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for (model, folder) in models {
        for path in segment::list(folder)? {
            let Ok(Some(segment)) = Segment::open(&path, model.dimensions) else { continue };
            found.push(Found { last_use: segment.last_use()?, n_bytes: segment.n_bytes()?, segment });
        }
    }
    found.sort_by(|a, b| (a.last_use, &a.segment.path).cmp(&(b.last_use, &b.segment.path)));
    Ok(found)
}

/// Removes from the front until the rest is within the limit; the paths removed.
fn evict(found: Vec<Found>, max_bytes: u64, pruned: &mut CachePruned) -> Result<HashSet<PathBuf>> {
    let mut n_bytes: u64 = found.iter().map(|found| found.n_bytes).sum();
    let mut evicted = HashSet::new();
    for Found { segment, n_bytes: segment_bytes, .. } in found {
        if n_bytes <= max_bytes {
            break;
        }
        let Some(lock) = segment.lock()? else { continue };
        if !pruned.dry_run {
            segment::remove(&segment.path, &lock)?;
        }
        n_bytes -= segment_bytes;
        pruned.n_bytes_after = pruned.n_bytes_after.saturating_sub(segment_bytes);
        pruned.n_removed += u64::from(segment.n_rows);
        evicted.insert(segment.path);
    }
    Ok(evicted)
}

/// Extent of a compaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Small segments, if they are many.
    Small,
    /// Every vector of every segment.
    Whole,
}

/// A segment held for compaction, and its rows that are worth keeping.
struct Held {
    segment: Segment,
    lock: Lock,
    rows: Vec<u32>,
    is_small: bool,
    has_dead: bool,
}

fn compact(
    folder: &Path,
    dimensions: usize,
    depth: Depth,
    evicted: &HashSet<PathBuf>,
    pruned: &mut CachePruned,
) -> Result<()> {
    let mut held = Vec::new();
    for path in segment::list(folder)?.into_iter().rev().filter(|path| !evicted.contains(path)) {
        let Ok(Some(segment)) = Segment::open(&path, dimensions) else { continue };
        let is_small = segment.n_bytes()? < SMALL_BYTES;
        if depth == Depth::Small && !is_small {
            continue;
        }
        match segment.lock()? {
            Some(lock) => held.push(Held { segment, lock, rows: Vec::new(), is_small, has_dead: false }),
            None => pruned.n_busy += 1,
        }
    }
    if depth == Depth::Small && held.len() <= SMALL_SEGMENTS_MAX {
        return Ok(());
    }
    let mut seen = HashSet::new();
    for held in &mut held {
        choose(held, &mut seen, pruned)?;
    }
    let n_dead: u64 = held.iter().map(|held| u64::from(held.segment.n_rows) - held.rows.len() as u64).sum();
    pruned.n_bytes_after = pruned.n_bytes_after.saturating_sub(n_dead * cache::text_bytes(dimensions) as u64);
    if pruned.dry_run {
        return Ok(());
    }
    let (small, large): (Vec<Held>, Vec<Held>) = held.into_iter().partition(|held| held.is_small);
    if small.len() > 1 || small.iter().any(|held| held.has_dead) {
        rewrite(folder, dimensions, small)?;
    }
    for held in large.into_iter().filter(|held| held.has_dead) {
        rewrite(folder, dimensions, vec![held])?;
    }
    Ok(())
}

/// The rows that are sound and in no newer segment.
fn choose(held: &mut Held, seen: &mut HashSet<Key>, pruned: &mut CachePruned) -> Result<()> {
    for row in 0..held.segment.n_rows {
        match held.segment.read(row) {
            Ok(Some((entry, _))) if seen.insert(entry.key) => held.rows.push(row),
            Ok(Some(_)) => pruned.n_twice += 1,
            _ => pruned.n_damaged += 1,
        }
    }
    held.has_dead = held.rows.len() < held.segment.n_rows as usize;
    Ok(())
}

/// Writes the rows worth keeping into new segments and removes the old ones.
fn rewrite(folder: &Path, dimensions: usize, old: Vec<Held>) -> Result<()> {
    let mut last_use = SystemTime::UNIX_EPOCH;
    let mut written: Vec<SegmentWriter> = Vec::new();
    let rows_max = SEGMENT_BYTES_MAX / cache::text_bytes(dimensions) as u64;
    let mut old = old;
    for held in &mut old {
        last_use = last_use.max(held.segment.last_use()?);
        for rows in held.rows.chunks(COPY_ROWS) {
            let (mut entries, mut vectors) = (Vec::new(), Vec::new());
            for &row in rows {
                if let Ok(Some((entry, vector))) = held.segment.read(row) {
                    entries.extend_from_slice(&entry.encode());
                    vectors.extend_from_slice(&vector);
                }
            }
            if written.last().is_none_or(|writer| u64::from(writer.n_rows) >= rows_max) {
                written.push(SegmentWriter::begin(folder, dimensions)?);
            }
            written.last_mut().expect("just made").append(&entries, &vectors)?;
        }
    }
    for writer in written {
        writer.set_last_use(last_use)?;
        writer.sync()?;
        writer.publish()?;
    }
    old.iter().try_for_each(|held| segment::remove(&held.segment.path, &held.lock))
}
