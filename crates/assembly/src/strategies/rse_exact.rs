//! Relevant segments, the best set of them: the values of [`super::rse`], chosen by `optimum` within the
//! tokens of the budget. Two segments with nothing worth less than 0 between them are joined where the budget has room
//! left: at equal value the text goes on.

use super::rse::{self, Rse};
use crate::budget::Ledger;
use crate::error::Result;
use crate::line::Lines;
use crate::neighborhood::Neighborhood;
use crate::optimum::{self, Cap, NODES_MAX, Problem};
use crate::pack::Excerpt;
use crate::rank::greatest_first;
use crate::select::block::Plan;
use crate::select::chooser::{Choice, Chooser, TOGETHER, Walk};
use crate::select::decision::Certificate;
use crate::select::gates::Told;
use std::ops::Range;

/// The strategy of that name, with the settings of [`Rse`].
pub(crate) struct RseExact(pub(crate) Rse);

impl Chooser for RseExact {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        let (Self(settings), &Choice { pool, lines, .. }) = (self, choice);
        let of = rse::values(ledger.candidates(), pool, &[], lines, settings)?;
        let values = of.of_question.into_iter().next().unwrap_or_default();
        let n = lines.len();
        let (mut tokens, mut is_out) = (vec![0; n], vec![true; n]);
        let (mut opening, mut reopening) = (vec![0; n], vec![0; n]);
        for place in of.documents.iter().cloned().flatten() {
            let candidate = lines.candidates[place];
            tokens[place] = ledger.text_tokens(&Excerpt { candidate, part: None });
            (opening[place], reopening[place]) = ledger.frame_tokens(candidate);
            is_out[place] = false;
        }
        let all: Vec<usize> = of.documents.iter().cloned().flatten().collect();
        let problem = Problem {
            lines,
            values,
            tokens,
            opening,
            reopening,
            budget: ledger.left(),
            run_max: Some(settings.max_length),
            caps: vec![Cap { places: all, tokens_max: None, chunks_max: Some(settings.overall_max_length) }],
            needs: Vec::new(),
            conflict: &|_, _| false,
            must: Vec::new(),
            must_not: (0..n).filter(|&place| is_out[place]).collect(),
            stop: choice.stop,
        };
        let solved = optimum::solve(&problem, NODES_MAX)?;
        let mut segments: Vec<(Range<usize>, f64)> = Vec::new();
        for &place in &solved.chosen {
            match segments.last_mut() {
                Some((segment, value)) if segment.end == place && lines.touches(place) => {
                    (segment.end, *value) = (place + 1, *value + problem.values[place]);
                }
                _ => segments.push((place..place + 1, problem.values[place])),
            }
        }
        let gaps = free_gaps(&segments, &problem.values, lines, settings);
        segments.sort_by(|a, b| greatest_first(a.1, b.1)); // equal ones as they lie
        segments.extend(gaps.into_iter().map(|gap| (gap, 0.0))); // from what the segments leave of the budget
        let certificate = Certificate {
            value: solved.value,
            bound: solved.bound,
            gap: solved.gap(),
            n_relaxations: solved.n_nodes,
            of_part: false,
        };
        let plan = Plan { blocks: rse::blocks(lines, segments), certificate: Some(certificate), ..Plan::default() };
        Ok(plan.offered(choice))
    }

    fn neighborhood(&self) -> Neighborhood {
        self.0.between_found()
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }

    fn not_proposed(&self) -> Option<Told> {
        Some(self.0.in_no_segment())
    }
}

/// The places between two segments that cost nothing, as far as a run and all of them may be long. Segments in the
/// order of places.
fn free_gaps(segments: &[(Range<usize>, f64)], values: &[f64], lines: &Lines, settings: &Rse) -> Vec<Range<usize>> {
    let mut n_left = settings.overall_max_length.saturating_sub(segments.iter().map(|(places, _)| places.len()).sum());
    let mut run_start = segments.first().map_or(0, |(places, _)| places.start);
    let mut gaps = Vec::new();
    for pair in segments.windows(2) {
        let (gap, end) = (pair[0].0.end..pair[1].0.start, pair[1].0.end);
        let is_whole = (gap.start..=gap.end).all(|place| lines.touches(place));
        let is_free = values[gap.clone()].iter().sum::<f64>() >= 0.0;
        if is_whole && is_free && gap.len() <= n_left && end - run_start <= settings.max_length {
            n_left -= gap.len();
            gaps.push(gap);
        } else {
            run_start = pair[1].0.start;
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use crate::tests::candidate;

    #[test]
    fn what_costs_nothing_between_two_segments_is_delivered_with_them() {
        let document = |name: &str, indexes: &[u32]| -> Vec<Candidate> {
            indexes.iter().map(|&index| candidate(name, index, "text", 0.0)).collect()
        };
        let all = [document("a", &[0, 1, 2, 3, 4, 5]), document("b", &[0, 2])].concat();
        let candidates: Vec<&Candidate> = all.iter().collect();
        let lines = Lines::new(&candidates);
        let values = [0.5, 0.0, 0.5, -0.1, 0.5, 0.0, 0.5, 0.5];
        let segments = [(0..1, 0.5), (2..3, 0.5), (4..5, 0.5), (6..7, 0.5), (7..8, 0.5)];
        let gaps = |settings: Rse| free_gaps(&segments, &values, &lines, &settings);
        assert_eq!(gaps(Rse::default()), [1..2], "not what costs, not the end of a document, not what is not there");
        assert_eq!(gaps(Rse { max_length: 2, ..Rse::default() }), []);
        assert_eq!(gaps(Rse { overall_max_length: 5, ..Rse::default() }), []);
    }
}
