//! Scored units, and the best of many: those, and every other one that scores as the last of them.
//!
//! Ties are kept because another key breaks them: the public id, which this crate does not know.
//! Cost: a comparison for each score that is not among the best; memory for about twice those that are kept.

use serde::Serialize;

/// A unit that has a term of the query.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scored {
    /// Row, or number of the document, in its part.
    pub unit: u32,
    /// Above 0, larger is better.
    pub score: f64,
}

/// Below this many a cut costs more than it saves.
const SLACK: usize = 64;

/// Collects scored units in any order; what it keeps does not depend on that order.
#[derive(Debug)]
pub(crate) struct Best {
    depth: usize,
    /// Part and unit.
    kept: Vec<(usize, Scored)>,
    /// No score below it can be among the best.
    cut: f64,
    /// The number of those kept at which they are next cut down.
    full: usize,
}

impl Best {
    pub(crate) fn new(depth: usize) -> Self {
        let cut = if depth == 0 { f64::INFINITY } else { 0.0 };
        Self { depth, kept: Vec::new(), cut, full: depth.saturating_mul(2).max(SLACK) }
    }

    #[inline]
    pub(crate) fn push(&mut self, part: usize, scored: Scored) {
        if scored.score >= self.cut {
            self.kept.push((part, scored));
            if self.kept.len() >= self.full {
                self.shrink();
            }
        }
    }

    /// The scores that are kept, by part, in the order in which they came.
    pub(crate) fn into_parts(mut self, n_parts: usize) -> Vec<Vec<Scored>> {
        self.shrink();
        let mut parts = vec![Vec::new(); n_parts];
        self.kept.into_iter().for_each(|(part, scored)| parts[part].push(scored));
        parts
    }

    #[cold]
    fn shrink(&mut self) {
        if self.kept.len() > self.depth && self.depth > 0 {
            let mut scores: Vec<f64> = self.kept.iter().map(|(_, scored)| scored.score).collect();
            let (_, last, _) = scores.select_nth_unstable_by(self.depth - 1, |a, b| b.total_cmp(a));
            let last = *last;
            self.cut = last;
            self.kept.retain(|(_, scored)| scored.score >= last);
        }
        // With many ties nothing may have gone: doubling keeps the cost amortised.
        self.full = self.kept.len().saturating_mul(2).max(SLACK);
    }
}
