//! Tuning: the settings of a grid that judged questions ask for, and whether that is more than chance.
//!
//! Settings are moved one at a time, from those in force: of all single moves the one with the largest mean gain is
//! made while that gain is above its standard error, so that a setting nobody needs stays as it is. What the choice
//! gains is told by cross-validation: the questions are dealt into folds, and those of each fold are ranked with what
//! the questions of the other folds chose. A gain on the questions that chose is no figure.
//! Source: Stone 1974 (cross-validation of a choice); Breiman et al. 1984 (the one-standard-error rule).
//! Cost: for each fold and move one pass over the figures of the settings that differ in one place.

use crate::compare::random::Xoshiro;
use crate::compare::{Bootstrap, Paired, paired};
use crate::error::{Error, Result};

/// Fewer questions say nothing.
pub const QUESTIONS_MIN: usize = 10;
/// The parts that the questions are dealt into.
pub const FOLDS: usize = 5;
/// The most of them.
pub const FOLDS_MAX: usize = 100;

/// Standard errors that the gain of a move must be above.
const ERRORS_MIN: f64 = 1.0;

/// The figures of questions under each setting of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Levels of each axis; level 0 is in force.
    axes: Vec<usize>,
    /// For each setting, in the order of [`settings`], the figures of the questions.
    figures: Vec<Vec<f64>>,
}

/// A move of one setting, measured on all questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Move {
    /// The axis.
    pub axis: usize,
    /// Its level from then on.
    pub level: usize,
    /// Mean gain over what was chosen before it, on the questions that chose.
    pub gain: f64,
}

/// The chosen settings, and what they gain on questions that did not choose them.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// A level for each axis, chosen by all questions.
    pub levels: Vec<usize>,
    /// The moves that led there.
    pub moves: Vec<Move>,
    /// The levels that the questions outside each fold chose.
    pub of_folds: Vec<Vec<usize>>,
    /// Each question under what the other folds chose, against the settings in force.
    pub cross_validated: Paired,
}

/// The settings of a grid, as levels of its axes; the first has level 0 on all.
pub fn settings(axes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &n_levels in axes {
        all = all.iter().flat_map(|levels| (0..n_levels).map(move |level| [&levels[..], &[level]].concat())).collect();
    }
    all
}

impl Grid {
    /// A grid of figures, one list for each of [`settings`].
    ///
    /// # Errors
    /// [`Error::Unpaired`] where lists are missing, or differ in length.
    pub fn new(axes: Vec<usize>, figures: Vec<Vec<f64>>) -> Result<Self> {
        let (n_settings, n_questions) = (axes.iter().product::<usize>(), figures.first().map_or(0, Vec::len));
        if figures.len() != n_settings || figures.iter().any(|figures| figures.len() != n_questions) {
            let reason = format!("{} lists of figures for {n_settings} settings of one grid", figures.len());
            return Err(Error::Unpaired { reason });
        }
        Ok(Self { axes, figures })
    }

    /// Chooses settings, and measures the choice by cross-validation; `bootstrap` gives the interval, and its seed the
    /// folds.
    ///
    /// # Errors
    /// [`Error::Unpaired`] for fewer than [`QUESTIONS_MIN`] questions, and folds that are not from 2 to
    /// [`FOLDS_MAX`] or more than questions.
    pub fn tune(&self, n_folds: usize, bootstrap: &Bootstrap) -> Result<Tuned> {
        let n_questions = self.figures[0].len();
        if n_questions < QUESTIONS_MIN {
            let reason = format!("{n_questions} questions have judgements; at least {QUESTIONS_MIN} are needed");
            return Err(Error::Unpaired { reason });
        }
        if !(2..=FOLDS_MAX.min(n_questions)).contains(&n_folds) {
            let reason =
                format!("{n_folds} folds of {n_questions} questions; give 2 to {}", FOLDS_MAX.min(n_questions));
            return Err(Error::Unpaired { reason });
        }
        let fold_of = folds(n_questions, n_folds, bootstrap.seed);
        let (mut of_folds, mut held_out) = (Vec::with_capacity(n_folds), vec![0.0; n_questions]);
        for fold in 0..n_folds {
            let (inside, outside): (Vec<usize>, Vec<usize>) = (0..n_questions).partition(|&at| fold_of[at] == fold);
            let (levels, _) = self.choose(&outside);
            let figures = self.of(&levels);
            inside.into_iter().for_each(|question| held_out[question] = figures[question]);
            of_folds.push(levels);
        }
        let (levels, moves) = self.choose(&(0..n_questions).collect::<Vec<_>>());
        Ok(Tuned { levels, moves, of_folds, cross_validated: paired(&self.figures[0], &held_out, bootstrap)? })
    }

    /// The levels that some questions choose, and the moves that led there; of equal moves the first axis, and the
    /// level nearest to its beginning.
    fn choose(&self, questions: &[usize]) -> (Vec<usize>, Vec<Move>) {
        let (mut chosen, mut moves) = (vec![0; self.axes.len()], Vec::new());
        loop {
            let mut best: Option<Move> = None;
            for (axis, &n_levels) in self.axes.iter().enumerate() {
                for level in (0..n_levels).filter(|&level| level != chosen[axis]) {
                    let mut other = chosen.clone();
                    other[axis] = level;
                    let (gain, error) = gain(self.of(&chosen), self.of(&other), questions);
                    if gain > ERRORS_MIN * error && gain > best.map_or(0.0, |best| best.gain) {
                        best = Some(Move { axis, level, gain });
                    }
                }
            }
            let Some(step) = best else { return (chosen, moves) };
            chosen[step.axis] = step.level;
            moves.push(step);
        }
    }

