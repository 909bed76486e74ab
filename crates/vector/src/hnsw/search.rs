//! Searches a frozen graph for the rows nearest to a query.
//!
//! Down the upper layers the search goes to the nearest row it can see; in layer 0 it walks with a beam from there and from
//! the entry, from which every row can be reached. A filter keeps rows out of the results, not out of the walk. Where a walk
//! would visit more rows than an exact scan, or has, the scan answers: so there are always as many results as rows allow.

use roaring::RoaringBitmap;

use super::beam::{Scratch, Space, Walk};
use super::frozen::FrozenGraph;
use crate::rows::{Query, Rows};
use crate::{Error, Neighbor, Result, exact};

/// Rows that a walk compares with the query for each result it keeps. Measured at an `m` of 16, on clustered rows and on those
/// of a real model: 14 at an `ef` of 16, 7 to 8 at 64, 6 at 256.
const VISITS_PER_RESULT: u64 = 8;

/// How a search is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// By a walk through the graph: approximately.
    Graph,
    /// By comparing the query with all allowed rows: exactly.
    Scan,
}

/// The way that is expected to be the shorter: a scan of the allowed rows, or a walk that keeps the `max(ef, k)` nearest
/// allowed rows of those that it passes.
pub fn plan(n_rows: usize, n_allowed: u64, k: usize, ef: usize) -> Path {
    let n_kept = ef.max(k) as u64;
    // Of the rows that a walk passes, a share of n_allowed / n_rows is kept.
    let n_visits = u128::from(n_kept) * u128::from(VISITS_PER_RESULT) * n_rows as u128;
    if n_visits >= u128::from(n_allowed) * u128::from(n_allowed) { Path::Scan } else { Path::Graph }
}

/// About the k nearest of the allowed rows, nearest first, equal distances by row: exactly as many as there are, up to k.
///
/// `ef` is the width of the beam, at least k: the larger, the better and the slower. `allowed` keeps rows out of the results;
/// bits past the last row mean nothing. Distances are those of [`exact`], bit for bit.
///
/// # Errors
/// [`Error::OtherRows`], [`Error::Dimension`], [`Error::NotFinite`], [`Error::NotUnit`], [`Error::Corrupt`].
pub fn search(
    graph: &FrozenGraph,
    rows: &Rows,
    query: &[f32],
    k: usize,
    ef: usize,
    allowed: Option<&RoaringBitmap>,
) -> Result<Vec<Neighbor>> {
    search_query(graph, rows, &rows.query(query, 0)?, k, ef, allowed)
}

pub(crate) fn search_query(
    graph: &FrozenGraph,
    rows: &Rows,
    query: &Query,
    k: usize,
    ef: usize,
    allowed: Option<&RoaringBitmap>,
) -> Result<Vec<Neighbor>> {
    check_rows(graph, rows)?;
    let n_allowed = match allowed {
        Some(allowed) => allowed.range_cardinality(..rows.len() as u32),
        None => rows.len() as u64,
    };
    if k == 0 || n_allowed == 0 {
        return Ok(Vec::new());
    }
    let found = match plan(rows.len(), n_allowed, k, ef) {
        Path::Graph => walk(graph, rows, query, k, ef, allowed, n_allowed as usize)?,
        Path::Scan => None,
    };
    let mut found = match found {
        Some(found) => found,
        None => exact::search_query(rows, query, k, allowed)?,
    };
    found.truncate(k);
    Ok(found)
}

/// A graph belongs to the rows of its own segment.
pub(crate) fn check_rows(graph: &FrozenGraph, rows: &Rows) -> Result<()> {
    if graph.len() != rows.len() {
        let path = graph.file().path().to_owned();
        return Err(Error::OtherRows { path, graph: graph.len(), rows: rows.len() });
    }
    Ok(())
}

/// The results of a walk, or `None` where it gave up or ended with fewer than there are.
fn walk(
    graph: &FrozenGraph,
    rows: &Rows,
    query: &Query,
    k: usize,
    ef: usize,
    allowed: Option<&RoaringBitmap>,
    n_allowed: usize,
) -> Result<Option<Vec<Neighbor>>> {
    let space = Frozen { graph, rows, query, allowed };
    let start = descend(&space)?;
    graph.with_scratch(|scratch: &mut Scratch| {
        let walk = scratch.walk(&space, rows.len(), &[start, graph.entry()], ef.max(k), n_allowed)?;
        let mut found = Vec::new();
        for Neighbor { row, distance } in scratch.results() {
            let equal = [row].into_iter().chain(graph.twins(row)?.iter().copied());
            let equal = equal.filter(|row| allowed.is_none_or(|allowed| allowed.contains(*row)));
            found.extend(equal.map(|row| Neighbor { row, distance }));
        }
        if walk == Walk::GaveUp || found.len() < k.min(n_allowed) {
            return Ok(None);
        }
        found.sort_unstable();
        Ok(Some(found))
    })
}

/// The row of layer 1 that is nearest to the query, as far as greedy steps through the upper layers find it.
fn descend(space: &Frozen<'_>) -> Result<u32> {
    let mut distances = Vec::new();
    space.distances(&[space.graph.entry()], &mut distances)?;
    let mut nearest = Neighbor { row: space.graph.entry(), distance: distances[0] };
    for layer in (0..space.graph.n_upper()).rev() {
        loop {
            let neighbors = space.graph.upper_neighbors(layer, nearest.row)?;
            distances.clear();
            space.distances(neighbors, &mut distances)?;
            let candidates = neighbors.iter().zip(&distances);
            let best = candidates.map(|(&row, &distance)| Neighbor { row, distance }).min();
            match best {
                Some(best) if best < nearest => nearest = best,
                _ => break,
            }
        }
    }
    Ok(nearest.row)
}

/// Layer 0 of a frozen graph, searched for a query.
struct Frozen<'a> {
    graph: &'a FrozenGraph,
    rows: &'a Rows,
    query: &'a Query,
    allowed: Option<&'a RoaringBitmap>,
}

impl Space for Frozen<'_> {
    #[inline]
    fn neighbors(&self, row: u32) -> Result<&[u32]> {
        self.graph.neighbors(row)
    }

    #[inline]
    fn distances(&self, rows: &[u32], out: &mut Vec<f32>) -> Result<()> {
        self.rows.distances(self.query, rows, out)
    }

    /// A row stands for its twins too.
    #[inline]
    fn admits(&self, row: u32) -> Result<bool> {
        let Some(allowed) = self.allowed else { return Ok(true) };
        Ok(allowed.contains(row) || self.graph.twins(row)?.iter().any(|&twin| allowed.contains(twin)))
    }
}
