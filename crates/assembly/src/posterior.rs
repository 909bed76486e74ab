//! How likely each candidate is to be relevant, given its own score and those of its neighbours.
//!
//! A hidden Markov chain of two states, relevant or not, runs along the chunks of each document: relevant chunks come in runs.
//! A chunk speaks for itself by the likelihood ratio of its score, and for its neighbours as far as runs reach; where the best
//! score stands alone the neighbours change little, where many middling ones stand together they lift each other. So the same
//! setting takes single chunks from documents whose evidence is short and whole segments where it is long.
//!
//! Source: forward-backward smoothing, Rabiner 1989, section III.A; relevance that clusters is dsRAG's idea, which charges each
//! chunk a constant instead.
//! Shapes: N candidates.
//! Emission: `ln(P(score | relevant) / P(score | not)) = mu z - theta`, as for two normal distributions of one width `mu` apart; `z` is
//! how many deviations the score is above the median of the pool (1.4826 times the median absolute deviation).
//! `theta` is solved so that the posteriors add up to `n_expected`: no two queries or encoders have the same scale of scores.
//! Cost: O(N) for each of some thirty values of `theta`.

use crate::error::Result;
use crate::line::Lines;
use crate::normalize::extent;
use serde::{Deserialize, Serialize};

/// How relevance runs along a document.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chain {
    /// Deviations between the scores of relevant chunks and of others; the larger, the more a score counts against its neighbours'.
    pub mu: f64,
    /// Mean number of chunks in a run of relevant ones, at least 1; 1 knows no neighbours.
    pub run_length: f64,
    /// Relevant chunks expected for a query; where a score is as good as any, and nothing else is known, this many are taken.
    pub n_expected: f64,
}

impl Default for Chain {
    fn default() -> Self {
        Self { mu: 1.0, run_length: 3.0, n_expected: 1.0 }
    }
}

/// Share of the chunks taken to be relevant before anything is read.
const PRIOR: f64 = 0.02;

/// Beyond this a likelihood ratio is as good as certain, and `exp` stays finite.
const LOG_RATIO_MAX: f64 = 40.0;

/// Steps after which the chain has forgotten where it was.
const STEPS_MAX: u32 = 64;

/// Halvings of the interval that `theta` lies in.
const HALVINGS: usize = 32;

/// The posterior of each place, in `[0, 1]`. `scores` by place; none for what retrieval did not find, which is taken to score as
/// the least of what it did.
///
/// # Errors
/// A score that is not a finite number.
pub(crate) fn posterior(lines: &Lines, scores: &[Option<f64>], chain: &Chain) -> Result<Vec<f64>> {
    let deviations = deviations(scores)?;
    let n_expected = chain.n_expected.min(lines.len() as f64 / 2.0);
    let ratios: Vec<f64> = deviations.iter().map(|z| chain.mu * z).collect();
    let greatest = ratios.iter().copied().fold(0.0, f64::max);
    let (mut low, mut high) = (-LOG_RATIO_MAX, greatest + LOG_RATIO_MAX);
    let mut smooth = Smoother::new(lines, chain);
    for _ in 0..HALVINGS {
        let theta = f64::midpoint(low, high);
        if smooth.run(&ratios, theta) > n_expected { low = theta } else { high = theta }
    }
    smooth.run(&ratios, high);
    Ok(smooth.posterior)
}

/// Deviations above the median of the found scores.
fn deviations(scores: &[Option<f64>]) -> Result<Vec<f64>> {
    let mut found: Vec<f64> = scores.iter().flatten().copied().collect();
    extent(&found)?;
    found.sort_unstable_by(f64::total_cmp);
    let Some(&least) = found.first() else { return Ok(vec![0.0; scores.len()]) };
    let middle = median(&found);
    let mut distances: Vec<f64> = found.iter().map(|score| (score - middle).abs()).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let mut width = 1.4826 * median(&distances);
    if width <= 0.0 {
        // Most scores are one number: the mean distance still tells the others apart.
        width = distances.iter().sum::<f64>() / distances.len() as f64;
    }
    if width <= 0.0 {
        return Ok(vec![0.0; scores.len()]);
    }
    Ok(scores.iter().map(|score| (score.unwrap_or(least) - middle) / width).collect())
}

/// Median of ascending numbers, the mean of the middle two of an even number.
fn median(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2])
}

