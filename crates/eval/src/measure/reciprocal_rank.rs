//! Reciprocal rank: one over the rank of the first relevant document.
//!
//! Source: trec_eval's `recip_rank`; with a cutoff, that of the first k documents, as MS MARCO has it (`MRR@10`).
//! Range: `[0, 1]`; 0 when no relevant document was retrieved.

pub(super) fn reciprocal_rank(mut relevance: impl Iterator<Item = bool>) -> f64 {
    relevance.position(|relevant| relevant).map_or(0.0, |n_before| 1.0 / (n_before + 1) as f64)
}
