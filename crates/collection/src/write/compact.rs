//! Compaction: many segments become few, and what is dead is left behind.
//!
//! Source: size-tiered merging, as log-structured stores do it. Segments of about one size are merged when there are
//! `TIER_SEGMENTS` of them, so that a row is copied about once for each eightfold growth; a segment a fifth of which
//! is dead is written anew.
//!
//! Nothing is chunked or embedded: documents go through the segment writer as they were stored, with their vectors, so
//! ids, spans, hashes, scores of BM25 and exact distances stay what they were. Readers go on with the generation they
//! opened. Memory: that of one merged segment; texts and vectors go from file to file. Segments that are more together
//! than the memory given stay as they are, and a merged one that fills up earlier than was reckoned is cut in two.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::commit::{Base, Commit};
use super::memory;
use super::segments::SegmentsWriter;
use crate::error::Result;
use crate::format::config::{GRAPH_ROWS_MIN, SEGMENT_ROWS_MAX};
use crate::format::layout::{SEGMENTS, folder_bytes};
use crate::format::manifest::Manifest;
use crate::format::segment::{POSTINGS_BYTES_MIN, Segment, SegmentLimits};
use crate::fs::Fs;
use crate::keep::generation::{Generation, explained};
use crate::keep::lock::WriterLock;

/// Segments of one tier that are merged together, and how much larger those of the next tier are.
const TIER_SEGMENTS: usize = 8;

/// Segments of fewer rows are of one tier.
const TIER_ROWS_MIN: u64 = 1000;

/// A segment is written anew when more of its rows than this are dead.
const DEAD_SHARE_MAX: f64 = 0.2;

/// Dead rows that are worth a rewrite nobody asked for.
const DEAD_ROWS_MIN: u64 = 1000;

/// The segments that a compaction merges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Merge {
    /// Those the policy finds and that are worth a rewrite nobody asked for: after a commit.
    Due,
    /// Those the policy finds.
    #[default]
    Policy,
    /// Everything, into as few segments as can be written.
    All,
}

/// Settings of a compaction.
#[derive(Debug, Clone, Copy)]
pub struct CompactOptions {
    /// The segments to merge.
    pub merge: Merge,
    /// Rows from which a segment gets a graph.
    pub graph_rows_min: usize,
    /// Bytes of memory that may be taken; `None` for a quarter of the machine's.
    pub memory_bytes: Option<u64>,
    /// The most rows of a merged segment.
    pub segment_rows_max: usize,
}

impl Default for CompactOptions {
    fn default() -> Self {
        let segment_rows_max = SEGMENT_ROWS_MAX;
        Self { merge: Merge::default(), graph_rows_min: GRAPH_ROWS_MIN, memory_bytes: None, segment_rows_max }
    }
}

impl CompactOptions {
    fn limits(&self) -> Result<SegmentLimits> {
        let memory_bytes = memory::segment_bytes(memory::memory_bytes(self.memory_bytes)?, 0);
        Ok(SegmentLimits { memory_bytes, rows_max: self.segment_rows_max, graph_rows_min: self.graph_rows_min })
    }
}

/// The outcome of a compaction; without effect where generation and segments are as before.
#[derive(Debug, Clone, Serialize)]
pub struct CompactReport {
    /// Format of this answer.
    pub version: u32,
    /// Generation that answers now.
    pub generation: u64,
    /// Segments that were merged, or written anew.
    pub n_merged: usize,
    /// Segments before.
    pub n_segments_before: usize,
    /// Segments now.
    pub n_segments: usize,
    /// Bytes of the segments before.
    pub n_bytes_before: u64,
    /// Bytes of the segments now. The old ones go when no reader, snapshot or previous generation needs them.
    pub n_bytes: u64,
    /// Rows that were copied.
    pub n_rows_copied: u64,
    /// Dead rows that were left behind.
    pub n_rows_dropped: u64,
    /// A later step that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// The progress of a writer that copies rows into new segments.
#[derive(Debug, Clone, Copy, Default)]
pub struct Copied {
    /// Rows copied.
    pub n_rows: u64,
    /// Rows to copy; 0 where that is not known.
    pub n_rows_total: u64,
    /// Rows linked into the graph.
    pub n_graph_rows: u64,
}

/// Compacts the collection at `folder`, if there is something to merge.
pub fn compact(
    folder: &Path,
    options: &CompactOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Copied),
) -> Result<CompactReport> {
    Manifest::read(folder)?; // says that there is no collection before a lock file is made
    let lock = WriterLock::acquire(folder, fs)?;
    lock.explained(compact_locked(folder, options, &lock, progress))
}