/// Forward and backward passes, with buffers that serve every `theta`.
struct Smoother<'l> {
    lines: &'l Lines,
    enter: f64,
    leave: f64,
    /// Likelihood ratios, by place.
    ratios: Vec<f64>,
    posterior: Vec<f64>,
}

impl<'l> Smoother<'l> {
    fn new(lines: &'l Lines, chain: &Chain) -> Self {
        let leave = 1.0 / chain.run_length;
        let enter = leave * PRIOR / (1.0 - PRIOR); // so that PRIOR of the chunks are relevant: enter / (enter + leave)
        Self { lines, enter, leave, ratios: vec![0.0; lines.len()], posterior: vec![0.0; lines.len()] }
    }

    /// Fills `posterior`, and gives its sum.
    fn run(&mut self, log_ratios: &[f64], theta: f64) -> f64 {
        for (ratio, log) in self.ratios.iter_mut().zip(log_ratios) {
            *ratio = (log - theta).min(LOG_RATIO_MAX).exp();
        }
        let lines = self.lines;
        for document in &lines.documents {
            // Forward: the probability to be relevant given the scores up to here.
            let mut relevant = PRIOR;
            for place in document.clone() {
                if place > document.start {
                    relevant = self.after(relevant, lines.skipped[place].unwrap_or(0) + 1);
                }
                let (yes, no) = (relevant * self.ratios[place], 1.0 - relevant);
                relevant = yes / (yes + no);
                self.posterior[place] = relevant;
            }
            // Backward: how much likelier the rest is if this chunk is relevant, as (relevant, not) that add up to 1.
            let (mut yes, mut no) = (0.5, 0.5);
            for place in document.clone().rev() {
                let forward = self.posterior[place];
                let (both, neither) = (forward * yes, (1.0 - forward) * no);
                self.posterior[place] = both / (both + neither);
                yes *= self.ratios[place];
                if place > document.start {
                    for _ in 0..(lines.skipped[place].unwrap_or(0) + 1).min(STEPS_MAX) {
                        let sum = yes + no;
                        (yes, no) = (yes / sum, no / sum);
                        (yes, no) =
                            ((1.0 - self.leave) * yes + self.leave * no, self.enter * yes + (1.0 - self.enter) * no);
                    }
                }
            }
        }
        self.posterior.iter().sum()
    }

