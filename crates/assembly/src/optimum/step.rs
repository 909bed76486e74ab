//! The states of a document, and the one step that every dynamic programme over them takes.
//!
//! State 0: nothing of the document is chosen yet; 1 to R: inside a segment of so many chunks (R = 1: of any length);
//! R + 1: behind a segment. A chunk is a layer of arcs from the states before it to those behind it: it is left out,
//! or taken for its tokens. Programmes differ in what they carry along the arcs: the best value at a multiplier, the
//! best one at every number of tokens, or labels.
//!
//! Source: Bellman 1957; at a multiplier the longest path of an acyclic graph, from either end.
//! Cost: two arcs a state at most.

use super::problem::Fixed;
use super::relaxation::Relaxation;

/// Value of a state that no path leads to.
pub(super) const UNREACHED: f64 = f64::NEG_INFINITY;

/// A way from a state before a chunk to one behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arc {
    pub(super) before: usize,
    pub(super) behind: usize,
    /// Tokens that it costs, with those around a segment that starts with it.
    pub(super) tokens: i64,
    /// Value that it adds.
    pub(super) value: f64,
    /// The chunk is taken.
    pub(super) takes: bool,
}

impl Arc {
    /// Value less tokens at the multiplier `lambda`.
    pub(super) fn reduced(&self, lambda: f64) -> f64 {
        self.value - lambda * self.tokens as f64
    }
}

/// The way that a programme goes through a document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    Forward,
    Backward,
}

impl Relaxation<'_> {
    /// One step: carries what the states on one side of a chunk hold, along its arcs, into the states on the other.
    pub(super) fn step<H>(
        &self,
        direction: Direction,
        place: usize,
        source: &[H],
        target: &mut [H],
        mut carry: impl FnMut(&H, Arc, &mut H),
    ) {
        self.arcs(place, source.len(), |arc| match direction {
            Direction::Forward => carry(&source[arc.before], arc, &mut target[arc.behind]),
            Direction::Backward => carry(&source[arc.behind], arc, &mut target[arc.before]),
        });
    }

    /// The arcs of a chunk between `n_states` states. Of those into one state the order decides ties.
    pub(super) fn arcs(&self, place: usize, n_states: usize, mut go: impl FnMut(Arc)) {
        let (problem, between) = (self.problem, n_states - 1); // the last state is behind a segment
        if self.fixed[place] != Fixed::In {
            let leave = |before, behind| Arc { before, behind, tokens: 0, value: 0.0, takes: false };
            go(leave(0, 0));
            (1..=between).for_each(|from| go(leave(from, between)));
        }
        if self.fixed[place] != Fixed::Out {
            let take = |before, behind, tokens| Arc { before, behind, tokens, value: self.values[place], takes: true };
            let text = problem.tokens[place];
            let opening = text + problem.opening[place];
            let reopening = text + problem.reopening[place];
            go(take(0, 1, opening));
            go(take(between, 1, reopening));
            if !problem.lines.touches(place) {
                (1..between).for_each(|from| go(take(from, 1, reopening)));
            } else if problem.run_max.is_none() {
                go(take(1, 1, text));
            } else {
                // Behind the longest run a chunk must be left out.
                (1..between - 1).for_each(|from| go(take(from, from + 1, text)));
            }
        }
    }

    /// Best values at `lambda` of the stages of a document up to each, by state: `[stages + 1, states]`. `improved`
    /// hears of every arc, by stage, that is better than those before it into its state: the last one is the best.
    pub(super) fn forward(
        &self,
        stages: &[usize],
        lambda: f64,
        best: &mut Vec<f64>,
        mut improved: impl FnMut(usize, Arc),
    ) {
        let n = self.states(stages);
        best.clear();
        best.resize((stages.len() + 1) * n, UNREACHED);
        best[0] = 0.0;
        for (at, &place) in stages.iter().enumerate() {
            let (before, behind) = best[at * n..][..2 * n].split_at_mut(n);
            self.step(Direction::Forward, place, before, behind, |before, arc, behind| {
                let value = before + arc.reduced(lambda);
                if value > *behind {
                    *behind = value;
                    improved(at, arc);
                }
            });
        }
    }

    /// Best values at `lambda` that the stages of a document from each on may add, by state: `[stages + 1, states]`.
    pub(super) fn backward(&self, stages: &[usize], lambda: f64) -> Vec<f64> {
        let n = self.states(stages);
        let mut best = vec![UNREACHED; (stages.len() + 1) * n];
        best[stages.len() * n..].fill(0.0);
        for (at, &place) in stages.iter().enumerate().rev() {
            let (before, behind) = best[at * n..][..2 * n].split_at_mut(n);
            self.step(Direction::Backward, place, behind, before, |behind, arc, before| {
                *before = before.max(behind + arc.reduced(lambda));
            });
        }
        best
    }

    /// States of a document: none is of a longer run than it has chunks.
    pub(super) fn states(&self, stages: &[usize]) -> usize {
        self.n_states.min(stages.len() + 2)
    }
}
