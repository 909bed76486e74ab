//! Relevant segments, the best set of them: the values of [`super::rse`], chosen by `optimum` within the
//! tokens of the budget.

use super::rse::{self, Rse};
use crate::budget::Ledger;
use crate::error::Result;
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
        let of = rse::values(ledger.candidates(), pool, lines, settings)?;
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
            values: of.values,
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
        segments.sort_by(|a, b| greatest_first(a.1, b.1)); // equal ones as they lie
        let certificate =
            Certificate { value: solved.value, bound: solved.bound, gap: solved.gap(), n_relaxations: solved.n_nodes };
        let plan = Plan { blocks: rse::blocks(lines, segments), certificate: Some(certificate), ..Plan::default() };
        Ok(plan.offered(choice))
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }

    fn not_proposed(&self) -> Option<Told> {
        Some(self.0.in_no_segment())
    }
}
