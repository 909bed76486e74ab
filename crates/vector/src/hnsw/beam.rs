//! The beam search that every walk through a graph is: the search of a query and the repair of a graph.
//!
//! Source: Malkov and Yashunin 2018, algorithm 2.
//! Differs: rows that are not admitted are walked through, but take no place among the results; ties go by row, so the
//! outcome does not depend on the order of the lists.
//! Cost: no allocation once a [`Scratch`] has grown; what was visited is forgotten by counting an epoch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Neighbor, Result};

/// A graph, and how far its rows are from what is searched.
pub(crate) trait Space {
    /// The neighbours of a row, each one a row of the graph.
    fn neighbors(&self, row: u32) -> Result<&[u32]>;

    /// Appends the distances of these rows.
    fn distances(&self, rows: &[u32], out: &mut Vec<f32>) -> Result<()>;

    /// Whether a row may be among the results.
    fn admits(&self, row: u32) -> Result<bool>;
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Nothing nearer is left near what was seen.
    Finished,
    /// More rows were visited than allowed.
    GaveUp,
}

/// What a walk needs, kept for the next one.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A row was visited in this walk if its mark is the epoch.
    marks: Vec<u32>,
    epoch: u32,
    frontier: BinaryHeap<Reverse<Neighbor>>,
    results: BinaryHeap<Neighbor>,
    fresh: Vec<u32>,
    distances: Vec<f32>,
}

impl Scratch {
    /// Walks from `starts` to the `ef` nearest admitted rows, visiting at most about `n_visits_max` of `n_rows`.
    pub(crate) fn walk(
        &mut self,
        space: &impl Space,
        n_rows: usize,
        starts: &[u32],
        ef: usize,
        n_visits_max: usize,
    ) -> Result<Walk> {
        self.begin(n_rows);
        self.visit(space, starts, ef)?;
        let mut n_visits = self.fresh.len();
        while let Some(Reverse(nearest)) = self.frontier.pop() {
            if self.results.len() >= ef && self.results.peek().is_some_and(|farthest| nearest > *farthest) {
                break;
            }
            if n_visits > n_visits_max {
                return Ok(Walk::GaveUp);
            }
            self.visit(space, space.neighbors(nearest.row)?, ef)?;
            n_visits += self.fresh.len();
        }
        Ok(Walk::Finished)
    }

    /// The results of the last walk, in no order.
    pub(crate) fn results(&self) -> impl Iterator<Item = Neighbor> {
        self.results.iter().copied()
    }

    fn begin(&mut self, n_rows: usize) {
        self.frontier.clear();
        self.results.clear();
        self.marks.resize(n_rows, 0);
        self.epoch = match self.epoch.checked_add(1) {
            Some(epoch) => epoch,
            None => {
                self.marks.fill(0);
                1
            }
        };
    }

    /// Takes the rows that were not visited before onto the frontier and, where admitted, among the results.
    fn visit(&mut self, space: &impl Space, rows: &[u32], ef: usize) -> Result<()> {
        self.fresh.clear();
        for &row in rows {
            let mark = &mut self.marks[row as usize];
            if *mark != self.epoch {
                *mark = self.epoch;
                self.fresh.push(row);
            }
        }
        self.distances.clear();
        space.distances(&self.fresh, &mut self.distances)?;
        for (&row, &distance) in self.fresh.iter().zip(&self.distances) {
            let neighbor = Neighbor { row, distance };
            if self.results.len() >= ef && self.results.peek().is_some_and(|farthest| neighbor > *farthest) {
                continue;
            }
            self.frontier.push(Reverse(neighbor));
            if space.admits(row)? {
                self.results.push(neighbor);
                if self.results.len() > ef {
                    self.results.pop();
                }
            }
        }
        Ok(())
    }
}
