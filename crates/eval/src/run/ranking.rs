//! The results of one query, and their order.

use std::cmp::Ordering;

/// The results of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The query's id.
    pub query: String,
    /// In trec_eval's order, best first; no document is there twice.
    pub hits: Vec<Hit>,
}

/// A document with its score; larger is better.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The document's id.
    pub document: String,
    /// Finite. What decides the order is this number as a 32-bit float.
    pub score: f64,
}

impl Ranking {
    /// Puts hits in trec_eval's order.
    pub fn new(query: impl Into<String>, hits: Vec<Hit>) -> Self {
        let mut ranking = Self { query: query.into(), hits };
        ranking.sort();
        ranking
    }

    pub(crate) fn sort(&mut self) {
        self.hits.sort_by(Hit::best_first);
    }
}

impl Hit {
    /// A document and its score.
    pub fn new(document: impl Into<String>, score: f64) -> Self {
        Self { document: document.into(), score }
    }

    /// Larger scores first; of equal scores, 0 and -0 among them, the document whose id is larger by bytes.
    pub fn best_first(&self, other: &Self) -> Ordering {
        let (a, b) = (self.score as f32, other.score as f32);
        b.partial_cmp(&a).unwrap_or(Ordering::Equal).then_with(|| other.document.cmp(&self.document))
    }
}
