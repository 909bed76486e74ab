//! Relevant segments by the capped running sum of the tutorial, one segment a document.
//!
//! Source: "Relevant Segment Extraction" (RAG_Techniques' form): `(cosine + 1 - rank / n) / 2 - threshold`, and
//! Kadane's sum as written: a run begins at chunk 0 or behind a sum below 0, chunks without a value included, and once
//! it is longer than the cap it is never cut from its front, so better segments behind it are missed. At equal value a
//! segment goes on from its front, as a sum of 0 begins no new run, and ends as early as it can.
//! Differs: its ranks are those of retrieval's fused ranking, where the tutorial has one ranking by cosine, and a chunk
//! that words alone found, which has no cosine, is valued by its share of the best fused score instead.
//! Cost: one pass over the places of each document.

use super::rse::blocks;
use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::figure::number;
use crate::lever::{Lever, Number};
use crate::line::Lines;
use crate::neighborhood::{Near, Neighborhood, Side};
use crate::normalize::share_of_best;
use crate::rank::greatest_first;
use crate::select::block::Plan;
use crate::select::chooser::{Choice, Chooser, TOGETHER, Walk};
use crate::select::gates::{FAR, Told};
use crate::value::prior::Scored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Settings of [`Strategy::RseKadane`](crate::Strategy::RseKadane).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Kadane {
    /// Ranks that get a value; every other chunk counts 0.
    pub k: usize,
    /// The figure taken from every value.
    pub relevance_threshold: f64,
    /// Most chunks of a segment.
    pub max_segment_length: usize,
}

impl Default for Kadane {
    fn default() -> Self {
        Self { k: 10, relevance_threshold: 0.3, max_segment_length: 15 }
    }
}

impl Kadane {
    pub(crate) fn check(&self) -> Result<()> {
        Error::unless(self.k > 0, "kadane.k", "must be at least 1")?;
        Error::unless(self.max_segment_length > 0, "kadane.max_segment_length", "must be at least 1")?;
        let threshold = self.relevance_threshold.is_finite();
        Error::unless(threshold, "kadane.relevance_threshold", "must be a finite number")
    }
}

impl Chooser for Kadane {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        let (candidates, &Choice { pool, lines, .. }) = (ledger.candidates(), choice);
        let values = kadane_values(candidates, pool, lines, self)?;
        let mut segments = Vec::new();
        for document in &lines.documents {
            let index = |place: usize| candidates[lines.candidates[place]].index;
            let scored = document.clone().filter_map(|place| Some((index(place), values[place]?)));
            if let Some((segment, value)) = kadane(scored, self.max_segment_length) {
                // Of the segment what is offered can be delivered.
                let before =
                    |end: u32| document.start + document.clone().take_while(|&place| index(place) < end).count();
                segments.push((before(segment.start)..before(segment.end), value));
            }
        }
        segments.sort_by(|a, b| greatest_first(a.1, b.1)); // equal ones as they lie
        Ok(Plan { blocks: blocks(lines, segments), ..Plan::default() }.offered(choice))
    }

    fn neighborhood(&self) -> Neighborhood {
        // A segment ends with a chunk that has a value, and may begin with chunks that have none.
        let side = Side::before(self.max_segment_length.saturating_sub(1));
        Neighborhood(vec![Near::Beside { ranks: self.k, side }])
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }

    fn not_proposed(&self) -> Option<Told> {
        let Self { k, relevance_threshold, max_segment_length } = self;
        let threshold = number(*relevance_threshold);
        let because = format!(
            "in no segment of at most {max_segment_length} chunks; \
             only the first {k} hits are worth more than -{threshold}"
        );
        let wider = Number::limit("kadane.k", *k, k.saturating_add(1), k.saturating_mul(FAR));
        let lower = Number::down_to("kadane.relevance_threshold", *relevance_threshold, *relevance_threshold, 0.0);
        Some((because, vec![Lever::Number(wider), Lever::Number(lower)]))
    }
}

/// The tutorial's values by place: of the first `k`, else none.
fn kadane_values(
    candidates: &[&Candidate],
    pool: &[Scored],
    lines: &Lines,
    settings: &Kadane,
) -> Result<Vec<Option<f64>>> {
    let found: Vec<usize> =
        pool.iter().map(|scored| scored.candidate).filter(|&at| !candidates[at].is_neighbor).take(settings.k).collect();
    let shares = share_of_best(&found.iter().map(|&at| candidates[at].relevance).collect::<Vec<_>>())?;
    let mut values = vec![None; lines.len()];
    for (rank, (&at, &share)) in found.iter().zip(&shares).enumerate() {
        let similarity = candidates[at].cosine().unwrap_or(share);
        let by_rank = 1.0 - rank as f64 / found.len() as f64;
        values[lines.place(at)] = Some(f64::midpoint(similarity, by_rank) - settings.relevance_threshold);
    }
    Ok(values)
}

/// The best segment of a document by the running sum as the tutorial writes it; none if no sum is above 0. `values` by
/// number of the chunk, ascending. Chunks without one count 0: they never end a run, and those before the first value
/// begin it.
fn kadane(values: impl IntoIterator<Item = (u32, f64)>, longest: usize) -> Option<(Range<u32>, f64)> {
    let (mut best, mut sum, mut start) = (None, 0.0, 0);
    for (at, value) in values {
        if sum + value < 0.0 {
            (sum, start) = (0.0, at + 1);
            continue;
        }
        sum += value;
        if (at - start) < longest as u32 && best.as_ref().is_none_or(|(_, most)| sum > *most) && sum > 0.0 {
            best = Some((start..at + 1, sum));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kadane_finds_the_tutorials_segment_and_falls_into_its_trap() {
        let kadane = |values: &[f64], longest| kadane((0..).zip(values.iter().copied()), longest);
        let (segment, value) = kadane(&[-0.1, 0.4, 0.5, 0.3, -0.2, 0.1, 0.6, 0.4, -0.3], 20).unwrap();
        assert_eq!(segment, 1..8);
        assert!((value - 2.1).abs() < 1e-12);
        let trap: Vec<f64> = [0.1; 10].into_iter().chain([0.9; 3]).collect();
        let (segment, value) = kadane(&trap, 5).unwrap();
        assert_eq!(segment, 0..5, "2.9 of 8..13 is missed");
        assert!((value - 0.5).abs() < 1e-12);
        assert_eq!(kadane(&[-0.1, -0.2], 5), None);
    }

    #[test]
    fn kadane_counts_from_chunk_0_as_the_tutorial_does() {
        assert_eq!(kadane([(9, 0.5)], 10), Some((0..10, 0.5)), "what has no value is free, and part of the run");
        assert_eq!(kadane([(10, 0.5)], 10), None, "and makes it too long");
        assert_eq!(kadane([(8, -0.1), (10, 0.5)], 10), Some((9..11, 0.5)));
    }
}
