//! The budget curve: what a context is worth at every budget, from one dynamic programme, and where more tokens stop
//! paying.
//!
//! The programme walks documents and tokens once and leaves the best worth at each number of tokens, without the
//! constraints that hold between chunks (two that say the same, caps of documents and sections): exact where none of
//! them binds, an upper bound elsewhere. At as many budgets as are asked for, and at the knee, the whole problem is
//! solved too, so that both are seen side by side.
//! Units: value in tokens weighed by likelihood, as in the certificate of the strategy `cento`. The knee is the budget
//! at which the curve stands highest above the straight line from its beginning to its end (Satopaa et al. 2011,
//! "Finding a Kneedle in a Haystack"): before it a token brings more than one does on average, behind it less.
//! Cost: O(N B) for N chunks and B tokens, and a solution for each budget that is asked for.

use super::problem::{Same, problem, relevant, weighed};
use super::rules::Rules;
use crate::budget::Ledger;
use crate::error::Result;
use crate::optimum::{self, NODES_MAX};
use crate::select::chooser::Choice;
use crate::select::decision::Certificate;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// Value against tokens.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// Every budget at which more can be had than with a token less, ascending, with what can be had at most.
    pub points: Vec<Point>,
    /// Solutions of the whole problem, by budget; empty where none was asked for.
    pub solved: Vec<Solved>,
    /// The budget at the knee; none where nothing is worth anything.
    pub knee: Option<usize>,
}

/// A budget and what it can buy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Tokens.
    pub tokens: usize,
    /// No context of so many tokens is worth more.
    pub value: f64,
}

/// The solution at a budget.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Solved {
    /// The budget.
    pub tokens: usize,
    /// The value of the choice, counted part by part, and its distance to the best.
    pub certificate: Certificate,
}

impl Curve {
    /// `bounds` by tokens beyond the `frame` that every context has; `solve` a budget.
    pub(crate) fn new(
        frame: usize,
        bounds: &[f64],
        n_solved: usize,
        mut solve: impl FnMut(usize) -> Result<Certificate>,
    ) -> Result<Self> {
        let rises = |&at: &usize| bounds[at] > at.checked_sub(1).map_or(0.0, |before| bounds[before]);
        let points: Vec<Point> =
            (0..bounds.len()).filter(rises).map(|at| Point { tokens: frame + at, value: bounds[at] }).collect();
        let most = frame + bounds.len().saturating_sub(1);
        let knee = knee(&points, most);
        let at_knee = knee.filter(|_| n_solved > 0);
        let mut budgets: Vec<usize> = (1..=n_solved).map(|n| n * most / n_solved).chain(at_knee).collect();
        budgets.retain(|&tokens| tokens > frame && !points.is_empty());
        budgets.sort_unstable();
        budgets.dedup();
        let solved = budgets.into_iter().map(|tokens| Ok(Solved { tokens, certificate: solve(tokens)? }));
        Ok(Self { points, solved: solved.collect::<Result<_>>()?, knee })
    }

    /// The value that no context within a budget exceeds.
    #[must_use]
    pub fn bound(&self, tokens: usize) -> f64 {
        let within = self.points.partition_point(|point| point.tokens <= tokens);
        within.checked_sub(1).map_or(0.0, |last| self.points[last].value)
    }
}

/// The budget at which the share of the value is furthest above the share of the tokens; of equal ones the smallest.
fn knee(points: &[Point], most: usize) -> Option<usize> {
    let last = points.last()?.value;
    let above = |point: &Point| point.value / last - point.tokens as f64 / most as f64;
    let best = points.iter().map(above).fold(f64::NEG_INFINITY, f64::max);
    points.iter().find(|point| above(point) >= best).map(|point| point.tokens)
}

/// The worth of the pool at every budget up to the ledger's, solved at so many and at the knee.
pub(super) fn curve(rules: &Rules<'_>, choice: &Choice<'_>, ledger: &mut Ledger<'_>, n_solved: usize) -> Result<Curve> {
    let &Choice { pool, lines, similarity, include, .. } = choice;
    let frame = ledger.used().max(0) as usize;
    let relevant = relevant(ledger.candidates(), lines, rules);
    let weighed = weighed(pool, &relevant, rules, &HashMap::new(), include);
    let same = Same::new(lines, &weighed, rules, similarity);
    let is_must = |place: usize| include.contains(&lines.candidates[place]);
    let conflict = |a: usize, b: usize| !(is_must(a) && is_must(b)) && same.is_same(a, b);
    let mut problem = problem(&weighed, choice, ledger, rules, &conflict)?;
    problem.force(include.iter().map(|&candidate| lines.place(candidate)).collect());
    let bounds = optimum::by_tokens(&problem)?.unwrap_or_default();
    let solve = |tokens: usize| {
        problem.budget = (tokens - frame) as i64;
        let solved = optimum::solve(&problem, NODES_MAX)?;
        let (gap, n_relaxations) = (solved.gap(), solved.n_nodes);
        Ok(Certificate { value: solved.value, bound: solved.bound, gap, n_relaxations, of_part: false })
    };
    Curve::new(frame, &bounds, n_solved, solve)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_solution(_: usize) -> Result<Certificate> {
        Ok(Certificate { value: 0.0, bound: 0.0, gap: 0.0, n_relaxations: 0, of_part: false })
    }

    #[test]
    fn the_knee_is_where_the_curve_bends() {
        // 10 a token up to 20 tokens, then 1 a token.
        let bounds: Vec<f64> = (0..=100).map(|t: i32| f64::from(t.min(20) * 10 + (t - 20).max(0))).collect();
        let curve = Curve::new(5, &bounds, 10, no_solution).unwrap();
        assert_eq!(curve.knee, Some(25));
        assert_eq!((curve.bound(4), curve.bound(5), curve.bound(15), curve.bound(1_000)), (0.0, 0.0, 100.0, 280.0));
        assert_eq!(
            curve.solved.iter().map(|solved| solved.tokens).collect::<Vec<_>>(),
            [10, 21, 25, 31, 42, 52, 63, 73, 84, 94, 105]
        );
        let unsolved = Curve::new(5, &bounds, 0, |tokens| panic!("{tokens} tokens are solved")).unwrap();
        assert_eq!(unsolved, Curve { solved: Vec::new(), ..curve });
    }

    #[test]
    fn where_nothing_is_worth_anything_there_is_no_knee() {
        let curve = Curve::new(0, &[0.0; 50], 10, no_solution).unwrap();
        assert_eq!((curve.knee, curve.points.len(), curve.solved.len()), (None, 0, 0));
        assert_eq!(Curve::new(3, &[], 10, no_solution).unwrap().knee, None);
    }
}
