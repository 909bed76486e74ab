//! Maximal marginal relevance: next comes what is most relevant and least like what is there.
//!
//! Source: Carbonell and Goldstein 1998: `argmax lambda rel(c) - (1 - lambda) max over chosen of sim(c, s)`.
//! Differs: it goes on until the budget is full, and what does not fit is passed over; relevance is a share of the best one's, so
//! that both terms lie in `[0, 1]`; similarity is the cosine of the vectors where there are any, else the overlap of words.
//! Cost: one similarity for each candidate and chosen chunk.

use super::block::{Block, Plan};
use crate::candidate::Candidate;
use crate::error::Result;
use crate::normalize::share_of_best;
use crate::prior::Scored;
use crate::redundancy::Similarity;
use crate::trace::{Reason, StepDetails};
use serde::{Deserialize, Serialize};

/// Settings of [`Strategy::Mmr`](crate::Strategy::Mmr).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mmr {
    /// Weight of relevance against novelty, in [0, 1].
    pub lambda: f64,
    /// Candidates that are ordered, the most relevant; the others keep their order behind them.
    pub candidates: usize,
}

impl Default for Mmr {
    fn default() -> Self {
        Self { lambda: 0.5, candidates: 200 }
    }
}

pub(super) fn plan(
    candidates: &[&Candidate],
    pool: &[Scored],
    settings: &Mmr,
    similarity: &Similarity<'_>,
) -> Result<Plan> {
    let found: Vec<usize> =
        pool.iter().map(|scored| scored.candidate).filter(|&at| !candidates[at].is_neighbor).collect();
    let relevance = share_of_best(&found.iter().map(|&at| candidates[at].relevance).collect::<Vec<_>>())?;
    let n_ordered = settings.candidates.min(found.len());
    let mut plan = Plan::default();
    let mut open: Vec<usize> = (0..n_ordered).collect();
    // The greatest similarity to what is chosen, and whose it is.
    let mut nearest: Vec<(f64, Option<usize>)> = vec![(0.0, None); n_ordered];
    while !open.is_empty() {
        let score = |at: usize| settings.lambda * relevance[at] - (1.0 - settings.lambda) * nearest[at].0;
        let best = (1..open.len()).fold(0, |best, n| if score(open[n]) > score(open[best]) { n } else { best });
        let value = score(open[best]);
        let at = open.remove(best);
        let (overlap, partner) = nearest[at];
        let details = StepDetails {
            overlap: Some(overlap),
            partner: partner.map(|partner: usize| candidates[found[partner]].id.clone()),
            ..StepDetails::default()
        };
        plan.reasons.insert(found[at], (Reason::NotProposed, details));
        plan.blocks.push(Block::new(vec![found[at]], value));
        for &other in &open {
            let alike = similarity.between(found[at], found[other]);
            if alike > nearest[other].0 {
                nearest[other] = (alike, Some(at));
            }
        }
    }
    let rest = found[n_ordered..].iter().zip(&relevance[n_ordered..]);
    plan.blocks.extend(rest.map(|(&at, share)| Block::new(vec![at], settings.lambda * share)));
    Ok(plan)
}
