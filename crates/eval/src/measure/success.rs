//! Success: whether a relevant document is among the first k.
//!
//! Source: trec_eval's `success_k`; elsewhere hit rate, Pass@k or, of question answering, recall@k.
//! Range: 0 or 1.

pub(super) fn success(mut relevance: impl Iterator<Item = bool>) -> f64 {
    f64::from(relevance.any(|relevant| relevant))
}
