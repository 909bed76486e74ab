//! Measures of a ranking: how well its order agrees with the judgements of one query.
//!
//! Source: the names and parameters of ir_measures, `nDCG@10` or `P(rel=2)@5`; the definitions of trec_eval.
//! Range: `[0, 1]`, larger is better. A query without relevant documents is worth 0.
//! Cost: linear in the ranking.

mod ndcg;
mod recall;
mod precision;
mod average_precision;
mod reciprocal_rank;
mod success;
mod judged;
mod name;

pub use self::ndcg::Gain;

use crate::qrels::Judgements;
use crate::run::Hit;

/// A measure with its parameters, parsed from and written as in ir_measures.
///
/// ```
/// use cento_eval::measure::{Graded, Measure};
///
/// let measure: Measure = "ndcg@10".parse().unwrap();
/// assert_eq!(measure.to_string(), "nDCG@10");
/// let graded = Graded::new([None, Some(1)], [1, 0]);
/// assert!((measure.of(&graded) - 1.0 / 3_f64.log2()).abs() < 1e-12);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Measure {
    family: Family,
    /// Number of documents looked at, not 0; without it all.
    cutoff: Option<usize>,
    /// The smallest grade that makes a document relevant, at least 1.
    rel: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Family {
    Ndcg(Gain),
    Recall,
    Precision,
    AveragePrecision,
    ReciprocalRank,
    Success,
    Judged,
}

/// A ranking and the judgements of its query, reduced to grades.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graded {
    /// Grades of the retrieved documents, best document first; none where a document is not judged.
    retrieved: Vec<Option<i32>>,
    /// Grades of all judged documents, highest first.
    judged: Vec<i32>,
}

impl Measure {
    /// The worth of the ranking.
    pub fn of(&self, graded: &Graded) -> f64 {
        let top = match self.cutoff {
            Some(cutoff) => &graded.retrieved[..cutoff.min(graded.retrieved.len())],
            None => &graded.retrieved,
        };
        let n_relevant = || graded.judged.partition_point(|grade| *grade >= self.rel);
        // trec_eval's precision has the cutoff as its denominator, however few documents there are.
        let depth = self.cutoff.unwrap_or(top.len());
        match self.family {
            Family::Ndcg(gain) => {
                let n_ideal = self.cutoff.unwrap_or(usize::MAX).min(graded.judged.len());
                ndcg::ndcg(top, &graded.judged[..n_ideal], gain)
            }
            Family::Recall => recall::recall(relevance(top, self.rel), n_relevant()),
            Family::Precision => precision::precision(relevance(top, self.rel), depth),
            Family::AveragePrecision => average_precision::average_precision(relevance(top, self.rel), n_relevant()),
            Family::ReciprocalRank => reciprocal_rank::reciprocal_rank(relevance(top, self.rel)),
            Family::Success => success::success(relevance(top, self.rel)),
            Family::Judged => judged::judged(top),
        }
    }
}

impl Graded {
    /// From the grades of the retrieved documents, best document first, and those of all judged documents, in any
    /// order.
    pub fn new(retrieved: impl Into<Vec<Option<i32>>>, judged: impl Into<Vec<i32>>) -> Self {
        let (retrieved, mut judged) = (retrieved.into(), judged.into());
        judged.sort_unstable_by(|a, b| b.cmp(a));
        Self { retrieved, judged }
    }

    /// From hits, best first, and the judgements of their query.
    pub fn from_hits(hits: &[Hit], judgements: &Judgements) -> Self {
        let retrieved: Vec<_> = hits.iter().map(|hit| judgements.grade(&hit.document)).collect();
        Self::new(retrieved, judgements.iter().map(|(_, grade)| grade).collect::<Vec<_>>())
    }
}

/// True for each relevant document.
fn relevance(top: &[Option<i32>], rel: i32) -> impl Iterator<Item = bool> {
    top.iter().map(move |grade| grade.is_some_and(|grade| grade >= rel))
}

#[cfg(test)]
mod tests;
