//! How good a graph is, measured against the exact scan.
//!
//! The sample is every N/s-th row, so the same graph gives the same report.
//! Of equal rows only the one that stands in the graph counts, except in the sample.
//! Cost: a search for each row of the sample, a scan of all rows for each 16 rows of the smaller exact sample (the
//! comparisons of all of them), and one pass over all lists. 1.5 s for 1,000,000 rows of 384 dimensions on two cores.

use std::collections::VecDeque;

use serde::Serialize;

use super::frozen::FrozenGraph;
use super::search::{Wanted, check_rows, search_query};
use crate::rows::Query;
use crate::topk::TopK;
use crate::{NEVER, Neighbor, Result, Rows, exact};

/// Neighbours that recall is measured on.
const RECALL_K: usize = 10;

/// Rows of the exact sample that are compared with all rows at a time: their distances are held in memory.
const EXACT_QUERIES: usize = 16;

/// From here on, rows named by different numbers of lists are counted together.
pub const IN_DEGREE_COUNTED: usize = 64;

/// The extent of what [`health`] measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthConfig {
    /// Rows that are searched for.
    pub n_sample: usize,
    /// Rows whose true neighbours are looked for too.
    pub n_exact: usize,
    /// The beam that they are searched with.
    pub ef: usize,
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self { n_sample: 1_000, n_exact: 64, ef: 64 }
    }
}

/// A report on a graph. Shares are in `0..=1`; an empty graph is in perfect health.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Health {
    /// N.
    pub n_rows: usize,
    /// Rows that differ from one another: those that stand in the graph.
    pub n_distinct: usize,
    /// Rows that cannot be reached from the entry in layer 0.
    pub n_unreachable: usize,
    /// The share of rows that can be reached.
    pub reachable: f64,
    /// Edges of layer 0.
    pub n_edges: usize,
    /// The fewest lists that name one row.
    pub in_degree_min: usize,
    /// Counts of rows that are named by 0, 1, 2… lists; the last number is of those named by [`IN_DEGREE_COUNTED`] or
    /// more.
    pub in_degrees: Vec<usize>,
    /// The longest list.
    pub out_degree_max: usize,
    /// The beam of the searches.
    pub ef: usize,
    /// Rows that were searched for.
    pub n_sample: usize,
    /// The share of them that was found, or another row as near, as the nearest to itself.
    pub self_retrieval: f64,
    /// Rows whose true neighbours were looked for.
    pub n_exact: usize,
    /// The share of their 10 nearest rows (or all, if fewer) that a search finds; a tied row counts.
    pub recall_at_10: f64,
}

/// Examines a graph.
///
/// # Errors
/// [`Error::OtherRows`](crate::Error::OtherRows), [`Error::Corrupt`](crate::Error::Corrupt).
pub fn health(graph: &FrozenGraph, rows: &Rows, config: &HealthConfig) -> Result<Health> {
    check_rows(graph, rows)?;
    let n_rows = graph.len();
    let mut in_degree = vec![0_usize; n_rows];
    let (mut n_edges, mut out_degree_max) = (0, 0);
    for row in 0..n_rows as u32 {
        let list = graph.neighbors(row)?;
        list.iter().for_each(|&named| in_degree[named as usize] += 1);
        n_edges += list.len();
        out_degree_max = out_degree_max.max(list.len());
    }
    let mut is_twin = vec![false; n_rows];
    graph.all_twins()?.into_iter().for_each(|row| is_twin[row as usize] = true);
    let in_degree: Vec<usize> =
        in_degree.into_iter().zip(&is_twin).filter(|(_, twin)| !**twin).map(|(n, _)| n).collect();
    let mut in_degrees = vec![0; IN_DEGREE_COUNTED + 1];
    in_degree.iter().for_each(|&degree| in_degrees[degree.min(IN_DEGREE_COUNTED)] += 1);

    let n_distinct = in_degree.len();
    let n_unreachable = is_twin.iter().zip(reached(graph)?).filter(|(twin, reached)| !**twin && !reached).count();
    Ok(Health {
        n_rows,
        n_distinct,
        n_unreachable,
        reachable: share(n_distinct - n_unreachable, n_distinct),
        n_edges,
        in_degree_min: in_degree.iter().copied().min().unwrap_or(0),
        in_degrees,
        out_degree_max,
        ef: config.ef,
        n_sample: config.n_sample.min(n_rows),
        self_retrieval: self_retrieval(graph, rows, config)?,
        n_exact: config.n_exact.min(n_rows),
        recall_at_10: recall(graph, rows, config)?,
    })
}

fn self_retrieval(graph: &FrozenGraph, rows: &Rows, config: &HealthConfig) -> Result<f64> {
    let sample = sample(rows.len(), config.n_sample);
    let (mut n_found, mut itself) = (0, Vec::new());
    for &row in &sample {
        let query = rows.row_as_query(row)?;
        itself.clear();
        rows.distances(&query, &[row], &mut itself)?;
        let found = search_query(graph, rows, &query, &Wanted::new(1, config.ef))?.neighbors;
        n_found += usize::from(found.first().is_some_and(|first| first.distance <= itself[0]));
    }
    Ok(share(n_found, sample.len()))
}

fn recall(graph: &FrozenGraph, rows: &Rows, config: &HealthConfig) -> Result<f64> {
    let k = RECALL_K.min(rows.len());
    let mut distances = vec![0.0; EXACT_QUERIES.min(config.n_exact) * rows.len()];
    let (mut n_found, mut n_nearest) = (0, 0);
    for chosen in sample(rows.len(), config.n_exact).chunks(EXACT_QUERIES) {
        let queries: Vec<Query> = chosen.iter().map(|&row| rows.row_as_query(row)).collect::<Result<_>>()?;
        let distances = &mut distances[..chosen.len() * rows.len()];
        exact::distances_of(rows, &queries, distances, NEVER)?;
        for (query, distances) in queries.iter().zip(distances.chunks_exact(rows.len())) {
            let mut nearest = TopK::new(k);
            (0..).zip(distances).for_each(|(row, &distance)| nearest.push(Neighbor { row, distance }));
            let cut = nearest.into_sorted()[k - 1].distance;
            let found = search_query(graph, rows, query, &Wanted::new(k, config.ef))?.neighbors;
            n_found += found.iter().filter(|neighbor| neighbor.distance <= cut).count();
            n_nearest += k;
        }
    }
    Ok(share(n_found, n_nearest))
}

/// Rows at equal steps.
fn sample(n_rows: usize, n_sample: usize) -> Vec<u32> {
    let n_sample = n_sample.min(n_rows);
    (0..n_sample).map(|i| (i as u64 * n_rows as u64 / n_sample as u64) as u32).collect()
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// The rows that can be reached from the entry in layer 0.
fn reached(graph: &FrozenGraph) -> Result<Vec<bool>> {
    let mut reached = vec![false; graph.len()];
    let mut queue = VecDeque::new();
    if let Some(entry) = reached.get_mut(graph.entry() as usize) {
        *entry = true;
        queue.push_back(graph.entry());
    }
    while let Some(row) = queue.pop_front() {
        for &next in graph.neighbors(row)? {
            if !std::mem::replace(&mut reached[next as usize], true) {
                queue.push_back(next);
            }
        }
    }
    Ok(reached)
}
