//! Small to big: what is found is small and precise, what is delivered is the window, section or merged section around it.
//!
//! Sources: the two retrievers and the configuration of "Small-to-Big RAG" (Codcompass); LlamaIndex's `SentenceWindow` and
//! `AutoMergingRetriever`, LangChain's `ParentDocumentRetriever`.
//! - [`window`]: the chunks on either side of each chunk found, never across the edge of a document, fewer where the budget ends.
//! - [`parent`]: the section that a chunk lies in; a section that is too long by parts; a chunk without a section, or
//!   whose section does not fit, by its window, unless the policy wants none.
//! - [`automerge`]: chunks found are replaced by their section where more than a share of its chunks is found, section by section
//!   up to the document; a section that does not fit leaves its place to the chunks found in it.
//!
//! Differs from LlamaIndex: a window has `radius` chunks on both sides (its slice ends one early), a parent of one chunk never merges, a
//! chunk in between is filled in once and only between neighbours in the text, not in the ranking. Differs from all: nothing is
//! stored twice, and the budget is in tokens delivered.
//! Cost: one step for each chunk delivered; automerge one pass over the chunks found for each level.

use super::block::{Block, Plan};
use crate::candidate::Candidate;
use crate::line::Lines;
use crate::prior::Scored;
use crate::trace::BoundaryStop;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Settings of [`Strategy::Window`](crate::Strategy::Window).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Window {
    /// Chunks on either side.
    pub radius: usize,
    /// Most encoder tokens of a window; it is narrowed from both sides, but never below the chunk found.
    pub max_tokens: usize,
    /// Where it stops.
    pub boundary: Boundary,
    /// Whether the trace names the windows that stop there.
    pub log_boundaries: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self { radius: 3, max_tokens: 1500, boundary: Boundary::default(), log_boundaries: false }
    }
}

/// What a window never crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The edges of the document.
    #[default]
    Document,
    /// The edges of the innermost section that the chunk found lies in; of the document where it lies in none.
    Section,
}

impl Boundary {
    /// Numbers of the chunks that a window around `chunk` may have.
    fn around(self, chunk: &Candidate) -> Range<u32> {
        let section = chunk.parents.first().filter(|section| section.contains(&chunk.index));
        match (self, section) {
            (Self::Section, Some(section)) => section.clone(),
            _ => 0..chunk.n_chunks.max(chunk.index.saturating_add(1)),
        }
    }
}

/// Settings of [`Strategy::Parent`](crate::Strategy::Parent).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parent {
    /// Levels of the hierarchy, the chunk itself included: 2 is the section it lies in, 3 the one around that.
    pub hierarchy_depth: usize,
    /// Most encoder tokens of a section that is delivered whole; a longer one is cut into parts of at most so many.
    pub max_tokens: usize,
    /// Most sections delivered.
    pub max_context_blocks: usize,
    /// What is delivered where there is no section, or the section does not fit.
    pub fallback: Fallback,
}

impl Default for Parent {
    fn default() -> Self {
        Self { hierarchy_depth: 2, max_tokens: 1500, max_context_blocks: 4, fallback: Fallback::default() }
    }
}

/// When a window stands in for a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// Where a chunk lies in no section, and where the section does not fit.
    #[default]
    Window,
    /// Where a chunk lies in no section; a section that does not fit is left out.
    Linear,
    /// Never: a chunk in no section is left out too.
    None,
}

/// Settings of [`Strategy::Automerge`](crate::Strategy::Automerge).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Automerge {
    /// Chunks found that take part, the most relevant.
    pub k: usize,
    /// A section is merged if more than this share of its chunks is found, in [0, 1).
    pub ratio: f64,
}

impl Default for Automerge {
    fn default() -> Self {
        Self { k: 12, ratio: 0.5 }
    }
}

/// Chunks of one level below in a merged run of a document without headings: 128, 512 and 2,048 tokens.
const FAN_OUT: u32 = 4;

/// Levels of runs in a document without headings.
const LEVELS: u32 = 2;

pub(super) fn window(candidates: &[&Candidate], pool: &[Scored], lines: &Lines, settings: &Window) -> Plan {
    let mut plan = Plan::default();
    for scored in found(candidates, pool) {
        let mut windows = windows(candidates, lines, scored.candidate, settings).into_iter();
        let block =
            Block { candidates: windows.next().unwrap_or_default(), value: scored.score, narrower: windows.collect() };
        plan.blocks.push(block);
        plan.boundaries.extend(boundary_stop(candidates[scored.candidate], settings));
    }
    plan
}

