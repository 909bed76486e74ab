//! BM25: how much the occurrences of a term are worth in a unit of text, be it a chunk or a document.
//!
//! Source: Robertson and Zaragoza 2009, eq. 3.15 without the constant factor `k1 + 1`, as Lucene since version 8, so
//! that scores compare with Lucene's, Anserini's and bm25s's; the idf is Lucene's, `ln(1 + (N - n + 0.5) / (n + 0.5))`,
//! never negative. A header is combined with its text before the saturation (BM25F, their eq. 3.19 with one `b`),
//! because two saturations added up count a word that stands in both twice.
//! Differs: lengths are exact, not one lossy byte.
//! Range: a term adds `[0, idf)` each time the query names it, larger is better; scores of two collections are not
//! comparable.
//! Cost: one division a posting.

use crate::{Error, Result};

/// Saturation of the term frequency; the value of Anserini and BEIR.
pub const DEFAULT_K1: f64 = 0.9;

/// Share of length normalisation; the value of Anserini and BEIR.
pub const DEFAULT_B: f64 = 0.4;

/// Worth of an occurrence in the header of a chunk, in occurrences in its text: as if the header stood in the text.
/// Twice that ranked titled abstracts a little better (by .003 to .01 nDCG@10), but a header repeats on every chunk of
/// its section.
pub const DEFAULT_HEADER_WEIGHT: f64 = 1.0;

/// Largest `k1` and header weight: beyond it sums would lose the digits that rankings are made of.
pub const PARAMETER_MAX: f64 = 1000.0;

/// The free parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25 {
    /// The slowness with which a repeated term saturates, from 0 (at once) to [`PARAMETER_MAX`].
    pub k1: f64,
    /// The discount of longer texts: 0 not at all, 1 in full.
    pub b: f64,
    /// Worth of an occurrence in the header, in occurrences in the text, from 0 to [`PARAMETER_MAX`]. Ranking documents
    /// has no use for it: a title counts as text there.
    pub header_weight: f64,
}

impl Default for Bm25 {
    fn default() -> Self {
        Self { k1: DEFAULT_K1, b: DEFAULT_B, header_weight: DEFAULT_HEADER_WEIGHT }
    }
}

impl Bm25 {
    /// Refuses values no ranking can come from.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value, max, range) in [
            ("k1", self.k1, PARAMETER_MAX, "from 0 to 1000"),
            ("b", self.b, 1.0, "from 0 to 1"),
            ("header_weight", self.header_weight, PARAMETER_MAX, "from 0 to 1000"),
        ] {
            if !(0.0..=max).contains(&value) {
                return Err(Error::Parameter { name, value, range });
            }
        }
        Ok(())
    }

    /// Share of its idf that a term contributes, `[0, 1)`; 0 only for `tf` 0 (and 1 for `k1` 0).
    pub(crate) fn saturation(&self, tf: f64, length: f64, average_length: f64) -> f64 {
        tf / (tf + self.k1 * (1.0 - self.b + self.b * length / average_length))
    }
}

/// Rarity of a term that `df` of `n` units contain.
pub(crate) fn idf(n: u64, df: u64) -> f64 {
    let (n, df) = (n as f64, df as f64);
    ((n - df + 0.5) / (df + 0.5)).ln_1p()
}
