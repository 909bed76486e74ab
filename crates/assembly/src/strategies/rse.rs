//! Relevant segment extraction: runs of chunks whose values add up, chosen greedily.
//!
//! Source: dsRAG (`rse.py`, `knowledge_base.py` of D-Star-AI/dsRAG) for values, presets and the greedy choice: the best
//! segment, then the best that does not touch it, and so on, budgets in chunks.
//! Several questions: each has its own ranking and so its own values,
//! `v_q(c) = exp(-rank_q(c) / decay) * score_q(c) / best_q - penalty`; the documents considered are those of the first
//! ranks of any. They choose in turn, each its best segment by its own values that touches none chosen before; one
//! without a segment worth `minimum_value` drops out. `overall_max_length` grows by its extension for each further one.
//! Range: values of one query are comparable; a chunk that was not found costs the penalty.
//! Differs: similarity is the score of retrieval as a share of the best one's, in `[0, 1]` as a reranker's is; the
//! budget in tokens holds besides the one in chunks (cosine is not mixed in, as its scale is another one); equal
//! segments go by document and start, where the original follows hash order, so one that goes on from an earlier start
//! at no cost is preferred to its end alone, and one that would go on at its end at no cost does not.
//! Cost: N chunks times the longest segment for each segment it takes.

use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::figure::number;
use crate::lever::{Lever, Number};
use crate::line::Lines;
use crate::neighborhood::{Near, Neighborhood, Side};
use crate::normalize::share_of_best;
use crate::select::block::{Block, Plan};
use crate::select::chooser::{Choice, Chooser, Ranking, TOGETHER, Walk};
use crate::select::gates::{RUN_MAX, Told};
use crate::stop::{Stop, check};
use crate::value::prior::Scored;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::ops::Range;

/// Settings of [`Strategy::Rse`](crate::Strategy::Rse) and [`Strategy::RseExact`](crate::Strategy::RseExact). They may
/// be written as a [`Preset`] and what differs from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Rse {
    /// Most chunks of a segment.
    pub max_length: usize,
    /// Most chunks of all segments.
    pub overall_max_length: usize,
    /// Chunks that it grows by for each question after the first.
    #[serde(skip_serializing_if = "is_extension")]
    pub overall_max_length_extension: usize,
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

/// Chunks for each further question, of most presets.
const EXTENSION: usize = 5;

fn is_extension(extension: &usize) -> bool {
    *extension == EXTENSION
}

/// Characters from which a chunk counts for more.
const LENGTH_CHARS: f64 = 700.0;

/// Ranks that are looked at, as the search behind the original returns no more.
const RANKS_MAX: usize = 200;

/// dsRAG's presets, by the names that its source gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The default.
    #[default]
    Balanced,
    /// Fewer segments, each worth more.
    Precision,
    /// Long segments, and many.
    FindAll,
}

/// The settings as they are written: what is not there is the preset's.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The settings that are not written.
    #[serde(default)]
    preset: Preset,
    /// Most chunks of a segment.
    max_length: Option<usize>,
    /// Most chunks of all segments.
    overall_max_length: Option<usize>,
    /// Chunks that it grows by for each question after the first.
    overall_max_length_extension: Option<usize>,
    /// Least value of a segment.
    minimum_value: Option<f64>,
    /// The cost of a chunk that says nothing.
    irrelevant_chunk_penalty: Option<f64>,
    /// Ranks in which the weight of a similarity falls to 1/e.
    decay_rate: Option<f64>,
    /// First ranks whose documents are considered.
    top_k_for_document_selection: Option<usize>,
    /// Makes chunks of more than 700 characters count for more.
    chunk_length_adjustment: Option<bool>,
}

impl From<Written> for Rse {
    fn from(written: Written) -> Self {
        let preset = Self::from(written.preset);
        Self {
            max_length: written.max_length.unwrap_or(preset.max_length),
            overall_max_length: written.overall_max_length.unwrap_or(preset.overall_max_length),
            overall_max_length_extension: written
                .overall_max_length_extension
                .unwrap_or(preset.overall_max_length_extension),
            minimum_value: written.minimum_value.unwrap_or(preset.minimum_value),
            irrelevant_chunk_penalty: written.irrelevant_chunk_penalty.unwrap_or(preset.irrelevant_chunk_penalty),
            decay_rate: written.decay_rate.unwrap_or(preset.decay_rate),
            top_k_for_document_selection: written
                .top_k_for_document_selection
                .unwrap_or(preset.top_k_for_document_selection),
            chunk_length_adjustment: written.chunk_length_adjustment.unwrap_or(preset.chunk_length_adjustment),
        }
    }
}

