//! Probes: what a benchmark needs of a collection that no query does.

use cento_vector::{Neighbor, exact, hnsw};

use crate::error::Result;
use crate::retrieve::searcher::Searcher;

/// A row of a collection, as probes tell rows apart: segment and row there.
pub type RowId = (usize, u32);

/// How [`Searcher::nearest`] looks for vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearest {
    /// Every row is read.
    Exact,
    /// Segments with a graph are searched with this width (at least `k`), the others are scanned.
    Graph {
        /// Candidates kept while the graph is walked.
        ef: usize,
    },
}

impl Searcher {
    /// The `k` rows nearest to a unit vector, nearest first, ties by row; by their plain vectors where they have both kinds.
    pub fn nearest(&self, query: &[f32], k: usize, how: Nearest) -> Result<Vec<RowId>> {
        let mut found: Vec<(Neighbor, usize)> = Vec::new();
        for (at, segment) in self.snapshot.segments.iter().enumerate() {
            let (live, column) = (segment.live.as_ref(), &segment.columns[0]);
            let neighbors = match (how, &column.graph) {
                (Nearest::Graph { ef }, Some(graph)) => {
                    hnsw::search(graph, &column.rows, query, k, ef.max(k), live)?.neighbors
                }
                _ => exact::search(&column.rows, query, k, live)?,
            };
            found.extend(neighbors.into_iter().map(|neighbor| (neighbor, at)));
        }
        found.sort_unstable_by(|a, b| a.0.distance.total_cmp(&b.0.distance).then((a.1, a.0.row).cmp(&(b.1, b.0.row))));
        Ok(found.into_iter().take(k).map(|(neighbor, at)| (at, neighbor.row)).collect())
    }

    /// Rows that a graph reaches, and all rows that answer.
    pub fn graph_rows(&self) -> (u64, u64) {
        let rows = |segment: &cento_collection::format::segment::Segment| segment.n_live_rows() as u64;
        let segments = &self.snapshot.segments;
        (
            segments.iter().filter(|segment| segment.columns[0].graph.is_some()).map(rows).sum(),
            segments.iter().map(rows).sum(),
        )
    }

    /// The texts of `n` chunks, evenly spread over the collection; all of them where it has fewer.
    pub fn sample_texts(&self, n: usize) -> Result<Vec<String>> {
        let mut rows: Vec<RowId> = Vec::new();
        for (at, segment) in self.snapshot.segments.iter().enumerate() {
            let alive = |row: &u32| segment.live.as_ref().is_none_or(|live| live.contains(*row));
            rows.extend((0..segment.chunks.len() as u32).filter(alive).map(|row| (at, row)));
        }
        let n = n.min(rows.len());
        let text = |at: usize| {
            let (segment, row) = rows[at * rows.len() / n];
            let segment = &self.snapshot.segments[segment];
            let chunk = segment.chunks.record(row as usize)?;
            Ok(segment.text(&segment.document(chunk.document)?, chunk.start..chunk.end)?)
        };
        (0..n).map(text).collect()
    }
}
