//! Recall: the share of the relevant documents that was retrieved.
//!
//! Source: trec_eval's `recall_k`: relevant among the first k / relevant in all.
//! Range: `[0, 1]`; 0 when nothing is relevant.

pub(super) fn recall(relevance: impl Iterator<Item = bool>, n_relevant: usize) -> f64 {
    match n_relevant {
        0 => 0.0,
        _ => relevance.filter(|relevant| *relevant).count() as f64 / n_relevant as f64,
    }
}
