//! Whether a difference between two systems is more than chance: paired tests over the same queries.
//!
//! Source: Sakai 2018, "Laboratory Experiments in Information Retrieval", for the paired t-test and effect size; Efron
//! and Tibshirani 1993 for the percentile interval and the bootstrap test of a mean, whose null hypothesis shifts the
//! differences to mean 0.
//! Range: p in `(0, 1]`. The bootstrap is arithmetic in a fixed order: the same figures give the same bits on every
//! machine.
//! Cost: one random number and one addition for each query and resample.

pub(crate) mod random;
mod student_t;

use crate::error::{Error, Result};
use random::Xoshiro;

/// The number of times the queries are drawn anew.
pub const N_RESAMPLES: usize = 10_000;
/// The most that may be asked for: each resample keeps one number.
pub const N_RESAMPLES_MAX: usize = 100_000_000;
/// Where the random numbers begin.
pub const SEED: u64 = 20_240_607;
/// The probability with which the interval is to hold the true difference.
pub const CONFIDENCE: f64 = 0.95;

/// Figures larger than this are refused, so that no sum of squares overflows.
const FIGURE_MAX: f64 = 1e100;
/// Two sums of the same numbers in another order may differ by this share of the largest of them.
const ROUNDING: f64 = 1e-12;

/// Settings of the bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// From 1 to [`N_RESAMPLES_MAX`].
    pub n_resamples: usize,
    /// Any number; the same gives the same result.
    pub seed: u64,
    /// Between 0 and 1, both excluded.
    pub confidence: f64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { n_resamples: N_RESAMPLES, seed: SEED, confidence: CONFIDENCE }
    }
}

/// The comparison of `b` with `a`, query by query. All numbers are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// The number of pairs.
    pub n: usize,
    /// Mean of the first side.
    pub mean_a: f64,
    /// Mean of the second side.
    pub mean_b: f64,
    /// Mean of `b - a`.
    pub difference: f64,
    /// Pairs in which `b` is larger.
    pub wins: usize,
    /// Pairs in which both are equal.
    pub ties: usize,
    /// Pairs in which `b` is smaller.
    pub losses: usize,
    /// Lower end of the percentile interval of the mean difference.
    pub low: f64,
    /// Upper end of the percentile interval of the mean difference.
    pub high: f64,
    /// Two-sided p of the bootstrap test; 1 when no pair differs, and for a single pair, which says nothing of chance.
    pub p_bootstrap: f64,
    /// Student's t of the differences, with `n - 1` degrees of freedom: 0 when no pair differs; none for a single pair,
    /// and when all differ by the same amount, where it would be infinite.
    pub t: Option<f64>,
    /// Two-sided p of the paired t-test: 1 when no pair differs; none where `t` is none.
    pub p_t: Option<f64>,
    /// Cohen's d of paired figures, mean over standard deviation of the differences: none where `t` is none.
    pub cohens_d: Option<f64>,
}

/// Compares figures of the same queries, in the same order.
///
/// # Errors
/// [`Error::Unpaired`] when there are no pairs, the sides differ in length, a figure is not a number up to 1e100, or a
/// setting is out of range.
pub fn paired(a: &[f64], b: &[f64], bootstrap: &Bootstrap) -> Result<Paired> {
    check(a, b, bootstrap)?;
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    let difference = mean(&differences);
    let resampled = Resampled::draw(&differences, difference, bootstrap);
    let student = student(&differences, difference);
    let count = |is: fn(f64) -> bool| differences.iter().filter(|difference| is(**difference)).count();
    Ok(Paired {
        n: a.len(),
        mean_a: mean(a),
        mean_b: mean(b),
        difference,
        wins: count(|difference| difference > 0.0),
        ties: count(|difference| difference == 0.0),
        losses: count(|difference| difference < 0.0),
        low: resampled.quantile((1.0 - bootstrap.confidence) / 2.0),
        high: resampled.quantile((1.0 + bootstrap.confidence) / 2.0),
        p_bootstrap: if a.len() == 1 { 1.0 } else { resampled.p },
        t: student.map(|student| student.t),
        p_t: student.map(|student| student.p),
        cohens_d: student.map(|student| student.d),
    })
}

fn check(a: &[f64], b: &[f64], bootstrap: &Bootstrap) -> Result<()> {
    let Bootstrap { n_resamples, confidence, .. } = *bootstrap;
    let reason = if a.len() != b.len() {
        format!("one side has {} figures, the other {}", a.len(), b.len())
    } else if a.is_empty() {
        "there are no figures".to_owned()
    } else if let Some(at) = a.iter().chain(b).position(|figure| figure.is_nan() || figure.abs() > FIGURE_MAX) {
        format!(
            "figure {} of the {} side is not a number up to {FIGURE_MAX:e}",
            at % a.len() + 1,
            if at < a.len() { "first" } else { "second" }
        )
    } else if !(1..=N_RESAMPLES_MAX).contains(&n_resamples) {
        format!("{n_resamples} resamples; 1 to {N_RESAMPLES_MAX} are possible")
    } else if !(confidence > 0.0 && confidence < 1.0) {
        format!("a confidence of {confidence}; it must lie between 0 and 1")
    } else {
        return Ok(());
    };
    Err(Error::Unpaired { reason })
}

/// The means of the resamples.
struct Resampled {
    /// Sorted.
    means: Vec<f64>,
    /// `(1 + #{|m* - m| >= |m|}) / (1 + n_resamples)`.
    p: f64,
}

impl Resampled {
    fn draw(differences: &[f64], mean: f64, bootstrap: &Bootstrap) -> Self {
        let mut random = Xoshiro::new(bootstrap.seed);
        let largest = differences.iter().fold(0.0, |largest: f64, difference| largest.max(difference.abs()));
        let (n, as_extreme) = (differences.len(), mean.abs() - ROUNDING * largest);
        let mut draw = |_| {
            let mut sum = 0.0;
            for _ in 0..n {
                sum += differences[random.below(n)];
            }
            sum / n as f64
        };
        let mut means: Vec<f64> = (0..bootstrap.n_resamples).map(&mut draw).collect();
        let n_extreme = means.iter().filter(|resampled| (**resampled - mean).abs() >= as_extreme).count();
        means.sort_unstable_by(f64::total_cmp);
        Self { p: (1 + n_extreme) as f64 / (1 + means.len()) as f64, means }
    }

    /// Between the two nearest means by linear interpolation, as numpy has it.
    fn quantile(&self, share: f64) -> f64 {
        let place = share * (self.means.len() - 1) as f64;
        let below = (place as usize).min(self.means.len() - 1);
        let above = (below + 1).min(self.means.len() - 1);
        self.means[below] + (self.means[above] - self.means[below]) * (place - below as f64)
    }
}

#[derive(Debug, Clone, Copy)]
struct Student {
    t: f64,
    p: f64,
    d: f64,
}

fn student(differences: &[f64], mean: f64) -> Option<Student> {
    if differences.iter().all(|difference| *difference == 0.0) {
        return (differences.len() > 1).then_some(Student { t: 0.0, p: 1.0, d: 0.0 });
    }
    let n = differences.len() as f64;
    let squares: f64 = differences.iter().map(|difference| (difference - mean) * (difference - mean)).sum();
    let deviation = (squares / (n - 1.0)).sqrt();
    // A single pair has no deviation: 0 / 0.
    if deviation.is_nan() || deviation <= ROUNDING * mean.abs() {
        return None;
    }
    let d = mean / deviation;
    let t = d * n.sqrt();
    Some(Student { t, p: student_t::two_sided(t, n - 1.0), d })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests;
