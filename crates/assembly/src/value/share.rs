//! How likely it is that what is asked for stands in a chunk, given its own score and those of its neighbours.
//!
//! The score says where evidence peaks; how far it runs on either side depends on the documents, and a score alone does
//! not tell. So four lengths of run are assumed in turn, and the mean of what they say is taken: short evidence is
//! found by the short runs and not lost by the long ones. A run passes from a chunk to its neighbour by a chance that
//! the neighbour's own score gives, so peaks keep their order, and neighbours of peaks rise above chunks that are no
//! better and stand alone.
//!
//! Where a reranker read some of the chunks, its probabilities take the place of the peaks that scores tell: it was
//! trained to say how likely a text answers, which a score only ranks. What it did not read stood behind what it read,
//! and is no likelier than the least of that. How far evidence runs is still told by the scores: nobody read the
//! neighbours.
//!
//! Source: ours; that relevant chunks cluster is what dsRAG's segments and sentence windows live on, with a constant
//! each.
//! Shapes: N candidates, by place.
//! - `z = (score - median) / (1.4826 * median absolute deviation)` of the found candidates.
//! - Peaks: `p = sigmoid(mu_peak z - t + logit(PRIOR))`, `t` such that they add up to 1.
//! - Peaks where R of them were read: `q_i` of those, `min(p_i, min q)` of the others, over their sum.
//! - Runs of L: a run that reaches a chunk takes it in with the odds `(L - 1) exp(mu_run z - t_L)`, where `t_L` puts as
//!   many chunks in runs as the peaks' documents have room for; `v_i = max(p_i, a_i v of the neighbour)`, from the left
//!   and from the right.
//! - The mean of the four, each adding up to 1.
//!
//! Range: `[0, 1]`, adding up to 1. The scale and the offset of the scores do not matter.
//! Cost: O(N) for each of some dozen values of the four `t`, one division each.

use crate::candidate::Candidate;
use crate::error::Result;
use crate::line::Lines;
use crate::normalize::extent;
use std::array;
use std::ops::Range;

/// The weight of a deviation for a chunk being a peak, in nats.
const MU_PEAK: f64 = 1.0;

/// The weight of a deviation for a chunk being in a run, in nats.
const MU_RUN: f64 = 0.8;

/// Share of the chunks taken to be relevant before anything is read.
pub(crate) const PRIOR: f64 = 0.02;

/// Lengths of run that are assumed, in chunks; all are as likely.
const RUN_LENGTHS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

/// No more than this share of the candidates is taken to be relevant, however few there are.
const SHARE_MAX: f64 = 0.6;

/// Halvings of the interval in which an offset lies: to some 1e-10 of its logarithm.
const HALVINGS: usize = 44;

/// Steps to near an offset, and the distance at which another one is taken to stand on its other side.
const STEPS: usize = 6;
const NEARLY: f64 = 1e-9;

/// Deviations beyond this are taken for this many: `exp` of twice as much is still a number.
const DEVIATIONS_MAX: f64 = 300.0;

/// Logarithms of offsets lie within this.
const OFFSET_MAX: f64 = 660.0;

/// Likelihoods by candidate.
///
/// # Errors
/// A score that is not a finite number.
pub(crate) fn of_candidates(candidates: &[&Candidate], lines: &Lines) -> Result<Vec<f64>> {
    let scores: Vec<Option<f64>> =
        lines.candidates.iter().map(|&at| (!candidates[at].is_neighbor).then(|| candidates[at].fused())).collect();
    let read: Vec<Option<f64>> = lines.candidates.iter().map(|&at| candidates[at].probability()).collect();
    let by_place = likelihoods(lines, &scores, &read)?;
    Ok((0..candidates.len()).map(|candidate| by_place[lines.place(candidate)]).collect())
}

/// The likelihood of each place. `scores` by place; none for what retrieval did not find, which is taken to score as
/// the least of what it did. `read` are the probabilities of a reranker.
///
/// # Errors
/// A score that is not a finite number.
fn likelihoods(lines: &Lines, scores: &[Option<f64>], read: &[Option<f64>]) -> Result<Vec<f64>> {
    let n = lines.len();
    if n == 0 {
        return Ok(Vec::new());
    }
    let z = deviations(scores)?;
    let peaks = as_read(normalized(Ratios::new(&z, MU_PEAK).adding_up_to_one()), read);
    let mut of_document = vec![0.0; n];
    for document in &lines.documents {
        of_document[document.clone()].fill(document.len() as f64);
    }
    let runs = Ratios::new(&z, MU_RUN);
    let mut mean = vec![0.0; n];
    let room = |length: f64| -> f64 {
        peaks.iter().zip(&of_document).map(|(peak, n)| peak * length.min(*n)).sum::<f64>().max(1.0)
    };
    let offsets = runs.offsets(RUN_LENGTHS.map(room));
    for (length, offset) in RUN_LENGTHS.into_iter().zip(offsets) {
        let spread = if length == 1.0 {
            peaks.clone()
        } else {
            let passes: Vec<f64> = runs
                .ratios
                .iter()
                .map(|ratio| {
                    let odds = (length - 1.0) * ratio / offset;
                    odds / (1.0 + odds)
                })
                .collect();
            normalized(spread(lines, &peaks, &passes))
        };
        mean.iter_mut().zip(spread).for_each(|(mean, value)| *mean += value / RUN_LENGTHS.len() as f64);
    }
    Ok(mean)
}