impl JsonSchema for Rse {
    fn schema_name() -> Cow<'static, str> {
        "Rse".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::json_schema(generator)
    }
}

impl From<Preset> for Rse {
    fn from(preset: Preset) -> Self {
        let balanced = Self {
            max_length: 15,
            overall_max_length: 30,
            overall_max_length_extension: EXTENSION,
            minimum_value: 0.5,
            irrelevant_chunk_penalty: 0.18,
            decay_rate: 30.0,
            top_k_for_document_selection: 10,
            chunk_length_adjustment: true,
        };
        match preset {
            Preset::Balanced => balanced,
            Preset::Precision => Self { minimum_value: 0.7, irrelevant_chunk_penalty: 0.2, ..balanced },
            Preset::FindAll => Self {
                max_length: 40,
                overall_max_length: 200,
                overall_max_length_extension: 0,
                minimum_value: 0.4,
                decay_rate: 200.0,
                top_k_for_document_selection: 200,
                ..balanced
            },
        }
    }
}

impl Default for Rse {
    fn default() -> Self {
        Preset::default().into()
    }
}

impl Rse {
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

    /// The chunks that a segment may cross: one starts and ends with a chunk found, unless all others cost nothing.
    pub(super) fn between_found(&self) -> Neighborhood {
        let Self { max_length: run_max, top_k_for_document_selection: documents, .. } = *self;
        let before = match self.irrelevant_chunk_penalty {
            0.0 if self.minimum_value <= 0.0 => usize::MAX, // any chunk is a segment
            0.0 => run_max.saturating_sub(1),
            _ => 0,
        };
        Neighborhood(vec![
            Near::Between { ranks: RANKS_MAX, documents, run_max },
            Near::Beside { ranks: RANKS_MAX, side: Side::before(before) },
        ])
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
        let lowered = [
            ("rse.minimum_value", self.minimum_value),
            ("rse.irrelevant_chunk_penalty", self.irrelevant_chunk_penalty),
        ];
        (because, lowered.map(|(key, from)| Lever::Number(Number::down_to(key, from, from, 0.0))).into())
    }

    /// Value of a chunk at a 0-based rank; of none where it was not found.
    pub(crate) fn value(&self, found: Option<(usize, f64)>, n_chars: usize) -> f64 {
        let Some((rank, similarity)) = found else { return -self.irrelevant_chunk_penalty };
        let value = (-(rank as f64) / self.decay_rate).exp() * similarity - self.irrelevant_chunk_penalty;
        let adjust = if self.chunk_length_adjustment { (n_chars as f64).max(LENGTH_CHARS) / LENGTH_CHARS } else { 1.0 };
        value * adjust
    }
}

/// The values of each question by place, and the documents considered as ranges of places.
pub(crate) struct Values {
    pub(crate) of_question: Vec<Vec<f64>>,
    pub(crate) documents: Vec<Range<usize>>,
}

/// dsRAG's values: of the pool, best first, and of the rankings of further questions.
pub(crate) fn values(
    candidates: &[&Candidate],
    pool: &[Scored],
    further: &[Ranking],
    lines: &Lines,
    settings: &Rse,
) -> Result<Values> {
    let found = pool.iter().map(|scored| scored.candidate).filter(|&at| !candidates[at].is_neighbor);
    let first: Ranking = found.map(|at| (at, candidates[at].relevance)).collect();
    let n_chars = |at: usize| candidates[at].text.chars().count();
    let mut of_question = Vec::with_capacity(1 + further.len());
    let mut last = vec![0; lines.len()]; // by document: behind its last chunk that was found
    let mut considered: HashSet<usize> = HashSet::new();
    for ranking in std::iter::once(&first).chain(further) {
        let mut values = vec![settings.value(None, 0); lines.len()];
        let similarities = share_of_best(&ranking.iter().map(|&(_, score)| score).collect::<Vec<_>>())?;
        for (rank, (&(at, _), &similarity)) in ranking.iter().zip(&similarities).enumerate().take(RANKS_MAX) {
            let place = lines.place(at);
            values[place] = settings.value(Some((rank, similarity)), n_chars(at));
            let end = &mut last[lines.document_number(place)];
            *end = (place + 1).max(*end);
        }
        let of_first = ranking.iter().take(settings.top_k_for_document_selection);
        considered.extend(of_first.map(|&(at, _)| lines.document_number(lines.place(at))));
        of_question.push(values);
    }
    let documents = (0..lines.documents.len())
        .filter(|number| considered.contains(number))
        .map(|number| lines.documents[number].start..last[number].max(lines.documents[number].start));
    Ok(Values { of_question, documents: documents.collect() })
}

