//! The core of a relaxation, solved exactly by labels: partial choices, document after document, that may still beat
//! the incumbent.
//!
//! A label is what is chosen so far, by its tokens, value and state. It is dropped if another one of its state
//! dominates it, which costs no more and is worth no less, or if even the best that may follow, tokens at the
//! multiplier, would not beat the incumbent.
//!
//! Source: the labelling of resource-constrained paths (Desrochers and Soumis 1988), with Lagrangian bounds to complete
//! them.
//! Cost: a few labels for each stage and state where the multiplier is good, never more than tokens of the budget.

use super::problem::EPSILON;
use super::relaxation::Relaxation;
use super::step::{Direction, UNREACHED};

/// The outcome for a core.
pub(super) enum Exact {
    /// The best places, ascending, and their value.
    Found(Vec<usize>, f64),
    /// No choice of the core beats the incumbent.
    Nothing,
    /// More labels than [`LABELS_MAX`].
    TooLarge,
}

/// Labels that are made before the core is given up: some twenty milliseconds.
const LABELS_MAX: usize = 1_000_000;

/// No chunk, and no label before.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Label {
    tokens: i64,
    value: f64,
    /// The last chunk that was taken: its number in [`Taken`].
    last: u32,
    /// A chunk that was taken since, not yet in [`Taken`].
    place: u32,
}

/// Chunks that were taken, each with the number of the one before it.
struct Taken(Vec<(u32, u32)>);

impl Relaxation<'_> {
    /// The best choice that is worth more than the value of the `incumbent`.
    pub(super) fn exact(&self, lambda: f64, incumbent: f64) -> Exact {
        let after: Vec<Vec<f64>> = self.documents().map(|stages| self.backward(stages, lambda)).collect();
        // The most that a document may add at the multiplier is what it may add from its start.
        let mut rest: f64 = after.iter().map(|after| after[0]).sum();
        if rest == UNREACHED {
            return Exact::Nothing; // what is forced breaks the longest run
        }
        let budget = self.problem.budget;
        let (mut taken, mut n_labels) = (Taken(Vec::new()), 0);
        let mut open = vec![Label { tokens: 0, value: self.constant, last: NONE, place: NONE }];
        let (mut states, mut next) = (vec![Vec::new(); self.n_states], vec![Vec::new(); self.n_states]);
        for (stages, after) in self.documents().zip(&after) {
            let n = self.states(stages);
            rest -= after[0];
            states[0].append(&mut open);
            for (&place, after) in stages.iter().zip(after.chunks_exact(n).skip(1)) {
                let (before, behind) = (&states[..n], &mut next[..n]);
                self.step(Direction::Forward, place, before, behind, |before, arc, behind: &mut Vec<Label>| {
                    for label in before {
                        let (tokens, value) = (label.tokens + arc.tokens, label.value + arc.value);
                        let left = budget - tokens;
                        if left >= 0 && value + after[arc.behind] + rest + lambda * left as f64 > incumbent + EPSILON {
                            let place = if arc.takes { place as u32 } else { label.place };
                            behind.push(Label { tokens, value, last: label.last, place });
                        }
                    }
                });
                n_labels += next.iter().map(Vec::len).sum::<usize>();
                if n_labels > LABELS_MAX || (self.problem.stop)() {
                    return Exact::TooLarge;
                }
                next.iter_mut().for_each(|labels| taken.keep(labels));
                std::mem::swap(&mut states, &mut next);
                next.iter_mut().for_each(Vec::clear);
            }
            states.iter_mut().for_each(|labels| open.append(labels));
            taken.keep(&mut open);
        }
        // Of labels that none other dominates the longest is worth most.
        open.last().map_or(Exact::Nothing, |best| Exact::Found(taken.places(best.last), best.value))
    }
}

impl Taken {
    /// Leaves of `labels` those that none other dominates, fewest tokens first.
    fn keep(&mut self, labels: &mut Vec<Label>) {
        labels.sort_by(|a, b| a.tokens.cmp(&b.tokens).then(b.value.total_cmp(&a.value)));
        let mut most = UNREACHED;
        labels.retain(|label| {
            let is_best = label.value > most;
            most = most.max(label.value);
            is_best
        });
        for label in labels.iter_mut().filter(|label| label.place != NONE) {
            self.0.push((label.last, label.place));
            (label.last, label.place) = (self.0.len() as u32 - 1, NONE);
        }
    }

    /// Everything taken up to a chunk, ascending.
    fn places(&self, last: u32) -> Vec<usize> {
        let before = |&at: &u32| Some(self.0[at as usize].0).filter(|&before| before != NONE);
        let mut places: Vec<usize> = std::iter::successors(Some(last).filter(|&last| last != NONE), before)
            .map(|at| self.0[at as usize].1 as usize)
            .collect();
        places.sort_unstable();
        places
    }
}