/// Peaks with the probabilities of a reranker in place of those that it read.
fn as_read(mut peaks: Vec<f64>, read: &[Option<f64>]) -> Vec<f64> {
    let probable = |read: f64| read.max(f64::MIN_POSITIVE);
    let Some(least) = read.iter().flatten().copied().map(probable).reduce(f64::min) else { return peaks };
    for (peak, read) in peaks.iter_mut().zip(read) {
        *peak = read.map_or(peak.min(least), probable);
    }
    normalized(peaks)
}

/// Likelihood ratios of the scores alone: `exp(mu z)`, the greatest taken for 1.
struct Ratios {
    ratios: Vec<f64>,
}

impl Ratios {
    fn new(z: &[f64], mu: f64) -> Self {
        let greatest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { ratios: z.iter().map(|z| (mu * (z - greatest)).exp()).collect() }
    }

    /// `sigmoid(mu z - t + logit(PRIOR))` for the `t` at which they add up to 1.
    fn adding_up_to_one(&self) -> Vec<f64> {
        let [offset] = self.offsets([1.0]);
        let odds = PRIOR / (1.0 - PRIOR);
        self.ratios.iter().map(|ratio| ratio * odds / (ratio * odds + offset)).collect()
    }

    /// The ratios that stand for the `t` at which `sigmoid(mu z - t + logit(PRIOR))` add up to each of `sums`, which
    /// are looked for side by side.
    fn offsets<const N: usize>(&self, sums: [f64; N]) -> [f64; N] {
        let sums = sums.map(|sum| sum.min(SHARE_MAX * self.ratios.len() as f64));
        let (mut low, mut high) = ([-OFFSET_MAX; N], [OFFSET_MAX; N]);
        let around = self.around(sums);
        for _ in 0..HALVINGS {
            let middle: [f64; N] = array::from_fn(|at| f64::midpoint(low[at], high[at]));
            // What is reached falls as the offset grows, so that most halvings are decided by those around.
            let is_outside = |at: usize| middle[at] <= around[at].start || middle[at] >= around[at].end;
            let (reached, _) = if (0..N).all(is_outside) { ([0.0; N], [0.0; N]) } else { self.reached(middle) };
            for at in 0..N {
                let is_low = if is_outside(at) { middle[at] <= around[at].start } else { reached[at] > sums[at] };
                if is_low { low[at] = middle[at] } else { high[at] = middle[at] }
            }
        }
        high.map(f64::exp)
    }

    /// Offsets around the one for each of `sums`: at the first more is reached, at the second no more.
    ///
    /// Source: Newton's method for the logarithm of what is reached, which is concave in the offset, from an offset
    /// beyond: no step goes too far.
    fn around<const N: usize>(&self, sums: [f64; N]) -> [Range<f64>; N] {
        let all = self.ratios.iter().sum::<f64>() * (PRIOR / (1.0 - PRIOR));
        let mut around = [const { -OFFSET_MAX..OFFSET_MAX }; N];
        let mut next = sums.map(|sum| (all / sum).ln());
        for step in 0..=STEPS {
            if step == STEPS {
                next = next.map(|offset| offset - NEARLY);
            }
            let (reached, slope) = self.reached(next);
            for at in 0..N {
                let side = &mut around[at];
                if reached[at] > sums[at] {
                    side.start = side.start.max(next[at]);
                } else if reached[at] <= sums[at] {
                    side.end = side.end.min(next[at]);
                }
                next[at] += (reached[at] / sums[at]).ln() * reached[at] / slope[at];
            }
        }
        around
    }

    /// The sums that are reached at these offsets, and how fast each falls there.
    fn reached<const N: usize>(&self, offsets: [f64; N]) -> ([f64; N], [f64; N]) {
        let odds = PRIOR / (1.0 - PRIOR);
        let offsets = offsets.map(f64::exp);
        let (mut reached, mut slope) = ([0.0; N], [0.0; N]);
        for ratio in &self.ratios {
            let ratio = ratio * odds;
            for at in 0..N {
                let share = ratio / (ratio + offsets[at]);
                reached[at] += share;
                slope[at] += share * (1.0 - share);
            }
        }
        (reached, slope)
    }
}