/// A segment that was chosen: its places, its value, and the question by whose values it was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) places: Range<usize>,
    pub(crate) value: f64,
    pub(crate) question: usize,
}

/// Segments as dsRAG chooses them, in the order of choice: the questions take turns.
pub(crate) fn greedy(values: &Values, lines: &Lines, settings: &Rse, stop: Stop<'_>) -> Result<Vec<Segment>> {
    let n_questions = values.of_question.len();
    let further = settings.overall_max_length_extension.saturating_mul(n_questions.saturating_sub(1));
    let most = settings.overall_max_length.saturating_add(further);
    let mut chosen: Vec<Segment> = Vec::new();
    let mut waiting: VecDeque<usize> = (0..n_questions).collect();
    let mut left = most;
    while let Some(question) = waiting.pop_front().filter(|_| left > 0) {
        let best =
            best_segment(&values.of_question[question], values, &chosen, lines, settings.max_length.min(left), stop)?;
        if let Some((places, value)) = best.filter(|(_, value)| *value >= settings.minimum_value) {
            left -= places.len();
            chosen.push(Segment { places, value, question });
            waiting.push_back(question);
        }
    }
    Ok(chosen)
}

/// The segment of at most `longest` places that is worth most by a question's values and touches none chosen.
fn best_segment(
    of_question: &[f64],
    values: &Values,
    chosen: &[Segment],
    lines: &Lines,
    longest: usize,
    stop: Stop<'_>,
) -> Result<Option<(Range<usize>, f64)>> {
    let mut best: Option<(Range<usize>, f64)> = None;
    for document in &values.documents {
        for start in document.clone().filter(|&start| of_question[start] >= 0.0) {
            check(stop)?;
            let mut sum = 0.0;
            for end in start..document.end.min(start + longest) {
                if end > start && !lines.touches(end) {
                    break; // a chunk in between is not there
                }
                sum += of_question[end];
                if of_question[end] < 0.0 {
                    continue;
                }
                if chosen.iter().any(|other| start < other.places.end && other.places.start < end + 1) {
                    break;
                }
                if best.as_ref().is_none_or(|(_, value)| sum > *value) {
                    best = Some((start..end + 1, sum));
                }
            }
        }
    }
    Ok(best)
}

