//! A graph under construction: codes and lists of neighbours in memory, nodes numbered as they are added.

use super::beam::{Candidate, END, Space};
use super::config::HnswConfig;
use super::order::Order;
use crate::codes::{Coded, Codes, GROUP, Target};
use crate::distance::prefetch;
use crate::{Error, Result};

/// Lists of neighbours in slots, as many for each node.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    n_slots: usize,
    slots: Vec<u32>,
}

impl Lists {
    pub(crate) fn new(n_nodes: usize, n_slots: usize) -> Self {
        Self { n_slots, slots: vec![END; n_nodes * n_slots] }
    }

    pub(crate) fn n_slots(&self) -> usize {
        self.n_slots
    }

    /// The neighbours of a node.
    #[inline]
    pub(crate) fn list(&self, node: u32) -> &[u32] {
        let slots = self.slots(node);
        &slots[..slots.iter().position(|&neighbor| neighbor == END).unwrap_or(slots.len())]
    }

    /// The neighbours of a node and the slots behind them.
    #[inline]
    pub(crate) fn slots(&self, node: u32) -> &[u32] {
        let start = node as usize * self.n_slots;
        &self.slots[start..start + self.n_slots]
    }

    pub(crate) fn set(&mut self, node: u32, list: &[u32]) {
        let start = node as usize * self.n_slots;
        let (filled, rest) = self.slots[start..start + self.n_slots].split_at_mut(list.len());
        filled.copy_from_slice(list);
        rest.fill(END);
    }

    /// Appends a neighbour; every node gets more slots where this one has none left.
    pub(crate) fn push(&mut self, node: u32, neighbor: u32) {
        let n_filled = self.list(node).len();
        if n_filled == self.n_slots {
            let n_slots = self.n_slots + self.n_slots / 2;
            let mut wider = Self::new(self.slots.len() / self.n_slots, n_slots);
            for (slots, old) in wider.slots.chunks_exact_mut(n_slots).zip(self.slots.chunks_exact(self.n_slots)) {
                slots[..old.len()].copy_from_slice(old);
            }
            *self = wider;
        }
        self.slots[node as usize * self.n_slots + n_filled] = neighbor;
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.slots.len() / self.n_slots
    }
}

/// The graph as far as it is built.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) codes: Codes,
    /// From layer 0.
    pub(crate) layers: Vec<Lists>,
}

impl Draft {
    pub(crate) fn new(codes: Codes, order: &Order, config: &HnswConfig) -> Self {
        let lists = |(layer, &n_nodes)| Lists::new(n_nodes, config.degree_max(layer));
        Self { codes, layers: order.layers.iter().enumerate().map(lists).collect() }
    }

    /// A layer, searched for a target.
    pub(crate) fn layer<'a>(&'a self, layer: usize, target: Target<'a>) -> Layer<'a> {
        Layer { codes: &self.codes, lists: &self.layers[layer], target }
    }

    /// Of candidates in ascending order those that are nearer to the base than to any that was taken before, up to
    /// `n_max`; then the nearest of the others, up to `n_filled`.
    ///
    /// Source: Malkov and Yashunin 2018, algorithm 4 with `keepPrunedConnections`, without extending.
    pub(crate) fn select(
        &self,
        candidates: impl Iterator<Item = Candidate>,
        n_max: usize,
        n_filled: usize,
    ) -> Result<Vec<u32>> {
        let (mut taken, mut passed) = (Vec::with_capacity(n_max), Vec::with_capacity(n_filled));
        let mut distances = Vec::with_capacity(GROUP);
        for candidate in candidates {
            if taken.len() == n_max {
                break;
            }
            let target = self.codes.target(candidate.node());
            let mut is_near_another = false;
            for group in taken.chunks(GROUP) {
                distances.clear();
                self.codes.code_distances(&target, group, &mut distances)?;
                is_near_another = distances.iter().any(|&distance| distance < candidate.distance());
                if is_near_another {
                    break;
                }
            }
            if !is_near_another {
                taken.push(candidate.node());
            } else if passed.len() < n_filled {
                passed.push(candidate.node());
            }
        }
        passed.truncate(n_filled.saturating_sub(taken.len()));
        taken.append(&mut passed);
        Ok(taken)
    }

    /// A node's nearest neighbours among these, nearest first.
    pub(crate) fn ranked(&self, node: u32, others: &[u32]) -> Result<Vec<Candidate>> {
        let mut distances = Vec::with_capacity(others.len());
        self.codes.code_distances(&self.codes.target(node), others, &mut distances)?;
        let candidates = others.iter().zip(distances);
        let mut ranked: Vec<Candidate> = candidates.map(|(&other, distance)| Candidate::new(other, distance)).collect();
        ranked.sort_unstable();
        Ok(ranked)
    }
}

/// One layer of a draft, searched for a target.
pub(crate) struct Layer<'a> {
    codes: &'a Codes,
    lists: &'a Lists,
    target: Target<'a>,
}

impl Space for Layer<'_> {
    #[inline]
    fn neighbors(&self, node: u32) -> Result<&[u32]> {
        Ok(self.lists.slots(node))
    }

    #[inline]
    fn prefetch(&self, node: u32) {
        prefetch(bytemuck::cast_slice(self.lists.slots(node)));
    }

    #[inline]
    fn distances(&self, nodes: &[u32], out: &mut Vec<f32>) -> Result<()> {
        self.codes.code_distances(&self.target, nodes, out)
    }

    fn no_such_node(&self, named_by: u32) -> Error {
        unreachable!("node {named_by} of a draft names a node that does not exist")
    }
}
