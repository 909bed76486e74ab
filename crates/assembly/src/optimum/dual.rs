//! The Lagrangian dual of a relaxation: the least bound that a multiplier for tokens gives, and multipliers for needs.
//!
//! At a multiplier lambda every document is solved by itself, and `max value - lambda * cost + lambda * budget` is a
//! bound. The least one is found from two sets, one within the budget and one beyond: at the multiplier at which they
//! are worth the same, either nothing is worth more, or what is takes the place of one of them.
//!
//! Source: Everett 1963; the search by two sets is that of Handler and Zang 1980 for constrained paths.
//! Cost: O(N) for each of some ten multipliers.

use super::problem::{EPSILON, Fixed, Problem};
use super::relaxation::Relaxation;
use std::ops::Range;

/// Multipliers that are tried. Each brings a set that is best at it, so that a handful do; the bound holds after any
/// number.
const MULTIPLIERS_MAX: usize = 40;

/// Rounds in which the multipliers of needs are moved.
const ROUNDS_MAX: usize = 8;

/// A relaxation with the least bound that was found for it.
pub(super) struct Dual<'p> {
    pub(super) relaxation: Relaxation<'p>,
    pub(super) least: Least,
}

/// The least bound of a relaxation at given multipliers of needs.
pub(super) struct Least {
    /// A set within the budget that is worth about the bound.
    pub(super) chosen: Vec<usize>,
    pub(super) bound: f64,
    /// The multiplier that gives it.
    pub(super) lambda: f64,
}

/// The Lagrangian at a multiplier.
struct Attained {
    /// A set that attains the value.
    chosen: Vec<usize>,
    /// Most that value less tokens at the multiplier may be.
    value: f64,
}

/// Bounds a node by multipliers, those of the needs `mu` at first. Returns nothing if it is infeasible. `incumbent` is
/// the value of the best solution known: a bound below it is enough.
pub(super) fn dual<'p>(problem: &'p Problem<'p>, fixed: &[Fixed], mu: &[f64], incumbent: f64) -> Option<Dual<'p>> {
    let relaxation = Relaxation::new(problem, fixed, mu)?;
    let least = relaxation.least()?;
    if problem.needs.is_empty() {
        return Some(Dual { relaxation, least });
    }
    let mut trial = relaxation.clone();
    let mut chosen = least.chosen.clone();
    let mut ranges: Vec<Range<f64>> = problem.needs.iter().map(|need| 0.0..need.weight).collect();
    let mut best: Option<(f64, Relaxation<'_>)> = None;
    for _ in 0..ROUNDS_MAX {
        if least.bound <= incumbent + EPSILON || (problem.stop)() || !trial.bisect(&chosen, &mut ranges) {
            break;
        }
        // The other multiplier hardly changes: the least bound is looked for when these are good.
        let at = trial.at(least.lambda);
        let bound = at.value + least.lambda * problem.budget as f64;
        chosen = at.chosen;
        if best.as_ref().is_none_or(|(known, _)| bound < *known) {
            best = Some((bound, trial.clone()));
        }
    }
    let mut dual = Dual { relaxation, least };
    if let Some((_, relaxation)) = best {
        let least = relaxation.least()?;
        if least.bound < dual.least.bound {
            dual = Dual { relaxation, least };
        }
    }
    Some(dual)
}

impl Relaxation<'_> {
    /// Returns nothing if what is forced alone is too long.
    fn least(&self) -> Option<Least> {
        let problem = self.problem;
        let mut short = self.at(0.0);
        let (mut bound, mut lambda) = (short.value, 0.0);
        if problem.cost(&short.chosen) > problem.budget {
            let mut long = std::mem::replace(&mut short, self.at(self.lambda_max()));
            if problem.cost(&short.chosen) > problem.budget {
                return None;
            }
            bound = f64::INFINITY;
            for _ in 0..MULTIPLIERS_MAX {
                let (most, least) = (self.value(&long.chosen), self.value(&short.chosen));
                let (beyond, within) = (problem.cost(&long.chosen), problem.cost(&short.chosen));
                lambda = ((most - least) / (beyond - within) as f64).max(0.0);
                if (problem.stop)() {
                    break;
                }
                let at = self.at(lambda);
                bound = bound.min(at.value + lambda * problem.budget as f64);
                if at.value <= least - lambda * within as f64 + EPSILON {
                    break;
                }
                if problem.cost(&at.chosen) <= problem.budget { short = at } else { long = at }
            }
        }
        Some(Least { chosen: short.chosen, bound, lambda })
    }

    /// A multiplier at which nothing but what is forced is chosen.
    fn lambda_max(&self) -> f64 {
        let best = self.values.iter().copied().fold(0.0, f64::max);
        let worst = -self.values.iter().copied().fold(0.0, f64::min);
        2.0 * (best + worst + 1.0) * (1 + self.problem.run_max.unwrap_or(self.problem.len())) as f64
    }

    /// Every document at its best, if a token costs `lambda`.
    fn at(&self, lambda: f64) -> Attained {
        let mut attained = Attained { chosen: Vec::new(), value: self.constant };
        let longest = self.documents().map(<[usize]>::len).max().unwrap_or(0);
        // By stage and state: the state before, and whether the chunk is taken.
        let (mut best, mut came) = (Vec::new(), vec![(0_u32, false); longest * self.n_states]);
        for stages in self.documents().filter(|stages| self.may_gain(stages, lambda)) {
            let n = self.states(stages);
            self.forward(stages, lambda, &mut best, |stage, arc| {
                came[stage * n + arc.behind] = (arc.before as u32, arc.takes);
            });
            let last = &best[stages.len() * n..];
            // Of equal states the first.
            let mut state = (0..n).fold(0, |best, state| if last[state] > last[best] { state } else { best });
            attained.value += last[state];
            let first = attained.chosen.len();
            for (stage, &place) in stages.iter().enumerate().rev() {
                let (before, takes) = came[stage * n + state];
                attained.chosen.extend(takes.then_some(place));
                state = before as usize;
            }
            attained.chosen[first..].reverse();
        }
        attained
    }

    /// Says if something of a document is forced, or worth its tokens at `lambda`. Of any other nothing is chosen: no
    /// sum of what is worth less is worth more.
    pub(super) fn may_gain(&self, stages: &[usize], lambda: f64) -> bool {
        stages.iter().any(|&place| match self.fixed[place] {
            Fixed::In => true,
            Fixed::Out => false,
            Fixed::Free => {
                let around = self.problem.opening[place].min(self.problem.reopening[place]).min(0);
                self.values[place] - lambda * (self.problem.tokens[place] + around) as f64 > 0.0
            }
        })
    }
}
