//! Small to big: what is found is small and precise, what is delivered is the window, section or merged section around it.
//!
//! Sources: the two retrievers and the configuration of "Small-to-Big RAG" (Codcompass); LlamaIndex's `SentenceWindow` and
//! `AutoMergingRetriever`, LangChain's `ParentDocumentRetriever`.
//! - [`window`]: the chunks on either side of each chunk found, never across the edge of a document, fewer where the budget ends.
//! - [`parent`]: the section that a chunk lies in; a section that is too long by parts; a chunk without a section, or
//!   whose section does not fit, by its window.
//! - [`automerge`]: chunks found are replaced by their section where more than a share of its chunks is found, section by section
//!   up to the document.
//!
//! Differs from LlamaIndex: a window has `radius` chunks on both sides (its slice ends one early), a parent of one chunk never merges, a
//! chunk in between is filled in once and only between neighbours in the text, not in the ranking. Differs from all: nothing is
//! stored twice, and the budget is in tokens delivered.
//! Cost: one step for each chunk delivered; automerge one pass over the chunks found for each level.

use super::block::{Block, Plan};
use crate::candidate::Candidate;
use crate::line::Lines;
use crate::prior::Scored;
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
}

impl Default for Window {
    fn default() -> Self {
        Self { radius: 3, max_tokens: 1500 }
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
}

impl Default for Parent {
    fn default() -> Self {
        Self { hierarchy_depth: 2, max_tokens: 1500, max_context_blocks: 4 }
    }
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
    let block = |scored: &Scored| {
        let mut windows = windows(candidates, lines, scored.candidate, settings).into_iter();
        Block { candidates: windows.next().unwrap_or_default(), value: scored.score, narrower: windows.collect() }
    };
    Plan { blocks: found(candidates, pool).map(block).collect(), ..Plan::default() }
}

/// Windows around a chunk from the widest within the tokens to the chunk alone: neighbours only take what is left of a budget.
fn windows(candidates: &[&Candidate], lines: &Lines, candidate: usize, settings: &Window) -> Vec<Vec<usize>> {
    let place = lines.place(candidate);
    let widest = window_around(candidates, lines, candidate, settings);
    let mut windows: Vec<Range<usize>> = (0..=settings.radius)
        .rev()
        .map(|radius| lines.around(place, radius))
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
    let place = lines.place(candidate);
    let fits = |radius: &usize| tokens(candidates, lines, lines.around(place, *radius)) <= settings.max_tokens;
    lines.around(place, (0..=settings.radius).rev().find(fits).unwrap_or(0))
}

fn tokens(candidates: &[&Candidate], lines: &Lines, places: Range<usize>) -> usize {
    lines.candidates[places].iter().map(|&at| candidates[at].n_tokens as usize).sum()
}

pub(super) fn parent(
    candidates: &[&Candidate],
    pool: &[Scored],
    lines: &Lines,
    settings: &Parent,
    fallback: &Window,
) -> Plan {
    let mut plan = Plan::default();
    let mut seen: Vec<Range<usize>> = Vec::new();
    let mut n_without = 0;
    for scored in found(candidates, pool) {
        if plan.blocks.len() == settings.max_context_blocks {
            break;
        }
        let level = settings.hierarchy_depth.saturating_sub(2);
        let parents = &candidates[scored.candidate].parents;
        let places = match parents.get(level).or(parents.last()) {
            Some(section) => part_of(candidates, lines, lines.place(scored.candidate), section, settings.max_tokens),
            None => {
                n_without += 1;
                window_around(candidates, lines, scored.candidate, fallback)
            }
        };
        if !seen.contains(&places) {
            plan.blocks.push(Block {
                candidates: lines.candidates[places.clone()].to_vec(),
                value: scored.score,
                narrower: windows(candidates, lines, scored.candidate, fallback),
            });
            seen.push(places);
        }
    }
    if n_without > 0 {
        let chunks = if n_without == 1 { "a chunk lies" } else { "chunks lie" };
        plan.warnings
            .push(format!("{n_without} {chunks} in no section: delivered with the {} chunks around", fallback.radius));
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
    let mut blocks: Vec<(Block, usize)> = Vec::new();
    for (number, mut runs) in documents {
        let places = lines.documents[number].clone();
        let chunks: Vec<&Candidate> = lines.candidates[places.clone()].iter().map(|&at| candidates[at]).collect();
        fill(&mut runs, &chunks);
        for section in sections(&chunks) {
            merge(&mut runs, &section, settings.ratio);
        }
        for (start, (end, score)) in runs {
            let before = |index: u32| places.start + chunks.partition_point(|chunk| chunk.index < index);
            let run = before(start)..before(end);
            blocks.push((Block::new(lines.candidates[run.clone()].to_vec(), score), run.start));
        }
    }
    blocks.sort_by(|a, b| b.0.value.total_cmp(&a.0.value).then(a.1.cmp(&b.1)));
    Plan { blocks: blocks.into_iter().map(|(block, _)| block).collect(), ..Plan::default() }
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
mod tests {
    use super::*;
    use crate::tests::candidate;

    /// Chunks of document `a` with their scores, sections as `parents` says; the pool is in the order of the scores. Score 0: not found;
    /// below 0: not offered.
    fn check(
        scores: &[f64],
        parents: &[Range<u32>],
        plan: impl Fn(&[&Candidate], &[Scored], &Lines) -> Plan,
        expected: &[&[u32]],
    ) {
        let chunks: Vec<Candidate> = scores
            .iter()
            .enumerate()
            .filter(|(_, score)| **score >= 0.0)
            .map(|(index, &score)| Candidate {
                n_tokens: 10,
                is_neighbor: score == 0.0,
                parents: parents.iter().filter(|range| range.contains(&(index as u32))).cloned().collect(),
                ..candidate("a", index as u32, &format!("text {index}"), score)
            })
            .collect();
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let pool = crate::prior::by_relevance(&candidates).pool;
        let found = plan(&candidates, &pool, &Lines::new(&candidates));
        let blocks: Vec<Vec<u32>> = found
            .blocks
            .iter()
            .map(|block| block.candidates.iter().map(|&at| candidates[at].index).collect())
            .collect();
        assert_eq!(blocks, expected);
    }

    #[test]
    fn a_window_has_as_many_chunks_on_either_side() {
        let window = |radius, max_tokens| {
            move |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
                window(candidates, pool, lines, &Window { radius, max_tokens })
            }
        };
        // "hello. foo bar. cat dog. mouse" around "foo bar.", which LlamaIndex cuts short by one.
        check(&[0.0, 0.9, 0.0, 0.0], &[], window(1, 1500), &[&[0, 1, 2]]);
        check(&[0.9, 0.0, 0.0, 0.0], &[], window(2, 1500), &[&[0, 1, 2]]);
        check(&[0.0, 0.0, 0.0, 0.9], &[], window(2, 1500), &[&[1, 2, 3]]);
        check(&[0.0, 0.0, 0.9, 0.0, 0.0], &[], window(2, 30), &[&[1, 2, 3]]);
        check(&[0.0, 0.9, 0.0], &[], window(2, 5), &[&[1]]);
    }

    #[test]
    fn a_parent_is_its_section_once_and_a_long_one_by_parts() {
        let parent = |max_tokens, max_context_blocks| {
            move |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
                let settings = Parent { hierarchy_depth: 2, max_tokens, max_context_blocks };
                parent(candidates, pool, lines, &settings, &Window { radius: 1, max_tokens: 1500 })
            }
        };
        let sections = [0..3, 3..8];
        check(&[0.9, 0.8, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0], &sections, parent(1500, 4), &[&[0, 1, 2], &[3, 4, 5, 6, 7]]);
        check(&[0.9, 0.8, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0], &sections, parent(1500, 1), &[&[0, 1, 2]]);
        check(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.9, 0.0, 0.8], &sections, parent(20, 4), &[&[5, 6], &[7]]);
        check(&[0.0, 0.9, 0.0, 0.0], &[], parent(1500, 4), &[&[0, 1, 2]]);
    }