/// Windows around a chunk from the widest within the tokens to the chunk alone: neighbours only take what is left of a budget.
fn windows(candidates: &[&Candidate], lines: &Lines, candidate: usize, settings: &Window) -> Vec<Vec<usize>> {
    let widest = window_around(candidates, lines, candidate, settings);
    let mut windows: Vec<Range<usize>> = (0..=settings.radius)
        .rev()
        .map(|radius| around(candidates, lines, candidate, &Window { radius, ..*settings }))
        .skip_while(|window| window.len() > widest.len())
        .collect();
    windows.dedup();
    windows.into_iter().map(|window| lines.candidates[window].to_vec()).collect()
}

fn found<'p>(candidates: &'p [&Candidate], pool: &'p [Scored]) -> impl Iterator<Item = &'p Scored> {
    pool.iter().filter(|scored| !candidates[scored.candidate].is_neighbor)
}

/// The widest window within the tokens.
fn window_around(candidates: &[&Candidate], lines: &Lines, candidate: usize, settings: &Window) -> Range<usize> {
    let within = |radius: usize| around(candidates, lines, candidate, &Window { radius, ..*settings });
    let fits = |radius: &usize| tokens(candidates, lines, within(*radius)) <= settings.max_tokens;
    within((0..=settings.radius).rev().find(fits).unwrap_or(0))
}

/// The window of this radius, whatever its tokens.
fn around(candidates: &[&Candidate], lines: &Lines, candidate: usize, settings: &Window) -> Range<usize> {
    let (place, chunk) = (lines.place(candidate), candidates[candidate]);
    let (window, bounds) = (lines.around(place, settings.radius), settings.boundary.around(chunk));
    let before = (chunk.index - bounds.start) as usize;
    let behind = (bounds.end - chunk.index) as usize;
    window.start.max(place.saturating_sub(before))..window.end.min(place.saturating_add(behind))
}

/// The edge at which the window of a chunk stops, if it does and the policy wants to know.
fn boundary_stop(chunk: &Candidate, settings: &Window) -> Option<BoundaryStop> {
    let bounds = settings.boundary.around(chunk);
    let before = settings.radius.saturating_sub((chunk.index - bounds.start) as usize);
    let after = settings.radius.saturating_sub((bounds.end - 1 - chunk.index) as usize);
    let stops = settings.log_boundaries && before + after > 0;
    stops.then(|| BoundaryStop { chunk_id: chunk.id.clone(), boundary: settings.boundary, before, after })
}

fn tokens(candidates: &[&Candidate], lines: &Lines, places: Range<usize>) -> usize {
    lines.candidates[places].iter().map(|&at| candidates[at].n_tokens as usize).sum()
}

pub(super) fn parent(
    candidates: &[&Candidate],
    pool: &[Scored],
    lines: &Lines,
    settings: &Parent,
    window: &Window,
) -> Plan {
    let mut plan = Plan::default();
    let mut seen: Vec<Range<usize>> = Vec::new();
    let mut n_without = 0;
    for scored in found(candidates, pool) {
        if plan.blocks.len() == settings.max_context_blocks {
            break;
        }
        let chunk = candidates[scored.candidate];
        let level = settings.hierarchy_depth.saturating_sub(2);
        let section = chunk.parents.get(level).or(chunk.parents.last());
        n_without += usize::from(section.is_none());
        let (places, falls_back) = match (section, settings.fallback) {
            (None, Fallback::None) => continue,
            (None, _) => (window_around(candidates, lines, scored.candidate, window), true),
            (Some(section), fallback) => {
                let part = part_of(candidates, lines, lines.place(scored.candidate), section, settings.max_tokens);
                (part, fallback == Fallback::Window)
            }
        };
        if !seen.contains(&places) {
            plan.blocks.push(Block {
                candidates: lines.candidates[places.clone()].to_vec(),
                value: scored.score,
                narrower: if falls_back { windows(candidates, lines, scored.candidate, window) } else { Vec::new() },
            });
            plan.boundaries.extend(boundary_stop(chunk, window).filter(|_| section.is_none()));
            seen.push(places);
        }
    }
    if n_without > 0 {
        let chunks = if n_without == 1 { "a chunk lies" } else { "chunks lie" };
        let delivered = match settings.fallback {
            Fallback::None => "left out, as `parent.fallback` is none".to_owned(),
            _ => format!("delivered with the {} chunks around", window.radius),
        };
        plan.warnings.push(format!("{n_without} {chunks} in no section: {delivered}"));
    }
    plan
}

/// The places of a section, or the part of it that holds `place`: parts are cut from the section's start, each as long as fits.
fn part_of(
    candidates: &[&Candidate],
    lines: &Lines,
    place: usize,
    section: &Range<u32>,
    max_tokens: usize,
) -> Range<usize> {
    let document = lines.document(place);
    let index = |place: usize| candidates[lines.candidates[place]].index;
    let start = document.clone().find(|&place| index(place) >= section.start).unwrap_or(place);
    let end = document.clone().find(|&place| index(place) >= section.end).unwrap_or(document.end);
    let (mut first, mut sum) = (start, 0);
    for at in start..end {
        let n = candidates[lines.candidates[at]].n_tokens as usize;
        if at > first && sum + n > max_tokens {
            if first <= place && place < at {
                return first..at;
            }
            (first, sum) = (at, 0);
        }
        sum += n;
    }
    first..end.max(place + 1)
}

