//! Gold-title precision and recall: how many of the delivered documents are gold, and how many of the gold ones are
//! delivered.
//!
//! Source: SEAL-RAG (arXiv 2512.10787): `P = |E & G| / |E|`, `R = |E & G| / |G|`, `F1 = 2PR / (P + R)`; `E` delivered,
//! `G` gold.
//! Differs: at a cutoff `k` the set is the first `k` documents of the context, so `|E| <= k` is true; their released
//! code delivers more than `k`. Without a cutoff `E` is every document that the budget brought.
//! Range: `[0, 1]`. Nothing delivered: P = R = F1 = 0. P is at most `min(1, |G| / |E|)`, R at most `min(1, k / |G|)`.
//! Cost: one search among the gold documents for each delivered one.

use std::collections::HashSet;

/// Precision and recall of the delivered documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Titles {
    /// Share of the delivered documents that is gold.
    pub precision: f64,
    /// Share of the gold documents that is delivered.
    pub recall: f64,
}

impl Titles {
    /// Of delivered documents, each counted once, against gold ones (sorted, each once, at least one).
    pub fn of(delivered: &[String], gold: &[String]) -> Self {
        let delivered: HashSet<&String> = delivered.iter().collect();
        let n_found = delivered.iter().filter(|document| gold.binary_search(document).is_ok()).count() as f64;
        Self { precision: n_found / delivered.len().max(1) as f64, recall: n_found / gold.len().max(1) as f64 }
    }

    /// The harmonic mean of both; 0 where both are.
    pub fn f1(self) -> f64 {
        match self.precision + self.recall {
            0.0 => 0.0,
            sum => 2.0 * self.precision * self.recall / sum,
        }
    }

    /// 1 if every gold document is delivered, else 0.
    pub fn all_gold(self) -> f64 {
        f64::from(self.recall == 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(delivered: &str, gold: &str, precision: f64, recall: f64, f1: f64) {
        let ids = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let titles = Titles::of(&ids(delivered), &ids(gold));
        assert_eq!((titles.precision, titles.recall, titles.f1()), (precision, recall, f1));
        assert_eq!(titles.all_gold(), f64::from(recall == 1.0));
    }

    #[test]
    fn precision_is_over_delivered_and_recall_over_gold_documents() {
        check("a x b y", "a b c", 2.0 / 4.0, 2.0 / 3.0, 2.0 * 0.5 * (2.0 / 3.0) / (0.5 + 2.0 / 3.0));
        check("a b", "a b", 1.0, 1.0, 1.0);
        check("x", "a b", 0.0, 0.0, 0.0);
    }

    #[test]
    fn a_document_listed_twice_counts_once() {
        check("a a x", "a", 1.0 / 2.0, 1.0, 2.0 * 0.5 / 1.5);
    }

    #[test]
    fn nothing_delivered_is_worth_nothing() {
        check("", "a b", 0.0, 0.0, 0.0);
    }
}
