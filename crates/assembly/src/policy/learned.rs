//! Learned priors: how much more often answers stand under a heading than a search looks for them there.
//!
//! `ln((hits + m) / (expected + m))`, in nats: ln 2 where there are twice as many answers as expected, 0 where nothing
//! is known. `m` questions that found what was expected are imagined beside the real ones, so that a few say little
//! (the mean of a Gamma-Poisson model). One document is left out, in turn each: of all these values the one nearest 0
//! counts, and none that changes its sign, so that no label owes its prior to one document.
//!
//! Range: `[-NATS_MAX, NATS_MAX]`.
//! Cost: one logarithm for each document that has the label.

use super::Policy;
use crate::strategies::Strategy;

/// Questions that are imagined to have found what was expected.
const SMOOTHING: f64 = 2.0;

/// Documents that must have a label for it to have a prior.
pub const DOCUMENTS_MIN: usize = 3;

/// A prior makes a chunk at most e^1.5, or 4.5, times as likely, or as unlikely.
pub const NATS_MAX: f64 = 1.5;

/// The votes of questions on one document under a label. Each question has one vote for both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Asked {
    /// Votes for where answers stand.
    pub hits: f64,
    /// Votes for where they were looked for.
    pub expected: f64,
}

/// The prior of a label in nats, from the documents that have it; none where they are fewer than [`DOCUMENTS_MIN`].
pub fn nats(documents: &[Asked]) -> Option<f64> {
    if documents.len() < DOCUMENTS_MIN {
        return None;
    }
    let hits: f64 = documents.iter().map(|document| document.hits).sum();
    let expected: f64 = documents.iter().map(|document| document.expected).sum();
    let without = |left_out: &Asked| {
        let ratio = (hits - left_out.hits).max(0.0) + SMOOTHING;
        (ratio / ((expected - left_out.expected).max(0.0) + SMOOTHING)).ln()
    };
    let of_all = without(&Asked::default());
    let least = documents.iter().map(|left_out| without(left_out) * of_all.signum()).fold(of_all.abs(), f64::min);
    Some(of_all.signum() * least.clamp(0.0, NATS_MAX) + 0.0)
}

/// A prior as the policies of a strategy state it, to three digits; none where the strategy has no priors.
pub fn in_policy(nats: f64, strategy: Strategy) -> Option<f64> {
    let policy = Policy::default();
    let unit = policy.chooser(strategy, "").nat()?;
    Some((nats * unit * 1e3).round() / 1e3 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    fn asked(documents: &[(f64, f64)]) -> Vec<Asked> {
        documents.iter().map(|&(hits, expected)| Asked { hits, expected }).collect()
    }

    #[track_caller]
    fn check(documents: &[(f64, f64)], ratio: f64) {
        let nats = nats(&asked(documents)).unwrap();
        assert!((nats - ratio.ln()).abs() < 1e-12, "{nats}, expected ln {ratio}");
    }

    #[test]
    fn a_prior_is_the_logarithm_of_a_smoothed_ratio_without_the_document_that_speaks_for_it_most() {
        check(&[(4.0, 1.0), (4.0, 1.0), (4.0, 1.0)], (8.0 + 2.0) / (2.0 + 2.0));
        check(&[(5.0, 1.0), (4.0, 1.0), (3.0, 1.0)], (7.0 + 2.0) / (2.0 + 2.0));
        check(&[(0.0, 4.0), (0.0, 3.0), (0.0, 2.0)], 2.0 / (5.0 + 2.0));
        check(&[(2.0, 2.0), (1.0, 1.0), (3.0, 3.0)], 1.0);
    }

    #[test]
    fn one_document_alone_gives_no_label_a_prior() {
        check(&[(90.0, 1.0), (0.0, 1.0), (0.0, 1.0)], 1.0);
        check(&[(0.0, 30.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0)], 1.0);
    }

    #[test]
    fn what_nothing_is_known_of_has_no_prior() {
        assert_eq!(nats(&[]), None);
        assert_eq!(nats(&asked(&[(9.0, 1.0), (9.0, 1.0)])), None);
        assert_eq!(nats(&asked(&[(0.0, 0.0); 3])), Some(0.0));
    }

    #[test]
    fn a_prior_is_stated_in_the_units_of_its_strategy() {
        assert_eq!(in_policy(0.69315, Strategy::Cento), Some(0.693));
        assert_eq!(in_policy(-1.0, Strategy::Bubble), Some(-0.2));
        assert_eq!(in_policy(1.0, Strategy::Flat), None);
    }

    proptest! {
        #[test]
        fn priors_are_bounded_and_grow_with_hits(
            documents in prop::collection::vec((0.0..1e4_f64, 0.0..1e4_f64), 3..9), more in 0.0..100.0_f64,
        ) {
            let prior = nats(&asked(&documents)).unwrap();
            prop_assert!((-NATS_MAX..=NATS_MAX).contains(&prior));
            let asked_more: Vec<_> = documents.iter().map(|&(hits, expected)| (hits + more, expected)).collect();
            prop_assert!(nats(&asked(&asked_more)).unwrap() >= prior - 1e-9);
            let mut other_order = documents.clone();
            other_order.reverse();
            prop_assert!((nats(&asked(&other_order)).unwrap() - prior).abs() < 1e-9);
        }
    }
}
