//! Judged: the share of the first k documents that has a judgement, whatever the grade.
//!
//! Source: ir_measures' `Judged@k`: judged among the first k / the smaller of k and the number of documents.
//! Differs: equal scores are in trec_eval's order, not by ascending document id.
//! Range: `[0, 1]`; 0 when nothing was retrieved.

pub(super) fn judged(top: &[Option<i32>]) -> f64 {
    match top.len() {
        0 => 0.0,
        n => top.iter().flatten().count() as f64 / n as f64,
    }
}
