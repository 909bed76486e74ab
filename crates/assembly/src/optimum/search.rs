//! Branch and bound: a bound for every node from its relaxation, and a solution from every relaxed choice.
//!
//! A node is every set that has some chunks and lacks others. Its bound is that of its relaxation, by multipliers first
//! and then exactly; what the relaxation chooses, repaired, may be a new incumbent. Where it breaks what was relaxed, a
//! chunk is branched on.
//!
//! Source: Land and Doig 1960, best bound first.
//! Cost: at most the given number of relaxations.

use super::dual::{Dual, dual};
use super::heuristics;
use super::labels::Exact;
use super::problem::{EPSILON, Fixed, Problem};
use super::relaxation::Relaxation;
use crate::error::Result;
use crate::stop::check;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Relaxations solved before the search gives up proving. The incumbent is kept, with its bound.
pub(crate) const NODES_MAX: usize = 64;

/// The best solution that was found, and a bound on every other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Optimum {
    /// Chosen places, ascending.
    pub(crate) chosen: Vec<usize>,
    /// Value of the solution; minus infinity if none is feasible.
    pub(crate) value: f64,
    /// No feasible set is worth more.
    pub(crate) bound: f64,
    /// Value that one more token would buy, about: the multiplier of the budget at the root.
    pub(crate) multiplier: f64,
    /// Relaxations solved.
    pub(crate) n_nodes: usize,
}

/// A part of the search: every set that has what is forced and lacks what is left out.
#[derive(Debug)]
struct Node {
    fixed: Vec<Fixed>,
    /// Multipliers of the needs at its parent.
    mu: Vec<f64>,
    /// No set of the node is worth more.
    bound: f64,
    /// Order of creation, so that ties do not depend on the heap.
    number: usize,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    /// Greatest bound first, older first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then(other.number.cmp(&self.number))
    }
}

/// Solves `problem` by at most `n_nodes_max` relaxations. The same problem gives the same answer.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(crate) fn solve(problem: &Problem<'_>, n_nodes_max: usize) -> Result<Optimum> {
    let order = heuristics::by_density(problem);
    let mut incumbent = heuristics::greedy(problem, &order);
    let (mut open, mut unproven, mut multiplier) = (BinaryHeap::new(), f64::NEG_INFINITY, 0.0);
    open.push(Node { fixed: problem.fixed(), mu: problem.need_weights(), bound: f64::INFINITY, number: 0 });
    let (mut n_nodes, mut n_created) = (0, 1);
    while let Some(node) = open.pop() {
        if node.bound <= incumbent.value() + EPSILON {
            open.clear(); // every other bound is lower still
            break;
        }
        if n_nodes == n_nodes_max {
            unproven = unproven.max(node.bound); // the greatest of those left
            break;
        }
        n_nodes += 1;
        check(problem.stop)?;
        let Some(dual) = dual(problem, &node.fixed, &node.mu, incumbent.value()) else { continue };
        let solution = heuristics::repaired(problem, &dual.least.chosen, &node.fixed, &order);
        if solution.value() > incumbent.value() {
            incumbent = solution;
        }
        let relaxed = relaxed(dual, incumbent.value());
        if n_nodes == 1 {
            multiplier = relaxed.lambda;
        }
        let bound = relaxed.bound.min(node.bound);
        let solution = heuristics::repaired(problem, &relaxed.chosen, &node.fixed, &order);
        if solution.value() > incumbent.value() + EPSILON {
            incumbent = solution;
        }
        if bound <= incumbent.value() + EPSILON {
            continue;
        }
        match branch(problem, &relaxed, &node.fixed) {
            Some(children) => {
                for fixed in children {
                    open.push(Node { fixed, mu: relaxed.mu.clone(), bound, number: n_created });
                    n_created += 1;
                }
            }
            // Feasible, and still the bound is higher: the relaxation was too large to be solved exactly.
            None => unproven = unproven.max(bound),
        }
    }
    if unproven > incumbent.value() + EPSILON {
        incumbent.swap(&order);
    }
    check(problem.stop)?; // what any part of it left half done
    let bound = open.iter().map(|node| node.bound).fold(unproven, f64::max).max(incumbent.value());
    let value = incumbent.value();
    Ok(Optimum { chosen: incumbent.chosen(), value, bound, multiplier, n_nodes })
}

