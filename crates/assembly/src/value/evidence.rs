//! Evidence: whether a collection has anything to say to a question at all, before any chunk of it is chosen.
//!
//! Scores of retrieval rank the chunks of one collection; the best of them stands high even where none is of any use.
//! Two figures do mean the same for every question: how near the nearest chunk is, between two texts that have nothing
//! to do with each other (0) and a sentence and the chunk it stands in (1), both measured with the collection's own
//! encoder; and how much of what BM25 could give to the question's words its best chunk has. Their sum is the support.
//! Range: 0 and less for a question on nothing in the collection, 1 and more for one that a chunk answers in its own
//! words.
//! Source: ours. That both weigh alike, and the default threshold, were chosen on twelve collections, each asked the
//! questions of the others.
//!
//! The same of one chunk gives the likelihood that it answers: even odds at [`SUPPORTED`], and without any support the
//! odds of a chunk that nobody has read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::share::PRIOR;

/// The support below which a collection is taken to have no answer.
pub const SUPPORTED: f64 = 0.62;

/// The match of a question and the best chunk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Cosine of the question and the nearest chunk, in [-1, 1].
    pub cosine: f64,
    /// The cosine that is typical between a sentence of the collection and its own chunk.
    pub cosine_typical: f64,
    /// The cosine between texts that have nothing to do with each other; less than `cosine_typical`.
    pub cosine_unrelated: f64,
    /// The best BM25 score of a chunk as a share of what no chunk could exceed, in [0, 1].
    pub words: f64,
}

impl Evidence {
    /// The support that the collection gives to an answer.
    #[must_use]
    pub fn support(&self) -> f64 {
        let span = (self.cosine_typical - self.cosine_unrelated).max(f64::MIN_POSITIVE);
        (self.cosine - self.cosine_unrelated) / span + self.words
    }

    /// The likelihood that the chunk of this match answers, in (0, 1): its logarithmic odds grow with the support in a
    /// straight line.
    #[must_use]
    pub fn likelihood(&self) -> f64 {
        let unread = (PRIOR / (1.0 - PRIOR)).ln();
        1.0 / (1.0 + (-unread * (1.0 - self.support() / SUPPORTED)).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_even_at_the_gate_and_those_of_the_unread_without_support() {
        let likelihood = |support: f64| {
            Evidence { cosine: support, cosine_typical: 1.0, cosine_unrelated: 0.0, words: 0.0 }.likelihood()
        };
        assert!((likelihood(SUPPORTED) - 0.5).abs() < 1e-12);
        assert!((likelihood(0.0) - PRIOR).abs() < 1e-12);
        let rising: Vec<f64> = (-10..30).map(|tenth| likelihood(f64::from(tenth) / 10.0)).collect();
        assert!(rising.is_sorted_by(|a, b| a < b) && rising.iter().all(|p| (0.0..1.0).contains(p)), "{rising:?}");
    }

    #[test]
    fn support_is_on_the_scale_of_the_encoder() {
        let evidence = Evidence { cosine: 0.3, cosine_typical: 0.6, cosine_unrelated: 0.0, words: 0.5 };
        assert!((evidence.support() - 1.0).abs() < 1e-12);
        // An encoder whose cosines all lie between .7 and 1 says the same.
        let squeezed = |cosine: f64| 0.7 + 0.3 * cosine;
        let other = Evidence {
            cosine: squeezed(evidence.cosine),
            cosine_typical: squeezed(evidence.cosine_typical),
            cosine_unrelated: squeezed(evidence.cosine_unrelated),
            words: evidence.words,
        };
        assert!((other.support() - evidence.support()).abs() < 1e-12);
    }
}
