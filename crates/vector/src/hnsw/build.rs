//! Builds a graph: rows are added in batches, each row searched for in the graph as it was before its batch.
//!
//! Source: Malkov and Yashunin 2018, algorithm 1; batches against a graph that stands still are those of ParlayANN
//! (Manohar et al. 2024), where they make construction parallel without locks and the outcome the same for any number
//! of threads.
//! Differs: batches are of one size, because a row is also compared with all rows of its batch that come before it: it
//! sees what it would see if rows were added one by one, and the first batch needs no graph. Distances are those of
//! codes.
//! Cost: about `15 * ef_construction` code distances a row; memory, codes of one byte a dimension and the lists.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::beam::{Candidate, Pool, Scratch};
use super::config::HnswConfig;
use super::draft::Draft;
use super::graph::Graph;
use super::order::Order;
use super::repair::repair;
use crate::codes::{Codes, padded};
use crate::threads::Threads;
use crate::{Error, Result, Rows};

/// Rows of a batch: enough work for many threads, too few for the comparisons among themselves to count.
const BATCH_ROWS: usize = 512;

/// Rows that a thread takes at a time.
const SPAN_ROWS: usize = 8;

/// Bytes of memory that a row takes beside its lists and codes: places in the order, marks and degrees.
const BESIDE_BYTES: usize = 96;

/// Bytes of memory that [`build`] takes for each row, the file of the rows not counted.
pub const fn row_memory_bytes(dimensions: usize, config: &HnswConfig) -> usize {
    padded(dimensions) + size_of::<u32>() * (2 * config.m + 2) + BESIDE_BYTES
}

/// Builds the graph of these rows, with so many threads; 0 takes those of the current rayon pool. Their number changes
/// no bit. `progress` is told the number of rows done, now and then up to N, and may stop the work.
///
/// # Errors
/// [`Error::Setting`] for the configuration or the number of rows, [`Error::Corrupt`] for the rows, which are all
/// verified, [`Error::Threads`]; [`Error::Cancelled`] where `progress` breaks.
pub fn build(
    rows: &Rows,
    config: &HnswConfig,
    n_threads: usize,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Graph> {
    config.check()?;
    let threads = Threads::new(n_threads)?;
    rows.verify()?;
    let order = Order::new(rows, config.m)?;
    let codes = threads.run(|| Codes::of(rows, &order.rows))?;
    let draft = Draft::new(codes, &order, config);
    let mut builder = Builder { draft, order, config: *config, pool: Pool::default() };
    let n_nodes = builder.order.rows.len();
    for start in (0..n_nodes).step_by(BATCH_ROWS) {
        let end = n_nodes.min(start + BATCH_ROWS);
        threads.run(|| builder.add(start as u32, end as u32))?;
        // Twins are done with the last batch.
        if progress(if end == n_nodes { rows.len() } else { end }).is_break() {
            return Err(Error::Cancelled);
        }
    }
    let Builder { mut draft, order, pool, .. } = builder;
    let repairs = pool.with(|scratch| repair(&mut draft, scratch))?;
    let graph = Graph::new(*config, rows, draft, order, repairs);
    graph.assert_invariants();
    Ok(graph)
}

struct Builder {
    draft: Draft,
    order: Order,
    config: HnswConfig,
    pool: Pool<Scratch>,
}

/// The neighbours that were chosen for a node, from layer 0 up to its level.
type Choice = Vec<Vec<u32>>;

impl Builder {
    /// Adds the nodes of a batch.
    fn add(&mut self, start: u32, end: u32) -> Result<()> {
        let nodes: Vec<u32> = (start..end).collect();
        let spans: Vec<Result<Vec<Choice>>> = nodes
            .par_chunks(SPAN_ROWS)
            .map(|span| self.pool.with(|scratch| span.iter().map(|&node| self.choose(start, node, scratch)).collect()))
            .collect();
        let mut links: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.draft.layers.len()];
        let choices = spans.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten();
        for (node, choice) in nodes.into_iter().zip(choices) {
            for (layer, list) in choice.into_iter().enumerate() {
                self.draft.layers[layer].set(node, &list);
                links[layer].extend(list.into_iter().map(|neighbor| (neighbor, node)));
            }
        }
        links.into_iter().enumerate().try_for_each(|(layer, links)| self.link_back(layer, links))
    }

    /// The neighbours of a node among those before its batch, which the graph knows, and those of its batch before
    /// itself.
    fn choose(&self, start: u32, node: u32, scratch: &mut Scratch) -> Result<Choice> {
        let (draft, ef) = (&self.draft, self.config.ef_construction);
        let target = draft.codes.target(node);
        let of_batch = draft.ranked(node, &(start..node).collect::<Vec<_>>())?;
        let level = self.order.level(node);
        let mut choice = vec![Vec::new(); level + 1];
        let mut nearest = match start {
            0 => None,
            _ => draft.ranked(node, &[0])?.pop(),
        };
        for layer in (0..draft.layers.len()).rev() {
            let space = draft.layer(layer, target);
            if let Some(from) = nearest {
                nearest = Some(scratch.descend(&space, from)?);
            }
            if layer > level {
                continue;
            }
            let n_nodes = self.order.layers[layer];
            let mut candidates: Vec<Candidate> = Vec::with_capacity(ef + of_batch.len());
            if let Some(from) = nearest {
                scratch.walk(&space, n_nodes.min(start as usize), &[from.node()], ef, usize::MAX)?;
                candidates.extend(scratch.results());
                nearest = candidates.first().copied();
            }
            candidates.extend(of_batch.iter().filter(|candidate| (candidate.node() as usize) < n_nodes));
            candidates.sort_unstable();
            let n_chosen = self.config.degree_chosen(layer);
            choice[layer] = draft.select(candidates.into_iter().take(ef), n_chosen, n_chosen)?;
        }
        Ok(choice)
    }

    /// Links nodes from the neighbours that they chose: `links` are (neighbour, node). Lists that overflow are chosen
    /// anew.
    fn link_back(&mut self, layer: usize, mut links: Vec<(u32, u32)>) -> Result<()> {
        links.sort_unstable();
        let groups: Vec<&[(u32, u32)]> = links.chunk_by(|a, b| a.0 == b.0).collect();
        let (draft, degree_max, degree_left) =
            (&self.draft, self.config.degree_max(layer), self.config.degree_left(layer));
        let lists: Vec<Result<Vec<u32>>> = groups
            .par_iter()
            .map(|group| {
                let neighbor = group[0].0;
                let mut list = draft.layers[layer].list(neighbor).to_vec();
                list.extend(group.iter().map(|(_, node)| node));
                if list.len() > degree_max {
                    list = draft.select(draft.ranked(neighbor, &list)?.into_iter(), degree_max, degree_left)?;
                }
                Ok(list)
            })
            .collect();
        for (group, list) in groups.iter().zip(lists) {
            self.draft.layers[layer].set(group[0].0, &list?);
        }
        Ok(())
    }
}