/// The same for a caller that holds the writer's lock.
pub fn compact_locked(
    folder: &Path,
    options: &CompactOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Copied),
) -> Result<CompactReport> {
    let limits = options.limits()?;
    let open = Generation::open(folder, Manifest::read(folder)?)?;
    explained([&open], compact_open(folder, &open, options.merge, limits, fs, progress))
}

fn compact_open(
    folder: &Path,
    open: &Generation,
    which: Merge,
    limits: SegmentLimits,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Copied),
) -> Result<CompactReport> {
    let loads: Vec<Load> = open.segments.iter().map(Load::of).collect::<Result<_>>()?;
    let groups = match which {
        Merge::Due => plan(&loads, &limits, DEAD_ROWS_MIN),
        Merge::Policy => plan(&loads, &limits, 1),
        Merge::All => merge_all(&loads, &limits),
    };
    merge(fs, folder, open, &groups, limits, progress)
}

/// Sizes of a segment, or of several that are going to be one, as the policy sees them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Load {
    n_live: u64,
    n_dead: u64,
    /// Bytes of memory that gathering its documents takes.
    gathered_bytes: u64,
    /// Bytes of memory that a row takes while the graph is built.
    graph_row_bytes: u64,
}

impl Load {
    fn of(segment: &Segment) -> Result<Self> {
        let n_live = segment.n_live_rows() as u64;
        let n_dead = segment.chunks.len() as u64 - n_live;
        let (gathered_bytes, graph_row_bytes) = (segment.gathered_bytes()?, segment.graph_row_bytes());
        Ok(Self { n_live, n_dead, gathered_bytes, graph_row_bytes })
    }

    fn and(self, other: Self) -> Self {
        Self {
            n_live: self.n_live + other.n_live,
            n_dead: self.n_dead + other.n_dead,
            gathered_bytes: self.gathered_bytes + other.gathered_bytes,
            graph_row_bytes: self.graph_row_bytes.max(other.graph_row_bytes),
        }
    }

    fn tier(self) -> u32 {
        (self.n_live / TIER_ROWS_MIN).checked_ilog(TIER_SEGMENTS as u64).map_or(0, |log| log + 1)
    }

    fn can_be_written(self, limits: &SegmentLimits) -> bool {
        let has_graph = self.n_live >= limits.graph_rows_min as u64;
        let graph_bytes = if has_graph { self.graph_row_bytes.saturating_mul(self.n_live) } else { 0 };
        let n_bytes = POSTINGS_BYTES_MIN.saturating_add(self.gathered_bytes).saturating_add(graph_bytes);
        self.n_live <= limits.rows_max as u64 && n_bytes <= limits.memory_bytes
    }

    fn is_rotten(self, dead_rows_min: u64) -> bool {
        self.n_dead >= dead_rows_min && self.n_dead as f64 > DEAD_SHARE_MAX * (self.n_live + self.n_dead) as f64
    }
}

/// Groups of segments to write together into a new one, by their positions; a group of one sheds its dead rows.
fn plan(segments: &[Load], limits: &SegmentLimits, dead_rows_min: u64) -> Vec<BTreeSet<usize>> {
    let mut groups: Vec<(BTreeSet<usize>, Load)> =
        segments.iter().enumerate().map(|(at, load)| (BTreeSet::from([at]), *load)).collect();
    let mut tier = 0;
    while groups.iter().any(|(_, load)| load.tier() >= tier) {
        let (of_tier, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, load)| load.tier() == tier);
        groups = others;
        groups.extend(if of_tier.len() >= TIER_SEGMENTS { joined(of_tier, limits) } else { of_tier });
        tier += 1;
    }
    groups.retain(|(group, load)| group.len() > 1 || load.is_rotten(dead_rows_min));
    let mut groups: Vec<_> = groups.into_iter().map(|(group, _)| group).collect();
    groups.sort();
    groups
}

