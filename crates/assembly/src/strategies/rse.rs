//! Relevant segment extraction: runs of chunks whose values add up, chosen greedily.
//!
//! Source: dsRAG (`rse.py`, `knowledge_base.py` of D-Star-AI/dsRAG) for values, presets and the greedy choice: the best
//! segment, then the best that does not touch it, and so on, budgets in chunks.
//! Range: values of one query are comparable; a chunk that was not found costs the penalty.
//! Differs: similarity is the score of retrieval as a share of the best one's, in `[0, 1]` as a reranker's is; the
//! budget in tokens holds besides the one in chunks; equal segments go by document and start, where the original
//! follows hash order.
//! Cost: N chunks times the longest segment for each segment it takes.

use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::figure::number;
use crate::line::Lines;
use crate::normalize::share_of_best;
use crate::select::block::{Block, Plan};
use crate::select::chooser::{Choice, Chooser, TOGETHER, Walk};
use crate::select::gates::{RUN_MAX, Told};
use crate::stop::{Stop, check};
use crate::value::prior::Scored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::Range;

/// Settings of [`Strategy::Rse`](crate::Strategy::Rse) and [`Strategy::RseExact`](crate::Strategy::RseExact).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rse {
    /// Most chunks of a segment.
    pub max_length: usize,
    /// Most chunks of all segments.
    pub overall_max_length: usize,
    /// Least value of a segment.
    pub minimum_value: f64,
    /// The cost of a chunk that says nothing.
    pub irrelevant_chunk_penalty: f64,
    /// Ranks in which the weight of a similarity falls to 1/e.
    pub decay_rate: f64,
    /// First ranks whose documents are considered.
    pub top_k_for_document_selection: usize,
    /// Makes chunks of more than 700 characters count for more.
    pub chunk_length_adjustment: bool,
}

/// Characters from which a chunk counts for more.
const LENGTH_CHARS: f64 = 700.0;

/// Ranks that are looked at, as the search behind the original returns no more.
const RANKS_MAX: usize = 200;

impl Default for Rse {
    /// dsRAG's `balanced`.
    fn default() -> Self {
        Self {
            max_length: 15,
            overall_max_length: 30,
            minimum_value: 0.5,
            irrelevant_chunk_penalty: 0.18,
            decay_rate: 30.0,
            top_k_for_document_selection: 10,
            chunk_length_adjustment: true,
        }
    }
}

impl Rse {
    /// dsRAG's `precision`.
    pub fn precision() -> Self {
        Self { minimum_value: 0.7, irrelevant_chunk_penalty: 0.2, ..Self::default() }
    }

    /// dsRAG's `find_all`.
    pub fn find_all() -> Self {
        Self {
            max_length: 40,
            overall_max_length: 200,
            minimum_value: 0.4,
            decay_rate: 200.0,
            top_k_for_document_selection: 200,
            ..Self::default()
        }
    }

    /// A preset by the name its source gives it.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "balanced" => Some(Self::default()),
            "precision" => Some(Self::precision()),
            "find_all" => Some(Self::find_all()),
            _ => None,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let some = |value: usize, key: &str| Error::unless(value > 0, key, "must be at least 1");
        some(self.max_length, "rse.max_length")?;
        Error::unless(self.max_length <= RUN_MAX, "rse.max_length", "must be at most 100")?;
        some(self.overall_max_length, "rse.overall_max_length")?;
        some(self.top_k_for_document_selection, "rse.top_k_for_document_selection")?;
        Error::unless(self.minimum_value.is_finite(), "rse.minimum_value", "must be a finite number")?;
        let penalty = self.irrelevant_chunk_penalty;
        let holds = penalty >= 0.0 && penalty.is_finite();
        Error::unless(holds, "rse.irrelevant_chunk_penalty", "must be at least 0")?;
        let decays = self.decay_rate > 0.0 && self.decay_rate.is_finite();
        Error::unless(decays, "rse.decay_rate", "must be a number above 0")
    }

    /// The sentence about a chunk in no segment.
    pub(super) fn in_no_segment(&self) -> Told {
        let because = format!(
            "in no segment worth {} or more, of at most {} chunks, {} in all, in the documents of the first {} hits",
            number(self.minimum_value),
            self.max_length,
            self.overall_max_length,
            self.top_k_for_document_selection
        );
        let value = format!("an rse.minimum_value below {}", number(self.minimum_value));
        let penalty = format!("an rse.irrelevant_chunk_penalty below {}", number(self.irrelevant_chunk_penalty));
        (because, vec![value, penalty])
    }

    /// Value of a chunk at a 0-based rank; of none where it was not found.
    pub(crate) fn value(&self, found: Option<(usize, f64)>, n_chars: usize) -> f64 {
        let Some((rank, similarity)) = found else { return -self.irrelevant_chunk_penalty };
        let value = (-(rank as f64) / self.decay_rate).exp() * similarity - self.irrelevant_chunk_penalty;
        let adjust = if self.chunk_length_adjustment { (n_chars as f64).max(LENGTH_CHARS) / LENGTH_CHARS } else { 1.0 };
        value * adjust
    }
}

