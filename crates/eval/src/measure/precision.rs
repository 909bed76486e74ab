//! Precision: the share of the first k documents that is relevant.
//!
//! Source: trec_eval's `P_k`: relevant among the first k / k, where a ranking of fewer than k is filled up with
//! documents that are not relevant.
//! Range: `[0, 1]`.

pub(super) fn precision(relevance: impl Iterator<Item = bool>, depth: usize) -> f64 {
    match depth {
        0 => 0.0,
        _ => relevance.filter(|relevant| *relevant).count() as f64 / depth as f64,
    }
}
