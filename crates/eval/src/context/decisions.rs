//! Decisions: why candidates were left out, and how much of what was looked at was called redundant.
//!
//! Source: arXiv 2601.10681, section 6: shares of the rejections by reason. `redundant_share` is
//! `redundant / (redundant + delivered)`: of the candidates that had room, those that the redundancy gate kept out.
//! Range: `[0, 1]`; none where the writer kept no record, or where nothing was rejected.

use crate::contexts::Context;

/// Reasons of delivery.
const DELIVERED: [&str; 2] = ["passed_all_gates", "cut_to_fit"];
/// The reason of the redundancy gate.
const REDUNDANT: &str = "too_redundant";
/// Figures of the rejections, and the reasons that each counts.
const REJECTIONS: [(&str, &[&str]); 4] = [
    ("rejected_redundancy", &[REDUNDANT]),
    ("rejected_budget", &["budget_exceeded", "dropped_in_repair"]),
    ("rejected_section", &["section_budget_exceeded", "section_chunks_exceeded", "document_chunks_exceeded"]),
    ("rejected_relevance", &["low_relevance", "beyond_candidates"]),
];

/// Redundant candidates among those delivered or redundant.
pub fn redundant_share(context: &Context) -> Option<f64> {
    let redundant = count(context, &[REDUNDANT]);
    share(redundant, redundant + count(context, &DELIVERED))
}

/// For each kind of reason its name and its share of the rejections.
pub fn rejections(context: &Context) -> impl Iterator<Item = (&'static str, Option<f64>)> {
    let all: u64 = REJECTIONS.iter().map(|(_, reasons)| count(context, reasons)).sum();
    REJECTIONS.iter().map(move |(name, reasons)| (*name, share(count(context, reasons), all)))
}

fn count(context: &Context, reasons: &[&str]) -> u64 {
    reasons.iter().filter_map(|reason| context.decisions.get(*reason)).sum()
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_was_rejected() {
        let decisions = [("passed_all_gates", 3), ("too_redundant", 1), ("budget_exceeded", 2), ("low_relevance", 1)];
        let decisions = decisions.map(|(reason, n)| (reason.to_owned(), n)).into();
        let context = Context { decisions, ..Context::default() };
        assert_eq!(redundant_share(&context), Some(0.25));
        let expected = [0.25, 0.5, 0.0, 0.25].map(Some);
        assert_eq!(rejections(&context).map(|(_, share)| share).collect::<Vec<_>>(), expected);
        assert_eq!(redundant_share(&Context::default()), None);
    }
}
