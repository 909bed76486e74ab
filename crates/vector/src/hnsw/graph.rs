//! A finished graph in memory, and how it is written.
//!
//! The payload, in words of 32 bits but for the codes; each part starts on a 64-byte boundary:
//!
//! | part | words |
//! |---|---|
//! | parameters | m, ef_construction, entry, slots of a list in layer 0, number of upper layers |
//! | | nodes of each upper layer, from layer 1; rows that have twins, and their twins |
//! | nodes | the row of each node of layer 1 |
//! | each upper layer | the lists of its nodes, which are the first ones; m slots each, which hold nodes |
//! | twins | the rows that have twins, ascending; where their lists end, with a 0 before; the lists |
//! | scales | of each row's codes: f32 |
//! | layer 0 | the list of each row, which holds rows |
//! | codes | of each row, padded: one byte a dimension |
//!
//! A list that does not fill its slots ends with a word of ones. Equal rows stand in the graph once, by the first of
//! them; the others are its twins: they have codes, but their lists are empty.
//!
//! Counts of the header: rows, dimensions.

use std::collections::VecDeque;
use std::io::{self, Seek, Write};

use super::beam::END;
use super::config::HnswConfig;
use super::draft::Draft;
use super::frozen::{ALIGNMENT_BYTES, KIND};
use super::order::Order;
use crate::file::Writer;
use crate::{Result, Rows};

/// A graph over N rows: as it was built and repaired, ready to be written.
#[derive(Debug)]
pub struct Graph {
    config: HnswConfig,
    dimensions: usize,
    draft: Draft,
    order: Order,
    /// The node that stands for each row.
    nodes: Vec<u32>,
    repairs: Repairs,
}

/// The links that the repair had to add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Rows that could not be reached.
    pub n_unreachable: usize,
    /// Edges added so that every row can be reached and is named by a few lists.
    pub n_edges: usize,
}

impl Graph {
    pub(crate) fn new(config: HnswConfig, rows: &Rows, draft: Draft, order: Order, repairs: Repairs) -> Self {
        let mut nodes = vec![0; rows.len()];
        for (node, &row) in order.rows.iter().enumerate() {
            nodes[row as usize] = node as u32;
        }
        for (first, twins) in &order.twins {
            twins.iter().for_each(|&twin| nodes[twin as usize] = nodes[*first as usize]);
        }
        Self { config, dimensions: rows.dimensions(), draft, order, nodes, repairs }
    }

    /// N.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Rows that differ from one another: those that stand in the graph.
    pub fn n_distinct(&self) -> usize {
        self.order.rows.len()
    }

    /// The repairs that were needed.
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    /// Writes the graph as a file of its own and gives the writer back.
    ///
    /// # Errors
    /// [`crate::Error::Write`].
    pub fn write<W: Write + Seek>(&self, out: W) -> Result<W> {
        let mut out = Parts(Writer::new(out, KIND)?);
        let (base, upper) = self.draft.layers.split_first().expect("there is a layer 0");
        let twins = &self.order.twins;
        let (m, ef_construction) = (self.config.m as u32, self.config.ef_construction as u32);
        let entry = self.order.rows.first().copied().unwrap_or(0);
        out.words([m, ef_construction, entry, base.n_slots() as u32, upper.len() as u32])?;
        out.words(upper.iter().map(|layer| layer.n_nodes() as u32))?;
        out.words([twins.len() as u32, (self.len() - self.n_distinct()) as u32])?;
        out.align()?;

        let n_upper = upper.first().map_or(0, |layer| layer.n_nodes());
        out.part(self.order.rows[..n_upper].iter().copied())?;
        for layer in upper {
            out.part((0..layer.n_nodes() as u32).flat_map(|node| layer.slots(node)).copied())?;
        }
        let mut end = 0;
        let ends = twins.iter().map(|(_, list)| {
            end += list.len() as u32;
            end
        });
        out.part(twins.iter().map(|(row, _)| *row))?;
        out.part([0].into_iter().chain(ends))?;
        out.part(twins.iter().flat_map(|(_, list)| list).copied())?;
        out.part(self.nodes.iter().map(|&node| self.draft.codes.scale(node).to_bits()))?;

        for (row, &node) in self.nodes.iter().enumerate() {
            // A twin has no list.
            let is_first = self.order.rows[node as usize] == row as u32;
            let slots = base.slots(node).iter();
            out.words(slots.map(|&node| if is_first && node != END { self.order.rows[node as usize] } else { END }))?;
        }
        out.align()?;
        for &node in &self.nodes {
            out.0.write_all(self.draft.codes.codes(node))?;
        }
        Ok(out.0.finish([self.len() as u64, self.dimensions as u64])?)
    }

    /// A bug, not bad data, if one of these does not hold.
    pub(crate) fn assert_invariants(&self) {
        for (layer, lists) in self.draft.layers.iter().enumerate() {
            for node in 0..lists.n_nodes() as u32 {
                for &next in lists.list(node) {
                    let exists = (next as usize) < lists.n_nodes();
                    assert!(exists && next != node, "layer {layer}: {node} names {next} of {}", lists.n_nodes());
                }
            }
        }
        let base = &self.draft.layers[0];
        let mut reached = vec![false; base.n_nodes()];
        let mut queue = VecDeque::new();
        if let Some(entry) = reached.first_mut() {
            *entry = true;
            queue.push_back(0);
        }
        let mut n_reached = 0;
        while let Some(node) = queue.pop_front() {
            n_reached += 1;
            for &next in base.list(node) {
                if !std::mem::replace(&mut reached[next as usize], true) {
                    queue.push_back(next);
                }
            }
        }
        assert_eq!(n_reached, self.n_distinct(), "rows reached from the entry, of all that differ");
    }
}

/// Parts on their way into a file.
struct Parts<W: Write + Seek>(Writer<W>);

impl<W: Write + Seek> Parts<W> {
    fn words(&mut self, words: impl IntoIterator<Item = u32>) -> io::Result<()> {
        words.into_iter().try_for_each(|word| self.0.write_all(&word.to_le_bytes()))
    }

    /// Words, then zeros up to the next part.
    fn part(&mut self, words: impl IntoIterator<Item = u32>) -> io::Result<()> {
        self.words(words)?;
        self.align()
    }

    fn align(&mut self) -> io::Result<()> {
        const ZEROS: [u8; ALIGNMENT_BYTES] = [0; ALIGNMENT_BYTES];
        let end = self.0.payload_bytes() as usize;
        self.0.write_all(&ZEROS[..end.next_multiple_of(ALIGNMENT_BYTES) - end])
    }
}
