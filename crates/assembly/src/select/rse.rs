//! Relevant segment extraction: runs of chunks whose values add up, in three forms.
//!
//! Sources: dsRAG (`rse.py`, `knowledge_base.py` of D-Star-AI/dsRAG) for values, presets and the greedy choice; the tutorial "Relevant
//! Segment Extraction" (RAG_Techniques' form) for `(cosine + 1 - rank / n) / 2 - threshold` and Kadane's sum under a length cap.
//! - [`greedy`]: the best segment, then the best that does not touch it, and so on, budgets in chunks.
//! - [`kadane`]: one segment a document, by the running sum as written: a run begins at chunk 0 or behind a sum below 0, chunks without a
//!   value included, and once it is longer than the cap it is never cut from its front, so better segments behind it are missed.
//! - exact: the same values as `greedy`, the best set of segments in tokens, by [`crate::optimum`].
//!
//! Range: values of one query are comparable; a chunk that was not found costs the penalty.
//! Differs: similarity is the score of retrieval as a share of the best one's, in `[0, 1]` as a reranker's is; the budget in tokens
//! holds besides the one in chunks; equal segments go by document and start, where the original follows hash order.
//! Cost: greedy scans N chunks times the longest segment for each segment it takes.

use super::block::{Block, Plan};
use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::Result;
use crate::line::Lines;
use crate::normalize::share_of_best;
use crate::optimum::{self, Cap, NODES_MAX, Problem};
use crate::pack::Excerpt;
use crate::prior::Scored;
use crate::trace::Certificate;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::Range;

/// Settings of [`Strategy::Rse`](crate::Strategy::Rse) and [`Strategy::RseExact`](crate::Strategy::RseExact).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rse {
    /// Most chunks of a segment.
    pub max_length: usize,
    /// Most chunks of all segments.
    pub overall_max_length: usize,
    /// Least value of a segment.
    pub minimum_value: f64,
    /// What a chunk costs that says nothing.
    pub irrelevant_chunk_penalty: f64,
    /// Ranks in which the weight of a similarity falls to 1/e.
    pub decay_rate: f64,
    /// First ranks whose documents are considered.
    pub top_k_for_document_selection: usize,
    /// Whether chunks of more than 700 characters count for more.
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

    /// Value of a chunk at a 0-based rank; of none where it was not found.
    pub(crate) fn value(&self, found: Option<(usize, f64)>, n_chars: usize) -> f64 {
        let Some((rank, similarity)) = found else { return -self.irrelevant_chunk_penalty };
        let value = (-(rank as f64) / self.decay_rate).exp() * similarity - self.irrelevant_chunk_penalty;
        let adjust = if self.chunk_length_adjustment { (n_chars as f64).max(LENGTH_CHARS) / LENGTH_CHARS } else { 1.0 };
        value * adjust
    }
}

/// Settings of [`Strategy::RseKadane`](crate::Strategy::RseKadane).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kadane {
    /// Ranks that get a value; every other chunk counts 0.
    pub k: usize,
    /// What is taken from a value.
    pub relevance_threshold: f64,
    /// Most chunks of a segment.
    pub max_segment_length: usize,
}