    /// The figures under some levels.
    fn of(&self, levels: &[usize]) -> &[f64] {
        let at = self.axes.iter().zip(levels).fold(0, |at, (n_levels, level)| at * n_levels + level);
        &self.figures[at]
    }
}

/// Mean gain of one list over another on some questions, and its standard error.
fn gain(before: &[f64], after: &[f64], questions: &[usize]) -> (f64, f64) {
    let n = questions.len() as f64;
    let differences = || questions.iter().map(|&question| after[question] - before[question]);
    let mean = differences().sum::<f64>() / n;
    let squares: f64 = differences().map(|difference| (difference - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// The fold of each question: as many in each as in any other, or one more.
fn folds(n_questions: usize, n_folds: usize, seed: u64) -> Vec<usize> {
    let mut fold_of: Vec<usize> = (0..n_questions).map(|at| at % n_folds).collect();
    let mut random = Xoshiro::new(seed);
    for last in (1..n_questions).rev() {
        fold_of.swap(last, random.below(last + 1));
    }
    fold_of
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grid of 2 × 3 settings and `n` questions, whose figures are made of the levels and the question.
    fn grid(n: usize, figure: impl Fn(&[usize], usize) -> f64) -> Grid {
        let axes = vec![2, 3];
        let of = |levels: &Vec<usize>| (0..n).map(|question| figure(levels, question)).collect();
        Grid::new(axes.clone(), settings(&axes).iter().map(of).collect()).unwrap()
    }

    #[test]
    fn settings_run_through_the_last_axis_first() {
        let expected: [[usize; 2]; 6] = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]];
        assert_eq!(settings(&[2, 3]), expected.map(Vec::from));
        let numbered = grid(10, |levels, _| (levels[0] * 3 + levels[1]) as f64);
        for (at, levels) in expected.iter().enumerate() {
            assert_eq!(numbered.of(levels)[0], at as f64);
        }
    }

    #[test]
    fn moves_are_made_by_gain_until_none_is_above_its_error() {
        // The second axis gains .2 at level 2, the first .1 beside it; noise of one question in ten.
        let noise = |question: usize| if question.is_multiple_of(10) { 0.05 } else { 0.0 };
        let gains = |levels: &[usize], question: usize| {
            0.5 + [0.0, 0.1][levels[0]] + [0.0, 0.05, 0.2][levels[1]] - noise(question) * levels[0] as f64
        };
        let tuned = grid(40, gains).tune(5, &Bootstrap::default()).unwrap();
        assert_eq!((tuned.levels, tuned.of_folds), (vec![1, 2], vec![vec![1, 2]; 5]));
        let moves: Vec<_> = tuned.moves.iter().map(|step| (step.axis, step.level)).collect();
        assert_eq!(moves, [(1, 2), (0, 1)]);
        assert!((tuned.cross_validated.difference - 0.295).abs() < 1e-12, "{:?}", tuned.cross_validated);
        assert!(tuned.cross_validated.low > 0.28);
    }

    #[test]
    fn chance_gains_nothing_on_questions_that_did_not_choose() {
        // Each setting is as good as any other: figures are noise.
        let hash = |levels: &[usize], question: usize| {
            let mut random = Xoshiro::new((levels[0] * 31 + levels[1] * 7 + question * 1009) as u64);
            random.below(1000) as f64 / 1000.0
        };
        let tuned = grid(60, hash).tune(5, &Bootstrap::default()).unwrap();
        let in_sample: f64 = tuned.moves.iter().map(|step| step.gain).sum();
        let Paired { difference, low, high, .. } = tuned.cross_validated;
        assert!(low <= 0.0 && high >= 0.0, "{difference} ({low} to {high}), in sample {in_sample}");
    }

    #[test]
    fn without_a_gain_all_stays_as_it_is() {
        let tuned = grid(12, |_, question| question as f64).tune(3, &Bootstrap::default()).unwrap();
        assert_eq!((tuned.levels, tuned.moves.len(), tuned.cross_validated.difference), (vec![0, 0], 0, 0.0));
    }

    #[test]
    fn folds_are_even_and_follow_the_seed() {
        for (n_questions, n_folds) in [(10, 2), (11, 5), (101, 7), (10, 10)] {
            let fold_of = folds(n_questions, n_folds, 7);
            let sizes: Vec<usize> = (0..n_folds).map(|fold| fold_of.iter().filter(|&&of| of == fold).count()).collect();
            assert!(sizes.iter().all(|&n| n == n_questions / n_folds || n == n_questions / n_folds + 1), "{sizes:?}");
            assert_eq!(fold_of, folds(n_questions, n_folds, 7));
        }
        assert_ne!(folds(100, 5, 1), folds(100, 5, 2));
    }

    #[test]
    fn too_few_questions_and_folds_out_of_range_are_errors() {
        let error = |n, n_folds| grid(n, |_, _| 0.0).tune(n_folds, &Bootstrap::default()).unwrap_err().to_string();
        assert!(error(9, 5).contains("9 questions have judgements; at least 10"), "{}", error(9, 5));
        for n_folds in [0, 1, 11] {
            assert!(error(10, n_folds).contains("give 2 to 10"), "{}", error(10, n_folds));
        }
        assert!(Grid::new(vec![2], vec![vec![0.0]]).is_err());
        assert!(Grid::new(vec![2], vec![vec![0.0], vec![]]).is_err());
    }
}
