//! The health of a graph: how good it was when it was made, and what it must be to be published.
//!
//! It is measured with a beam of `EF`, a sixteenth of the narrowest that a search walks with
//! ([`CANDIDATE_DEPTH`](crate::format::config::CANDIDATE_DEPTH)): at that one every graph looks alike.

use cento_vector::{Rows, hnsw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::config::VectorColumn;

/// Width of the beam.
const EF: usize = 64;

/// Rows that are searched for. Each costs an exact scan too.
const SAMPLE_ROWS: usize = 200;

/// Least share of rows that find themselves: a row that does not is lost to every question close to it.
const SELF_RETRIEVAL_MIN: f64 = 0.95;

/// Least share of the ten nearest. Sets known to be hard reach .8 with this beam, and .95 with that of a search.
const RECALL_MIN: f64 = 0.8;

/// The quality of a graph, measured against the exact scan when it was made. Shares have six digits, so that they are
/// read back from JSON as they were written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphHealth {
    /// The vectors it links.
    pub vectors: VectorColumn,
    /// Its rows.
    pub n_rows: usize,
    /// Rows that differ from one another: those that stand in the graph.
    pub n_distinct: usize,
    /// Rows that cannot be reached from the entry.
    pub n_unreachable: usize,
    /// The fewest lists that name one row.
    pub in_degree_min: usize,
    /// Counts of rows that are named by 0, 1, 2… lists.
    pub in_degrees: Vec<usize>,
    /// The longest list.
    pub out_degree_max: usize,
    /// Rows that were searched for.
    pub n_sample: usize,
    /// The beam they were searched with.
    pub ef: usize,
    /// The share of the sample that found itself first.
    pub self_retrieval: f64,
    /// The share of the sample's ten nearest rows that were found.
    pub recall_at_10: f64,
}

impl GraphHealth {
    /// Examines a graph over these rows.
    pub fn measure(vectors: VectorColumn, graph: &hnsw::FrozenGraph, rows: &Rows) -> Result<Self> {
        let health =
            hnsw::health(graph, rows, &hnsw::HealthConfig { n_sample: SAMPLE_ROWS, n_exact: SAMPLE_ROWS, ef: EF })?;
        let n_degrees = health.in_degrees.iter().rposition(|&n| n > 0).map_or(0, |last| last + 1);
        Ok(Self {
            vectors,
            n_rows: health.n_rows,
            n_distinct: health.n_distinct,
            n_unreachable: health.n_unreachable,
            in_degree_min: health.in_degree_min,
            in_degrees: health.in_degrees[..n_degrees].to_vec(),
            out_degree_max: health.out_degree_max,
            n_sample: health.n_sample,
            ef: EF,
            self_retrieval: six_digits(health.self_retrieval),
            recall_at_10: six_digits(health.recall_at_10),
        })
    }

    /// Refuses a graph that would lose answers.
    pub fn check(&self) -> Result<()> {
        let refuse = |figure, value: f64, floor: f64| {
            let (vectors, n_rows) = (self.vectors, self.n_rows);
            Err(Error::GraphHealth { vectors, n_rows, figure, value, floor })
        };
        if self.n_unreachable > 0 {
            return refuse(
                "share of rows that can be reached",
                share(self.n_distinct - self.n_unreachable, self.n_distinct),
                1.0,
            );
        }
        if self.self_retrieval < SELF_RETRIEVAL_MIN {
            return refuse("share of rows that find themselves", self.self_retrieval, SELF_RETRIEVAL_MIN);
        }
        if self.recall_at_10 < RECALL_MIN {
            return refuse("recall@10", self.recall_at_10, RECALL_MIN);
        }
        Ok(())
    }
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

fn six_digits(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> GraphHealth {
        GraphHealth {
            vectors: VectorColumn::Plain,
            n_rows: 300,
            n_distinct: 299,
            n_unreachable: 0,
            in_degree_min: 3,
            in_degrees: vec![0, 0, 0, 299],
            out_degree_max: 32,
            n_sample: 200,
            ef: EF,
            self_retrieval: six_digits(199.0 / 200.0),
            recall_at_10: six_digits(6.0 / 7.0),
        }
    }

    #[test]
    fn a_graph_below_a_floor_is_refused_with_the_figure_and_the_floor() {
        healthy().check().unwrap();
        let cases = [
            (GraphHealth { n_unreachable: 1, ..healthy() }, "reached is 0.9967"),
            (GraphHealth { self_retrieval: 0.94, ..healthy() }, "themselves is 0.9400, below the floor of 0.95"),
            (GraphHealth { recall_at_10: 0.79, ..healthy() }, "recall@10 is 0.7900, below the floor of 0.8"),
        ];
        for (health, words) in cases {
            let error = health.check().unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("over 300 rows"), "{error}");
        }
    }

    #[test]
    fn a_certificate_reads_back_as_it_was_written() {
        for n in 1..=2000 {
            let health = GraphHealth { recall_at_10: six_digits(f64::from(n) / 2000.0), ..healthy() };
            let json = serde_json::to_string(&health).unwrap();
            assert_eq!(serde_json::from_str::<GraphHealth>(&json).unwrap(), health);
        }
    }
}