/// From each peak to both sides, as far as its neighbours let it pass.
fn spread(lines: &Lines, peaks: &[f64], passes: &[f64]) -> Vec<f64> {
    let mut values = peaks.to_vec();
    for document in &lines.documents {
        let mut carried = 0.0;
        for place in document.clone() {
            carried = if lines.touches(place) { passes[place] * carried } else { 0.0 };
            carried = peaks[place].max(carried);
            values[place] = values[place].max(carried);
        }
        carried = 0.0;
        for place in document.clone().rev() {
            carried = if lines.touches(place + 1) && place + 1 < document.end { passes[place] * carried } else { 0.0 };
            carried = peaks[place].max(carried);
            values[place] = values[place].max(carried);
        }
    }
    values
}

fn normalized(mut values: Vec<f64>) -> Vec<f64> {
    let sum: f64 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
    values
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
    let deviations = |score: &Option<f64>| (score.unwrap_or(least) - middle) / width;
    Ok(scores.iter().map(|score| deviations(score).clamp(-DEVIATIONS_MAX, DEVIATIONS_MAX)).collect())
}

/// Median of ascending numbers, the mean of the middle two of an even number.
fn median(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;
    use proptest::prelude::*;

    fn likelihoods_of(chunks: &[(&str, u32, Option<f64>)]) -> Vec<f64> {
        let candidates: Vec<Candidate> =
            chunks.iter().map(|&(document, index, _)| candidate(document, index, "text", 0.0)).collect();
        let candidates: Vec<&Candidate> = candidates.iter().collect();
        let lines = Lines::new(&candidates);
        let scores: Vec<Option<f64>> = lines.candidates.iter().map(|&at| chunks[at].2).collect();
        let by_place = likelihoods(&lines, &scores, &vec![None; chunks.len()]).unwrap();
        (0..chunks.len()).map(|at| by_place[lines.place(at)]).collect()
    }

    fn line(scores: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let chunks: Vec<(&str, u32, Option<f64>)> =
            scores.into_iter().enumerate().map(|(at, score)| ("a", at as u32, Some(score))).collect();
        likelihoods_of(&chunks)
    }

    /// The formulas of the header, one by one.
    fn by_definition(scores: &[f64]) -> Vec<f64> {
        let n = scores.len();
        let z = deviations(&scores.iter().copied().map(Some).collect::<Vec<_>>()).unwrap();
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let logit = (PRIOR / (1.0 - PRIOR)).ln();
        let solve = |mu: f64, sum: f64| {
            let (mut low, mut high) = (-900.0, 900.0);
            for _ in 0..90 {
                let t = (low + high) / 2.0;
                let total: f64 = z.iter().map(|z| sigmoid(mu * z - t + logit)).sum();
                if total > sum.min(0.6 * n as f64) { low = t } else { high = t }
            }
            high
        };
        let t = solve(1.0, 1.0);
        let mut peaks: Vec<f64> = z.iter().map(|z| sigmoid(z - t + logit)).collect();
        let sum: f64 = peaks.iter().sum();
        peaks.iter_mut().for_each(|peak| *peak /= sum);
        let mut mean: Vec<f64> = peaks.iter().map(|peak| peak / 4.0).collect();
        for length in [2.0, 4.0, 8.0_f64] {
            let t = solve(0.8, peaks.iter().map(|peak| peak * length.min(n as f64)).sum::<f64>().max(1.0));
            let pass = |at: usize| {
                let odds = (length - 1.0) * (0.8 * z[at] - t).exp();
                odds / (1.0 + odds)
            };
            let value = |at: usize| {
                let from = |other: usize| {
                    let between: Vec<usize> =
                        if other < at { (other + 1..=at).collect() } else { (at..other).collect() };
                    between.into_iter().fold(peaks[other], |value, at| value * pass(at))
                };
                (0..n).map(from).fold(0.0, f64::max)
            };
            let values: Vec<f64> = (0..n).map(value).collect();
            let sum: f64 = values.iter().sum();
            mean.iter_mut().zip(values).for_each(|(mean, value)| *mean += value / sum / 4.0);
        }
        mean
    }

    #[test]
    fn one_high_score_stands_alone_and_middling_ones_lift_each_other() {
        let low = |at: u32| if at.is_multiple_of(2) { 0.1 } else { 0.12 };
        let peak = line((0..40).map(|at| if at == 20 { 0.9 } else { low(at) }));
        assert!(peak[20] > 0.3 && peak[20] > 1.5 * peak[19], "{:?}", &peak[18..23]);
        let run = line((0..40).map(|at| if (18..23).contains(&at) || at == 5 { 0.16 } else { low(at) }));
        assert!(run[20] >= run[5] && run[17] > 1.2 * run[4].min(run[30]), "{run:?}");
    }

    #[test]
    fn equal_scores_share_and_nothing_found_is_no_fault() {
        let even = likelihoods_of(&[("a", 0, Some(0.5)), ("b", 0, Some(0.5)), ("c", 0, Some(0.5))]);
        assert!(even.iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-6), "{even:?}");
        assert!(likelihoods_of(&[]).is_empty());
        assert_eq!(likelihoods_of(&[("a", 0, Some(0.3))]), [1.0]);
        let unseen = likelihoods_of(&[("a", 0, None), ("b", 0, None)]);
        assert!(unseen.iter().all(|p| (p - 0.5).abs() < 1e-6), "{unseen:?}");
        assert!(likelihoods(&Lines::new(&[&candidate("a", 0, "x", 0.0)]), &[Some(f64::NAN)], &[None]).is_err());
    }

    #[test]
    fn what_was_read_has_its_probability_and_nothing_unread_is_likelier() {
        let peaks = |read: &[Option<f64>]| as_read(vec![0.5, 0.3, 0.15, 0.05], read);
        assert_eq!(peaks(&[None; 4]), [0.5, 0.3, 0.15, 0.05]);
        let read = peaks(&[Some(0.2), Some(0.6), None, None]);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        [0.2, 0.6, 0.15, 0.05].iter().zip(&read).for_each(|(expected, found)| close(*expected, *found));
        let refused = peaks(&[Some(1e-9), Some(0.0), None, None]);
        assert!(refused[0] > 0.999 && refused[1] == refused[2] && refused[2] == refused[3], "{refused:?}");
        assert!(peaks(&[Some(0.0); 4]).iter().all(|peak| (peak - 0.25).abs() < 1e-12));
        let mut found = candidate("a", 0, "x", 1.7);
        found.arms.push(crate::fuse::Contribution {
            arm: crate::RERANK.into(),
            rank: Some(4),
            raw: Some(2.0),
            normalized: Some(0.88),
            weight: 1.0,
            contribution: 0.9,
        });
        close(found.fused(), 0.8);
        assert_eq!(found.probability(), Some(0.88));
    }

    /// Every halving decided by what is reached there.
    fn halved<const N: usize>(ratios: &Ratios, sums: [f64; N]) -> [f64; N] {
        let sums = sums.map(|sum| sum.min(SHARE_MAX * ratios.ratios.len() as f64));
        let (mut low, mut high) = ([-OFFSET_MAX; N], [OFFSET_MAX; N]);
        for _ in 0..HALVINGS {
            let middle: [f64; N] = array::from_fn(|at| f64::midpoint(low[at], high[at]));
            let (reached, _) = ratios.reached(middle);
            for at in 0..N {
                if reached[at] > sums[at] { low[at] = middle[at] } else { high[at] = middle[at] }
            }
        }
        high.map(f64::exp)
    }

    proptest! {
        #[test]
        fn offsets_are_those_of_every_halving(
            z in prop::collection::vec(prop_oneof![4 => -4.0..12.0_f64, 1 => Just(0.0), 1 => -300.0..300.0_f64], 1..60),
            sums in prop::array::uniform4(0.01..50.0_f64),
        ) {
            let ratios = Ratios::new(&z, MU_RUN);
            prop_assert_eq!(ratios.offsets(sums), halved(&ratios, sums));
            prop_assert_eq!(ratios.offsets([1.0]), halved(&ratios, [1.0]));
        }

        #[test]
        fn the_sweeps_give_what_the_definition_gives(scores in prop::collection::vec(prop_oneof![4 => 0.0..1.0_f64, 1 => 0.500..0.501_f64, 1 => Just(0.5)], 2..30)) {
            for (fast, slow) in line(scores.clone()).iter().zip(by_definition(&scores)) {
                prop_assert!((fast - slow).abs() < 1e-7, "{} {}", fast, slow);
            }
        }

        #[test]
        fn they_add_up_to_one_and_peaks_keep_their_order(scores in prop::collection::vec(-1e3..1e3_f64, 2..40), scale in 1e-3..1e3_f64) {
            let plain = line(scores.clone());
            prop_assert!((plain.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
            prop_assert!(plain.iter().all(|value| *value <= plain[best]));
            for (a, b) in plain.iter().zip(line(scores.iter().map(|score| score * scale))) {
                prop_assert!((a - b).abs() < 1e-6, "{} {}", a, b);
            }
        }
    }
}