/// Values by place, and the documents considered as ranges of places.
pub(crate) struct Values {
    pub(crate) values: Vec<f64>,
    pub(crate) documents: Vec<Range<usize>>,
}

/// dsRAG's values. `pool` best first.
pub(crate) fn values(candidates: &[&Candidate], pool: &[Scored], lines: &Lines, settings: &Rse) -> Result<Values> {
    let found: Vec<usize> =
        pool.iter().map(|scored| scored.candidate).filter(|&at| !candidates[at].is_neighbor).collect();
    let similarities = share_of_best(&found.iter().map(|&at| candidates[at].relevance).collect::<Vec<_>>())?;
    let n_chars = |at: usize| candidates[at].text.chars().count();
    let mut values = vec![settings.value(None, 0); lines.len()];
    let mut last = vec![0; lines.len()]; // by document: behind its last chunk that was found
    for (rank, (&at, &similarity)) in found.iter().zip(&similarities).enumerate().take(RANKS_MAX) {
        let place = lines.place(at);
        values[place] = settings.value(Some((rank, similarity)), n_chars(at));
        let end = &mut last[lines.document_number(place)];
        *end = (place + 1).max(*end);
    }
    let considered: HashSet<usize> = found
        .iter()
        .take(settings.top_k_for_document_selection)
        .map(|&at| lines.document_number(lines.place(at)))
        .collect();
    let documents = (0..lines.documents.len())
        .filter(|number| considered.contains(number))
        .map(|number| lines.documents[number].start..last[number].max(lines.documents[number].start));
    Ok(Values { values, documents: documents.collect() })
}

/// Segments as dsRAG chooses them, in the order of choice.
pub(crate) fn greedy(
    values: &Values,
    lines: &Lines,
    settings: &Rse,
    stop: Stop<'_>,
) -> Result<Vec<(Range<usize>, f64)>> {
    let mut chosen: Vec<(Range<usize>, f64)> = Vec::new();
    let mut total = 0;
    while total < settings.overall_max_length {
        let mut best: Option<(Range<usize>, f64)> = None;
        for document in &values.documents {
            for start in document.clone().filter(|&start| values.values[start] >= 0.0) {
                check(stop)?;
                let mut sum = 0.0;
                for end in start..document.end.min(start + settings.max_length) {
                    if end > start && !lines.touches(end) {
                        break; // a chunk in between is not there
                    }
                    sum += values.values[end];
                    let segment = start..end + 1;
                    if values.values[end] < 0.0 {
                        continue;
                    }
                    if chosen.iter().any(|(other, _)| segment.start < other.end && other.start < segment.end) {
                        break;
                    }
                    if total + segment.len() > settings.overall_max_length {
                        break;
                    }
                    if best.as_ref().is_none_or(|(_, value)| sum > *value) {
                        best = Some((segment, sum));
                    }
                }
            }
        }
        match best.filter(|(_, value)| *value >= settings.minimum_value) {
            Some((segment, value)) => {
                total += segment.len();
                chosen.push((segment, value));
            }
            None => break,
        }
    }
    Ok(chosen)
}

impl Chooser for Rse {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        let &Choice { pool, lines, .. } = choice;
        let segments = greedy(&values(ledger.candidates(), pool, lines, self)?, lines, self, choice.stop)?;
        Ok(Plan { blocks: blocks(lines, segments), ..Plan::default() }.offered(choice))
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }

    fn not_proposed(&self) -> Option<Told> {
        Some(self.in_no_segment())
    }
}