/// The answer of a relaxation.
#[derive(Debug)]
struct Relaxed {
    /// Chosen places, ascending: the best of the relaxation where it could be solved exactly.
    chosen: Vec<usize>,
    /// Nothing within the node is worth more.
    bound: f64,
    /// Multiplier of the budget.
    lambda: f64,
    /// Multipliers of the needs.
    mu: Vec<f64>,
    /// The need, by number, of which the bound counts most too much for what was chosen.
    miscounted: Option<usize>,
}

/// The best of the relaxation, unless nothing of it beats the incumbent. The better that is, the less is left to solve.
fn relaxed(dual: Dual<'_>, incumbent: f64) -> Relaxed {
    let Dual { relaxation, least } = dual;
    let (bound, lambda) = (least.bound, least.lambda);
    let relaxed = |chosen: Vec<usize>, bound: f64, relaxation: Relaxation<'_>| {
        let miscounted = relaxation.miscounted(&chosen);
        Relaxed { chosen, bound, lambda, mu: relaxation.mu, miscounted }
    };
    let value = relaxation.value(&least.chosen);
    if bound <= value + EPSILON || bound <= incumbent + EPSILON {
        return relaxed(least.chosen, bound, relaxation);
    }
    let core = relaxation.fixed_by_reduced_cost(lambda, incumbent.max(value));
    match core.exact(lambda, incumbent.max(value)) {
        Exact::Found(chosen, value) => relaxed(chosen, bound.min(value.max(incumbent)), core),
        Exact::Nothing => relaxed(least.chosen, bound.min(incumbent.max(value)), core),
        Exact::TooLarge => relaxed(least.chosen, bound, core),
    }
}

/// Parts that together hold every set of the node but the relaxed choice, where that is infeasible or counts a need
/// wrongly.
fn branch(problem: &Problem<'_>, relaxed: &Relaxed, fixed: &[Fixed]) -> Option<Vec<Vec<Fixed>>> {
    let with = |place: usize, as_: Fixed| {
        let mut fixed = fixed.to_vec();
        fixed[place] = as_;
        fixed
    };
    let chosen = &relaxed.chosen;
    let densities = problem.densities();
    let by_density = |a: usize, b: usize| densities[a].total_cmp(&densities[b]).then(b.cmp(&a));
    let free = |place: &&usize| fixed[**place] == Fixed::Free;
    let weakest = |places: &mut dyn Iterator<Item = &usize>| {
        places.copied().filter(|place| fixed[*place] == Fixed::Free).min_by(|&a, &b| by_density(a, b))
    };
    for (at, &a) in chosen.iter().enumerate() {
        for &b in &chosen[at + 1..] {
            if problem.in_conflict(a, b) {
                // In, it takes the other one out.
                let place = weakest(&mut [a, b].iter())?;
                return Some(vec![with(place, Fixed::Out), with(place, Fixed::In)]);
            }
        }
    }
    if let Some(cap) = problem.caps.iter().find(|cap| !cap.holds(chosen, problem)) {
        // If all of its members are forced, the node is infeasible.
        let place = weakest(&mut chosen.iter().filter(|place| cap.has(**place)))?;
        return Some(vec![with(place, Fixed::Out), with(place, Fixed::In)]);
    }
    let need = &problem.needs[relaxed.miscounted?];
    // One of those that meet it twice; or, where none does and it was counted all the same, the best that may.
    let meets = |place: &&usize| need.places.binary_search(place).is_ok();
    let twice = chosen.iter().filter(meets).find(free).copied();
    let may = need.places.iter().filter(free);
    let place = twice.or_else(|| may.copied().max_by(|&a, &b| by_density(a, b)))?;
    Some(vec![with(place, Fixed::In), with(place, Fixed::Out)])
}

impl Optimum {
    /// Distance of the value to the bound, as a share of the bound, in `[0, 1]`; 0: proven optimal.
    pub(crate) fn gap(&self) -> f64 {
        gap(self.value, self.bound)
    }
}

/// See [`Optimum::gap`].
pub(crate) fn gap(value: f64, bound: f64) -> f64 {
    if bound <= value + EPSILON { 0.0 } else { ((bound - value) / bound.abs().max(EPSILON)).clamp(0.0, 1.0) }
}