impl Chooser for Rse {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        let &Choice { pool, lines, further, .. } = choice;
        let values = values(ledger.candidates(), pool, further, lines, self)?;
        let block = |segment: Segment| {
            let question = (!further.is_empty()).then_some(segment.question);
            Block { question, ..Block::new(lines.candidates[segment.places].to_vec(), segment.value) }
        };
        let segments = greedy(&values, lines, self, choice.stop)?;
        Ok(Plan { blocks: segments.into_iter().map(block).collect(), ..Plan::default() }.offered(choice))
    }

    fn neighborhood(&self) -> Neighborhood {
        self.between_found()
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
        let values = Values { of_question: vec![values.to_vec()], documents: vec![0..n] };
        let found = greedy(&values, &lines, &settings, NEVER).unwrap();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (Segment { places, value, .. }, (expected, sum)) in found.iter().zip(expected) {
            assert_eq!(places, expected);
            assert!((value - sum).abs() < 1e-12, "{value} {sum}");
        }
    }

    #[test]
    fn a_preset_gives_what_is_not_written() {
        let rse = |text: &str| crate::Policy::parse(text).map(|policy| policy.rse);
        for (name, preset) in
            [("balanced", Preset::Balanced), ("precision", Preset::Precision), ("find_all", Preset::FindAll)]
        {
            assert_eq!(rse(&format!("[rse]\npreset = \"{name}\"")).unwrap(), Rse::from(preset));
        }
        let written = rse("[rse]\npreset = \"find_all\"\nmax_length = 30\nminimum_value = 0.1").unwrap();
        assert_eq!(written, Rse { max_length: 30, minimum_value: 0.1, ..Preset::FindAll.into() });
        assert_eq!(rse("[rse]\nmax_length = 30").unwrap(), Rse { max_length: 30, ..Rse::default() });
        assert_eq!(rse("").unwrap(), Preset::Balanced.into());
        let unknown = rse("[rse]\npreset = \"comprehensive\"").unwrap_err().to_string();
        assert!(unknown.contains("comprehensive") && unknown.contains("`find_all`"), "{unknown}");
        assert!(rse("[rse]\npenalty = 0.1").unwrap_err().to_string().contains("penalty"));
        let policy = crate::Policy { rse: Preset::FindAll.into(), ..crate::Policy::default() };
        assert_eq!(crate::Policy::parse(&toml::to_string(&policy).unwrap()).unwrap(), policy, "as a trace keeps it");
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

    /// The definition, read off the source (`get_best_segments`): the questions in a cycle, every segment tried anew.
    fn naive(all: &[Vec<f64>], ends: &[usize], settings: &Rse) -> Vec<(Range<usize>, usize)> {
        let most = settings.overall_max_length + (all.len() - 1) * settings.overall_max_length_extension;
        let (mut chosen, mut done): (Vec<(Range<usize>, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut question = 0;
        loop {
            let used: usize = chosen.iter().map(|(segment, _)| segment.len()).sum();
            if used >= most || done.len() >= all.len() {
                return chosen;
            }
            question %= all.len();
            if done.contains(&question) {
                question += 1;
                continue;
            }
            let values = &all[question];
            let mut best: Option<(f64, Range<usize>)> = None;
            for start in 0..values.len() {
                for end in start + 1..=values.len() {
                    let crosses = ends.iter().any(|&boundary| start < boundary && boundary < end);
                    let overlaps = chosen.iter().any(|(other, _)| start < other.end && other.start < end);
                    if values[start] < 0.0
                        || values[end - 1] < 0.0
                        || crosses
                        || overlaps
                        || end - start > settings.max_length
                        || used + end - start > most
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
                Some((value, segment)) if value >= settings.minimum_value => chosen.push((segment, question)),
                _ => done.push(question),
            }
            question += 1;
        }
    }

    #[test]
    fn questions_take_turns_and_each_goes_by_its_own_values() {
        let (candidates, n) = lines_of(6);
        let candidates: Vec<&Candidate> = candidates.iter().collect();
        let lines = Lines::new(&candidates);
        let of_question = vec![vec![0.9, 0.8, -0.2, -0.2, 0.6, -0.2], vec![0.7, -0.2, -0.2, 0.6, 0.7, -0.2]];
        let values = Values { of_question, documents: vec![0..n] };
        let chosen = |settings: Rse| -> Vec<(Range<usize>, usize)> {
            let segments = greedy(&values, &lines, &settings, NEVER).unwrap();
            segments.into_iter().map(|segment| (segment.places, segment.question)).collect()
        };
        let settings = Rse { max_length: 2, ..Rse::default() };
        assert_eq!(chosen(settings), [(0..2, 0), (3..5, 1)], "what one has chosen is not there for the other");
        let few = Rse { overall_max_length: 2, overall_max_length_extension: 1, ..settings };
        assert_eq!(chosen(few), [(0..2, 0), (4..5, 1)], "one chunk more for the further question");
        let none = Rse { overall_max_length: 2, overall_max_length_extension: 0, ..settings };
        assert_eq!(chosen(none), [(0..2, 0)]);
        let least = Rse { minimum_value: 1.5, ..settings };
        assert_eq!(chosen(least), [(0..2, 0)], "the further one has nothing that is worth enough");
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
            let mut line = || candidates.iter().map(|_| next(200) as f64 / 100.0 - 0.9).collect::<Vec<f64>>();
            let of_question = [line(), line(), line()];
            let of_question = of_question[..1 + next(3) as usize].to_vec();
            let settings = Rse {
                max_length: 1 + next(6) as usize,
                overall_max_length: 1 + next(12) as usize,
                overall_max_length_extension: next(4) as usize,
                minimum_value: next(3) as f64 / 2.0,
                ..Rse::default()
            };
            let ends: Vec<usize> = lines.documents.iter().map(|document| document.end).collect();
            let expected = naive(&of_question, &ends, &settings);
            let all = Values { of_question, documents: lines.documents.clone() };
            let found: Vec<(Range<usize>, usize)> = greedy(&all, &lines, &settings, NEVER)
                .unwrap()
                .into_iter()
                .map(|segment| (segment.places, segment.question))
                .collect();
            assert_eq!(found, expected, "{:?} {settings:?}", all.of_question);
        }
    }
}
