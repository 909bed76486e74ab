//! Probes: what a benchmark needs of a collection that no query does.

use cento_lexical::Unit;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::retrieve::searcher::Searcher;
use crate::source::refs::ChunkRef;
use crate::source::scope::Scopes;
use crate::source::seam::{DenseQueries, Scan};

/// A row of a collection, as probes tell rows apart.
pub type RowId = ChunkRef;

/// The way [`Searcher::nearest`] looks for vectors.
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
    /// The `k` rows nearest to a unit vector, nearest first, ties by row; by their plain vectors where they have both
    /// kinds.
    pub fn nearest(&self, query: &[f32], k: usize, how: Nearest) -> Result<Vec<RowId>> {
        let (scan, ef) = match how {
            Nearest::Exact => (Scan::Exact, 0),
            Nearest::Graph { ef } => (Scan::Auto, ef),
        };
        let near = self.source.nearest(&DenseQueries {
            vectors: query,
            scopes: Scopes::default(),
            unit: Unit::Row,
            column: self.manifest().config.pooling.columns()[0],
            depth: k,
            scan,
            ef,
            accelerator: None,
            cancel: &Cancel::default(),
        })?;
        let found = near.into_iter().flat_map(|near| near.ranking);
        let mut found: Vec<(RowId, f64)> = found.map(|(ranked, score)| (ranked.chunk, score)).collect();
        found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(found.into_iter().take(k).map(|(row, _)| row).collect())
    }

    /// Rows that a graph reaches, and all rows that answer.
    pub fn graph_rows(&self) -> (u64, u64) {
        let description = self.source.describe();
        (description.n_graph_rows, description.n_rows)
    }

    /// The texts of `n` chunks, evenly spread over the collection; all of them where it has fewer.
    pub fn sample_texts(&self, n: usize) -> Result<Vec<String>> {
        let n_rows = self.source.describe().n_rows;
        let n = (n as u64).min(n_rows);
        let positions: Vec<u64> = (0..n).map(|at| at * n_rows / n).collect();
        let chunks = self.source.chunks(&self.source.at(&positions)?)?;
        Ok(chunks.into_iter().map(|chunk| chunk.text).collect())
    }
}
