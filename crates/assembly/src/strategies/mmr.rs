//! Maximal marginal relevance: next comes what is most relevant and least like what is there.
//!
//! Source: Carbonell and Goldstein 1998: `argmax lambda rel(c) - (1 - lambda) max over chosen of sim(c, s)`.
//! Differs: it goes on until the budget is full, and what does not fit is passed over; relevance is a share of the best
//! one's, so that both terms lie in `[0, 1]`; similarity is the cosine of the vectors where there are any, else the
//! overlap of words.
//! Cost: one similarity for each two of the candidates that are ordered; of words, the pairs that share each.

use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::neighborhood::Neighborhood;
use crate::normalize::share_of_best;
use crate::select::block::{Block, Plan};
use crate::select::chooser::{ALONE, Choice, Chooser, Walk};
use crate::select::decision::{Reason, StepDetails};
use crate::select::similarity::Similarity;
use crate::stop::{Stop, check};
use crate::value::prior::Scored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of [`Strategy::Mmr`](crate::Strategy::Mmr).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl Mmr {
    pub(crate) fn check(&self) -> Result<()> {
        Error::unless((0.0..=1.0).contains(&self.lambda), "mmr.lambda", "must be between 0 and 1")?;
        Error::unless(self.candidates > 0, "mmr.candidates", "must be at least 1")
    }
}

impl Chooser for Mmr {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        let plan = plan(ledger.candidates(), choice.pool, self, choice.similarity, choice.stop)?;
        Ok(plan.offered(choice))
    }

    fn neighborhood(&self) -> Neighborhood {
        Neighborhood::none()
    }

    fn it_needs(&self) -> &'static str {
        ALONE
    }
}

fn plan(
    candidates: &[&Candidate],
    pool: &[Scored],
    settings: &Mmr,
    similarity: &Similarity<'_>,
    stop: Stop<'_>,
) -> Result<Plan> {
    let found: Vec<usize> =
        pool.iter().map(|scored| scored.candidate).filter(|&at| !candidates[at].is_neighbor).collect();
    let relevance = share_of_best(&found.iter().map(|&at| candidates[at].relevance).collect::<Vec<_>>())?;
    let n_ordered = settings.candidates.min(found.len());
    let among = similarity.among(&found[..n_ordered]);
    let mut plan = Plan::default();
    let mut open: Vec<usize> = (0..n_ordered).collect();
    // The greatest similarity to what is chosen, and whose it is.
    let mut nearest: Vec<Option<(f64, usize)>> = vec![None; n_ordered];
    while !open.is_empty() {
        check(stop)?;
        let score = |at: usize| {
            settings.lambda * relevance[at] - (1.0 - settings.lambda) * nearest[at].map_or(0.0, |(most, _)| most)
        };
        let best = (1..open.len()).fold(0, |best, n| if score(open[n]) > score(open[best]) { n } else { best });
        let value = score(open[best]);
        let at = open.remove(best);
        let details = StepDetails {
            overlap: Some(nearest[at].map_or(0.0, |(most, _)| most)),
            partner: nearest[at].map(|(_, partner)| candidates[found[partner]].id.clone()),
            ..StepDetails::default()
        };
        plan.reasons.insert(found[at], (Reason::NotProposed, details));
        plan.blocks.push(Block::new(vec![found[at]], value));
        for (&other, alike) in open.iter().zip(among.with(at, &open)) {
            if nearest[other].is_none_or(|(most, _)| alike > most) {
                nearest[other] = Some((alike, at));
            }
        }
    }
    let rest = found[n_ordered..].iter().zip(&relevance[n_ordered..]);
    plan.blocks.extend(rest.map(|(&at, share)| Block::new(vec![at], settings.lambda * share)));
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::NEVER;
    use crate::tests::candidate;

    /// Numbers of chunks in the order in which they are offered; `alike` by the numbers of two.
    #[track_caller]
    fn check(relevance: &[f64], alike: &dyn Fn(&str, &str) -> f64, expected: &[u32]) {
        let chunks: Vec<Candidate> =
            relevance.iter().enumerate().map(|(at, &score)| candidate("a", at as u32, "text", score)).collect();
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let pool = crate::value::prior::by_relevance(&candidates).pool;
        let similarity = Similarity::new(&candidates, Some(alike), crate::tests::NO_READING);
        let plan = plan(&candidates, &pool, &Mmr::default(), &similarity, NEVER).unwrap();
        assert_eq!(plan.blocks.iter().map(|block| block.candidates[0] as u32).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_less_relevant_chunk_goes_before_one_that_says_the_same() {
        let alike = |a: &str, b: &str| if [a, b].contains(&"a#2") { 0.1 } else { 0.7 };
        check(&[0.9, 0.85, 0.8], &alike, &[0, 2, 1]);
    }

    #[test]
    fn what_is_opposite_to_all_that_is_chosen_is_newest() {
        let alike = |a: &str, b: &str| if [a, b].contains(&"a#2") { -0.5 } else { 0.0 };
        check(&[1.0, 0.6, 0.5], &alike, &[0, 2, 1]);
    }
}
