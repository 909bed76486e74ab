//! Searches a frozen graph for the rows nearest to a query.
//!
//! Down the upper layers the search goes to the nearest row it can see; in layer 0 it walks with a beam from there and
//! from the entry, from which every row can be reached. The walk goes by codes; what it finds is ranked by the rows. A
//! filter keeps rows out of the results, not out of the walk. Where a walk would visit more rows than an exact scan, or
//! has, the scan answers: so there are always as many results as rows allow.

use rayon::prelude::*;
use roaring::RoaringBitmap;

use super::beam::{Candidate, Desk, Scratch, Space, Walk};
use super::frozen::FrozenGraph;
use crate::codes::{self, Coded, Target};
use crate::distance::{Kernel, prefetch};
use crate::rows::{Query, Rows};
use crate::stop::{NEVER, Stop};
use crate::threads::Threads;
use crate::{Error, Neighbor, Result, exact};

/// Rows that a walk compares with the query for each result it keeps. Measured at an `m` of 16, on clustered rows and
/// on those of a real model: 14 at an `ef` of 16, 7 to 8 at 64, 6 at 256.
const VISITS_PER_RESULT: u64 = 8;

/// A row whose code distance is so many standard errors above the k-th's is not looked at again.
const RANKED_ERRORS: f32 = 4.0;

/// The way a search is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// By a walk through the graph: approximately.
    Graph,
    /// By comparing the query with all allowed rows: exactly.
    Scan,
}

/// A question to a graph.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Rows wanted.
    pub k: usize,
    /// Width of the beam; `k` where that is more. The larger, the better and the slower.
    pub ef: usize,
    /// Rows that may be results; `None` for all. Bits past the last row mean nothing.
    pub allowed: Option<&'a RoaringBitmap>,
    /// Looked at while the graph is walked.
    pub stop: Stop<'a>,
}

impl Wanted<'_> {
    /// The `k` nearest of all rows.
    #[must_use]
    pub fn new(k: usize, ef: usize) -> Self {
        Self { k, ef, allowed: None, stop: NEVER }
    }
}

impl std::fmt::Debug for Wanted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { k, ef, allowed, stop: _ } = self;
        f.debug_struct("Wanted").field("k", k).field("ef", ef).field("allowed", allowed).finish_non_exhaustive()
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The rows, nearest first, equal distances by row.
    pub neighbors: Vec<Neighbor>,
    /// The way they were found.
    pub path: Path,
}

/// The way that is expected to be the shorter: a scan of the allowed rows, or a walk that keeps the `max(ef, k)`
/// nearest allowed rows of those that it passes.
pub fn plan(n_rows: usize, n_allowed: u64, k: usize, ef: usize) -> Path {
    let n_kept = ef.max(k) as u64;
    // Of the rows that a walk passes, a share of n_allowed / n_rows is kept.
    let n_visits = u128::from(n_kept) * u128::from(VISITS_PER_RESULT) * n_rows as u128;
    if n_visits >= u128::from(n_allowed) * u128::from(n_allowed) { Path::Scan } else { Path::Graph }
}

/// About the k nearest of the allowed rows: exactly as many as there are, up to k.
///
/// Distances are those of [`exact`], bit for bit.
///
/// # Errors
/// [`Error::OtherRows`], [`Error::Dimension`], [`Error::NotFinite`], [`Error::NotUnit`], [`Error::Corrupt`],
/// [`Error::Cancelled`].
pub fn search(graph: &FrozenGraph, rows: &Rows, query: &[f32], wanted: &Wanted<'_>) -> Result<Found> {
    search_query(graph, rows, &rows.query(query, 0)?, wanted)
}