impl Default for Kadane {
    fn default() -> Self {
        Self { k: 10, relevance_threshold: 0.3, max_segment_length: 15 }
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
pub(crate) fn greedy(values: &Values, lines: &Lines, settings: &Rse) -> Vec<(Range<usize>, f64)> {
    let mut chosen: Vec<(Range<usize>, f64)> = Vec::new();
    let mut total = 0;
    while total < settings.overall_max_length {
        let mut best: Option<(Range<usize>, f64)> = None;
        for document in &values.documents {
            for start in document.clone().filter(|&start| values.values[start] >= 0.0) {
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
    chosen
}

/// The tutorial's values by place: of the first `k`, else none.
pub(crate) fn kadane_values(
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

/// The best segment of a document by the running sum as the tutorial writes it; none if no sum is above 0. `values` by number of the
/// chunk, ascending. Chunks without one count 0: they never end a run, and those before the first value begin it.
pub(crate) fn kadane(values: impl IntoIterator<Item = (u32, f64)>, longest: usize) -> Option<(Range<u32>, f64)> {
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

pub(super) fn plan_greedy(candidates: &[&Candidate], pool: &[Scored], lines: &Lines, settings: &Rse) -> Result<Plan> {
    let segments = greedy(&values(candidates, pool, lines, settings)?, lines, settings);
    Ok(Plan { blocks: blocks(lines, segments), ..Plan::default() })
}

pub(super) fn plan_kadane(
    candidates: &[&Candidate],
    pool: &[Scored],
    lines: &Lines,
    settings: &Kadane,
) -> Result<Plan> {
    let values = kadane_values(candidates, pool, lines, settings)?;
    let mut segments = Vec::new();
    for document in &lines.documents {
        let index = |place: usize| candidates[lines.candidates[place]].index;
        let scored = document.clone().filter_map(|place| Some((index(place), values[place]?)));
        if let Some((segment, value)) = kadane(scored, settings.max_segment_length) {
            // Of the segment what is offered can be delivered.
            let before = |end: u32| document.start + document.clone().take_while(|&place| index(place) < end).count();
            segments.push((before(segment.start)..before(segment.end), value));
        }
    }
    segments.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.start.cmp(&b.0.start)));
    Ok(Plan { blocks: blocks(lines, segments), ..Plan::default() })
}

/// The best set of segments by the values of [`values`], in tokens.
pub(super) fn plan_exact(ledger: &mut Ledger<'_>, pool: &[Scored], lines: &Lines, settings: &Rse) -> Result<Plan> {
    let of = values(ledger.candidates(), pool, lines, settings)?;
    let n = lines.len();
    let (mut tokens, mut headers, mut gap, mut is_out) = (vec![0; n], vec![0; n], 0, vec![true; n]);
    for place in of.documents.iter().cloned().flatten() {
        let candidate = lines.candidates[place];
        tokens[place] = ledger.text_tokens(&Excerpt { candidate, part: None });
        (headers[place], gap) = ledger.frame_tokens(candidate);
        is_out[place] = false;
    }
    let all: Vec<usize> = of.documents.iter().cloned().flatten().collect();
    let problem = Problem {
        lines,
        values: of.values,
        tokens,
        headers,
        mark: gap,
        budget: ledger.left(),
        run_max: Some(settings.max_length),
        caps: vec![Cap { places: all, tokens_max: None, chunks_max: Some(settings.overall_max_length) }],
        needs: Vec::new(),
        conflict: &|_, _| false,
        must: Vec::new(),
        must_not: (0..n).filter(|&place| is_out[place]).collect(),
    };
    let solved = optimum::solve(&problem, NODES_MAX);
    let mut segments: Vec<(Range<usize>, f64)> = Vec::new();
    for &place in &solved.chosen {
        match segments.last_mut() {
            Some((segment, value)) if segment.end == place && lines.touches(place) => {
                (segment.end, *value) = (place + 1, *value + problem.values[place]);
            }
            _ => segments.push((place..place + 1, problem.values[place])),
        }
    }
    segments.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.start.cmp(&b.0.start)));
    let certificate =
        Certificate { value: solved.value, bound: solved.bound, gap: solved.gap(), n_relaxations: solved.n_nodes };
    Ok(Plan { blocks: blocks(lines, segments), certificate: Some(certificate), ..Plan::default() })
}

fn blocks(lines: &Lines, segments: Vec<(Range<usize>, f64)>) -> Vec<Block> {
    let block = |(places, value): (Range<usize>, f64)| Block::new(lines.candidates[places].to_vec(), value);
    segments.into_iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let found = greedy(&values, &lines, &settings);
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
                greedy(&all, &lines, &settings).into_iter().map(|(segment, _)| segment).collect();
            assert_eq!(found, expected, "{:?} {settings:?}", all.values);
        }
    }
}