    /// The probability to be relevant some chunks on.
    fn after(&self, mut relevant: f64, n_steps: u32) -> f64 {
        for _ in 0..n_steps.min(STEPS_MAX) {
            relevant = relevant * (1.0 - self.leave) + (1.0 - relevant) * self.enter;
        }
        relevant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Candidate;
    use crate::tests::candidate;
    use proptest::prelude::*;

    fn posteriors(chunks: &[(&str, u32, Option<f64>)], chain: &Chain) -> Vec<f64> {
        let candidates: Vec<Candidate> =
            chunks.iter().map(|&(document, index, _)| candidate(document, index, "text", 0.0)).collect();
        let candidates: Vec<&Candidate> = candidates.iter().collect();
        let lines = Lines::new(&candidates);
        let scores: Vec<Option<f64>> = lines.candidates.iter().map(|&at| chunks[at].2).collect();
        let by_place = posterior(&lines, &scores, chain).unwrap();
        (0..chunks.len()).map(|at| by_place[lines.place(at)]).collect()
    }

    /// Every sequence of states of every document, weighed: the definition.
    fn enumerated(chunks: &[(&str, u32, Option<f64>)], chain: &Chain, theta: f64, z: &[f64]) -> Vec<f64> {
        let leave = 1.0 / chain.run_length;
        let enter = leave * PRIOR / (1.0 - PRIOR);
        let mut out = vec![0.0; chunks.len()];
        let mut start = 0;
        while start < chunks.len() {
            let end = (start..chunks.len()).find(|&at| chunks[at].0 != chunks[start].0).unwrap_or(chunks.len());
            let (mut total, mut yes) = (0.0, vec![0.0; end - start]);
            for states in 0_u32..1 << (end - start) {
                let relevant = |at: usize| states >> (at - start) & 1 == 1;
                let mut weight = 1.0;
                for at in start..end {
                    weight *= if at == start {
                        if relevant(at) { PRIOR } else { 1.0 - PRIOR }
                    } else {
                        let mut now = f64::from(relevant(at - 1));
                        for _ in 0..chunks[at].1 - chunks[at - 1].1 {
                            now = now * (1.0 - leave) + (1.0 - now) * enter;
                        }
                        if relevant(at) { now } else { 1.0 - now }
                    };
                    weight *= if relevant(at) { (chain.mu * z[at] - theta).exp() } else { 1.0 };
                }
                total += weight;
                (start..end).filter(|&at| relevant(at)).for_each(|at| yes[at - start] += weight);
            }
            (start..end).for_each(|at| out[at] = yes[at - start] / total);
            start = end;
        }
        out
    }

    #[test]
    fn the_passes_give_what_enumerating_every_sequence_of_states_gives() {
        let chunks = [
            ("a", 0, Some(0.9)),
            ("a", 1, Some(0.2)),
            ("a", 2, Some(0.7)),
            ("a", 5, Some(0.1)),
            ("b", 3, Some(0.4)),
            ("b", 4, None),
            ("b", 5, Some(0.6)),
        ];
        let chain = Chain { mu: 1.3, run_length: 2.5, n_expected: 1.0 };
        let scores: Vec<Option<f64>> = chunks.iter().map(|chunk| chunk.2).collect();
        let z = deviations(&scores).unwrap();
        let candidates: Vec<Candidate> = chunks.iter().map(|c| candidate(c.0, c.1, "text", 0.0)).collect();
        let candidates: Vec<&Candidate> = candidates.iter().collect();
        let lines = Lines::new(&candidates);
        let ratios: Vec<f64> = z.iter().map(|z| chain.mu * z).collect();
        for theta in [-1.0, 0.0, 2.5] {
            let mut smooth = Smoother::new(&lines, &chain);
            smooth.run(&ratios, theta);
            for (fast, slow) in smooth.posterior.iter().zip(enumerated(&chunks, &chain, theta, &z)) {
                assert!((fast - slow).abs() < 1e-12, "{fast} {slow}");
            }
        }
    }

    #[test]
    fn one_high_score_stands_alone_and_middling_ones_lift_each_other() {
        let chain = Chain::default();
        let flat = |at: u32| if at.is_multiple_of(2) { 0.1 } else { 0.12 };
        let line = |f: &dyn Fn(u32) -> f64| -> Vec<f64> {
            let chunks: Vec<(&str, u32, Option<f64>)> = (0..40).map(|at| ("a", at, Some(f(at)))).collect();
            posteriors(&chunks, &chain)
        };
        let peak = line(&|at| if at == 20 { 0.9 } else { flat(at) });
        assert!(peak[20] > 0.9 && peak[19] < 0.2, "{:?}", &peak[18..23]);
        let run = line(&|at| if (18..23).contains(&at) || at == 5 { 0.16 } else { flat(at) });
        assert!(run[20] > 2.0 * run[5], "one of a run {} against one alone {}", run[20], run[5]);
    }

    #[test]
    fn equal_scores_and_no_scores_share_what_is_expected() {
        let even = posteriors(&[("a", 0, Some(0.5)), ("b", 0, Some(0.5)), ("c", 0, Some(0.5))], &Chain::default());
        assert!(even.iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-6), "{even:?}");
        assert!(posteriors(&[], &Chain::default()).is_empty());
        let unseen = posteriors(&[("a", 0, None), ("b", 0, None)], &Chain::default());
        assert!(unseen.iter().all(|p| (p - 0.5).abs() < 1e-6), "{unseen:?}");
    }

    proptest! {
        #[test]
        fn posteriors_are_probabilities_that_add_up_and_scale_does_not_matter(
            scores in prop::collection::vec(-1e3..1e3_f64, 4..40), scale in 1e-3..1e3_f64, run_length in 1.0..9.0_f64,
        ) {
            let chain = Chain { run_length, ..Chain::default() };
            let line = |scale: f64| -> Vec<f64> {
                let chunks: Vec<(&str, u32, Option<f64>)> =
                    scores.iter().enumerate().map(|(at, score)| ("a", at as u32, Some(score * scale))).collect();
                posteriors(&chunks, &chain)
            };
            let plain = line(1.0);
            prop_assert!(plain.iter().all(|p| (0.0..=1.0).contains(p)));
            let sum: f64 = plain.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-3, "{}", sum);
            for (a, b) in plain.iter().zip(line(scale)) {
                prop_assert!((a - b).abs() < 1e-6, "{} {}", a, b);
            }
        }
    }
}