/// The chunks of segments, each segment as one block.
pub(super) fn blocks(lines: &Lines, segments: Vec<(Range<usize>, f64)>) -> Vec<Block> {
    let block = |(places, value): (Range<usize>, f64)| Block::new(lines.candidates[places].to_vec(), value);
    segments.into_iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::NEVER;
    use crate::tests::candidate;

    fn lines_of(n: usize) -> (Vec<Candidate>, usize) {
        ((0..n as u32).map(|index| candidate("a", index, "text", 0.0)).collect(), n)
    }

    #[track_caller]
    fn segments(values: &[f64], settings: Rse, expected: &[(Range<usize>, f64)]) {
        let (candidates, n) = lines_of(values.len());
        let candidates: Vec<&Candidate> = candidates.iter().collect();
        let lines = Lines::new(&candidates);
        let values = Values { values: values.to_vec(), documents: vec![0..n] };
        let found = greedy(&values, &lines, &settings, NEVER).unwrap();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((segment, value), (expected, sum)) in found.iter().zip(expected) {
            assert_eq!(segment, expected);
            assert!((value - sum).abs() < 1e-12, "{value} {sum}");
        }
    }

    #[test]
    fn the_worked_example() {
        segments(&[-0.2, -0.2, 0.4, 0.8, -0.1], Rse::default(), &[(2..4, 1.2)]);
    }

    #[test]
    fn values_by_rank_similarity_and_length() {
        let balanced = Rse::default();
        assert!((balanced.value(Some((0, 1.0)), 300) - 0.82).abs() < 1e-12, "short chunks are as they are");
        assert_eq!(balanced.value(None, 3000), -0.18, "what was not found costs one penalty, whatever its length");
        assert!((balanced.value(Some((0, 1.0)), 1400) - 1.64).abs() < 1e-12, "twice 700 characters count twice");
        let constant = |rank| balanced.value(Some((rank, 0.8)), 0);
        assert!((0..=44).all(|rank| constant(rank) > 0.0) && constant(45) < 0.0);
    }

    #[test]
    fn budgets_in_chunks_and_the_least_value_end_the_choice() {
        let values = [0.6, 0.6, -0.2, 0.9, -0.5, 0.4];
        segments(&values, Rse::default(), &[(0..4, 1.9)]);
        segments(&values, Rse { max_length: 2, ..Rse::default() }, &[(0..2, 1.2), (3..4, 0.9)]);
        segments(&values, Rse { max_length: 2, overall_max_length: 2, ..Rse::default() }, &[(0..2, 1.2)]);
        segments(&values, Rse { minimum_value: 2.0, ..Rse::default() }, &[]);
        segments(&[-0.1, -0.4], Rse::default(), &[]);
    }

    /// The definition, read off the source: every segment tried anew in each round.
    fn naive(values: &[f64], ends: &[usize], settings: &Rse) -> Vec<Range<usize>> {
        let mut chosen: Vec<Range<usize>> = Vec::new();
        loop {
            let used: usize = chosen.iter().map(Range::len).sum();
            if used >= settings.overall_max_length {
                return chosen;
            }
            let mut best: Option<(f64, Range<usize>)> = None;
            for start in 0..values.len() {
                for end in start + 1..=values.len() {
                    let crosses = ends.iter().any(|&boundary| start < boundary && boundary < end);
                    let overlaps = chosen.iter().any(|other| start < other.end && other.start < end);
                    if values[start] < 0.0
                        || values[end - 1] < 0.0
                        || crosses
                        || overlaps
                        || end - start > settings.max_length
                        || used + end - start > settings.overall_max_length
                    {
                        continue;
                    }
                    let sum = values[start..end].iter().fold(0.0, |sum, value| sum + value);
                    if best.as_ref().is_none_or(|(most, _)| sum > *most) {
                        best = Some((sum, start..end));
                    }
                }
            }
            match best {
                Some((value, segment)) if value >= settings.minimum_value => chosen.push(segment),
                _ => return chosen,
            }
        }
    }

    #[test]
    fn a_thousand_random_lines_are_cut_as_the_definition_cuts_them() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..1_000 {
            let lengths: Vec<usize> = (0..1 + next(3)).map(|_| 1 + next(12) as usize).collect();
            let candidates: Vec<Candidate> = lengths
                .iter()
                .enumerate()
                .flat_map(|(document, &n)| {
                    (0..n as u32).map(move |index| candidate(&format!("d{document}"), index, "text", 0.0))
                })
                .collect();
            let candidates: Vec<&Candidate> = candidates.iter().collect();
            let lines = Lines::new(&candidates);
            let values: Vec<f64> = candidates.iter().map(|_| next(200) as f64 / 100.0 - 0.9).collect();
            let settings = Rse {
                max_length: 1 + next(6) as usize,
                overall_max_length: 1 + next(12) as usize,
                minimum_value: next(3) as f64 / 2.0,
                ..Rse::default()
            };
            let ends: Vec<usize> = lines.documents.iter().map(|document| document.end).collect();
            let expected = naive(&values, &ends, &settings);
            let all = Values { values, documents: lines.documents.clone() };
            let found: Vec<Range<usize>> =
                greedy(&all, &lines, &settings, NEVER).unwrap().into_iter().map(|(segment, _)| segment).collect();
            assert_eq!(found, expected, "{:?} {settings:?}", all.values);
        }
    }
}
