//! Merged sections: chunks found are replaced by their section where more than a share of its chunks is found.
//!
//! Source: LlamaIndex's `AutoMergingRetriever`. Section by section up to the document; a section that does not fit
//! leaves its place to the chunks found in it.
//! Differs: a parent of one chunk never merges, a chunk in between is filled in once and only between neighbours in the
//! text, not in the ranking.
//! Cost: one pass over the chunks found for each level.

use super::window::found;
use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::figure::number;
use crate::lever::{Lever, Number};
use crate::line::Lines;
use crate::neighborhood::{Near, Neighborhood, Side};
use crate::rank::greatest_first;
use crate::select::block::{Block, Plan};
use crate::select::chooser::{Choice, Chooser, TOGETHER, Walk};
use crate::select::gates::{FAR, Told};
use crate::value::prior::Scored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Settings of [`Strategy::Automerge`](crate::Strategy::Automerge).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl Automerge {
    pub(crate) fn check(&self) -> Result<()> {
        Error::unless(self.k > 0, "automerge.k", "must be at least 1")?;
        Error::unless((0.0..1.0).contains(&self.ratio), "automerge.ratio", "must be at least 0 and below 1")
    }
}

impl Chooser for Automerge {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        Ok(automerge(ledger.candidates(), choice.pool, choice.lines, self).offered(choice))
    }

    fn neighborhood(&self) -> Neighborhood {
        // Without headings an aligned run is whole if all that can lie in it is there.
        let outside = Side::both(FAN_OUT.pow(LEVELS) as usize - 1);
        Neighborhood(vec![Near::Merged { ranks: self.k, share: self.ratio, outside }])
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }

    fn not_proposed(&self) -> Option<Told> {
        let wider = Number::limit("automerge.k", self.k, self.k.saturating_add(1), self.k.saturating_mul(FAR));
        let lower = Number::down_to("automerge.ratio", self.ratio, self.ratio, 0.0);
        let (k, ratio) = (self.k, number(self.ratio));
        let because =
            format!("neither among the first {k} chunks found nor in a section of which more than {ratio} is found");
        Some((because, vec![Lever::Number(wider), Lever::Number(lower)]))
    }
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
            within.sort_by(|a, b| greatest_first(a.value, b.value));
            blocks.push((block((start, (end, score))), within));
        }
    }
    blocks.sort_by(|a, b| greatest_first(a.0.value, b.0.value)); // equal ones as they lie, by document and place
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

/// The sections of a document, smallest first, so that one is whole before the one around it is looked at; aligned runs
/// where there are no headings.
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