/// The results of [`search`] for each query, with so many threads; 0 takes those of the current rayon pool.
///
/// Shapes: queries `[Q, D]`; Q answers, in their order.
///
/// # Errors
/// As [`search`], and [`Error::Threads`]. No query is searched for if one of them is no unit vector.
pub fn search_batch(
    graph: &FrozenGraph,
    rows: &Rows,
    queries: &[f32],
    wanted: &Wanted<'_>,
    n_threads: usize,
) -> Result<Vec<Found>> {
    let vectors = queries.chunks_exact(rows.dimensions());
    if !vectors.remainder().is_empty() {
        let expected = vectors.len() * rows.dimensions();
        return Err(Error::Dimension { expected, received: queries.len() });
    }
    let queries: Vec<Query> = vectors.enumerate().map(|(q, query)| rows.query(query, q)).collect::<Result<_>>()?;
    Threads::new(n_threads)?.run(|| queries.par_iter().map(|query| search_query(graph, rows, query, wanted)).collect())
}

pub(crate) fn search_query(graph: &FrozenGraph, rows: &Rows, query: &Query, wanted: &Wanted<'_>) -> Result<Found> {
    check_rows(graph, rows)?;
    let &Wanted { k, ef, allowed, stop } = wanted;
    let n_allowed = match allowed {
        Some(allowed) => allowed.range_cardinality(..rows.len() as u32),
        None => rows.len() as u64,
    };
    if k == 0 || n_allowed == 0 {
        return Ok(Found { neighbors: Vec::new(), path: Path::Scan });
    }
    if plan(rows.len(), n_allowed, k, ef) == Path::Graph {
        let found = graph.desks.with(|desk| desk.walk(graph, rows, query, wanted, n_allowed as usize))?;
        if let Some(mut neighbors) = found {
            neighbors.truncate(k);
            return Ok(Found { neighbors, path: Path::Graph });
        }
    }
    let mut neighbors = exact::search_query(rows, query, k, allowed, stop)?;
    neighbors.truncate(k);
    Ok(Found { neighbors, path: Path::Scan })
}

/// A graph belongs to the rows of its own segment.
pub(crate) fn check_rows(graph: &FrozenGraph, rows: &Rows) -> Result<()> {
    if graph.len() != rows.len() {
        let path = graph.file().path().to_owned();
        return Err(Error::OtherRows { path, graph: graph.len(), rows: rows.len() });
    }
    if graph.dimensions() != rows.dimensions() {
        return Err(graph.file().corrupt(0, "the graph and the rows differ in their dimensions"));
    }
    Ok(())
}

impl Desk {
    /// The results of a walk, or `None` where it gave up or ended with fewer than there are.
    fn walk(
        &mut self,
        graph: &FrozenGraph,
        rows: &Rows,
        query: &Query,
        wanted: &Wanted<'_>,
        n_allowed: usize,
    ) -> Result<Option<Vec<Neighbor>>> {
        let &Wanted { k, ef, allowed, stop } = wanted;
        self.codes.resize(codes::padded(rows.dimensions()), 0);
        let scale = codes::encode(&query.padded()[..rows.dimensions()], &mut self.codes);
        let target = Target::new(&self.codes, scale);
        let codes = FrozenCodes { graph, scales: graph.scales()?, kernel: rows.kernel() };
        let start = descend(&codes, &target, &mut self.scratch)?;
        let (base, starts, ef) = (Base { codes, target, stop }, [start, graph.entry()], ef.max(k));
        let walk = match allowed {
            None => self.scratch.walk(&base, rows.len(), &starts, ef, n_allowed)?,
            Some(allowed) => {
                // A row stands for its twins too.
                let admits =
                    |row| Ok(allowed.contains(row) || graph.twins(row)?.iter().any(|&twin| allowed.contains(twin)));
                self.scratch.walk_admitted(&base, rows.len(), &starts, ef, n_allowed, admits)?
            }
        };
        if walk == Walk::GaveUp {
            return Ok(None);
        }
        let cut = match self.scratch.results().nth(k - 1) {
            Some(last) => {
                let error = codes::standard_error(scale, base.codes.scales[last.node() as usize]);
                last.distance() + RANKED_ERRORS * std::f32::consts::SQRT_2 * error
            }
            None => f32::INFINITY,
        };
        let near = self.scratch.results().take_while(|candidate| candidate.distance() <= cut);
        self.rows.clear();
        self.rows.extend(near.map(Candidate::node));
        self.distances.clear();
        rows.distances(query, &self.rows, &mut self.distances)?;
        let mut found = Vec::with_capacity(self.rows.len());
        for (&row, &distance) in self.rows.iter().zip(&self.distances) {
            let equal = [row].into_iter().chain(graph.twins(row)?.iter().copied());
            let equal = equal.filter(|row| allowed.is_none_or(|allowed| allowed.contains(*row)));
            found.extend(equal.map(|row| Neighbor { row, distance }));
        }
        if found.len() < k.min(n_allowed) {
            return Ok(None);
        }
        found.sort_unstable();
        Ok(Some(found))
    }
}