pub(super) fn automerge(candidates: &[&Candidate], pool: &[Scored], lines: &Lines, settings: &Automerge) -> Plan {
    // Runs of chunks by document and first number: at first the chunks found, each by itself.
    let mut documents: BTreeMap<usize, Runs> = BTreeMap::new();
    for scored in found(candidates, pool).take(settings.k) {
        let index = candidates[scored.candidate].index;
        let runs = documents.entry(lines.document_number(lines.place(scored.candidate))).or_default();
        runs.insert(index, (index + 1, scored.score));
    }
    // Each run, and the chunks it was merged from: they are offered behind it, for where it does not fit.
    let mut blocks: Vec<(Block, Vec<Block>)> = Vec::new();
    for (number, mut runs) in documents {
        let places = lines.documents[number].clone();
        let chunks: Vec<&Candidate> = lines.candidates[places.clone()].iter().map(|&at| candidates[at]).collect();
        let block = |(start, (end, score)): (u32, (u32, f64))| {
            let before = |index: u32| places.start + chunks.partition_point(|chunk| chunk.index < index);
            Block::new(lines.candidates[before(start)..before(end)].to_vec(), score)
        };
        fill(&mut runs, &chunks);
        let single = runs.clone();
        for section in sections(&chunks) {
            merge(&mut runs, &section, settings.ratio);
        }
        for (start, (end, score)) in runs {
            let merged = single.range(start..end).filter(|_| end - start > 1);
            let mut within: Vec<Block> = merged.map(|(&start, &run)| block((start, run))).collect();
            within.sort_by(|a, b| b.value.total_cmp(&a.value));
            blocks.push((block((start, (end, score))), within));
        }
    }
    blocks.sort_by(|a, b| b.0.value.total_cmp(&a.0.value)); // equal ones as they lie, by document and place
    let offered = blocks.into_iter().flat_map(|(block, within)| std::iter::once(block).chain(within));
    Plan { blocks: offered.collect(), ..Plan::default() }
}

/// Runs of chunks of a document by their first number: the number behind their last, and their score.
type Runs = BTreeMap<u32, (u32, f64)>;

/// A chunk between two that are found is as good as found, with their mean score.
fn fill(runs: &mut Runs, chunks: &[&Candidate]) {
    let is_offered = |index: u32| chunks.binary_search_by_key(&index, |chunk| chunk.index).is_ok();
    let between: Vec<(u32, f64)> = runs
        .iter()
        .zip(runs.iter().skip(1))
        .filter(|((a, _), (b, _))| *a + 2 == **b && is_offered(*a + 1))
        .map(|((a, (_, x)), (_, (_, y)))| (a + 1, f64::midpoint(*x, *y)))
        .collect();
    runs.extend(between.into_iter().map(|(index, score)| (index, (index + 1, score))));
}

/// Replaces the runs in a section by the section if they are more than `ratio` of it.
fn merge(runs: &mut Runs, section: &Range<u32>, ratio: f64) {
    let within: Vec<(u32, (u32, f64))> = runs.range(section.clone()).map(|(&start, &run)| (start, run)).collect();
    let covered: u32 = within.iter().map(|(start, (end, _))| end - start).sum();
    if section.len() < 2 || f64::from(covered) <= ratio * section.len() as f64 {
        return;
    }
    let sum: f64 = within.iter().map(|(_, (_, score))| score).sum();
    runs.retain(|start, _| !section.contains(start));
    runs.insert(section.start, (section.end, sum / within.len() as f64));
}

/// The sections of a document, smallest first, so that one is whole before the one around it is looked at; aligned runs where there are
/// no headings.
fn sections(chunks: &[&Candidate]) -> Vec<Range<u32>> {
    let mut sections: Vec<Range<u32>> = chunks.iter().flat_map(|chunk| chunk.parents.clone()).collect();
    if sections.is_empty() {
        let behind_last = chunks.last().map_or(0, |chunk| chunk.index + 1);
        let aligned = |chunk: &&Candidate, level: u32| {
            let width = FAN_OUT.pow(level);
            let start = chunk.index / width * width;
            start..start.saturating_add(width).min(behind_last)
        };
        sections.extend(chunks.iter().flat_map(|chunk| (1..=LEVELS).map(move |level| aligned(chunk, level))));
    }
    sections.sort_unstable_by_key(|section| (section.len(), section.start));
    sections.dedup();
    sections
}

#[cfg(test)]
mod tests;