/// All segments in as few groups as can be written; none where that would change nothing.
fn merge_all(segments: &[Load], limits: &SegmentLimits) -> Vec<BTreeSet<usize>> {
    let groups = segments.iter().enumerate().map(|(at, load)| (BTreeSet::from([at]), *load)).collect();
    let worth = |(group, load): &(BTreeSet<usize>, Load)| group.len() > 1 || load.n_dead > 0;
    joined(groups, limits).into_iter().filter(worth).map(|(group, _)| group).collect()
}

/// Joins neighbours as long as the result can be written.
fn joined(groups: Vec<(BTreeSet<usize>, Load)>, limits: &SegmentLimits) -> Vec<(BTreeSet<usize>, Load)> {
    let mut joined: Vec<(BTreeSet<usize>, Load)> = Vec::new();
    for (group, load) in groups {
        match joined.last_mut().filter(|(_, last)| last.and(load).can_be_written(limits)) {
            Some((last, sum)) => {
                last.extend(group);
                *sum = sum.and(load);
            }
            None => joined.push((group, load)),
        }
    }
    joined
}

/// Writes each group as one segment, or as several where one fills up, and publishes the generation that has them
/// instead.
fn merge(
    fs: &dyn Fs,
    folder: &Path,
    open: &Generation,
    groups: &[BTreeSet<usize>],
    limits: SegmentLimits,
    progress: &mut dyn FnMut(&Copied),
) -> Result<CompactReport> {
    let manifest = &open.manifest;
    let segments = || groups.iter().flatten().map(|&at| &open.segments[at]);
    let n_rows_total: usize = segments().map(Segment::n_live_rows).sum();
    let n_rows_before: usize = segments().map(|segment| segment.chunks.len()).sum();
    let n_bytes_before = segments_bytes(folder, manifest)?;
    let mut report = CompactReport {
        version: 1,
        generation: manifest.generation,
        n_merged: segments().count(),
        n_segments_before: manifest.segments.len(),
        n_segments: manifest.segments.len(),
        n_bytes_before,
        n_bytes: n_bytes_before,
        n_rows_copied: n_rows_total as u64,
        n_rows_dropped: (n_rows_before - n_rows_total) as u64,
        remark: None,
    };
    if groups.is_empty() {
        open.check_whole()?;
        return Ok(report);
    }
    let mut state = Copied { n_rows_total: n_rows_total as u64, ..Copied::default() };
    let mut writer = SegmentsWriter::new(fs, folder, &manifest.config, manifest.generation + 1, limits);
    for group in groups {
        for &at in group {
            copy(&open.segments[at], group, &mut writer, manifest, &mut state, progress)?;
        }
        finish_segment(group, &mut writer, &mut state, progress)?;
    }
    let commit = Commit {
        config: manifest.config.clone(),
        roots: manifest.roots.clone(),
        new_segments: writer.finish(),
        deleted: Default::default(),
    };
    let base = Base {
        manifest: Some(manifest),
        read: vec![open],
        deleted: &|at| open.segments[at].deleted.clone(),
        losses: manifest.losses.clone(),
        stale: manifest.stale.clone(),
        reports: manifest.reports.clone(),
        calibration: manifest.calibration.clone(),
        is_answered_alike: true,
    };
    let committed = commit.publish_over(fs, folder, base)?;
    let manifest = Manifest::read(folder)?;
    report.generation = committed.generation;
    report.n_segments = manifest.segments.len();
    report.n_bytes = segments_bytes(folder, &manifest)?;
    report.remark = committed.remark;
    Ok(report)
}

