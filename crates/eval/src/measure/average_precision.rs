//! Average precision: the precision at each relevant document, averaged over all relevant documents.
//!
//! Source: trec_eval's `map` and `map_cut_k`: the sum of `n_found / rank` at the ranks of relevant documents, divided
//! by the number of relevant documents, retrieved or not; a cutoff does not make that number smaller.
//! Range: `[0, 1]`; 0 when nothing is relevant.

pub(super) fn average_precision(relevance: impl Iterator<Item = bool>, n_relevant: usize) -> f64 {
    if n_relevant == 0 {
        return 0.0;
    }
    let ranks = relevance.zip(1_u32..).filter(|(relevant, _)| *relevant).map(|(_, rank)| rank);
    let precisions = ranks.zip(1_u32..).map(|(rank, n_found)| f64::from(n_found) / f64::from(rank));
    precisions.sum::<f64>() / n_relevant as f64
}
