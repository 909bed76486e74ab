//! The relaxation of a node: segments under one budget, without conflicts and caps, and with multipliers for needs.
//!
//! A need of weight w is worth w once: `w * min(1, n)` for n chosen chunks that meet it. For any multiplier mu in `[0,
//! w]` that is at most `w - mu + mu * n`: every such chunk is worth mu more, and `w - mu` is given whatever is chosen.
//! At w the relaxation counts a need once a chunk; where several chosen chunks meet it, mu is lowered until one does,
//! or none.

use super::problem::{EPSILON, Fixed, Need, Problem};
use std::ops::Range;

/// A node's relaxation at multipliers of the needs. How its documents are walked is in [`super::step`].
#[derive(Clone)]
pub(super) struct Relaxation<'p> {
    pub(super) problem: &'p Problem<'p>,
    /// By place: its value and the multipliers of the needs that it meets.
    pub(super) values: Vec<f64>,
    /// Value whatever is chosen: of needs that are met, and what the multipliers leave of the others.
    pub(super) constant: f64,
    pub(super) fixed: Vec<Fixed>,
    /// Places that the dynamic programmes stop at, ascending: those that are not left out, and the first of each run of
    /// others.
    stages: Vec<usize>,
    /// Each document's part of the stages.
    pub(super) documents: Vec<Range<usize>>,
    /// States of a document, see [`super::step`].
    pub(super) n_states: usize,
    /// Multiplier of each need.
    pub(super) mu: Vec<f64>,
    /// By need: true where something is undecided about it. A chunk that is forced meets it, or nothing can.
    is_open: Vec<bool>,
}

impl<'p> Relaxation<'p> {
    /// Returns nothing if the node is infeasible: two forced chunks are in conflict, or break a cap or the longest run.
    pub(super) fn new(problem: &'p Problem<'p>, fixed: &[Fixed], mu: &[f64]) -> Option<Self> {
        let fixed = propagated(problem, fixed)?;
        let (mut values, mut constant, mut is_open) = (problem.values.clone(), 0.0, Vec::with_capacity(mu.len()));
        for (Need { weight, places }, mu) in problem.needs.iter().zip(mu) {
            let is_met = places.iter().any(|&place| fixed[place] == Fixed::In);
            let may_be = places.iter().any(|&place| fixed[place] == Fixed::Free);
            is_open.push(!is_met && may_be);
            if is_met {
                constant += weight;
            } else if may_be {
                constant += weight - mu;
                places.iter().for_each(|&place| values[place] += mu);
            }
        }
        let is_out = |place: &usize| fixed[*place] == Fixed::Out;
        let (mut stages, mut documents, mut longest) = (Vec::new(), Vec::new(), 0);
        for document in &problem.lines.documents {
            let Some(first) = document.clone().find(|place| !is_out(place)) else { continue };
            let last = document.clone().rfind(|place| !is_out(place)).unwrap_or(first);
            let start = stages.len();
            stages.extend(stops(first..=last, &fixed));
            documents.push(start..stages.len());
            longest = longest.max(last + 1 - first);
        }
        // A cap that no document can reach needs no more states than the longest one.
        let n_states = problem.run_max.map_or(1, |max| max.min(longest)) + 2;
        Some(Self { problem, values, constant, fixed, stages, documents, n_states, mu: mu.to_vec(), is_open })
    }

    /// The stages of each document.
    pub(super) fn documents(&self) -> impl DoubleEndedIterator<Item = &[usize]> {
        self.documents.iter().map(|document| &self.stages[document.clone()])
    }

    /// Fixes more variables: places that are left out are passed over from here on.
    pub(super) fn refixed(mut self, fixed: Vec<Fixed>) -> Self {
        let mut stages = Vec::with_capacity(self.stages.len());
        for document in &mut self.documents {
            let start = stages.len();
            stages.extend(stops(self.stages[document.clone()].iter().copied(), &fixed));
            *document = start..stages.len();
        }
        (self.fixed, self.stages) = (fixed, stages);
        self
    }

    /// Value of a set in the relaxation.
    pub(super) fn value(&self, chosen: &[usize]) -> f64 {
        self.constant + chosen.iter().map(|&place| self.values[place]).sum::<f64>()
    }

    /// Moves multipliers towards needs that are met once: less where several of `chosen` meet one, more where none
    /// does, halving the range that is left. Returns false if nothing changes.
    pub(super) fn bisect(&mut self, chosen: &[usize], ranges: &mut [Range<f64>]) -> bool {
        let mut changed = false;
        for (at, Need { weight, places }) in self.problem.needs.iter().enumerate().filter(|(at, _)| self.is_open[*at]) {
            let (mu, range) = (self.mu[at], &mut ranges[at]);
            let new = match meeting(places, chosen).take(2).count() {
                0 if mu < *weight => {
                    range.start = mu;
                    (range.start + range.end) / 2.0
                }
                // At first nothing: where several are likely to meet it, one does.
                2 if mu > 0.0 => {
                    let is_first = range.end == *weight && range.start == 0.0;
                    range.end = mu;
                    if is_first { 0.0 } else { (range.start + range.end) / 2.0 }
                }
                _ => continue,
            };
            places.iter().for_each(|&place| self.values[place] += new - mu);
            self.constant -= new - mu;
            self.mu[at] = new;
            changed = true;
        }
        changed
    }

    /// The need of which the relaxation counts most too much for `chosen`.
    pub(super) fn miscounted(&self, chosen: &[usize]) -> Option<usize> {
        let excess = |at: usize, need: &Need| match meeting(&need.places, chosen).count() {
            0 => need.weight - self.mu[at],
            n => self.mu[at] * (n - 1) as f64,
        };
        let open = self.problem.needs.iter().enumerate().filter(|(at, _)| self.is_open[*at]);
        let excesses = open.map(|(at, need)| (at, excess(at, need))).filter(|(_, excess)| *excess > EPSILON);
        excesses.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(at, _)| at)
    }
}

/// The variables with those left out that are in conflict with a forced one; nothing if the forced ones are infeasible.
fn propagated(problem: &Problem<'_>, fixed: &[Fixed]) -> Option<Vec<Fixed>> {
    let forced: Vec<usize> = (0..fixed.len()).filter(|&place| fixed[place] == Fixed::In).collect();
    let mut fixed = fixed.to_vec();
    if forced.is_empty() {
        return Some(fixed);
    }
    let alone = forced.iter().enumerate().all(|(at, &a)| forced[..at].iter().all(|&b| !problem.in_conflict(a, b)));
    if !alone || !problem.caps.iter().all(|cap| cap.holds(&forced, problem)) || !problem.runs_hold(&forced) {
        return None;
    }
    for (place, fixed) in fixed.iter_mut().enumerate().filter(|(_, fixed)| **fixed == Fixed::Free) {
        if forced.iter().any(|&other| problem.in_conflict(place, other)) {
            *fixed = Fixed::Out;
        }
    }
    Some(fixed)
}

/// Those of ascending places of a document that are not left out, and the first of each run of others: leaving out one
/// more changes nothing in any state.
fn stops(places: impl Iterator<Item = usize>, fixed: &[Fixed]) -> impl Iterator<Item = usize> {
    let mut was_out = false;
    places.filter(move |&place| {
        let is_out = fixed[place] == Fixed::Out;
        let is_passed = is_out && was_out;
        was_out = is_out;
        !is_passed
    })
}

/// Those of ascending places that are among ascending `chosen` ones.
fn meeting<'a>(places: &'a [usize], chosen: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    chosen.iter().copied().filter(|place| places.binary_search(place).is_ok())
}