/// The row of layer 1 that is nearest to the target, as far as greedy steps through the upper layers find it.
fn descend(codes: &FrozenCodes<'_>, target: &Target<'_>, scratch: &mut Scratch) -> Result<u32> {
    let graph = codes.graph;
    let mut nearest = None;
    for layer in (0..graph.n_upper()).rev() {
        let space = Upper { codes: *codes, target: *target, layer };
        let from = match nearest {
            Some(nearest) => nearest,
            None => {
                let mut distances = Vec::with_capacity(1);
                space.distances(&[0], &mut distances)?;
                Candidate::new(0, distances[0])
            }
        };
        nearest = Some(scratch.descend(&space, from)?);
    }
    nearest.map_or(Ok(graph.entry()), |nearest| graph.row_of(nearest.node()))
}

/// The codes of a frozen graph, by row.
#[derive(Clone, Copy)]
struct FrozenCodes<'a> {
    graph: &'a FrozenGraph,
    scales: &'a [f32],
    kernel: Kernel,
}

impl Coded for FrozenCodes<'_> {
    #[inline]
    fn kernel(&self) -> Kernel {
        self.kernel
    }

    #[inline]
    fn place(&self, row: u32) -> &[u8] {
        self.graph.place_of_codes(row)
    }

    #[inline]
    fn coded(&self, row: u32) -> Result<(&[u8], f32)> {
        Ok((self.graph.codes(row)?, self.scales[row as usize]))
    }
}

/// Layer 0 of a frozen graph, searched for a target: its nodes are rows.
struct Base<'a> {
    codes: FrozenCodes<'a>,
    target: Target<'a>,
    stop: Stop<'a>,
}

impl Space for Base<'_> {
    #[inline]
    fn neighbors(&self, row: u32) -> Result<&[u32]> {
        self.codes.graph.slots(row)
    }

    #[inline]
    fn prefetch(&self, row: u32) {
        prefetch(self.codes.graph.place_of_slots(row));
    }

    #[inline]
    fn distances(&self, rows: &[u32], out: &mut Vec<f32>) -> Result<()> {
        self.codes.code_distances(&self.target, rows, out)
    }

    fn no_such_node(&self, named_by: u32) -> Error {
        self.codes.graph.no_such_row(named_by)
    }

    fn stop(&self) -> Stop<'_> {
        self.stop
    }
}

/// An upper layer of a frozen graph, searched for a target: its nodes are numbered on their own.
struct Upper<'a> {
    codes: FrozenCodes<'a>,
    target: Target<'a>,
    layer: usize,
}

impl Coded for Upper<'_> {
    fn kernel(&self) -> Kernel {
        self.codes.kernel
    }

    fn place(&self, node: u32) -> &[u8] {
        // Damage is told when the codes are read.
        self.codes.graph.row_of(node).map_or(&[], |row| self.codes.place(row))
    }

    fn coded(&self, node: u32) -> Result<(&[u8], f32)> {
        self.codes.coded(self.codes.graph.row_of(node)?)
    }
}

impl Space for Upper<'_> {
    fn neighbors(&self, node: u32) -> Result<&[u32]> {
        self.codes.graph.upper_neighbors(self.layer, node)
    }

    fn prefetch(&self, _: u32) {}

    fn distances(&self, nodes: &[u32], out: &mut Vec<f32>) -> Result<()> {
        self.code_distances(&self.target, nodes, out)
    }

    fn no_such_node(&self, node: u32) -> Error {
        unreachable!("the list of {node} was checked")
    }
}
