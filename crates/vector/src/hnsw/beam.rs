//! The beam search that every walk through a graph is: of a query, of a row that is added, of the repair.
//!
//! Source: Malkov and Yashunin 2018, algorithm 2.
//! Differs: where every row is admitted, candidates and results are one sorted list, as in NSG (Fu et al. 2019,
//! algorithm 1). Where some are not, these are walked through, but take no place among the results; candidates and
//! results are heaps then. Ties go by number, so the outcome does not depend on the order of the lists.
//! Cost: no allocation once a [`Scratch`] has grown; what was visited is forgotten by counting an epoch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;

use crate::Result;
use crate::stop::{NEVER, Stop, check};

/// The end of a list of neighbours that does not fill its slots.
pub(crate) const END: u32 = u32::MAX;

/// Nodes that a walk goes on from before it looks whether to stop: some twenty microseconds.
const LOOK_NODES: usize = 32;

/// A graph, and how far its nodes are from what is searched.
pub(crate) trait Space {
    /// The neighbours of a node, up to an [`END`] or all slots.
    fn neighbors(&self, node: u32) -> Result<&[u32]>;

    /// Begins to load the neighbours of a node.
    fn prefetch(&self, node: u32);

    /// Appends the distances of these nodes.
    ///
    /// # Panics
    /// Perhaps, where a node does not exist: a list may name such a one.
    fn distances(&self, nodes: &[u32], out: &mut Vec<f32>) -> Result<()>;

    /// The error for a list that names a node which does not exist.
    fn no_such_node(&self, named_by: u32) -> crate::Error;

    /// The signal that ends a walk before its time.
    fn stop(&self) -> Stop<'_> {
        NEVER
    }
}

/// A node and its distance, as one number: ordered by distance, then by node. The lowest bit tells whether a walk has
/// been there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate(u64);

impl Candidate {
    /// The most nodes that can be told apart.
    pub(crate) const NODES_MAX: usize = 1 << 31;

    #[inline]
    pub(crate) fn new(node: u32, distance: f32) -> Self {
        let bits = distance.to_bits();
        // Ascending like the numbers: those below zero are turned over.
        let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        Self(u64::from(ordered) << 32 | u64::from(node) << 1)
    }

    #[inline]
    pub(crate) fn node(self) -> u32 {
        self.0 as u32 >> 1
    }

    #[inline]
    pub(crate) fn distance(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
    }

    fn is_expanded(self) -> bool {
        self.0 & 1 == 1
    }

    fn expanded(self) -> Self {
        Self(self.0 | 1)
    }

    fn unexpanded(self) -> Self {
        Self(self.0 & !1)
    }
}

/// The end of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Nothing nearer is left near what was seen.
    Finished,
    /// More nodes were visited than allowed.
    GaveUp,
}

/// The working memory of walks, kept for the next ones.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A node was visited in this walk if its mark is the epoch.
    marks: Vec<u8>,
    epoch: u8,
    /// Nearest first.
    beam: Vec<Candidate>,
    frontier: BinaryHeap<Reverse<Candidate>>,
    results: BinaryHeap<Candidate>,
    fresh: Vec<u32>,
    distances: Vec<f32>,
}

impl Scratch {
    /// Walks from `starts` to the `ef` nearest of `n_nodes`, visiting at most about `n_visits_max`.
    pub(crate) fn walk(
        &mut self,
        space: &impl Space,
        n_nodes: usize,
        starts: &[u32],
        ef: usize,
        n_visits_max: usize,
    ) -> Result<Walk> {
        self.begin(n_nodes);
        self.beam.clear();
        self.measure(space, starts, starts[0])?;
        self.take_into_beam(space, ef);
        let mut n_visits = self.fresh.len();
        let (mut next, mut n_nodes_left) = (0, 0);
        while let Some(candidate) = self.beam.get_mut(next) {
            if candidate.is_expanded() {
                next += 1;
                continue;
            }
            let node = candidate.node();
            *candidate = candidate.expanded();
            if n_visits > n_visits_max {
                return Ok(Walk::GaveUp);
            }
            look(space, &mut n_nodes_left)?;
            self.measure(space, space.neighbors(node)?, node)?;
            n_visits += self.fresh.len();
            next = self.take_into_beam(space, ef).min(next + 1);
        }
        Ok(Walk::Finished)
    }

