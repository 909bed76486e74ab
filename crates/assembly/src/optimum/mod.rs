//! The best context: segments of documents that are worth most within a budget, with a proof of how far from the best they may be.
//!
//! Chosen is a set of chunks; chunks that touch are one segment with one header. The set is worth the sum of its chunks' values
//! plus the weight of every need that one of them meets. It must keep to the budget in tokens (texts, a header for each segment,
//! a mark for each gap inside a document), hold no two chunks that say the same, keep to the caps of sections and documents,
//! and to the longest run.
//!
//! Source: branch and bound (Land and Doig 1960) on a relaxation that leaves out conflicts and caps and pays every chunk that
//! meets a need a part of its weight. What is left is segments under one budget: [`relax`] prices tokens (Lagrange; Everett 1963), fixes
//! the chunks that the price decides, and solves the rest by labels of tokens and worth. A branch takes a chunk
//! in or leaves it out where the relaxed answer breaks what was left out.
//! Differs from dsRAG's greedy, which loses value wherever one long segment takes the room of two; bounds every answer.
//! Cost: a relaxation is O(N) for each of some ten prices, and the labels of what the price leaves undecided.

mod local;
mod problem;
mod relax;
mod labels;
mod dynamic;
#[cfg(test)]
mod tests;

pub(crate) use dynamic::by_tokens;
pub(crate) use problem::{Cap, Need, Problem};

use relax::{Fixed, Relaxed};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Relaxations solved before the search gives up proving. What is found by then is kept, with its bound.
pub(crate) const NODES_MAX: usize = 64;

/// Values closer than this are equal: sums of some thousand values in another order differ by less.
pub(crate) const EPSILON: f64 = 1e-9;

/// What was found, and how good it is at least.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Optimum {
    /// Chosen places, ascending.
    pub(crate) chosen: Vec<usize>,
    /// What they are worth.
    pub(crate) value: f64,
    /// Nothing within the constraints is worth more.
    pub(crate) bound: f64,
    /// Value that one more token would buy, about: the price that the root's relaxation paid.
    pub(crate) price: f64,
    /// Relaxations solved.
    pub(crate) n_nodes: usize,
}

/// A part of the search: every set that has what is forced and lacks what is left out.
#[derive(Debug)]
struct Node {
    fixed: Vec<Fixed>,
    /// What its parent's relaxation paid for needs.
    paid: Vec<f64>,
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
pub(crate) fn solve(problem: &Problem<'_>, n_nodes_max: usize) -> Optimum {
    let order = local::by_density(problem);
    let mut best = local::greedy(problem, &order);
    let (mut open, mut unproven, mut price) = (BinaryHeap::new(), f64::NEG_INFINITY, 0.0);
    open.push(Node { fixed: problem.fixed(), paid: problem.paid_in_full(), bound: f64::INFINITY, number: 0 });
    let (mut n_nodes, mut n_created) = (0, 1);
    while let Some(node) = open.pop() {
        if node.bound <= best.value() + EPSILON {
            open.clear(); // every other bound is lower still
            break;
        }
        if n_nodes == n_nodes_max {
            unproven = unproven.max(node.bound); // the greatest of those left
            break;
        }
        n_nodes += 1;
        let Some(bounded) = relax::bound(problem, &node.fixed, &node.paid, best.value()) else { continue };
        let draft = local::mended(problem, bounded.chosen(), &node.fixed, &order);
        if draft.value() > best.value() {
            best = draft;
        }
        let relaxed = bounded.solve(best.value());
        if n_nodes == 1 {
            price = relaxed.price;
        }
        let bound = relaxed.bound.min(node.bound);
        let draft = local::mended(problem, &relaxed.chosen, &node.fixed, &order);
        if draft.value() > best.value() + EPSILON {
            best = draft;
        }
        if bound <= best.value() + EPSILON {
            continue;
        }
        match branch(problem, &relaxed, &node.fixed) {
            Some(children) => {
                for fixed in children {
                    open.push(Node { fixed, paid: relaxed.paid.clone(), bound, number: n_created });
                    n_created += 1;
                }
            }
            // Nothing is broken and still the bound is higher: the relaxation itself was too large to be solved exactly.
            None => unproven = unproven.max(bound),
        }
    }
    if unproven > best.value() + EPSILON {
        best.swap(&order);
    }
    let bound = open.iter().map(|node| node.bound).fold(unproven, f64::max).max(best.value());
    let value = best.value();
    Optimum { chosen: best.chosen(), value, bound, price, n_nodes }
}

/// Parts that together hold every set of the node but the relaxed answer, where that breaks a constraint or counts a need wrongly.
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
        // All of its members are forced: the node is empty, and `relax` will say so.
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
    /// How far the value may be from the best, as a share of the bound, in `[0, 1]`; 0: proven best.
    pub(crate) fn gap(&self) -> f64 {
        gap(self.value, self.bound)
    }
}

/// See [`Optimum::gap`].
pub(crate) fn gap(value: f64, bound: f64) -> f64 {
    if bound <= value + EPSILON { 0.0 } else { ((bound - value) / bound.abs().max(EPSILON)).clamp(0.0, 1.0) }
}