    #[test]
    fn sections_merge_above_the_ratio_and_level_by_level() {
        let merge = |ratio| {
            move |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
                automerge(candidates, pool, lines, &Automerge { k: 12, ratio })
            }
        };
        // Two of four is half: not more than half.
        check(&[0.9, 0.8, 0.0, 0.0], &[0..4], merge(0.5), &[&[0], &[1]]);
        check(&[0.9, 0.8, 0.7, 0.0], &[0..4], merge(0.5), &[&[0, 1, 2, 3]]);
        // A chunk between two that are found is filled in, once.
        check(&[0.9, 0.0, 0.7, 0.0], &[0..4], merge(0.5), &[&[0, 1, 2, 3]]);
        check(&[0.9, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0], &[0..8], merge(0.5), &[&[0], &[1], &[2]]);
        // A section of one chunk is no merge; the one around it may still be.
        check(&[0.9, 0.0, 0.0, 0.0], &[0..1, 0..4], merge(0.5), &[&[0]]);
        check(&[0.9, 0.8, 0.7, 0.0, 0.6, 0.0], &[0..4, 0..6], merge(0.5), &[&[0, 1, 2, 3, 4, 5]]);
        // A chunk between two that is not offered is not filled in, and a section counts all its chunks.
        check(&[0.9, -1.0, 0.7, 0.0], &[0..4], merge(0.5), &[&[0], &[2]]);
        // The inner section goes first: its mean is .5, and that of .5 and .9 is more than .65; the mean of four chunks would be less.
        let scores = [0.9, 0.0, 0.0, 0.0, 0.4, 0.5, 0.6, 0.0, 0.0, 0.65];
        check(&scores, &[0..8, 4..8], merge(0.4), &[&[0, 1, 2, 3, 4, 5, 6, 7], &[9]]);
        // Without headings, aligned runs of four, then of sixteen.
        check(&[0.9, 0.8, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0], &[], merge(0.5), &[&[0, 1, 2, 3]]);
    }
}
