//! Reduced-cost fixing: variables that the dual bound decides.
//!
//! The reduced cost of a chunk is what the bound loses if the chunk is forced the other way: the best path of its
//! document at the multiplier, less the best one through an arc that takes it (or leaves it out). Where too much is
//! lost, it is fixed.
//!
//! Source: Dantzig, Fulkerson and Johnson 1954; by paths from both ends, Irnich et al. 2010.
//! Cost: three passes over the arcs.

use super::problem::Fixed;
use super::relaxation::Relaxation;
use super::step::UNREACHED;

impl Relaxation<'_> {
    /// The relaxation with everything fixed that, forced the other way, would leave a bound no better than `incumbent`.
    pub(super) fn fixed_by_reduced_cost(self, lambda: f64, incumbent: f64) -> Self {
        let forward: Vec<Vec<f64>> = self
            .documents()
            .map(|stages| {
                let mut best = Vec::new();
                self.forward(stages, lambda, &mut best, |_, _| {});
                best
            })
            .collect();
        let best = |stages: &[usize], forward: &[f64]| {
            forward[stages.len() * self.states(stages)..].iter().copied().fold(UNREACHED, f64::max)
        };
        let sum: f64 = self.documents().zip(&forward).map(|(stages, forward)| best(stages, forward)).sum();
        let room = self.constant + sum + lambda * self.problem.budget as f64;
        let mut fixed = self.fixed.clone();
        for (stages, forward) in self.documents().zip(&forward) {
            let (n, best, backward) = (self.states(stages), best(stages, forward), self.backward(stages, lambda));
            for (stage, &place) in stages.iter().enumerate().filter(|(_, place)| self.fixed[**place] == Fixed::Free) {
                let (before, behind) = (&forward[stage * n..], &backward[(stage + 1) * n..]);
                let (mut taken, mut left) = (UNREACHED, UNREACHED);
                self.arcs(place, n, |arc| {
                    let through = before[arc.before] + (behind[arc.behind] + arc.reduced(lambda));
                    if arc.takes { taken = taken.max(through) } else { left = left.max(through) }
                });
                if room - best + taken <= incumbent {
                    fixed[place] = Fixed::Out;
                } else if room - best + left <= incumbent {
                    fixed[place] = Fixed::In;
                }
            }
        }
        self.refixed(fixed)
    }
}
