//! The core, solved exactly: partial choices, document after document, of which only those are kept that may still lead beyond what is known.
//!
//! A label is what is chosen so far, by its tokens, worth and state. It is dropped if another one of its state costs no more and is
//! worth no less, or if even the best that may follow, tokens at the price of the relaxation, would not bring it beyond what is known.
//!
//! Source: the labelling of resource-constrained paths (Desrochers and Soumis 1988), with bounds of the Lagrangian to complete them.
//! Cost: a few labels for each place and state where the price is good, never more than tokens of the budget.

use super::EPSILON;
use super::relax::{NOWHERE, Walk};
use std::ops::Range;

/// What the labels make of a core.
pub(super) enum Exact {
    /// The best places, ascending, and their worth.
    Found(Vec<usize>, f64),
    /// No choice of the core is worth more than what is known.
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
    worth: f64,
    /// The last chunk that was taken: its number in [`Taken`].
    last: u32,
    /// A chunk that was taken since, not yet in [`Taken`].
    place: u32,
}

/// Chunks that were taken, each with the number of the one before it.
struct Taken(Vec<(u32, u32)>);

impl Walk<'_> {
    /// The best choice that is worth more than `known`.
    pub(super) fn exact(&self, price: f64, known: f64) -> Exact {
        let n = self.n_states;
        let after: Vec<Vec<f64>> = self.live.iter().map(|document| self.after(document, price)).collect();
        // The most that a document may add at the price is what it may add from its start.
        let mut rest: f64 = after.iter().map(|after| after[0]).sum();
        if rest == NOWHERE {
            return Exact::Nothing; // what is forced breaks the longest run
        }
        let budget = self.problem.budget;
        let (mut taken, mut n_labels) = (Taken(Vec::new()), 0);
        let mut open = vec![Label { tokens: 0, worth: self.given, last: NONE, place: NONE }];
        for (document, after) in self.live.iter().zip(&after) {
            rest -= after[0];
            let mut states: Vec<Vec<Label>> = vec![Vec::new(); n];
            states[0] = open;
            for (at, place) in document.clone().enumerate() {
                let after = &after[(at + 1) * n..][..n];
                let mut next: Vec<Vec<Label>> = vec![Vec::new(); n];
                self.steps(place, |from, to, tokens, takes| {
                    for label in &states[from] {
                        let mut label = Label { tokens: label.tokens + tokens, ..*label };
                        if takes {
                            (label.worth, label.place) = (label.worth + self.values[place], place as u32);
                        }
                        let left = budget - label.tokens;
                        if left >= 0 && label.worth + after[to] + rest + price * left as f64 > known + EPSILON {
                            next[to].push(label);
                        }
                    }
                });
                n_labels += next.iter().map(Vec::len).sum::<usize>();
                if n_labels > LABELS_MAX {
                    return Exact::TooLarge;
                }
                next.iter_mut().for_each(|labels| taken.keep(labels));
                states = next;
            }
            open = states.concat();
            taken.keep(&mut open);
        }
        // Of labels that none other dominates the longest is worth most.
        open.last().map_or(Exact::Nothing, |best| Exact::Found(taken.places(best.last), best.worth))
    }

    /// The most that may be added by a document's places from each on, in each state: `(place, state)`, the last one behind its end.
    fn after(&self, document: &Range<usize>, price: f64) -> Vec<f64> {
        let n = self.n_states;
        let mut after = vec![NOWHERE; (document.len() + 1) * n];
        after[document.len() * n..].fill(0.0);
        for (at, place) in document.clone().enumerate().rev() {
            let (before, behind) = after.split_at_mut((at + 1) * n);
            let (before, value) = (&mut before[at * n..], self.values[place]);
            self.steps(place, |from, to, tokens, takes| {
                let step = behind[to] + if takes { value - price * tokens as f64 } else { 0.0 };
                before[from] = before[from].max(step);
            });
        }
        after
    }
}

impl Taken {
    /// Leaves of `labels` those that none other dominates, fewest tokens first.
    fn keep(&mut self, labels: &mut Vec<Label>) {
        labels.sort_by(|a, b| a.tokens.cmp(&b.tokens).then(b.worth.total_cmp(&a.worth)));
        let mut most = NOWHERE;
        labels.retain(|label| {
            let is_best = label.worth > most;
            most = most.max(label.worth);
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
