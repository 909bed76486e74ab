//! The settings of `cento`, their ranges, and the gates that it keeps to.

use crate::error::{Error, Result};
use crate::select::gates::{Gates, RUN_MAX};
use crate::value::evidence::SUPPORTED;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of [`Strategy::Cento`](crate::Strategy::Cento).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cento {
    /// Chunks that are weighed, the likeliest; the others are left out unread.
    pub candidates: usize,
    /// Most chunks in a row. None: no limit.
    pub run_max: Option<usize>,
    /// Share of the shorter chunk's three-word runs, weighed by idf, in another of its document from which one of the
    /// two is left out, in (0, 1]; half as much between two documents.
    pub same_words: f64,
    /// Cosine of two chunks' vectors from which one is left out, in (0, 1].
    pub same_meaning: f64,
    /// Lifts documents that the question or likely text names.
    pub bridges: bool,
    /// The worth of meeting every need of the question, in chunks as good as the best that meets it; 0: needs are not
    /// looked at.
    pub coverage: f64,
    /// Likelihood below which a chunk is left out although it would fit, in even shares: likelihoods add up to 1, and
    /// of N candidates one that nothing speaks for has 1/N. 0: the budget is filled.
    pub least_share: f64,
    /// Support below which nothing is delivered, see [`crate::evidence`]; 0: something always is.
    pub min_support: f64,
}

/// The worth of meeting every need. A half gains little, four costs evidence where questions are long and answers lie
/// in runs.
const COVERAGE: f64 = 2.0;

impl Default for Cento {
    fn default() -> Self {
        Self {
            candidates: 400,
            run_max: None,
            same_words: 0.8,
            same_meaning: 0.98,
            bridges: true,
            coverage: COVERAGE,
            least_share: 0.0,
            min_support: SUPPORTED,
        }
    }
}

impl Cento {
    pub(crate) fn check(&self) -> Result<()> {
        Error::unless(self.candidates > 0, "cento.candidates", "must be at least 1")?;
        Error::unless(self.run_max != Some(0), "cento.run_max", "must be at least 1")?;
        Error::unless(self.run_max.is_none_or(|max| max <= RUN_MAX), "cento.run_max", "must be at most 100")?;
        let positive = |value: f64| value >= 0.0 && value.is_finite();
        Error::unless(positive(self.min_support), "cento.min_support", "must be a number, 0 or more")?;
        Error::unless(positive(self.coverage), "cento.coverage", "must be a number that is not negative")?;
        Error::unless(positive(self.least_share), "cento.least_share", "must be a number that is not negative")?;
        for (share, key) in [(self.same_words, "cento.same_words"), (self.same_meaning, "cento.same_meaning")] {
            Error::unless(share > 0.0 && share <= 1.0, key, "must be above 0 and at most 1")?;
        }
        Ok(())
    }
}

/// The settings and gates that the choice of segments keeps to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'p> {
    pub(crate) settings: Cento,
    pub(crate) gates: Gates<'p>,
}