    /// As [`walk`](Self::walk), but only nodes that `admits` are results.
    pub(crate) fn walk_admitted(
        &mut self,
        space: &impl Space,
        n_nodes: usize,
        starts: &[u32],
        ef: usize,
        n_visits_max: usize,
        admits: impl Fn(u32) -> Result<bool>,
    ) -> Result<Walk> {
        self.begin(n_nodes);
        self.frontier.clear();
        self.results.clear();
        self.measure(space, starts, starts[0])?;
        self.take_admitted(ef, &admits)?;
        let (mut n_visits, mut walk, mut n_nodes_left) = (self.fresh.len(), Walk::Finished, 0);
        while let Some(Reverse(nearest)) = self.frontier.pop() {
            if self.results.len() >= ef && self.results.peek().is_some_and(|farthest| nearest > *farthest) {
                break;
            }
            if n_visits > n_visits_max {
                walk = Walk::GaveUp;
                break;
            }
            look(space, &mut n_nodes_left)?;
            self.measure(space, space.neighbors(nearest.node())?, nearest.node())?;
            n_visits += self.fresh.len();
            self.take_admitted(ef, &admits)?;
        }
        self.beam.clear();
        self.beam.extend(self.results.drain());
        self.beam.sort_unstable();
        Ok(walk)
    }

    /// The node that steps to ever nearer neighbours end at.
    pub(crate) fn descend(&mut self, space: &impl Space, from: Candidate) -> Result<Candidate> {
        let mut nearest = from;
        loop {
            let list = space.neighbors(nearest.node())?;
            let list = &list[..list.iter().position(|&node| node == END).unwrap_or(list.len())];
            self.distances.clear();
            space.distances(list, &mut self.distances)?;
            let candidates = list.iter().zip(&self.distances);
            match candidates.map(|(&node, &distance)| Candidate::new(node, distance)).min() {
                Some(best) if best < nearest => nearest = best,
                _ => return Ok(nearest),
            }
        }
    }

    /// The results of the last walk, nearest first.
    pub(crate) fn results(&self) -> impl Iterator<Item = Candidate> {
        self.beam.iter().map(|candidate| candidate.unexpanded())
    }

    fn begin(&mut self, n_nodes: usize) {
        if self.marks.len() != n_nodes {
            self.marks.clear();
            self.marks.resize(n_nodes, 0);
            self.epoch = 0;
        }
        self.epoch = match self.epoch.checked_add(1) {
            Some(epoch) => epoch,
            None => {
                self.marks.fill(0);
                1
            }
        };
    }

    /// The distances of those nodes of a list that were not visited before.
    #[inline]
    fn measure(&mut self, space: &impl Space, list: &[u32], named_by: u32) -> Result<()> {
        self.fresh.clear();
        for &node in list {
            match self.marks.get_mut(node as usize) {
                Some(mark) if *mark == self.epoch => {}
                Some(mark) => {
                    *mark = self.epoch;
                    self.fresh.push(node);
                }
                None if node == END => break,
                None => return Err(space.no_such_node(named_by)),
            }
        }
        self.distances.clear();
        space.distances(&self.fresh, &mut self.distances)
    }

    /// Puts what was measured in its place among the `ef` nearest. Returns the first place that changed.
    #[inline]
    fn take_into_beam(&mut self, space: &impl Space, ef: usize) -> usize {
        let mut changed = usize::MAX;
        for (&node, &distance) in self.fresh.iter().zip(&self.distances) {
            let candidate = Candidate::new(node, distance);
            if self.beam.len() >= ef {
                if self.beam.last().is_none_or(|farthest| candidate > *farthest) {
                    continue;
                }
                self.beam.pop();
            }
            space.prefetch(node);
            let place = self.beam.partition_point(|other| *other < candidate);
            self.beam.insert(place, candidate);
            changed = changed.min(place);
        }
        changed
    }

    /// Puts what was measured on the frontier and, where admitted, among the results.
    fn take_admitted(&mut self, ef: usize, admits: &impl Fn(u32) -> Result<bool>) -> Result<()> {
        for (&node, &distance) in self.fresh.iter().zip(&self.distances) {
            let candidate = Candidate::new(node, distance);
            if self.results.len() >= ef && self.results.peek().is_some_and(|farthest| candidate > *farthest) {
                continue;
            }
            self.frontier.push(Reverse(candidate));
            if admits(node)? {
                self.results.push(candidate);
                if self.results.len() > ef {
                    self.results.pop();
                }
            }
        }
        Ok(())
    }
}

/// Looks whether to stop, every [`LOOK_NODES`] nodes.
#[inline]
fn look(space: &impl Space, n_nodes_left: &mut usize) -> Result<()> {
    if *n_nodes_left > 0 {
        *n_nodes_left -= 1;
        return Ok(());
    }
    *n_nodes_left = LOOK_NODES - 1;
    check(space.stop())
}

/// Working memory that walks of several threads borrow.
#[derive(Debug, Default)]
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

impl<T: Default> Pool<T> {
    /// Runs with what an earlier run has left, if there is any to spare.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        let pool = || self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut borrowed = pool().pop().unwrap_or_default();
        let result = run(&mut borrowed);
        pool().push(borrowed);
        result
    }
}

/// The working memory of a search, kept for the next one.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) scratch: Scratch,
    /// Of the query.
    pub(super) codes: Vec<u8>,
    /// The rows that the walk found, to be ranked.
    pub(super) rows: Vec<u32>,
    pub(super) distances: Vec<f32>,
}