/// Copies the live documents of a segment of a group with their vectors.
fn copy(
    segment: &Segment,
    group: &BTreeSet<usize>,
    writer: &mut SegmentsWriter<'_>,
    manifest: &Manifest,
    state: &mut Copied,
    progress: &mut dyn FnMut(&Copied),
) -> Result<()> {
    let mut reader = segment.reader(&manifest.config)?;
    for document in segment.live_documents() {
        let stored = reader.read(document)?;
        let new = stored.as_new();
        if !writer.has_room(&new) {
            finish_segment(group, writer, state, progress)?;
        }
        let first_row = writer.push(&new)?;
        let open = writer.open().expect("a document was just added");
        for n in 0..new.chunks.len() as u32 {
            for (at, column) in segment.columns.iter().enumerate() {
                open.set_vector(at, first_row + n, &column.rows.row(stored.first_row + n)?)?;
            }
        }
        state.n_rows += new.chunks.len() as u64;
        progress(state);
    }
    Ok(())
}

fn finish_segment(
    group: &BTreeSet<usize>,
    writer: &mut SegmentsWriter<'_>,
    state: &mut Copied,
    progress: &mut dyn FnMut(&Copied),
) -> Result<()> {
    writer.finish_segment(group, |n_done| {
        state.n_graph_rows = n_done as u64;
        progress(state);
    })
}

fn segments_bytes(folder: &Path, manifest: &Manifest) -> Result<u64> {
    let bytes = |name: &String| folder_bytes(&folder.join(SEGMENTS).join(name));
    manifest.segments.iter().map(|entry| bytes(&entry.name)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SegmentLimits = SegmentLimits { memory_bytes: 4 << 30, rows_max: 8_000_000, graph_rows_min: 50_000 };

    /// Segments as "live" or "live/dead" rows; the groups as positions.
    #[track_caller]
    fn check(segments: &str, dead_rows_min: u64, groups: &[&[usize]]) {
        let load = |words: &str| {
            let (live, dead) = words.split_once('/').unwrap_or((words, "0"));
            Load { n_live: live.parse().unwrap(), n_dead: dead.parse().unwrap(), ..Load::default() }
        };
        let loads: Vec<Load> = segments.split_whitespace().map(load).collect();
        let planned: Vec<Vec<usize>> =
            plan(&loads, &LIMITS, dead_rows_min).into_iter().map(|group| group.into_iter().collect()).collect();
        assert_eq!(planned, groups, "{segments}");
    }

    #[test]
    fn eight_segments_of_a_tier_are_merged_and_seven_are_not() {
        check("1 2 3 4 5 6 7", 1, &[]);
        check("1 2 3 4 5 6 7 999", 1, &[&[0, 1, 2, 3, 4, 5, 6, 7]]);
        check("1 2 3 4 5 6 7 1000", 1, &[]);
        check("50000 1 2 3 4 90000 5 6 7 8", 1, &[&[1, 2, 3, 4, 6, 7, 8, 9]]);
    }

    #[test]
    fn a_merge_that_fills_the_next_tier_goes_on_there_at_once() {
        check(
            "1000 1000 1000 1000 1000 1000 1000 200 200 200 200 200 200 200 200",
            1,
            &[&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]],
        );
    }

    #[test]
    fn a_segment_sheds_its_dead_rows_when_they_are_more_than_a_fifth() {
        check("80/20", 1, &[]);
        check("79/21", 1, &[&[0]]);
        check("79/21 4000/1001", 1000, &[&[1]]);
        check("0/5", 1, &[&[0]]);
    }

    #[test]
    fn no_merged_segment_is_larger_than_can_be_written() {
        let load = |n_live, gathered_bytes| Load { n_live, n_dead: 0, gathered_bytes, graph_row_bytes: 1 << 10 };
        let by_rows = Load { n_live: 3_000_000, ..Load::default() };
        for large in [vec![by_rows; 9], vec![load(1_600_000, 10 << 20); 9]] {
            let planned = plan(&large, &LIMITS, 1);
            assert!(planned.iter().all(|group| group.len() == 2) && !planned.is_empty(), "{planned:?}");
        }
        let some = [load(10, 3 << 30), load(10, 1 << 20), load(10, 1 << 20), load(2_000_000, 3 << 30)];
        let all = merge_all(&some, &SegmentLimits { memory_bytes: 3 << 30, ..LIMITS });
        assert_eq!(all, [BTreeSet::from([1, 2])], "each too large for one more");
        assert!(merge_all(&[load(10, 10)], &LIMITS).is_empty());
    }
}
